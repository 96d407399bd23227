//! Lines on a terminal that are rewritten in place while something runs.

use std::io::IsTerminal;

use crate::tell;

/// See the module. What else is printed must [`StatusLine::clear`] it first.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    /// How many lines are there to be rewritten.
    shown: usize,
}

/// Widths of a line that a campaign rewrites. Wider lines are hard to follow; narrower terminals can't show one.
pub(crate) const WIDTHS: std::ops::RangeInclusive<usize> = 20..=100;
/// Of a terminal that does not say how wide it is.
const USUAL: usize = 80;

impl StatusLine {
    /// Whether there is a terminal to show it on.
    pub(crate) fn is_possible() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Shows what `text` makes for a width, if there is a terminal: a line, or several.
    pub(crate) fn rewrite(&mut self, text: impl FnOnce(usize) -> String) {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return;
        }
        let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { USUAL } else { columns };
        // A line that fills the last column would wrap on some terminals.
        let width = columns.saturating_sub(1).clamp(*WIDTHS.start(), *WIDTHS.end());
        let text = text(width);
        tell::rewrite_lines(&text, self.shown);
        self.shown = text.lines().count();
    }

    /// Removes the lines, before something else is printed.
    pub(crate) fn clear(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if shown > 0 {
            tell::rewrite_lines("", shown);
        }
    }
}
