//! Tables in CSV: rows with their lines, columns by their names.

use std::{collections::HashMap, io::Read};

use csv::{ReaderBuilder, StringRecord};

use super::{Fault, NOT_TEXT, gathered::Gathered};

/// A CSV with a header.
pub(super) struct Table {
    places: HashMap<String, usize>,
}

/// Columns of a kind of table.
pub(super) struct KnownColumns<'a> {
    /// Every such table has them.
    pub(super) needed: &'a [&'a str],
    /// Returns true if the documentation says how import treats a column.
    pub(super) is_known: fn(&str) -> bool,
}

/// A column that no parser knows, with the number of its values.
#[derive(Debug, Clone)]
struct UnreadColumn {
    name: String,
    place: usize,
    values: u64,
}

/// A row of it.
pub(super) struct TableRow<'a> {
    table: &'a Table,
    record: &'a StringRecord,
    pub(super) line: u64,
}

/// Longer texts are no names and no parameters.
const TEXT_MOST: usize = 4096;

impl Table {
    /// Passes each row on, and counts the values of unknown columns. Every row must have as many columns as the
    /// header.
    pub(super) fn each(
        text: impl Read,
        columns: &KnownColumns<'_>,
        gathered: &mut Gathered<'_>,
        mut take: impl FnMut(&TableRow<'_>, &mut Gathered<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut reader = ReaderBuilder::new().from_reader(text);
        let header = reader.headers().map_err(|error| fault(&error))?.clone();
        let table = Table::of(&header, columns.needed)?;
        let mut unread = unread(&header, columns);
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| fault(&error))? {
            let line = record.position().map_or(0, csv::Position::line);
            if let Some(long) = record.iter().find(|text| text.len() > TEXT_MOST) {
                return Err(Fault::at(line, format!("a text of {} bytes: at most {TEXT_MOST}", long.len())));
            }
            for column in &mut unread {
                column.values += u64::from(!record[column.place].trim().is_empty());
            }
            take(&TableRow { table: &table, record: &record, line }, gathered)?;
        }
        for UnreadColumn { name, values, .. } in unread.into_iter().filter(|column| column.values > 0) {
            gathered.leave_out_many(format!("values of the column `{name}`"), values);
        }
        Ok(())
    }

    fn of(header: &StringRecord, needed: &[&str]) -> Result<Self, Fault> {
        let mut places = HashMap::new();
        for (place, name) in header.iter().enumerate() {
            if places.insert(name.trim().to_owned(), place).is_some() {
                return Err(Fault::at(1, format!("the column `{name}` is there twice")));
            }
        }
        match needed.iter().find(|name| !places.contains_key(**name)) {
            Some(name) => Err(Fault::at(1, format!("the column `{name}` is missing"))),
            None => Ok(Table { places }),
        }
    }
}

fn unread(header: &StringRecord, columns: &KnownColumns<'_>) -> Vec<UnreadColumn> {
    let names = header.iter().map(str::trim).enumerate();
    let unknown = names.filter(|(_, name)| !(columns.is_known)(name));
    unknown.map(|(place, name)| UnreadColumn { name: name.to_owned(), place, values: 0 }).collect()
}

/// With its line where the reader knows it.
fn fault(error: &csv::Error) -> Fault {
    let line = error.position().map(csv::Position::line);
    let why = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns, and the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => NOT_TEXT.to_owned(),
        _ => error.to_string(),
    };
    Fault { line, why }
}

/// Values by the names of their columns: a row of a table, or a document with the same values.
pub(super) trait Fields {
    /// The text of a column, without spaces around it; empty if there is no column of this name.
    fn text(&self, column: &str) -> &str;

    /// The line that a fault of these values is at.
    fn line(&self) -> u64;

    /// A number that is at least zero; `None` of an empty column.
    fn number(&self, column: &str) -> Result<Option<f64>, Fault> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        number(text).map(Some).ok_or_else(|| {
            Fault::at(self.line(), format!("{column} `{text}`: write a number that is at least zero"))
        })
    }

    /// A count; `None` of an empty column.
    fn count(&self, column: &str) -> Result<Option<u64>, Fault> {
        let Some(number) = self.number(column)? else { return Ok(None) };
        super::gathered::count(number, self.line()).map(Some)
    }
}

impl Fields for TableRow<'_> {
    fn text(&self, column: &str) -> &str {
        let place = self.table.places.get(column);
        place.and_then(|place| self.record.get(*place)).unwrap_or_default().trim()
    }

    fn line(&self) -> u64 {
        self.line
    }
}

/// A number that is finite and at least zero.
pub(super) fn number(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse::<f64>().ok().filter(|number| digits && number.is_finite() && *number >= 0.0)
}
