//! A list of JSON that is written element by element. Memory does not grow with their number, and each
//! appears at once.

use serde_json::Value;

use crate::tell;

/// A list on stdout. `end` closes it.
#[derive(Debug)]
pub(crate) struct JsonList {
    is_empty: bool,
}

impl JsonList {
    pub(crate) const fn new() -> Self {
        JsonList { is_empty: true }
    }

    /// Writes an element.
    ///
    /// # Errors
    ///
    /// If the element can't become JSON.
    pub(crate) fn push(&mut self, element: &Value) -> serde_json::Result<()> {
        let before = if std::mem::take(&mut self.is_empty) { "[" } else { "," };
        // Strings of JSON contain no line ends, so each line end starts a line of the element.
        let element = serde_json::to_string_pretty(element)?.replace('\n', "\n  ");
        tell::json_result(format_args!("{before}\n  {element}"));
        Ok(())
    }

    /// Closes the list, even an empty one.
    pub(crate) fn end(&self) {
        tell::result_line(if self.is_empty { "[]" } else { "\n]" });
    }
}
