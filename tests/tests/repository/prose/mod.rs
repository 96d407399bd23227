//! Plain English: how often each page, the comments of each crate and the texts that it prints offend against the rules in
//! CONTRIBUTING.md. The counts stand in `tests/prose-counts.txt`, and may only fall.

mod sentences;

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use nilometer_tests::{crates, files, read, root};
use sentences::{Sentence, of_literals, of_page, of_source};

use crate::density::for_tests;

/// Words with which no sentence begins, unless it is a question.
const BEGINNINGS: [&str; 9] = ["what", "who", "whose", "whether", "where", "of", "as", "so", "that"];
/// Forms of *be*, behind which one of [`SPOKEN`] is a passive without an actor.
const BE: [&str; 7] = ["is", "are", "was", "were", "be", "been", "being"];
const SPOKEN: [&str; 11] =
    ["said", "told", "noted", "asked", "known", "wanted", "meant", "heard", "named", "looked", "believed"];
/// Pairs of words that stand for a number, or for *except*.
const VAGUE: [[&str; 2]; 4] = [["so", "many"], ["so", "long"], ["so", "much"], ["but", "for"]];
/// Words of a sentence, at the most.
const WORDS_MOST: usize = 25;
/// Columns of a comment, at the most.
const COLUMNS_MOST: usize = 120;

/// The rules that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// A sentence begins with one of [`BEGINNINGS`].
    Beginning,
    /// A clause stands for a noun: "what came".
    What,
    Passive,
    Vague,
    /// A sentence has more than [`WORDS_MOST`] words.
    Long,
    /// A comment is wider than [`COLUMNS_MOST`] columns.
    Wide,
}

const RULES: [Rule; 6] = [Rule::Beginning, Rule::What, Rule::Passive, Rule::Vague, Rule::Long, Rule::Wide];

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Rule::Beginning => "begins",
            Rule::What => "what",
            Rule::Passive => "passive",
            Rule::Vague => "vague",
            Rule::Long => "long",
            Rule::Wide => "wide",
        }
    }
}

/// A sentence or a line that offends.
struct Offence {
    rule: Rule,
    text: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name(), self.text)
    }
}

/// The offences of a sentence.
fn offences(sentence: &Sentence) -> Vec<Offence> {
    let Sentence { text, words } = sentence;
    let is_question = sentence.is_question();
    let begins = words.first().is_some_and(|first| BEGINNINGS.contains(&first.as_str()) || first == "those");
    let whats = words.iter().skip(1).filter(|word| ["what", "whatever"].contains(&word.as_str())).count();
    let pairs = || words.windows(2).map(|pair| [pair[0].as_str(), pair[1].as_str()]);
    let is_vague = |pair: &[&str; 2]| VAGUE.contains(pair);
    let counts = [
        (Rule::Beginning, usize::from(begins && !is_question)),
        (Rule::What, if is_question { 0 } else { whats }),
        (Rule::Passive, passives(words)),
        (Rule::Vague, pairs().filter(is_vague).count()),
        (Rule::Long, usize::from(words.len() > WORDS_MOST)),
    ];
    let each = |(rule, count)| std::iter::repeat_n(rule, count);
    counts.into_iter().flat_map(each).map(|rule| Offence { rule, text: text.clone() }).collect()
}

/// How often a form of *be* has one of [`SPOKEN`] behind it, an adverb between them notwithstanding.
fn passives(words: &[String]) -> usize {
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let is_passive = |at: usize| {
        let behind = &words[at + 1..];
        let skips =
            behind.first().is_some_and(|word| word.ends_with("ly") || is(word, &["not", "never", "then"]));
        is(&words[at], &BE) && behind.get(usize::from(skips)).is_some_and(|word| is(word, &SPOKEN))
    };
    (0..words.len()).filter(|at| is_passive(*at)).count()
}

/// The offences of a source.
fn of_comments(text: &str) -> Vec<Offence> {
    let is_wide = |line: &&str| line.trim_start().starts_with("//") && line.chars().count() > COLUMNS_MOST;
    let wide =
        text.lines().filter(is_wide).map(|line| Offence { rule: Rule::Wide, text: line.trim().to_owned() });
    of_source(text).iter().flat_map(offences).chain(wide).collect()
}

