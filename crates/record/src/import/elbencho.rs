//! CSV and JSON of elbencho (`--csvfile`, `--jsonfile`): a row or a document for each phase. Import takes the
//! figures at the time when the last thread was done. It ignores the least, the mean and the greatest latency,
//! because no distribution follows from them.
//!
//! Columns are those of its documentation (docs/csv-docs.md of elbencho 3). A phase that reads and writes at
//! the same time (`--rwmixpct`, `--rwmixthr`) has its reads in columns of their own: it becomes a `write` and a
//! `read` of one cell.

use std::collections::HashMap;

use nilometer_command_lines::{elbencho_limits, elbencho_path};
use nilometer_model::{Bytes, Nanos, Phase};
use nilometer_plan::ImportedRun;
use serde::Deserialize;

use super::{
    Fault,
    agreement::SameFigure,
    dates,
    gathered::{Gathered, GivenFigure, GivenWork, count, nanos},
    json_fault::json_fault,
    table::{Fields, KnownColumns, Table},
};

/// Returns true if a line is the header of such a table.
pub(super) fn is_header(line: &str) -> bool {
    line.contains("operation,time ms [first],time ms [last]")
}

const NEEDED: [&str; 4] = ["operation", "time ms [last]", "entries [last]", "MiB [last]"];
const MEBI: f64 = 1024.0 * 1024.0;

/// Returns true if import takes the column, if it is for the first thread done, or if docs/import.md names it
/// as ignored.
fn is_known(column: &str) -> bool {
    const PARTS: [&str; 4] = ["[first]", "[last]", " lat us [", "rwmix read "];
    const NAMES: [&str; 19] = [
        "ISO date",
        "label",
        "path type",
        "paths",
        "hosts",
        "threads",
        "dirs",
        "files",
        "file size",
        "block size",
        "direct IO",
        "random",
        "random aligned",
        "IO depth",
        "shared paths",
        "truncate",
        "operation",
        "version",
        "command",
    ];
    NAMES.contains(&column) || PARTS.iter().any(|part| column.contains(part))
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let columns = KnownColumns { needed: &NEEDED, is_known };
    Table::each(text.as_bytes(), &columns, gathered, |row, gathered| take(row, gathered))
}

fn take(row: &impl Fields, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let operation = Operation::of(row.text("operation"));
    let mixed = Amount::of(row, "rwmix read ")?;
    let amount = Amount::of(row, "")?;
    if operation.phase == Phase::Given && amount.is_nothing() {
        gathered.leave_out(format!("rows of {}", operation.name));
        return Ok(());
    }
    let wall = wall(row)?;
    if wall.0 == 0 {
        gathered.leave_out("rows that took less than a millisecond, the resolution of its times");
        return Ok(());
    }
    let milliseconds = row.number("time ms [last]")?.unwrap_or(0.0);
    add(row, &operation, &amount, Timed { wall, milliseconds }, gathered)?;
    if mixed.is_nothing() {
        return Ok(());
    }
    // The write above and these reads took the same time, and are of one cell.
    let reads = Operation { phase: Phase::Read, ..operation };
    add(row, &reads, &mixed, Timed { wall, milliseconds }, gathered)
}

/// A phase of elbencho.
#[derive(Debug, Clone)]
struct Operation {
    phase: Phase,
    /// Its name, if the phase does not contain it.
    name: String,
    /// Reads beside writes, such as `RWMIX70`: a parameter of both.
    mix: String,
}

impl Operation {
    fn of(text: &str) -> Self {
        let (kind, inline) = text.split_once('+').map_or((text, ""), |(kind, inline)| (kind, inline));
        let is_mix = kind.starts_with("RWMIX") || kind.starts_with("MIX-T");
        let phase = match kind {
            "WRITE" => Phase::Write,
            "READ" => Phase::Read,
            "STAT" => Phase::StatFiles,
            "STATDIRS" => Phase::StatDirectories,
            "MKDIRS" => Phase::MakeDirectories,
            "RMDIRS" => Phase::RemoveDirectories,
            "RMFILES" => Phase::RemoveFiles,
            _ if is_mix => Phase::Write,
            _ => Phase::Given,
        };
        let mix = if is_mix || !inline.is_empty() { text.to_lowercase() } else { String::new() };
        Operation { phase, name: text.to_owned(), mix }
    }
}

/// The work of a phase until its last thread was done.
#[derive(Debug, Clone, Copy)]
struct Amount {
    entries: f64,
    entry_rate: f64,
    mebibytes: f64,
    /// MiB a second.
    rate: f64,
    operation_rate: f64,
}

