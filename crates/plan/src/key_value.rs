//! The values of a plan's keys, as described by the types that read them.

use nilometer_model::{
    ByteRate, Bytes, ChunkShape, CongestionControl, EngineKind, Format, FrameCompression, Frequency,
    MpiIoImplementation, Nanos, NetworkProtocol, PatternKind, Phase, Readers, ReadingWay, Storing, Subnet,
};
use serde::{Deserialize, de::IntoDeserializer};

use crate::{
    Access, BufferData, Coverage, DataSource, Directories, FileLayout, FrameFile, FrameRead, IngestGoal,
    Items, KeyValue, LossLimit, Mode, MpiIoCalls, Notice, Onto, ProcessCount, Route, Shift, Siblings, Split,
    SyncPolicy, TreeLike, UnavailableSetting, ValueKind, Volumes, WalkCommand, Way,
};

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
