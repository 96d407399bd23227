//! The keys of a plan, as the types that read them describe themselves. `key_value.rs` has the types' values.

use std::{collections::BTreeMap, fmt};

use toml::Spanned;

use crate::Sweep;

/// A key that a plan may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanKey {
    /// Its name in the plan.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The kind in words.
    pub value: String,
    /// The default, if there is one.
    pub default: Option<String>,
    /// True if a plan must have it.
    pub is_needed: bool,
    /// A list of values makes the stage a matrix.
    pub may_be_list: bool,
    /// Its purpose, in lines.
    pub about: Vec<String>,
}

/// The default of a key in the form of a plan; `None` if it has no text.
pub(crate) struct KeyDefault(pub(crate) Option<String>);

impl PlanKey {
    /// Describes a key of this type: its name, a text in place of the type's words, its default, and its
    /// documentation.
    pub(crate) fn of<T: KeyValue>(
        name: &'static str,
        words: Option<&str>,
        default: Option<KeyDefault>,
        lines: &[&str],
    ) -> Self {
        let kind = T::kind();
        let value = words.map_or_else(|| kind.to_string(), str::to_owned);
        let is_needed = default.is_none() && !T::MAY_BE_LEFT_OUT;
        let about = lines.iter().map(|line| line.trim().to_owned()).collect();
        let default = default.and_then(|KeyDefault(shown)| shown);
        PlanKey { name, kind, value, default, is_needed, may_be_list: T::MAY_BE_LIST, about }
    }
}

/// The kind of value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number, from 0 on.
    Whole,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A text, with its description: `a size, such as "4 MiB"`.
    Text(&'static str),
    /// One of these words.
    Words(Vec<String>),
    /// One of these words, or a whole number.
    WholeOrWords(Vec<&'static str>),
    /// One of these words, or a table as shown.
    WordsOrTable(Vec<&'static str>, &'static str),
    /// A list of such values.
    List(Box<ValueKind>),
    /// A table in one line, as shown.
    Inline(&'static str),
    /// A table with these keys.
    Table(Vec<PlanKey>),
    /// Tables with these keys, as many as are wished.
    Tables(Vec<PlanKey>),
    /// A table for each name that the user gives.
    Named(Vec<PlanKey>),
    /// One of several tables: name, purpose, its keys.
    OneOf(Vec<(&'static str, String, Vec<PlanKey>)>),
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted =
            |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            ValueKind::Whole => f.write_str("a whole number"),
            ValueKind::Number => f.write_str("a number"),
            ValueKind::Boolean => f.write_str("true or false"),
            ValueKind::Text(which) => f.write_str(which),
            ValueKind::Words(words) => {
                f.write_str(&quoted(&words.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            ValueKind::WholeOrWords(words) => write!(f, "{}, or a whole number", quoted(words)),
            ValueKind::WordsOrTable(words, table) => write!(f, "{}, or {table}", quoted(words)),
            ValueKind::List(kind) => write!(f, "a list, each {kind}"),
            ValueKind::Inline(table) => f.write_str(table),
            ValueKind::Table(_) | ValueKind::Tables(_) | ValueKind::Named(_) | ValueKind::OneOf(_) => {
                f.write_str("a table")
            }
        }
    }
}

/// A type that a key of a plan has.
pub trait KeyValue {
    /// The key need not be written, and nothing stands for it then.
    const MAY_BE_LEFT_OUT: bool = false;
    /// A list of values makes the stage a matrix.
    const MAY_BE_LIST: bool = false;

    /// The kind of value.
    fn kind() -> ValueKind;

    /// A value in the form of a plan; `None` for tables, and for values without a text.
    fn shown(&self) -> Option<String> {
        None
    }
}

impl<T: KeyValue> KeyValue for Option<T> {
    const MAY_BE_LEFT_OUT: bool = true;
    const MAY_BE_LIST: bool = T::MAY_BE_LIST;

    fn kind() -> ValueKind {
        T::kind()
    }
}

impl<T: KeyValue> KeyValue for Spanned<T> {
    fn kind() -> ValueKind {
        T::kind()
    }
}

impl<T: KeyValue> KeyValue for Vec<T> {
    fn kind() -> ValueKind {
        match T::kind() {
            ValueKind::Table(keys) => ValueKind::Tables(keys),
            kind => ValueKind::List(Box::new(kind)),
        }
    }
}

impl<T: KeyValue> KeyValue for BTreeMap<String, T> {
    fn kind() -> ValueKind {
        match T::kind() {
            ValueKind::Table(keys) => ValueKind::Named(keys),
            _ => ValueKind::Inline("{ cb_nodes = \"4\", romio_cb_write = \"enable\" }"),
        }
    }
}

impl<T: KeyValue> KeyValue for Sweep<T> {
    const MAY_BE_LIST: bool = true;

    fn kind() -> ValueKind {
        T::kind()
    }

    fn shown(&self) -> Option<String> {
        self.values().first().and_then(T::shown)
    }
}
