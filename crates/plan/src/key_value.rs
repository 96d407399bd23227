//! The values of a plan's keys, as described by the types that read them.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{
    ByteRate, Bytes, ChunkShape, CongestionControl, EngineKind, Format, FrameCompression, Frequency,
    MpiIoImplementation, Nanos, NetworkProtocol, PatternKind, Phase, Readers, ReadingWay, Storing, Subnet,
};
use serde::{Deserialize, de::IntoDeserializer};
use toml::Spanned;

use crate::{
    Access, BufferData, Coverage, DataSource, Directories, FileLayout, FrameFile, FrameRead, IngestGoal,
    Items, LossLimit, Mode, MpiIoCalls, Notice, Onto, PlanKey, ProcessCount, Route, Shift, Siblings, Split,
    Sweep, SyncPolicy, TreeLike, UnavailableSetting, Volumes, WalkCommand, Way,
};

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

impl<T: KeyValue> KeyValue for Sweep<T> {
    const MAY_BE_LIST: bool = true;

    fn kind() -> ValueKind {
        T::kind()
    }

    fn shown(&self) -> Option<String> {
        self.values().first().and_then(T::shown)
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

macro_rules! key_values {
    ($($type:ty => $kind:expr,)*) => {
        $(impl KeyValue for $type {
            fn kind() -> ValueKind {
                $kind
            }

            fn shown(&self) -> Option<String> {
                toml::Value::try_from(self).ok().map(|value| value.to_string())
            }
        })*
    };
}

key_values! {
    u32 => ValueKind::Whole,
    u64 => ValueKind::Whole,
    f64 => ValueKind::Number,
    bool => ValueKind::Boolean,
    String => ValueKind::Text("a text"),
    Volumes => ValueKind::WholeOrWords(vec!["alone", "together"]),
    Shift => ValueKind::WholeOrWords(vec!["node"]),
    SyncPolicy => ValueKind::WordsOrTable(vec!["none", "close"], "{ every = 16 }"),
}

impl KeyValue for ProcessCount {
    fn kind() -> ValueKind {
        ValueKind::WholeOrWords(vec!["all"])
    }
}

impl KeyValue for TreeLike {
    fn kind() -> ValueKind {
        ValueKind::Text("the path of a census, such as \"census.json\"")
    }
}

impl KeyValue for Readers {
    fn kind() -> ValueKind {
        ValueKind::Inline("{ count = 2, distance = \"1 s\", rate = \"100 MB/s\" }")
    }
}

macro_rules! quantities {
    ($($type:ty => $kind:expr,)*) => {
        $(impl KeyValue for $type {
            fn kind() -> ValueKind {
                $kind
            }

            fn shown(&self) -> Option<String> {
                Some(format!("\"{self}\""))
            }
        })*
    };
}

quantities! {
    Bytes => ValueKind::Text("a size, such as \"4 MiB\" or \"4 MB\""),
    Nanos => ValueKind::Text("a time, such as \"100 ms\""),
    ByteRate => ValueKind::Text("a rate, such as \"500 MB/s\""),
    Frequency => ValueKind::Text("a frequency, such as \"50 Hz\""),
    CongestionControl => ValueKind::Text("a congestion control of TCP, such as \"cubic\""),
    Subnet => ValueKind::Text("a subnet, such as \"10.1.0.0/16\""),
    ChunkShape => ValueKind::Text("pixels, slowest dimension first, such as \"512x512\""),
    LossLimit => ValueKind::Text("\"none\", \"1 a day\", \"3 in 10 h\""),
}

macro_rules! words {
    ($($type:ty),* $(,)?) => {
        key_values! { $($type => ValueKind::Words(words_of::<$type>()),)* }
    };
}

words! {
    Access, BufferData, Coverage, DataSource, Directories, EngineKind, FileLayout, Format, FrameCompression, FrameFile,
    FrameRead, IngestGoal, Items, Mode, MpiIoCalls, MpiIoImplementation, NetworkProtocol, Notice, Onto, PatternKind, Phase,
    ReadingWay, Route, Siblings, Split, Storing, UnavailableSetting, WalkCommand, Way,
}

/// The words that a type accepts, from its error for another word.
fn words_of<T: for<'de> Deserialize<'de>>() -> Vec<String> {
    let unknown: Result<T, serde::de::value::Error> = T::deserialize("?".into_deserializer());
    let said = unknown.err().map(|error| error.to_string()).unwrap_or_default();
    let known = said.split_once("expected ").or_else(|| said.split_once("write one of "));
    let marked = known.map_or("", |(_, known)| known);
    marked.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
