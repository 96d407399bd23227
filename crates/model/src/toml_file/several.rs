//! Finds the faults behind the first one of a TOML file. Serde stops at the first, so each fault is repaired in the
//! parsed document, in memory only, and the document is read again:
//!
//! ```text
//! unknown key      removed
//! missing key      added with the first value of a few that its type takes
//! wrong value      replaced in the same way, or else removed
//! ```
//!
//! Added values lie at no place of the file. An error at such a place, or in a table around a repaired value, may come
//! of the repair: the message leaves it out.

use std::{borrow::Cow, ops::Range};

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer, Error},
};

/// A fault of a file.
pub(super) struct TomlFault {
    /// Serde's message, with its place.
    pub(super) error: Error,
    /// The valid words, in serde's form, if the key has such and the value is no word.
    pub(super) words: Option<String>,
}

/// The part of serde's messages behind which the type of a value with several words stands.
const EXPECTED_ENUM: &str = ", expected enum";
/// The message of the TOML parser if a word is expected and the value is neither a text nor a table.
pub(super) const WANTS_WORD: &str = "wanted string or table";

/// Faults that a message names; the others come to light with the next reading.
pub(super) const FAULTS_MOST: usize = 10;
/// Repairs of one file; a fault may take several.
const REPAIRS_MOST: usize = 40;
/// A larger file is read only once.
const TEXT_MAX: usize = 1 << 16;

/// The first faults of a file, in the order of reading. Empty if it is no TOML, or without fault.
pub(super) fn faults<T: DeserializeOwned>(text: &str) -> Vec<TomlFault> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let mut document = RepairedDocument { root, repaired: Vec::new(), removed: Vec::new() };
    let mut found = Vec::new();
    for _ in 0..REPAIRS_MOST {
        let Some(mut error) = document.error::<T>() else { break };
        if found.is_empty() || document.is_of_file(&error) {
            let words = document.words::<T>(&error);
            error.set_input(Some(text));
            found.push(TomlFault { error: error.clone(), words });
        }
        if found.len() == FAULTS_MOST || text.len() > TEXT_MAX || !document.repair::<T>(&error) {
            break;
        }
    }
    found
}

/// The name of the key that a message calls missing.
pub(super) fn missing_key(message: &str) -> Option<&str> {
    message.strip_prefix("missing field ").map(|name| name.trim_matches('`'))
}

/// A step from a table or a list to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueStep {
    Key(String),
    Index(usize),
}

/// The way from the head of a file to a value.
type ValuePath = Vec<ValueStep>;

/// The place of values that no file has.
const NOWHERE: Range<usize> = usize::MAX - 1..usize::MAX;

/// Values of which a key takes one, if it does not take words.
const VALUES: [&str; 11] = [
    "1",
    "true",
    "\"1 MiB\"",
    "\"1 s\"",
    "\"1 MB/s\"",
    "\"1 Hz\"",
    "\"none\"",
    "[]",
    "[1]",
    "[\"1 MiB\"]",
    "{}",
];

/// A document with its faults repaired.
struct RepairedDocument<'i> {
    root: Spanned<DeTable<'i>>,
    /// The values that were replaced or removed, and the tables with added keys.
    repaired: Vec<ValuePath>,
    /// The removed keys: one that is then missing is no new fault.
    removed: Vec<ValuePath>,
}

impl<'i> RepairedDocument<'i> {
    fn error<T: DeserializeOwned>(&self) -> Option<Error> {
        T::deserialize(Deserializer::from(self.root.clone())).err()
    }

    /// Returns true if the error is of the file, and does not come of a repair.
    fn is_of_file(&self, error: &Error) -> bool {
        let Some(span) = error.span().filter(|span| *span != NOWHERE) else { return false };
        let message = error.message();
        let places = self.places(&span);
        if let Some(name) = missing_key(message) {
            let is_gone = |place: &DocumentPlace| self.removed.iter().any(|of| is_in(of, &place.path, name));
            return !places.iter().any(is_gone);
        }
        let is_around_repair =
            |place: &DocumentPlace| self.repaired.iter().any(|of| of.starts_with(&place.path));
        message.starts_with("unknown field ") || !places.iter().any(is_around_repair)
    }

