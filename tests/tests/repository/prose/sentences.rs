//! Sentences of a page in Markdown, and of the comments and the string literals of a source in Rust.

use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, token_stream::IntoIter};
use syn::Lit;

/// Shorter literals are keys, names and units.
const WORDS_OF_A_TEXT: usize = 4;
/// A literal that begins with one of these is a query.
const SQL: [&str; 6] = ["SELECT ", "INSERT ", "CREATE ", "UPDATE ", "WITH ", "PRAGMA "];

/// One sentence: its words, with code replaced by `CODE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// For people who look for it.
    pub(super) text: String,
    /// Lower-case words without punctuation.
    pub(super) words: Vec<String>,
}

impl Sentence {
    pub(super) fn is_question(&self) -> bool {
        self.text.ends_with('?')
    }
}

/// The sentences of a page: of paragraphs, headings, items of lists and cells of tables.
pub(super) fn of_page(text: &str) -> Vec<Sentence> {
    let mut blocks = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            is_code = !is_code;
            blocks.push(String::new());
        } else if !is_code {
            add_line(&mut blocks, trimmed);
        }
    }
    blocks.iter().flat_map(|block| split(block)).collect()
}

/// Adds a line to the block before it, or begins another.
fn add_line(blocks: &mut Vec<String>, line: &str) {
    if line.starts_with('|') {
        blocks.extend(line.split('|').map(str::to_owned));
        blocks.push(String::new());
        return;
    }
    let (begins, rest) = without_marker(line);
    if begins || line.is_empty() || blocks.is_empty() {
        blocks.push(rest.to_owned());
        // Nothing goes on with a heading.
        blocks.extend(line.starts_with('#').then(String::new));
    } else if let Some(last) = blocks.last_mut() {
        last.push(' ');
        last.push_str(line);
    }
}

/// Whether a line begins an item or a heading, and the line without its marker.
fn without_marker(line: &str) -> (bool, &str) {
    let bare = line.trim_start_matches('#').trim_start();
    if bare.len() < line.len() {
        return (true, bare);
    }
    for marker in ["- ", "* ", "> "] {
        if let Some(rest) = line.strip_prefix(marker) {
            return (true, rest);
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(". ") {
        Some(rest) if digits > 0 => (true, rest),
        _ => (false, line),
    }
}

/// The sentences of comments: neighbouring lines of one kind are a paragraph.
pub(super) fn of_source(text: &str) -> Vec<Sentence> {
    let mut page = String::new();
    let mut before = "";
    for line in text.lines() {
        let trimmed = line.trim_start();
        let kind = ["///", "//!", "//"].into_iter().find(|kind| trimmed.starts_with(kind)).unwrap_or("");
        if kind != before {
            page.push('\n');
        }
        if !kind.is_empty() {
            page.push_str(trimmed[kind.len()..].trim_start());
            page.push('\n');
        }
        before = kind;
    }
    of_page(&page)
}

/// The sentences of string literals, without those of tests and of attributes. Each line of a literal stands alone. A
/// placeholder is the word `CODE`, as is the text before a literal that goes on with one.
pub(super) fn of_literals(text: &str) -> Vec<Sentence> {
    let tokens: TokenStream = text.parse().expect("rustc reads it");
    let mut literals = Vec::new();
    collect(tokens, &mut literals);
    let plain = literals.iter().map(|literal| without_placeholders(literal));
    let is_text = |literal: &String| {
        literal.split_whitespace().count() >= WORDS_OF_A_TEXT
            && !SQL.iter().any(|query| literal.trim_start().starts_with(query))
    };
    plain.filter(is_text).flat_map(|literal| of_page(&literal.replace('\n', "\n\n"))).collect()
}

/// Adds the values of all string literals.
fn collect(tokens: TokenStream, literals: &mut Vec<String>) {
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if let Some(attribute) = attribute(&mut trees) {
                    collect_attribute(&attribute, &mut trees, literals);
                }
            }
            TokenTree::Group(group) => collect(group.stream(), literals),
            TokenTree::Literal(literal) => {
                if let Lit::Str(text) = Lit::new(literal) {
                    literals.push(text.value());
                }
            }
            _ => {}
        }
    }
}

/// The brackets behind a `#`, or behind a `#!`.
fn attribute(trees: &mut Peekable<IntoIter>) -> Option<TokenStream> {
    trees.next_if(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == '!'));
    let is_bracket = |group: &Group| group.delimiter() == Delimiter::Bracket;
    match trees.next_if(|tree| matches!(tree, TokenTree::Group(group) if is_bracket(group)))? {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    }
}

