//! Tables in Markdown.

/// A table with this head and these rows, and an empty line behind it.
pub(super) fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rule = "---|".repeat(COLUMNS);
    let rows: String = rows.into_iter().map(|row| line(&row.map(|text| cell(&text)))).collect();
    format!("{}|{rule}\n{rows}\n", line(&head.map(str::to_owned)))
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// A text that Markdown shows unchanged in a cell, except for code between backquotes.
fn cell(text: &str) -> String {
    let pieces: Vec<_> = text.split('`').collect();
    let is_code = |at: usize| at % 2 == 1;
    let shown = pieces.iter().enumerate().map(|(at, piece)| {
        if is_code(at) { (*piece).to_owned() } else { piece.replace('*', "\\*").replace('<', "\\<") }
    });
    shown.collect::<Vec<_>>().join("`").replace('|', "\\|")
}

/// A text as code, or nothing if it is empty.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Texts as code with commas between them.
pub(super) fn codes<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// A text that ends with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let is_complete = text.is_empty() || text.ends_with(['.', '!', '?', ':']);
    if is_complete { text.to_owned() } else { format!("{text}.") }
}

#[test]
fn marks_of_markdown_are_shown_unless_they_are_code() {
    let made = table(["a", "b"], [["x * y | z".to_owned(), "`p*|<` <q>".to_owned()]]);
    assert_eq!(made, "| a | b |\n|---|---|\n| x \\* y \\| z | `p*\\|<` \\<q> |\n\n");
    assert_eq!((sentence("Text"), sentence("Text. ")), ("Text.".to_owned(), "Text.".to_owned()));
}
