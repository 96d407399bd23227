//! Foreign names as text: files, datasets and recordings of others may have any names.

use std::fmt::Display;

/// Returns a name or a path on one line. Line ends, and characters that command a terminal, become escapes.
pub fn in_line(name: impl Display) -> String {
    let shown = |letter: char| {
        if letter.is_control() { letter.escape_default().collect() } else { letter.to_string() }
    };
    name.to_string().chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_line() {
        assert_eq!(in_line("scan\nwritten  /x\u{1b}[31m é"), "scan\\nwritten  /x\\u{1b}[31m é");
    }
}
