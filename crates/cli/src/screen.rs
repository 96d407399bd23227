//! A view that fills the terminal on stderr, drawn anew each second: `--progress screen`.
//!
//! Widgets draw into a buffer of cells; the buffer becomes one text with commands for the terminal. A text that would
//! wait is left out, since the next follows. Meanwhile notes go to the view, and behind it to the terminal, so that
//! none is lost.

use std::io::IsTerminal;

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::Line,
    widgets::{Block, Gauge, Paragraph, Sparkline, Widget},
};

use crate::tell;

/// A view while it is shown. It leaves the terminal as it was when it ends.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Values of the curve, one a drawing, the latest last.
    curve: Vec<u64>,
}

/// The content of a drawing.
#[derive(Debug, Default)]
pub(crate) struct ScreenContent {
    /// The first line.
    pub(crate) title: String,
    /// A share from 0 to 1, and its label.
    pub(crate) gauge: Option<(f64, String)>,
    /// Figures of this moment, a line each.
    pub(crate) figures: Vec<String>,
    /// True if the first figure is bad news.
    pub(crate) is_alarm: bool,
    /// The name of the curve, and its value now.
    pub(crate) curve: Option<(String, u64)>,
    /// Lines of the list, the latest last.
    pub(crate) list: Vec<String>,
}

/// The fewest rows and columns of a terminal that a view fits into.
const LEAST: (u16, u16) = (12, 40);
/// The notes that a view shows.
const NOTES: usize = 4;
const CURVE_ROWS: u16 = 5;
const CURVE_MOST: usize = 1000;

impl Screen {
    /// True if there is a terminal large enough.
    pub(crate) fn is_possible() -> bool {
        size().is_some()
    }

    /// Takes over the terminal.
    pub(crate) fn open() -> Self {
        tell::hold_notes();
        tell::rewrite_screen("\x1b[?1049h\x1b[?25l");
        Screen { curve: Vec::new() }
    }

