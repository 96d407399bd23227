//! `shift`: the worker whose files a worker reads, so that it does not read its own.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The distance to the worker whose files a worker takes. In plans and records `"node"`, or a number of
/// workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// The worker N further, modulo all; with 0 a worker takes its own (mdtest -N).
    Workers(u32),
    /// The counterpart on the next node (IOR -C). If all are on one node, that in the next process; with one
    /// process, the next worker.
    Node,
}

impl Shift {
    /// Each worker uses its own files.
    pub const OWN: Shift = Shift::Workers(0);

    /// The phrase in reports; `None` if each worker uses its own files.
    pub fn phrase(self) -> Option<String> {
        match self {
            Shift::OWN => None,
            Shift::Workers(count) => Some(format!("shift {count}")),
            Shift::Node => Some("shift by a node".into()),
        }
    }
}

impl Default for Shift {
    fn default() -> Self {
        Shift::OWN
    }
}

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shift::Workers(count) => serializer.serialize_u32(*count),
            Shift::Node => serializer.serialize_str("node"),
        }
    }
}

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeOrCount)
    }
}

struct NodeOrCount;

impl de::Visitor<'_> for NodeOrCount {
    type Value = Shift;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`node`, or a whole number of workers")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Shift, E> {
        match word {
            "node" => Ok(Shift::Node),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Shift, E> {
        let number = u32::try_from(count);
        number.map(Shift::Workers).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(count), &self))
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Shift, E> {
        let number = u32::try_from(count);
        number.map(Shift::Workers).map_err(|_| E::invalid_value(de::Unexpected::Signed(count), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_the_number_that_they_had() {
        for (shift, text) in [(Shift::OWN, "0"), (Shift::Workers(3), "3"), (Shift::Node, "\"node\"")] {
            assert_eq!(serde_json::to_string(&shift).expect("a value"), text);
            assert_eq!(serde_json::from_str::<Shift>(text).expect(text), shift);
        }
        for text in ["-1", "1.5", "\"rank\"", "4294967296"] {
            let error = serde_json::from_str::<Shift>(text).expect_err(text).to_string();
            assert!(error.contains("`node`, or a whole number of workers"), "{error}");
        }
    }
}