    /// Repairs a fault. Returns false if nobody knows how.
    fn repair<T: DeserializeOwned>(&mut self, error: &Error) -> bool {
        let Some(span) = error.span() else { return false };
        let message = error.message();
        let places = self.places(&span);
        if let Some(name) = missing_key(message) {
            let tables = places.into_iter().filter(|place| place.is == PlaceKind::Value);
            return tables.map(|table| table.path).any(|table| self.add::<T>(&table, name, error));
        }
        let key = places.iter().find(|place| place.is == PlaceKind::Key).map(|place| place.path.clone());
        match key {
            Some(key) if message.starts_with("unknown field ") => self.remove(&key),
            // A table that chooses one of several by its name goes as a whole.
            Some(key) if message.starts_with("unknown variant ") => self.remove(&key[..key.len() - 1]),
            _ => {
                let values = places.into_iter().filter(|place| place.is == PlaceKind::Value);
                values.map(|value| value.path).any(|value| self.replace::<T>(&value, error))
            }
        }
    }

    /// Adds a key that a table lacks.
    fn add<T: DeserializeOwned>(&mut self, table: &[ValueStep], name: &str, error: &Error) -> bool {
        let path = [table, &[ValueStep::Key(name.to_owned())]].concat();
        self.try_values::<T>(&path, error) && {
            self.repaired.push(table.to_owned());
            true
        }
    }

    /// Replaces a wrong value, or removes it.
    fn replace<T: DeserializeOwned>(&mut self, path: &[ValueStep], error: &Error) -> bool {
        if path.is_empty() {
            return false;
        }
        if self.try_values::<T>(path, error) {
            self.repaired.push(path.to_owned());
            return true;
        }
        self.remove(path)
    }

    fn remove(&mut self, path: &[ValueStep]) -> bool {
        let Some((ValueStep::Key(name), table)) = path.split_last() else { return false };
        let Some(table) = table_at(&mut self.root, table) else { return false };
        let is_there = table.remove(name.as_str()).is_some();
        self.removed.push(path.to_owned());
        self.repaired.push(path.to_owned());
        is_there
    }

    /// Puts the first value into a place that makes the error go away.
    fn try_values<T: DeserializeOwned>(&mut self, path: &[ValueStep], error: &Error) -> bool {
        let before = self.root.clone();
        let mut values: Vec<DeValue<'i>> = VALUES.into_iter().filter_map(value_of).collect();
        let word = DeValue::String(Cow::Borrowed(NO_WORD));
        let said = self.with::<T>(path, word).map(|error| error.message().to_owned());
        let words = said.iter().flat_map(|said| said.split('`').skip(1).step_by(2));
        let words = words.filter(|word| *word != NO_WORD).take(WORDS_TRIED);
        values.extend(words.map(|word| DeValue::String(Cow::Owned(word.to_owned()))));
        values.push(DeValue::String(Cow::Borrowed(NO_WORD)));
        for value in values {
            self.root = before.clone();
            let next = self.with::<T>(path, value);
            if next.is_none_or(|next| is_further(&next, error)) {
                return true;
            }
        }
        self.root = before;
        false
    }

    /// Puts a value into a place, and returns the first error then.
    fn with<T: DeserializeOwned>(&mut self, path: &[ValueStep], value: DeValue<'i>) -> Option<Error> {
        put(&mut self.root, path, Spanned::new(NOWHERE, value));
        self.error::<T>()
    }

    /// The valid words of the key at an error, if it has such: serde names them only to those who write a wrong
    /// word.
    fn words<T: DeserializeOwned>(&self, error: &Error) -> Option<String> {
        let message = error.message();
        let wants_word = message.contains(EXPECTED_ENUM) || message == WANTS_WORD;
        let span = error.span().filter(|_| wants_word)?;
        let value = self.places(&span).into_iter().find(|place| place.is == PlaceKind::Value)?;
        let mut asked =
            RepairedDocument { root: self.root.clone(), repaired: Vec::new(), removed: Vec::new() };
        let answer = asked.with::<T>(&value.path, DeValue::String(Cow::Borrowed(NO_WORD)))?;
        let words = answer.message().strip_prefix("unknown variant `?`, expected ")?;
        Some(words.to_owned())
    }

    /// The keys and values at a place of the file, the innermost first.
    fn places(&self, span: &Range<usize>) -> Vec<DocumentPlace> {
        let mut found = Vec::new();
        if self.root.span() == *span {
            found.push(DocumentPlace { is: PlaceKind::Value, path: Vec::new() });
        }
        places_in(self.root.get_ref(), &[], span, &mut found);
        found.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        found
    }
}