    /// Shows the content, unless the terminal is gone or too small.
    pub(crate) fn draw(&mut self, content: &ScreenContent) {
        if let Some((_, value)) = &content.curve {
            self.curve.push(*value);
            let excess = self.curve.len().saturating_sub(CURVE_MOST);
            self.curve.drain(..excess);
        }
        let Some(area) = size() else { return };
        let drawn = drawn(content, &self.curve, &tell::held_notes(NOTES), area);
        tell::rewrite_screen(&format!("\x1b[H{}", commands(&drawn)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        tell::rewrite_screen("\x1b[?25h\x1b[?1049l");
        tell::release_notes();
    }
}

/// The cells of the terminal on stderr. `None` if there is none or it is too small.
fn size() -> Option<Rect> {
    let stderr = std::io::stderr();
    let size = stderr.is_terminal().then(|| rustix::termios::tcgetwinsize(&stderr).ok())??;
    let (rows, columns) = (size.ws_row, size.ws_col);
    (rows >= LEAST.0 && columns >= LEAST.1).then(|| Rect::new(0, 0, columns, rows))
}

/// The view in cells.
fn drawn(content: &ScreenContent, curve: &[u64], notes: &[String], area: Rect) -> Buffer {
    let mut buffer = Buffer::empty(area);
    let rows = |count: usize| Constraint::Length(u16::try_from(count).unwrap_or(u16::MAX));
    let told = figure_lines(content, area.width);
    let notes = broken(notes, area.width);
    let parts = [
        rows(1),
        rows(usize::from(content.gauge.is_some())),
        rows(told.len()),
        Constraint::Length(if content.curve.is_some() { CURVE_ROWS } else { 0 }),
        Constraint::Min(1),
        rows(notes.len()),
    ];
    let [title, gauge, figures, chart, list, below] = Layout::vertical(parts).areas(area);
    Line::from(content.title.as_str()).bold().render(title, &mut buffer);
    if let Some((share, label)) = &content.gauge {
        Gauge::default().ratio(share.clamp(0.0, 1.0)).label(label.as_str()).render(gauge, &mut buffer);
    }
    Paragraph::new(told).render(figures, &mut buffer);
    if let Some((name, _)) = &content.curve {
        let latest = &curve[curve.len().saturating_sub(usize::from(area.width))..];
        let block = Block::new().title(name.as_str());
        Sparkline::default().block(block).data(latest).fg(Color::Blue).render(chart, &mut buffer);
    }
    // Each line ends with its result, so a line that is too wide takes several rows.
    let latest = &content.list[content.list.len().saturating_sub(usize::from(list.height))..];
    let latest = broken(latest, area.width);
    let shown = &latest[latest.len().saturating_sub(usize::from(list.height))..];
    Paragraph::new(shown.join("\n")).render(list, &mut buffer);
    Paragraph::new(notes.join("\n")).fg(Color::Yellow).render(below, &mut buffer);
    buffer
}

/// The figures as lines of at most `width` columns.
fn figure_lines(content: &ScreenContent, width: u16) -> Vec<Line<'static>> {
    let alarm = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let mut lines = Vec::new();
    for (number, text) in content.figures.iter().enumerate() {
        let style = if number == 0 && content.is_alarm { alarm } else { Style::new() };
        let rows = broken(std::slice::from_ref(text), width);
        lines.extend(rows.into_iter().map(|row| Line::from(row).style(style)));
    }
    lines
}

/// The lines, each broken between words into rows of at most `width` columns.
fn broken(lines: &[String], width: u16) -> Vec<String> {
    let text = tell::wrapped(&lines.join("\n"), usize::from(width));
    if lines.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
}

/// Cells as a text with commands for the terminal (ECMA-48: SGR in 8.3.117, EL in 8.3.41).
fn commands(buffer: &Buffer) -> String {
    let columns = usize::from(buffer.area.width).max(1);
    let mut text = String::new();
    for (number, row) in buffer.content.chunks(columns).enumerate() {
        if number > 0 {
            text.push_str("\r\n");
        }
        let mut before = String::new();
        for cell in row {
            let style = rendition(cell.fg, cell.modifier);
            if style != before {
                text.push_str("\x1b[0");
                text.push_str(&style);
                text.push('m');
                before = style;
            }
            text.push_str(&tell::visible(cell.symbol()));
        }
        text.push_str("\x1b[0m\x1b[K");
    }
    text
}

/// The parameters of a cell's colour and weight.
fn rendition(colour: Color, modifier: Modifier) -> String {
    let colour = match colour {
        Color::Red => ";31",
        Color::Yellow => ";33",
        Color::Blue => ";34",
        _ => "",
    };
    let bold = if modifier.contains(Modifier::BOLD) { ";1" } else { "" };
    let reversed = if modifier.contains(Modifier::REVERSED) { ";7" } else { "" };
    format!("{colour}{bold}{reversed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(buffer: &Buffer) -> Vec<String> {
        let symbols =
            |row: &[ratatui::buffer::Cell]| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        buffer.content.chunks(usize::from(buffer.area.width)).map(symbols).collect()
    }

    #[test]
    fn every_part_has_its_place_and_the_list_shows_its_end() {
        let content = ScreenContent {
            title: "Recordings of pco-edge".into(),
            gauge: Some((0.5, "50 %, 3 min left".into())),
            figures: vec!["DISK FAILED /b".into(), "1.2 GB/s".into()],
            is_alarm: true,
            curve: Some(("rate".into(), 7)),
            list: (0..50).map(|number| format!("line {number}")).collect(),
        };
        let buffer = drawn(&content, &[1, 2, 7], &["note: a note".into()], Rect::new(0, 0, 60, 20));
        let rows = rows(&buffer);
        assert_eq!(rows.len(), 20);
        assert!(rows[0].starts_with("Recordings of pco-edge"), "{rows:#?}");
        assert!(rows[1].contains("50 %, 3 min left"), "{rows:#?}");
        assert!(rows[2].starts_with("DISK FAILED /b") && rows[3].starts_with("1.2 GB/s"), "{rows:#?}");
        assert!(rows[18].starts_with("line 49") && rows[19].starts_with("note: a note"), "{rows:#?}");
        let text = commands(&buffer);
        assert!(text.contains("\x1b[0;31;1mDISK FAILED /b") && !text.contains("\x1b[2J"), "{text:?}");
    }

    #[test]
    fn a_result_at_the_end_of_a_long_line_is_visible() {
        let note = format!("note: {} at the end", "word ".repeat(20));
        let list = vec![format!("[1/2] /data: {}: 70 MB/s", "many words ".repeat(9))];
        let content = ScreenContent { list, ..ScreenContent::default() };
        let rows = rows(&drawn(&content, &[], &[note], Rect::new(0, 0, 60, 12)));
        for end in ["70 MB/s", "at the end"] {
            assert!(rows.iter().any(|row| row.contains(end)), "{end}: {rows:#?}");
        }
    }

    #[test]
    fn a_name_commands_no_terminal() {
        let content = ScreenContent { title: "a\x1b[31mb".into(), ..ScreenContent::default() };
        let text = commands(&drawn(&content, &[], &[], Rect::new(0, 0, 40, 12)));
        assert!(!text.contains("\x1b[31m"), "{text:?}");
    }
}
