//! Reads the TOML and JSON that users write. Serde's messages speak of the types of a program; these speak of the
//! file and name the valid values.

mod several;

use std::fmt;

use serde::de::DeserializeOwned;

use several::{FAULTS_MOST, TomlFault, WANTS_WORD, faults, missing_key};

/// The errors in a TOML file, the first ones: each with the line, the word in it, the reason and the valid values.
#[derive(Debug)]
pub struct TomlError {
    /// At least one, in the order of the file.
    faults: Vec<PlacedFault>,
    /// True if the search for faults ended before the file did.
    may_have_more: bool,
}

/// A fault of a file, or the missing keys of one table.
#[derive(Debug)]
struct PlacedFault {
    /// The line and the word, as the TOML parser shows them.
    place: String,
    /// The offset of the word; `None` if the file is too short for one.
    at: Option<usize>,
    why: FaultReason,
}

#[derive(Debug)]
enum FaultReason {
    /// The keys that a table lacks.
    MissingKeys(Vec<String>),
    /// The reason and the valid values.
    Other(String),
}

impl TomlError {
    /// True if the first fault is a missing key.
    pub fn misses_key(&self) -> bool {
        self.faults.first().is_some_and(|fault| matches!(fault.why, FaultReason::MissingKeys(_)))
    }

    /// Joins the missing keys of each table, and sorts the faults by their place.
    fn of(found: Vec<TomlFault>) -> Self {
        let may_have_more = found.len() == FAULTS_MOST;
        let mut faults: Vec<PlacedFault> = Vec::new();
        for fault in found.into_iter().map(PlacedFault::of) {
            match faults.iter().position(|known| known.lacks_keys_with(&fault)) {
                Some(known) => faults[known].why.join(fault.why),
                None => faults.push(fault),
            }
        }
        faults.sort_by_key(|fault| fault.at);
        TomlError { faults, may_have_more }
    }
}

impl PlacedFault {
    /// Returns true if both are missing keys of one table.
    fn lacks_keys_with(&self, other: &PlacedFault) -> bool {
        let lack = |fault: &PlacedFault| matches!(fault.why, FaultReason::MissingKeys(_));
        self.place == other.place && lack(self) && lack(other)
    }

    fn of(TomlFault { error, words }: TomlFault) -> Self {
        let message = error.message().trim();
        let shown = error.to_string();
        let place = shown.rfind(message).map_or("", |at| &shown[..at]);
        let why = match missing_key(message) {
            Some(name) => FaultReason::MissingKeys(vec![name.to_owned()]),
            None => FaultReason::Other(plain_message(message, words.as_deref())),
        };
        PlacedFault { place: place.to_owned(), at: error.span().map(|span| span.start), why }
    }
}

impl FaultReason {
    /// Adds the missing keys of the same table.
    fn join(&mut self, other: FaultReason) {
        if let (FaultReason::MissingKeys(known), FaultReason::MissingKeys(more)) = (self, other) {
            known.extend(more);
        }
    }
}

impl fmt::Display for TomlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, PlacedFault { place, why, .. }) in self.faults.iter().enumerate() {
            let next = if number == 0 { "" } else { "\n" };
            write!(f, "{next}{place}{why}")?;
        }
        if self.may_have_more {
            write!(f, "\nthere may be more faults behind these {FAULTS_MOST}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultReason::Other(why) => f.write_str(why),
            FaultReason::MissingKeys(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                match names.as_slice() {
                    [] => Ok(()),
                    [name] => write!(f, "the key {name} is missing"),
                    [most @ .., last] => write!(f, "the keys {} and {last} are missing", most.join(", ")),
                }
            }
        }
    }
}

impl std::error::Error for TomlError {}

/// Reads a value from the text of a TOML file.
///
/// # Errors
/// The text is no TOML, or has other keys or values than `T`. The error has the first ten faults.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| {
        let found = faults::<T>(text);
        TomlError::of(if found.is_empty() { vec![TomlFault { error, words: None }] } else { found })
    })
}

const EXPECTED: &str = ", expected ";
const A_TEXT: &str = "a text in quotes";

/// Returns a message of serde, also of its JSON with the place at the end, in the words of the file's author.
pub fn plain_serde_message(message: &str) -> String {
    plain_message(message, None)
}

/// `choices` are the valid words, if the key has such.
fn plain_message(message: &str, choices: Option<&str>) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let (said, place) = message.split_at(end);
    let plain = of_name(said).or_else(|| of_value(said, choices));
    plain.unwrap_or_else(|| said.to_owned()) + place
}