/// A word that no key has as a valid value, and the number of valid words to try.
const NO_WORD: &str = "?";
const WORDS_TRIED: usize = 3;

/// Returns true if reading went on behind the repair: the next error is another one, and not in the added value. Keys
/// that the added value itself lacks can be added, too.
fn is_further(next: &Error, error: &Error) -> bool {
    let is_same = next.message() == error.message() && next.span() == error.span();
    let is_added = next.span() == Some(NOWHERE) && missing_key(next.message()).is_none();
    !is_same && !is_added
}

/// Names that are more alike than this are one name, misspelt.
const ALIKE: f64 = 0.95;

/// Returns true if a path is that of the key `name` in the table, or of a misspelling of it.
fn is_in(path: &[ValueStep], table: &[ValueStep], name: &str) -> bool {
    let Some((ValueStep::Key(known), above)) = path.split_last() else { return false };
    above == table && strsim::jaro_winkler(known, name) > ALIKE
}

/// A key or a value of a document.
struct DocumentPlace {
    is: PlaceKind,
    path: ValuePath,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceKind {
    Key,
    Value,
}

fn places_in(table: &DeTable<'_>, above: &[ValueStep], span: &Range<usize>, found: &mut Vec<DocumentPlace>) {
    for (key, value) in table {
        let path = [above, &[ValueStep::Key(key.get_ref().to_string())]].concat();
        if key.span() == *span {
            found.push(DocumentPlace { is: PlaceKind::Key, path: path.clone() });
        }
        places_at(value, path, span, found);
    }
}

fn places_at(
    value: &Spanned<DeValue<'_>>,
    path: ValuePath,
    span: &Range<usize>,
    found: &mut Vec<DocumentPlace>,
) {
    match value.get_ref() {
        DeValue::Table(table) => places_in(table, &path, span, found),
        DeValue::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                places_at(value, [&path[..], &[ValueStep::Index(index)]].concat(), span, found);
            }
        }
        _ => {}
    }
    if value.span() == *span {
        found.push(DocumentPlace { is: PlaceKind::Value, path });
    }
}

/// The table at the end of a path; `None` if there is another value.
fn table_at<'a, 'i>(root: &'a mut Spanned<DeTable<'i>>, path: &[ValueStep]) -> Option<&'a mut DeTable<'i>> {
    let Some((first, rest)) = path.split_first() else { return Some(root.get_mut()) };
    let ValueStep::Key(first) = first else { return None };
    let mut value = root.get_mut().get_mut(first.as_str())?;
    for step in rest {
        value = below(value.get_mut(), step)?;
    }
    match value.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn below<'a, 'i>(value: &'a mut DeValue<'i>, step: &ValueStep) -> Option<&'a mut Spanned<DeValue<'i>>> {
    match (value, step) {
        (DeValue::Table(table), ValueStep::Key(name)) => table.get_mut(name.as_str()),
        (DeValue::Array(list), ValueStep::Index(index)) => list.get_mut(*index),
        _ => None,
    }
}

/// Puts a value into a table or a list. Does nothing if there is no such place.
fn put<'i>(root: &mut Spanned<DeTable<'i>>, path: &[ValueStep], value: Spanned<DeValue<'i>>) {
    let Some((last, above)) = path.split_last() else { return };
    match last {
        ValueStep::Key(name) => {
            let Some(table) = table_at(root, above) else { return };
            match table.get_mut(name.as_str()) {
                Some(known) => *known = value,
                None => drop(table.insert(Spanned::new(NOWHERE, Cow::Owned(name.clone())), value)),
            }
        }
        ValueStep::Index(index) => {
            let Some((ValueStep::Key(name), table)) = above.split_last() else { return };
            let array = table_at(root, table).and_then(|table| table.get_mut(name.as_str()));
            let place = array.and_then(|array| below(array.get_mut(), &ValueStep::Index(*index)));
            if let Some(place) = place {
                *place = value;
            }
        }
    }
}

/// A value without a place.
fn value_of<'i>(text: &'static str) -> Option<DeValue<'i>> {
    let mut value = DeValue::parse(text).ok()?.into_inner();
    if let DeValue::Array(list) = &mut value {
        for item in list.iter_mut() {
            *item = Spanned::new(NOWHERE, item.get_ref().clone());
        }
    }
    Some(value)
}