/// Adds the message of an `#[error]`, and skips the item behind a `#[cfg(test)]`.
fn collect_attribute(attribute: &TokenStream, trees: &mut Peekable<IntoIter>, literals: &mut Vec<String>) {
    let written = attribute.to_string().replace(' ', "");
    if written.starts_with("error(") {
        collect(attribute.clone(), literals);
    } else if written == "cfg(test)" {
        let ends = |tree: &TokenTree| match tree {
            TokenTree::Punct(mark) => mark.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        trees.find(ends);
    }
}

/// A literal in which each placeholder is one word.
fn without_placeholders(literal: &str) -> String {
    let goes_on = literal.starts_with([' ', ',', '%']);
    let literal = literal.replace("{{", "").replace("}}", "");
    let literal = if goes_on { format!("CODE{literal}") } else { literal };
    let mut pieces = literal.split('{');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str("CODE");
        plain.push_str(piece.split_once('}').map_or(piece, |(_, behind)| behind));
    }
    plain
}

/// The sentences of a paragraph.
fn split(block: &str) -> Vec<Sentence> {
    let plain = without_links(&without_code(block)).replace(['*', '_'], "");
    let mut sentences = Vec::new();
    let mut current: Vec<&str> = Vec::new();
    let mut words = plain.split_whitespace().peekable();
    while let Some(word) = words.next() {
        current.push(word);
        let begins = words
            .peek()
            .is_none_or(|next| next.starts_with(|first: char| first.is_uppercase() || "\"(".contains(first)));
        if begins && word.ends_with(['.', '!', '?', ':']) {
            sentences.extend(sentence(&std::mem::take(&mut current)));
        }
    }
    sentences.extend(sentence(&current));
    sentences
}

fn sentence(words: &[&str]) -> Option<Sentence> {
    let text = words.join(" ");
    if !text.contains(char::is_lowercase) {
        return None;
    }
    let bare = |word: &&str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    let words = words.iter().map(bare).filter(|word| !word.is_empty()).collect();
    Some(Sentence { text, words })
}

/// A paragraph in which each piece of code is one word.
fn without_code(block: &str) -> String {
    let mut pieces = block.split('`');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    while pieces.next().is_some() {
        plain.push_str("CODE");
        plain.push_str(pieces.next().unwrap_or_default());
    }
    plain
}

/// A paragraph in which a link is its text.
fn without_links(block: &str) -> String {
    let mut plain = String::new();
    let mut rest = block;
    while let Some((before, behind)) = rest.split_once("](") {
        plain.push_str(before);
        rest = behind.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.replace(['[', ']'], "")
}

#[test]
fn pages_and_comments_are_read_sentence_by_sentence() {
    let texts = |sentences: Vec<Sentence>| sentences.into_iter().map(|one| one.text).collect::<Vec<_>>();
    let page = "# A heading\nOne line\nand another. A `piece of code`, a [link](there.md#x).\n\n- an item\n1. a number\n```\ncode\n```\n| a cell | 5 |\n";
    assert_eq!(
        texts(of_page(page)),
        ["A heading", "One line and another.", "A CODE, a link.", "an item", "a number", "a cell"]
    );
    let source = "//! Of the module.\n\n/// First\n/// second. Third?\nfn f() {} // not a line of its own\n// inside\n";
    assert_eq!(texts(of_source(source)), ["Of the module.", "First second.", "Third?", "inside"]);
    assert!(of_source(source)[2].is_question());
}

#[test]
fn texts_are_string_literals_outside_of_tests_and_attributes() {
    let texts = |source: &str| of_literals(source).into_iter().map(|one| one.text).collect::<Vec<_>>();
    let source = r##"
        //! A comment with "a text of a comment".
        #[expect(dead_code, reason = "a reason that nobody prints")]
        const LONG: &str = "one line, \
                            and the one behind it";
        const RAW: &str = r#"a "raw" literal of one line"#;
        const LINES: &str = "the first of two lines\nthe second of two lines";
        #[error("{path}: can't be read ({0:?}): try another")]
        struct Unread;
        fn f() { g("three words only", 'c', b"bytes are not a text", "SELECT a FROM b WHERE c"); }
        fn h<'a>() { format!("{{ {shown:>9} of {} are there. Look again", 5) }
        fn i(text: &mut String) { text.push_str(", of which {written} are written") }
        #[cfg(test)]
        fn of_tests() { f("a text of a function for tests") }
        #[cfg(test)]
        mod made_up;
        const BETWEEN: &str = "a text between two modules";
        #[cfg(test)]
        mod tests { const TEXT: &str = "a text of a module for tests"; }
    "##;
    assert_eq!(
        texts(source),
        [
            "one line, and the one behind it",
            "a \"raw\" literal of one line",
            "the first of two lines",
            "the second of two lines",
            "CODE: can't be read (CODE): try another",
            "CODE of CODE are there.",
            "Look again",
            "CODE, of which CODE are written",
            "a text between two modules",
        ]
    );
}
