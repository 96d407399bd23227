//! Tables in a terminal. If a table is too wide, the renderer drops the columns of the lowest rank first. Then
//! it puts labels above their rows, and at last it moves figures into a second table below.

use super::{
    colour,
    page::{DIM, Page, RED, chars, clipped},
};
use crate::{
    document::{Cell, Column, Role, Row, RowNote, Table},
    words::NONE,
};

/// Letters before each line.
const INDENT: usize = 2;
/// Minimum width of labels; longer ones may stand above their rows.
const LABEL_LEAST: usize = 12;
/// Minimum width of sentences next to a label.
const SENTENCE_LEAST: usize = 60;

/// The columns shown, with their widths.
struct Fit {
    /// A column and its width in letters.
    columns: Vec<(usize, usize)>,
    /// True if labels stand above their rows.
    is_lifted: bool,
}

impl Fit {
    /// Returns the columns in a row, without the label if it stands above them.
    fn beside<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a (usize, usize)> + Clone {
        let is_beside =
            |(column, _): &&(usize, usize)| !(self.is_lifted && table.columns[*column].role == Role::Label);
        self.columns.iter().filter(is_beside)
    }

    /// Rows stand behind the label above them.
    const fn indent(&self) -> usize {
        if self.is_lifted { 2 * INDENT } else { INDENT }
    }
}

impl Page {
    pub(super) fn table(&mut self, table: &Table) {
        for shown in parts(table, self.width() - INDENT) {
            let fit = fit(table, &shown, self.width() - INDENT);
            self.heading(table, &fit);
            let mut last: Option<&Row> = None;
            let mut told = String::new();
            for row in &table.rows {
                self.row(table, &fit, row, last);
                self.notes(&row.notes, &mut told);
                last = Some(row);
            }
        }
    }

    /// Writes no line if no column has a name.
    fn heading(&mut self, table: &Table, fit: &Fit) {
        let named = fit.beside(table);
        if named.clone().all(|(column, _)| table.columns[*column].heading.is_empty()) {
            return;
        }
        let mut line = Vec::new();
        let mut before = None;
        for &(column, width) in named {
            let of = &table.columns[column];
            let heading = if of.role == Role::Label { "" } else { &of.heading };
            line.push((DIM, aligned(of, heading, width, before)));
            before = Some(of.role);
        }
        self.cells(fit.indent(), line);
    }

    fn row(&mut self, table: &Table, fit: &Fit, row: &Row, last: Option<&Row>) {
        let text = |row: &Row, column: usize| row.cells[column].lines.join(" ");
        let is_new = |column: usize| last.is_none_or(|last| text(last, column) != text(row, column));
        let label = table.columns.iter().position(|column| column.role == Role::Label);
        let is_new_label = label.is_some_and(is_new);
        if let Some(label) = label.filter(|_| fit.is_lifted && is_new_label) {
            self.paragraph("", "  ", &text(row, label));
        }
        let mut line = Vec::new();
        let mut before = None;
        for &(column, width) in fit.beside(table) {
            let of = &table.columns[column];
            let cell = &row.cells[column];
            if of.role == Role::Sentence {
                line.push(("", aligned(of, "", 0, before)));
                return self.sentences(fit.indent(), line, cell);
            }
            let is_shown = match of.role {
                Role::Label => is_new_label,
                Role::Group => is_new_label || is_new(column),
                _ => true,
            };
            let shown = if is_shown { clipped(&text(row, column), width) } else { String::new() };
            line.push((colour(cell.tone), aligned(of, &shown, width, before)));
            before = Some(of.role);
        }
        self.cells(fit.indent(), line);
    }