#[derive(Debug, Clone, Copy)]
struct Timed {
    wall: Nanos,
    /// The same time as elbencho gives it.
    milliseconds: f64,
}

impl Amount {
    /// Figures whose columns begin with `prefix`.
    fn of(row: &impl Fields, prefix: &str) -> Result<Self, Fault> {
        let number = |column: &str| -> Result<f64, Fault> {
            Ok(row.number(&format!("{prefix}{column} [last]"))?.unwrap_or(0.0))
        };
        Ok(Amount {
            entries: number("entries")?,
            entry_rate: number("entries/s")?,
            mebibytes: number("MiB")?,
            rate: number("MiB/s")?,
            operation_rate: number("IOPS")?,
        })
    }

    fn is_nothing(&self) -> bool {
        let Amount { entries, entry_rate, mebibytes, rate, operation_rate } = *self;
        [entries, entry_rate, mebibytes, rate, operation_rate].iter().all(|figure| *figure <= 0.0)
    }

    /// Rates follow from amounts and the time. Rates are whole numbers, amounts are whole MiB, and times whole
    /// milliseconds.
    fn check(&self, milliseconds: f64, line: u64) -> Result<(), Fault> {
        let pairs = [
            ("MiB/s [last]", self.rate, "MiB [last] and time ms [last]", self.mebibytes, "MiB/s"),
            ("entries/s [last]", self.entry_rate, "entries [last] and time ms [last]", self.entries, "1/s"),
        ];
        for (name, given, source, amount, unit) in pairs {
            if given <= 0.0 || milliseconds <= 0.0 {
                continue;
            }
            let follows = amount * 1e3 / milliseconds;
            let slack = 1.0 + 1e3 / milliseconds + follows.max(given) / milliseconds;
            SameFigure { name, given, source, follows, unit, slack }.check(line)?;
        }
        Ok(())
    }

    fn work(&self, phase: Phase, timed: Timed, row: &impl Fields) -> Result<GivenWork, Fault> {
        self.check(timed.milliseconds, row.line())?;
        let moves_data = matches!(phase, Phase::Write | Phase::Read) || self.entries <= 0.0;
        let operations = match self.operation_rate {
            rate if moves_data && rate > 0.0 => count(rate * timed.wall.seconds(), row.line())?,
            _ => count(self.entries, row.line())?,
        };
        Ok(GivenWork {
            bytes: count(self.mebibytes * MEBI, row.line())?,
            operations,
            wall: timed.wall,
            started: dates::iso(row.text("ISO date")).unwrap_or_default(),
            ..GivenWork::default()
        })
    }
}

fn add(
    row: &impl Fields,
    operation: &Operation,
    amount: &Amount,
    timed: Timed,
    gathered: &mut Gathered<'_>,
) -> Result<(), Fault> {
    let did = amount.work(operation.phase, timed, row)?;
    let run = run(row, operation)?;
    gathered.add(GivenFigure { target: target(row), stage: stage(row), run, phase: operation.phase, did });
    Ok(())
}

/// Shorter times are given too coarsely: the rate and the number of entries say them better.
const COARSE_SECONDS: f64 = 0.1;

/// The time until the last thread was done.
fn wall(row: &impl Fields) -> Result<Nanos, Fault> {
    let seconds = row.number("time ms [last]")?.unwrap_or(0.0) / 1e3;
    let rate = row.number("entries/s [last]")?.filter(|rate| *rate > 0.0);
    let entries = row.number("entries [last]")?.filter(|entries| *entries > 0.0);
    match entries.zip(rate).filter(|_| seconds < COARSE_SECONDS) {
        Some((entries, rate)) => nanos(entries / rate, row.line()),
        None => nanos(seconds, row.line()),
    }
}

fn target(row: &impl Fields) -> String {
    elbencho_path(row.text("command")).unwrap_or_else(|| "elbencho".to_owned())
}

fn stage(row: &impl Fields) -> String {
    match row.text("label") {
        "" => "elbencho".to_owned(),
        label => label.to_owned(),
    }
}