/// The offences of the texts that these sources of a crate print.
fn of_texts(sources: &[PathBuf]) -> Vec<Offence> {
    let parsed = |path: &PathBuf| syn::parse_file(&read(path)).expect("rustc reads it");
    let tests: Vec<PathBuf> = sources.iter().flat_map(|path| for_tests(path, &parsed(path))).collect();
    let is_product = |path: &&PathBuf| !tests.iter().any(|test| path.with_extension("").starts_with(test));
    let sentences = sources.iter().filter(is_product).flat_map(|path| of_literals(&read(path)));
    sentences.flat_map(|sentence| offences(&sentence)).collect()
}

/// All pages, and all crates with the offences of their comments and of their texts.
fn everywhere() -> BTreeMap<String, Vec<Offence>> {
    let root = root();
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let name = |path: &Path| path.strip_prefix(&root).expect("it is below").display().to_string();
    let of_pages =
        pages.iter().map(|page| (name(page), of_page(&read(page)).iter().flat_map(offences).collect()));
    let of_crates = crates().into_iter().flat_map(|of| {
        let sources = files(&root.join("crates").join(&of).join("src"), "rs");
        let comments = sources.iter().flat_map(|source| of_comments(&read(source))).collect();
        [(format!("crates/{of}"), comments), (format!("texts of crates/{of}"), of_texts(&sources))]
    });
    of_pages.chain(of_crates).collect()
}

/// A line of the file of counts.
fn line(place: &str, offences: &[Offence]) -> String {
    let count = |rule: &Rule| offences.iter().filter(|offence| offence.rule == *rule).count();
    let counts: Vec<_> = RULES.iter().map(|rule| format!("{} {}", rule.name(), count(rule))).collect();
    format!("{place}: {}", counts.join(", "))
}

/// The numbers of a line, in the order of [`RULES`].
fn numbers(line: &str) -> Vec<usize> {
    line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn offences_against_plain_english_only_become_fewer() {
    let path = root().join("tests/prose-counts.txt");
    let now = everywhere();
    let lines: Vec<_> = now.iter().map(|(place, offences)| line(place, offences)).collect();
    if std::env::var_os("NILOMETER_WRITE_COUNTS").is_some() {
        fs::write(&path, lines.join("\n") + "\n").expect("the repository can be written");
    }
    let stored = read(&path);
    let mut more = Vec::new();
    for (line, (place, offences)) in lines.iter().zip(&now) {
        let before = stored.lines().find(|stored| stored.split(':').next() == Some(place.as_str()));
        let before = numbers(before.unwrap_or_default());
        for (at, (rule, count)) in RULES.iter().zip(numbers(line)).enumerate() {
            let most = before.get(at).copied().unwrap_or(0);
            let all: Vec<_> =
                offences.iter().filter(|one| one.rule == *rule).map(Offence::to_string).collect();
            if count > most {
                more.push(format!("{place}: {count} of at most {most}\n{}", all.join("\n")));
            }
        }
    }
    assert!(more.is_empty(), "{}", more.join("\n"));
    let help = "offences became fewer: keep it so with `NILOMETER_WRITE_COUNTS=1 cargo test -p nilometer-tests --test repository prose`";
    assert_eq!(stored.lines().collect::<Vec<_>>(), lines, "{help}");
}

#[test]
fn each_rule_finds_its_offence_and_leaves_plain_sentences_alone() {
    let rules = |text: &str| {
        let offences: Vec<_> = of_page(text).iter().flat_map(offences).collect();
        offences.into_iter().map(|offence| offence.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules("Where it lies."), [Rule::Beginning]);
    assert_eq!(rules("The place of what came."), [Rule::What]);
    assert_eq!(rules("What came of what was lost is noted."), [Rule::Beginning, Rule::What, Rule::Passive]);
    assert_eq!(rules("It is not said, and was quickly noted."), [Rule::Passive, Rule::Passive]);
    assert_eq!(rules("The last so many frames, but for one."), [Rule::Vague, Rule::Vague]);
    assert_eq!(rules(&"word ".repeat(26)), [Rule::Long]);
    for plain in
        ["What is it?", "The recorder says what? No.", "The writer stores the frame.", &"word ".repeat(25)]
    {
        assert_eq!(rules(plain), [], "{plain}");
    }
    let wide = format!("// {}\nlet x = \"{}\";\n", "a".repeat(118), "b".repeat(200));
    assert_eq!(of_comments(&wide).iter().map(|one| one.rule).collect::<Vec<_>>(), [Rule::Wide]);
}