    fn cells(&mut self, indent: usize, cells: Vec<(&'static str, String)>) {
        let indent = ("", " ".repeat(indent));
        self.painted(std::iter::once(indent).chain(cells));
    }

    /// Wraps the last column; the cells before it stand in its first line.
    fn sentences(&mut self, indent: usize, before: Vec<(&'static str, String)>, cell: &Cell) {
        let before: String = before.into_iter().map(|(_, text)| text).collect();
        let mut first = format!("{}{before}", " ".repeat(indent));
        for line in &cell.lines {
            self.paragraph(colour(cell.tone), &first, line);
            first = " ".repeat(chars(&first));
        }
    }

    /// Writes "as above" for a reason that the last note had too.
    fn notes(&mut self, notes: &[RowNote], told: &mut String) {
        for RowNote { text, reason } in notes {
            let text = if reason == told { text.replace(reason.as_str(), "as above") } else { text.clone() };
            self.paragraph(RED, "      ", &text);
            told.clone_from(reason);
        }
    }
}

/// Formats a cell with the gap after it, or before it if it is aligned right. `before` is the previous column.
fn aligned(column: &Column, text: &str, width: usize, before: Option<Role>) -> String {
    let gap = if before == Some(Role::Figure) { "  " } else { "" };
    match column.role {
        Role::Figure => format!(" {text:>width$}"),
        Role::Sentence => format!("{gap}{text}"),
        _ => format!("{gap}{text:<width$}  "),
    }
}

/// Letters of a column with its gap.
fn natural(table: &Table, column: usize) -> usize {
    let of = &table.columns[column];
    let cells = table.rows.iter().flat_map(|row| &row.cells[column].lines).map(|line| chars(line));
    let cells = cells.max().unwrap_or(0).min(of.most.unwrap_or(usize::MAX)).max(of.least);
    match of.role {
        Role::Figure => cells.max(chars(&of.heading)) + 1,
        Role::Sentence => SENTENCE_LEAST + 2,
        Role::Label => cells + 2,
        _ => cells.max(chars(&of.heading)) + 2,
    }
}

/// Returns a column's minimum width in letters. A label needs none, because it may stand above its rows.
fn needed(table: &Table, column: usize) -> usize {
    let natural = natural(table, column);
    if table.columns[column].role == Role::Label { natural.min(LABEL_LEAST) } else { natural }
}

/// Splits a table into several tables. Columns without figures are in each of them.
fn parts(table: &Table, room: usize) -> Vec<Vec<usize>> {
    let all = 0..table.columns.len();
    let is_lasting = |column: &usize| is_lasting(&table.columns[*column]);
    let is_figure = |column: &usize| table.columns[*column].role == Role::Figure;
    let common: Vec<usize> = all.clone().filter(|column| is_lasting(column) && !is_figure(column)).collect();
    let width = |columns: &[usize]| columns.iter().map(|column| needed(table, *column)).sum::<usize>();
    let mut parts = vec![common.clone()];
    for figure in all.clone().filter(|column| is_lasting(column) && is_figure(column)) {
        let part = parts.last_mut().expect("one");
        if width(part) + needed(table, figure) > room && part.len() > common.len() {
            parts.push([common.clone(), vec![figure]].concat());
        } else {
            part.push(figure);
        }
    }
    if let [only] = &mut parts[..] {
        only.extend(ranked(table, room.saturating_sub(width(only))));
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts
}

/// Labels always stay. Their rank only decides if they stand next to their rows.
const fn is_lasting(column: &Column) -> bool {
    column.rank.is_none() || matches!(column.role, Role::Label)
}

/// Returns the columns of the highest ranks that fit.
fn ranked(table: &Table, mut room: usize) -> Vec<usize> {
    let rank = |column: &usize| table.columns[*column].rank;
    let is_ranked = |column: &usize| rank(column).is_some() && is_known(table, *column);
    let mut columns: Vec<usize> = (0..table.columns.len()).filter(is_ranked).collect();
    columns.sort_by_key(|column| std::cmp::Reverse(rank(column)));
    columns.retain(|&column| {
        let wanted = if is_lasting(&table.columns[column]) {
            natural(table, column) - needed(table, column)
        } else {
            needed(table, column)
        };
        let has_room = wanted <= room;
        room -= if has_room { wanted } else { 0 };
        has_room && !is_lasting(&table.columns[column])
    });
    columns
}

/// Returns true if any row has a figure. A column of dashes is useless.
fn is_known(table: &Table, column: usize) -> bool {
    table.rows.iter().flat_map(|row| &row.cells[column].lines).any(|line| line != NONE && !line.is_empty())
}

/// Returns the width of each column. Labels get the remaining width.
fn fit(table: &Table, shown: &[usize], room: usize) -> Fit {
    let is_label = |column: &usize| table.columns[*column].role == Role::Label;
    let others: usize =
        shown.iter().filter(|column| !is_label(column)).map(|column| natural(table, *column)).sum();
    let left = room.saturating_sub(others);
    let label = shown.iter().copied().find(is_label);
    let is_lifted = label.is_some_and(|label| natural(table, label) > left);
    let letters = |column: usize| {
        let natural = natural(table, column);
        let room = if is_label(&column) { natural.min(left) } else { natural };
        room.saturating_sub(gap(&table.columns[column]))
    };
    let columns = shown.iter().map(|&column| (column, letters(column))).collect();
    Fit { columns, is_lifted }
}

/// Letters between a column and the next.
const fn gap(column: &Column) -> usize {
    if matches!(column.role, Role::Figure) { 1 } else { 2 }
}