/// A message about a name: a key that there is not or that is missing, or a word that is none of the choices.
fn of_name(said: &str) -> Option<String> {
    const RENAMED: [(&str, &str); 2] =
        [("unknown field ", "unknown key "), ("unknown variant ", "unknown value ")];
    let renamed =
        RENAMED.iter().find_map(|(serde, plain)| Some(format!("{plain}{}", said.strip_prefix(serde)?)));
    let missing = || Some(format!("the key {} is missing", said.strip_prefix("missing field ")?));
    let twice = || Some(format!("the key {} stands twice", said.strip_prefix("duplicate field ")?));
    renamed.or_else(missing).or_else(twice)
}

/// A message about a value of another type or range.
fn of_value(said: &str, choices: Option<&str>) -> Option<String> {
    let wanted = |serde| choices.map_or_else(|| of_type(serde), str::to_owned);
    if said == WANTS_WORD {
        return Some(format!("expected {}", wanted("enum")));
    }
    let found = ["invalid type: ", "invalid value: "].iter().find_map(|prefix| said.strip_prefix(prefix))?;
    let (found, serde) = found.rsplit_once(EXPECTED)?;
    Some(format!("found {}{EXPECTED}{}", of_found(found), wanted(serde)))
}

/// The value that was found, from serde's description of it.
fn of_found(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind).map(|value| value.trim_matches('`'));
    if let Some(number) = quoted("integer ").or_else(|| quoted("floating point ")) {
        return format!("the number `{}`", short_number(number));
    }
    if let Some(truth) = quoted("boolean ") {
        return format!("`{truth}`");
    }
    match found.strip_prefix("string ") {
        Some(text) => format!("the text {text}"),
        None => match found {
            "sequence" => "a list".into(),
            "map" => "a table".into(),
            other => other.to_owned(),
        },
    }
}

/// A number without the hundred digits of 1e99.
fn short_number(number: &str) -> String {
    const DIGITS_MOST: usize = 20;
    let float = number.parse::<f64>().ok().filter(|_| number.len() > DIGITS_MOST);
    float.map_or_else(|| number.to_owned(), |float| format!("{float:e}"))
}

