//! Tables of a page.

use std::fmt::{self, Write};

use super::class;
use crate::{
    chart::Escaped,
    document::{Cell, Column, Role, Row, Table, Tone},
};

/// Writes a table in its own box that scrolls, because it may be wider than a phone.
pub(super) fn write(page: &mut String, table: &Table) -> fmt::Result {
    let is_named = table.columns.iter().any(|column| !column.heading.is_empty());
    let table_class = if is_named { "" } else { " class=\"facts\"" };
    let has_notes = table.rows.iter().any(|row| !row.notes.is_empty());
    write!(page, "<div class=\"scroll\"><table{table_class}>")?;
    if is_named {
        page.push_str("<thead><tr>");
        table.columns.iter().try_for_each(|column| write_heading(page, column))?;
        page.push_str(if has_notes { "<th></th></tr></thead>" } else { "</tr></thead>" });
    }
    page.push_str("<tbody>");
    for row in &table.rows {
        write_row(page, &table.columns, row, has_notes)?;
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn write_heading(page: &mut String, column: &Column) -> fmt::Result {
    write!(page, "<th{}>{}</th>", alignment(column), Escaped(&column.heading))
}

const fn alignment(column: &Column) -> &'static str {
    match column.role {
        Role::Figure => " class=\"f\"",
        Role::Sentence => " class=\"words\"",
        Role::Name => " class=\"one\"",
        _ => "",
    }
}

/// Notes follow the last cell.
fn write_row(page: &mut String, columns: &[Column], row: &Row, has_notes: bool) -> fmt::Result {
    page.push_str("<tr>");
    for (column, cell) in columns.iter().zip(&row.cells) {
        write_cell(page, column, cell)?;
    }
    if has_notes {
        let notes: Vec<&str> = row.notes.iter().map(|note| note.text.as_str()).collect();
        write!(page, "<td class=\"bad\">{}</td>", Escaped(&notes.join("; ")))?;
    }
    page.push_str("</tr>");
    Ok(())
}

fn write_cell(page: &mut String, column: &Column, cell: &Cell) -> fmt::Result {
    write!(page, "<td{}", alignment(column))?;
    if !cell.origin.is_empty() {
        write!(page, " title=\"{}\"", Escaped(&cell.origin))?;
    }
    let lines: Vec<String> = cell.lines.iter().map(|line| Escaped(line).to_string()).collect();
    let text = lines.join("<br/>");
    match cell.tone {
        Tone::Plain => write!(page, ">{text}</td>"),
        tone => write!(page, "><span class=\"toned {}\">{text}</span></td>", class(tone)),
    }
}
