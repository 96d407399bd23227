//! Lines on a terminal that are rewritten in place while something runs.

use std::io::IsTerminal;

use crate::tell;

/// Lines in place at the bottom of the terminal. Call [`StatusLine::clear`] before other output.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    /// The number of lines on the terminal now.
    shown: usize,
}

/// Widths of a line that a campaign rewrites. Wider lines are hard to follow; narrower terminals can't show one.
pub(crate) const WIDTHS: std::ops::RangeInclusive<usize> = 20..=400;
/// The width of a terminal that does not state its own.
const USUAL: usize = 80;

impl StatusLine {
    /// True if stderr is a terminal.
    pub(crate) fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        std::io::stderr().is_terminal() && !is_dumb
    }

    /// Shows the text for this terminal's width, if there is a terminal: one line, or several.
    pub(crate) fn rewrite(&mut self, text: impl FnOnce(usize) -> String) {
        if !Self::is_possible() {
            return;
        }
        let stderr = std::io::stderr();
        let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { USUAL } else { columns };
        // On some terminals a line that fills the last column wraps.
        let width = columns.saturating_sub(1).clamp(*WIDTHS.start(), *WIDTHS.end());
        let text = text(width);
        tell::rewrite_lines(&text, self.shown);
        self.shown = text.lines().count();
    }

    /// Removes the lines, before other output.
    pub(crate) fn clear(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if shown > 0 {
            tell::rewrite_lines("", shown);
        }
    }
}