/// The values of a type of serde's.
fn of_type(serde: &str) -> String {
    let most: Option<u64> = match serde {
        "u8" => Some(u8::MAX.into()),
        "u16" => Some(u16::MAX.into()),
        "u32" => Some(u32::MAX.into()),
        _ => None,
    };
    if let Some(most) = most {
        return format!("a whole number from 0 to {most}");
    }
    let plain = match serde {
        "u64" | "usize" | "u128" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" => A_TEXT,
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("enum") => A_TEXT,
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Fruit {
        Apple,
        RedPear,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Basket {
        fruit: Fruit,
        #[serde(default)]
        more: Vec<Fruit>,
        #[serde(default)]
        count: u16,
        #[serde(default)]
        weight: f64,
        #[serde(default)]
        full: bool,
        #[serde(default)]
        owner: String,
    }

    fn why(text: &str) -> String {
        let basket = read_toml::<Basket>(text);
        let error = basket.expect_err(text).to_string();
        error.lines().last().expect("a message").to_owned()
    }

    #[test]
    fn a_file_without_error_is_read() {
        let text =
            "fruit = \"apple\"\nmore = [\"red_pear\"]\ncount = 2\nweight = 0.5\nfull = true\nowner = \"me\"";
        let more = vec![Fruit::RedPear];
        let expected =
            Basket { fruit: Fruit::Apple, more, count: 2, weight: 0.5, full: true, owner: "me".into() };
        assert_eq!(read_toml::<Basket>(text).expect("valid"), expected);
    }

    #[test]
    fn a_value_of_another_type_is_named_with_the_valid_ones() {
        for (line, said) in [
            ("fruit = 5", "expected `apple` or `red_pear`"),
            ("fruit = true", "expected `apple` or `red_pear`"),
            ("fruit = [1]", "expected `apple` or `red_pear`"),
            ("fruit = \"plum\"", "unknown value `plum`, expected `apple` or `red_pear`"),
            ("fruit = \"apple\"\nmore = [\"apple\", 7]", "expected `apple` or `red_pear`"),
            ("fruit = \"apple\"\nmore = \"apple\"", "found the text \"apple\", expected a list"),
            (
                "fruit = \"apple\"\ncount = -1",
                "found the number `-1`, expected a whole number from 0 to 65535",
            ),
            (
                "fruit = \"apple\"\ncount = \"a, expected b\"",
                "found the text \"a, expected b\", expected a whole number from 0 to 65535",
            ),
            ("fruit = \"apple\"\nweight = {}", "found a table, expected a number"),
            ("fruit = \"apple\"\nfull = 1e99", "found the number `1e99`, expected `true` or `false`"),
            ("fruit = \"apple\"\nowner = []", "found a list, expected a text in quotes"),
            (
                "fruits = \"apple\"",
                "unknown key `fruits`, expected one of `fruit`, `more`, `count`, `weight`, `full`, `owner`",
            ),
            ("", "the key `fruit` is missing"),
        ] {
            assert_eq!(why(line), said, "{line}");
        }
    }

    #[test]
    fn the_line_and_the_word_stand_before_the_reason() {
        let error =
            read_toml::<Basket>("fruit = \"apple\"\ncount = true\n").expect_err("no number").to_string();
        let expected = "TOML parse error at line 2, column 9\n  |\n2 | count = true\n  |         ^^^^\n\
                        found `true`, expected a whole number from 0 to 65535";
        assert_eq!(error, expected);
    }

    #[test]
    fn several_faults_are_named_in_the_order_of_the_file() {
        let text = "count = \"many\"\nweigth = 2\nmore = [\"apple\", \"plum\"]\nfull = 3\n";
        let error = read_toml::<Basket>(text).expect_err("four wrong lines, and one is missing").to_string();
        let places = ["line 1, column 1", "line 1, column 9", "line 2", "line 3", "line 4"];
        let reasons = [
            "the key `fruit` is missing",
            "found the text \"many\", expected a whole number from 0 to 65535",
            "unknown key `weigth`, expected one of",
            "unknown value `plum`, expected `apple` or `red_pear`",
            "found the number `3`, expected `true` or `false`",
        ];
        let at = |part: &&str| error.find(*part).unwrap_or_else(|| panic!("{part} is missing in: {error}"));
        assert!(reasons.iter().map(at).is_sorted() && places.iter().map(at).is_sorted(), "{error}");
        assert_eq!(error.matches("TOML parse error at").count(), 5, "{error}");
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "its keys are only read")]
    struct Shop {
        name: String,
        opens: Option<Vec<u16>>,
        basket: Basket,
        kind: Fruit,
        size: crate::Bytes,
        wait: crate::Nanos,
    }

    #[test]
    fn the_missing_keys_of_a_table_are_one_message() {
        let shop = |text: &str| read_toml::<Shop>(text).expect_err("keys are missing");
        let error = shop("[basket]\ncolour = 1\n");
        assert!(error.misses_key());
        let text = error.to_string();
        assert!(text.contains("the keys `name`, `kind`, `size` and `wait` are missing"), "{text}");
        assert!(
            text.contains("the key `fruit` is missing") && text.contains("unknown key `colour`"),
            "{text}"
        );
        let whole = shop("").to_string();
        assert!(
            whole.ends_with("the keys `name`, `basket`, `kind`, `size` and `wait` are missing"),
            "{whole}"
        );
        assert!(!whole.contains("fruit"), "of a table that is not there, only its name is missing: {whole}");
        let one = shop("name = \"a\"\nkind = \"apple\"\nsize = \"1 X\"\nbasket = { fruit = \"apple\" }\n");
        let one = one.to_string();
        assert!(one.contains("KiB") && one.contains("the key `wait` is missing"), "{one}");
    }

    #[test]
    fn of_very_many_faults_ten_are_named() {
        let text = (0..30).map(|number| format!("colour{number} = 1")).collect::<Vec<_>>().join("\n");
        let error = read_toml::<Basket>(&text).expect_err("no such keys").to_string();
        assert_eq!(error.matches("unknown key").count(), several::FAULTS_MOST, "{error}");
        assert!(error.ends_with("there may be more faults behind these 10"), "{error}");
    }

    #[test]
    fn messages_of_json_keep_their_place() {
        let said = plain_serde_message("invalid type: integer `5`, expected a string at line 1 column 9");
        assert_eq!(said, "found the number `5`, expected a text in quotes at line 1 column 9");
        assert_eq!(
            plain_serde_message("expected value at line 1 column 1"),
            "expected value at line 1 column 1"
        );
    }
}
