//! The page of exit codes, from the texts that `--help` prints.

use std::path::Path;

use nilometer_tests::{files, read, root};
use syn::Item;

use super::{
    markdown::{sentence, table},
    source_types::text_of,
};

const HEAD: &str = "# Exit codes

`nilometer COMMAND --help` prints these lists too. A command without a list of its own uses the first one.

";

/// The text of `const EXIT_CODES` in a source, if it has one.
fn exit_codes(source: &str) -> Option<String> {
    if !source.contains("const EXIT_CODES") {
        return None;
    }
    let file = syn::parse_file(source).expect("rustc reads it");
    file.items.iter().find_map(|item| match item {
        Item::Const(item) if item.ident == "EXIT_CODES" => text_of(&item.expr),
        _ => None,
    })
}

/// Code and meaning of each line that begins with a number, and of the lines behind it that go on.
fn rows(text: &str) -> Vec<[String; 2]> {
    let mut rows: Vec<[String; 2]> = Vec::new();
    for line in text.lines().map(str::trim) {
        let numbered = line.split_once("  ").filter(|(code, _)| code.parse::<u8>().is_ok());
        match (numbered, rows.last_mut()) {
            (Some((code, meaning)), _) => rows.push([code.to_owned(), meaning.to_owned()]),
            (None, Some([_, meaning])) => {
                meaning.push(' ');
                meaning.push_str(line);
            }
            (None, None) => {}
        }
    }
    rows.into_iter().map(|[code, meaning]| [code, sentence(&meaning)]).collect()
}

/// The title of a list: the command whose file or directory has it.
fn title(path: &Path) -> String {
    let named = if path.ends_with("mod.rs") { path.parent() } else { Some(path) };
    match named.and_then(|path| path.file_stem()).and_then(|stem| stem.to_str()) {
        Some("main") => "Every command".to_owned(),
        Some(command) => format!("`nilometer {command}`"),
        None => String::new(),
    }
}

pub(super) fn page() -> String {
    let mut sources = files(&root().join("crates/cli/src"), "rs");
    // The list of every command comes first.
    sources.sort_by_key(|path| (!path.ends_with("main.rs"), path.clone()));
    let lists: Vec<_> = sources.iter().filter_map(|path| Some((path, exit_codes(&read(path))?))).collect();
    assert!(lists.len() > 1, "only {} lists of exit codes found", lists.len());
    let sections = lists.iter().map(|(path, text)| {
        let rows = rows(text);
        assert!(rows.len() > 1, "no codes in the EXIT_CODES of {}", path.display());
        format!("## {}\n\n{}", title(path), table(["code", "meaning"], rows))
    });
    format!("{HEAD}{}", sections.collect::<String>())
}

#[test]
fn codes_are_read_from_the_text_of_the_help() {
    let source = "const EXIT_CODES: &str = \"\\\nExit codes:\n  0  done\n  12  not:\n     done\";";
    let text = exit_codes(source).expect("a text");
    assert_eq!(rows(&text), [["0", "done."], ["12", "not: done."]]);
    assert_eq!(exit_codes("const OTHER: &str = \"\";"), None);
}
