//! Errors in documents of JSON, by their lines.

use super::Fault;

/// The error of the parser, with the line that it names.
pub(super) fn json_fault(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let why = if error.is_eof() { "cut off: the document does not end".to_owned() } else { why };
    Fault::at(error.line() as u64, why)
}