/// Parameters that have columns of their own, without those that follow from the rest.
fn run(row: &impl Fields, operation: &Operation) -> Result<ImportedRun, Fault> {
    let mut parameters = Vec::new();
    for column in ["hosts", "threads", "dirs", "files", "IO depth"] {
        if let Some(number) = row.count(column)? {
            parameters.push((column.to_lowercase(), number.to_string()));
        }
    }
    for column in ["file size", "block size"] {
        if let Some(size) = row.count(column)? {
            parameters.push((column.to_owned(), Bytes(size).to_string()));
        }
    }
    for (column, word) in [("direct IO", "direct"), ("random", "random")] {
        if ["1", "true"].contains(&row.text(column)) {
            parameters.push((String::new(), word.to_owned()));
        }
    }
    parameters.extend(rare(row)?);
    if !operation.mix.is_empty() {
        parameters.push((String::new(), operation.mix.clone()));
    } else if !Amount::of(row, "rwmix read ")?.is_nothing() {
        parameters.push((String::new(), "reads beside writes".to_owned()));
    }
    let version = row.text("version");
    let source = format!("elbencho {version}").trim_end().to_owned();
    let figure = if operation.phase == Phase::Given { operation.name.to_lowercase() } else { String::new() };
    Ok(ImportedRun { source, task: String::new(), parameters, figure })
}

/// Parameters that most rows lack.
fn rare(row: &impl Fields) -> Result<Vec<(String, String)>, Fault> {
    let is_set = |column: &str| ["1", "true"].contains(&row.text(column));
    let paths = row.count("paths")?.filter(|count| *count > 1);
    let mut parameters: Vec<(String, String)> =
        paths.into_iter().map(|count| ("paths".to_owned(), count.to_string())).collect();
    if is_set("random") && is_set("random aligned") {
        parameters.push((String::new(), "aligned".to_owned()));
    }
    if is_set("truncate") {
        parameters.push((String::new(), "truncate".to_owned()));
    }
    for (option, limit) in elbencho_limits(row.text("command")) {
        parameters.push((option, format!("{limit}/s")));
    }
    Ok(parameters)
}

/// A document of a phase. elbencho writes all its values as texts.
#[derive(Deserialize)]
struct PhaseDocument {
    phase_type: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    iso_start_date: String,
    #[serde(default)]
    config: HashMap<String, serde_json::Value>,
    last_done: HashMap<String, serde_json::Value>,
}

/// Names of values in documents, and of the columns that hold the same in a table.
const CONFIG: [(&str, &str); 11] = [
    ("hosts", "hosts"),
    ("threads", "threads"),
    ("dirs", "dirs"),
    ("files", "files"),
    ("io_depth", "IO depth"),
    ("file_size", "file size"),
    ("block_size", "block size"),
    ("direct_io", "direct IO"),
    ("random_offsets", "random"),
    ("version", "version"),
    ("command", "command"),
];

/// A document with the columns that it would have in a table.
struct PhaseFields(HashMap<String, String>);

impl Fields for PhaseFields {
    fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    fn line(&self) -> u64 {
        1
    }
}

pub(super) fn parse_json(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let document: PhaseDocument = serde_json::from_str(text).map_err(|error| json_fault(&error))?;
    take(&document.fields()?, gathered)
}

impl PhaseDocument {
    fn fields(&self) -> Result<PhaseFields, Fault> {
        let mut fields = HashMap::from([
            ("operation".to_owned(), self.phase_type.clone()),
            ("label".to_owned(), self.label.clone()),
            ("ISO date".to_owned(), self.iso_start_date.clone()),
        ]);
        for (name, column) in CONFIG {
            fields.extend(self.config.get(name).map(|value| (column.to_owned(), plain(value))));
        }
        let elapsed = self.last_done.get("elapsed_time_ms").map(plain).unwrap_or_default();
        fields.insert("time ms [last]".to_owned(), elapsed);
        amounts(&mut fields, "", |name| self.last_done.get(name))?;
        if let Some(serde_json::Value::Object(reads)) = self.last_done.get("rwmix_read") {
            amounts(&mut fields, "rwmix read ", |name| reads.get(name))?;
        }
        Ok(PhaseFields(fields))
    }
}

/// Amounts of a document as columns whose names begin with `prefix`.
fn amounts<'a>(
    fields: &mut HashMap<String, String>,
    prefix: &str,
    of: impl Fn(&str) -> Option<&'a serde_json::Value>,
) -> Result<(), Fault> {
    let columns = [
        ("entries/s", "entries/s", 1.0),
        ("entries", "entries", 1.0),
        ("iops", "IOPS", 1.0),
        ("bytes/s", "MiB/s", MEBI),
        ("bytes", "MiB", MEBI),
    ];
    for (name, column, unit) in columns {
        let Some(value) = of(name).map(plain) else { continue };
        let number = super::table::number(&value)
            .ok_or_else(|| Fault::at(1, format!("{name} `{value}`: write a number that is at least zero")))?;
        fields.insert(format!("{prefix}{column} [last]"), (number / unit).to_string());
    }
    Ok(())
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
