//! Tables of a page.

use std::fmt::{self, Write};

use super::{Title, class};
use crate::{
    chart::Escaped,
    document::{Cell, Column, Role, Row, Table, Tone},
};

/// Writes a table in its own box that scrolls, because it may be wider than a phone. Screen readers list tables by
/// their captions.
pub(super) fn write(page: &mut String, table: &Table, caption: &str) -> fmt::Result {
    let is_named = table.columns.iter().any(|column| !column.heading.is_empty());
    let has_notes = table.rows.iter().any(|row| !row.notes.is_empty());
    let is_noted = has_notes && table.columns.len() <= NOTED_MOST;
    let is_stacked = is_named && (is_noted || is_mostly_text(&table.columns));
    let table_class = match (is_named, is_stacked) {
        (false, _) => " class=\"facts\"",
        (true, true) => " class=\"stack\"",
        (true, false) => "",
    };
    write!(page, "<div class=\"scroll\"><table{table_class}>")?;
    write!(page, "<caption class=\"unseen\">{}</caption>", Escaped(caption))?;
    if is_named {
        page.push_str("<thead><tr>");
        table.columns.iter().try_for_each(|column| write_heading(page, column))?;
        page.push_str(if has_notes { "<th scope=\"col\">notes</th></tr></thead>" } else { "</tr></thead>" });
    }
    page.push_str("<tbody>");
    for row in &table.rows {
        write_row(page, &table.columns, row, RowForm { has_notes, is_stacked })?;
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn write_heading(page: &mut String, column: &Column) -> fmt::Result {
    let heading = match column.role {
        Role::Mark if column.heading.is_empty() => "<span class=\"unseen\">valid</span>".to_owned(),
        _ => Escaped(&column.heading).to_string(),
    };
    write!(page, "<th scope=\"col\"{}>{heading}</th>", alignment(column))
}

/// The form of a table's rows.
#[derive(Clone, Copy)]
struct RowForm {
    /// The last cell has the notes.
    has_notes: bool,
    /// A phone shows the cells of a row below each other. Each then needs the heading of its column.
    is_stacked: bool,
}

/// Returns true if more than half of the columns are text. Beside each other they are wider than a phone, and the
/// last ones, which have the answers, would be behind its edge.
fn is_mostly_text(columns: &[Column]) -> bool {
    let is_text = |column: &&Column| !matches!(column.role, Role::Mark | Role::Figure);
    columns.len() >= STACKED_LEAST && 2 * columns.iter().filter(is_text).count() > columns.len()
}

/// Fewer columns fit beside each other.
const STACKED_LEAST: usize = 3;

/// The most columns of a table whose notes a phone shows below the figures. A row of more figures would be too
/// high.
const NOTED_MOST: usize = 6;

const fn alignment(column: &Column) -> &'static str {
    match column.role {
        Role::Figure => " class=\"f\"",
        Role::Sentence => " class=\"words\"",
        Role::Name => " class=\"one\"",
        _ => "",
    }
}

/// Notes follow the last cell.
fn write_row(page: &mut String, columns: &[Column], row: &Row, form: RowForm) -> fmt::Result {
    page.push_str("<tr>");
    let header = columns.iter().position(|column| names_row(column.role));
    for (place, (column, cell)) in columns.iter().zip(&row.cells).enumerate() {
        let is_header = header == Some(place);
        let heading = (form.is_stacked && !is_header).then_some(column.heading.as_str());
        write_cell(page, column, cell, is_header, heading.filter(|heading| !heading.is_empty()))?;
    }
    if form.has_notes {
        let notes: Vec<&str> = row.notes.iter().map(|note| note.text.as_str()).collect();
        write!(page, "<td class=\"bad notes\">{}</td>", Escaped(&notes.join("; ")))?;
    }
    page.push_str("</tr>");
    Ok(())
}

/// Returns true if such a cell is the header of its row.
const fn names_row(role: Role) -> bool {
    matches!(role, Role::Label | Role::Group | Role::Name)
}

fn write_cell(
    page: &mut String,
    column: &Column,
    cell: &Cell,
    is_header: bool,
    heading: Option<&str>,
) -> fmt::Result {
    let tag = if is_header { "th" } else { "td" };
    let scope = if is_header { " scope=\"row\"" } else { "" };
    write!(page, "<{tag}{scope}{}{}", alignment(column), Title(&cell.origin))?;
    if let Some(heading) = heading {
        write!(page, " data-heading=\"{}\"", Escaped(heading))?;
    }
    let lines: Vec<String> = cell.lines.iter().map(|line| Escaped(line).to_string()).collect();
    let text = lines.join("<br/>");
    match cell.tone {
        Tone::Plain => write!(page, ">{text}</{tag}>"),
        tone => write!(page, "><span class=\"toned {}\">{text}</span></{tag}>", class(tone)),
    }
}
