//! A list of JSON whose elements are written one by one: memory does not grow with their number, and each is there as soon as it is
//! known.

use serde_json::Value;

use crate::tell;

/// The list. `end` closes it.
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
    /// If it is no JSON.
    pub(crate) fn push(&mut self, element: &Value) -> serde_json::Result<()> {
        let before = if std::mem::take(&mut self.is_empty) { "[" } else { "," };
        // A string of JSON has no line ends: each of them begins a line of the element.
        let element = serde_json::to_string_pretty(element)?.replace('\n', "\n  ");
        tell::json_result(format_args!("{before}\n  {element}"));
        Ok(())
    }

    /// Writes the end of the list, also of an empty one.
    pub(crate) fn end(&self) {
        tell::result_line(if self.is_empty { "[]" } else { "\n]" });
    }
}
