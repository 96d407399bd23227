//! Words of a command line, for commands that a user copies into a shell.

/// Returns a text as one word of a POSIX shell. Quotes it if it has other letters than those of plain paths.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=+@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_arguments_as_they_were() {
        let arguments = [
            "nilometer",
            "a b",
            "it's",
            "5 s",
            "",
            "$HOME",
            "`id`",
            "a\\b",
            "*",
            "~",
            "x=y",
            "\"",
            "6*a+b",
            "ü\nz",
            "#",
        ];
        let line = arguments.map(shell_word).join(" ");
        let script = format!("printf '%s\\0' {line}");
        let read = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let read = String::from_utf8(read.stdout).expect("as it was written");
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), arguments, "{line}");
        assert_eq!(["--for", "/data/a-b.toml", "90%"].map(shell_word), ["--for", "/data/a-b.toml", "90%"]);
    }
}
