//! `volumes`: which of a campaign's targets a workload is measured on at the same time.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Are targets measured one by one? In plans and records `"alone"`, `"together"`, or the number of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Volumes {
    /// Each target alone.
    #[default]
    Alone,
    /// N at the same time, each with its workers: the first ones on the command line that can do it. At least
    /// two.
    First(u32),
    /// All targets at the same time, each with its workers.
    Together,
}

impl Volumes {
    /// The numbers of targets at once among these, each at least two, if there are `targets` targets.
    pub(super) fn several(all: &[Volumes], targets: usize) -> Vec<usize> {
        let together = all.iter().filter(|volumes| **volumes != Volumes::Alone);
        let mut counts: Vec<usize> = together.filter_map(|volumes| volumes.at_once(targets)).collect();
        counts.retain(|count| *count >= 2);
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The number of targets, of this many, that are measured at the same time; `None` if there are too few.
    pub fn at_once(self, targets: usize) -> Option<usize> {
        let count = match self {
            Volumes::Alone => 1,
            Volumes::First(count) => count as usize,
            Volumes::Together => targets.max(1),
        };
        (count <= targets).then_some(count)
    }

    /// The phrase in reports; `None` if each target is measured by itself.
    pub fn phrase(self) -> Option<String> {
        match self {
            Volumes::Alone => None,
            Volumes::First(count) => Some(format!("the first {count} at once")),
            Volumes::Together => Some("all at once".into()),
        }
    }

    /// The phrase in reports for recordings, which are one over several targets; `None` if each target has
    /// its own.
    pub(super) fn phrase_of_recording(volumes: &[Volumes]) -> Option<String> {
        if volumes.iter().all(|volumes| *volumes == Volumes::Alone) {
            return None;
        }
        let words = volumes.iter().map(|volumes| match volumes {
            Volumes::Alone => "onto each".to_owned(),
            Volumes::First(count) => format!("over the first {count}"),
            Volumes::Together => "over all".into(),
        });
        Some(words.collect::<Vec<_>>().join(" and "))
    }
}

impl Serialize for Volumes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Volumes::Alone => serializer.serialize_str("alone"),
            Volumes::First(count) => serializer.serialize_u32(*count),
            Volumes::Together => serializer.serialize_str("together"),
        }
    }
}

impl<'de> Deserialize<'de> for Volumes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrCount)
    }
}

struct WordOrCount;

impl de::Visitor<'_> for WordOrCount {
    type Value = Volumes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`alone`, `together`, or a whole number of targets from 2 on")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Volumes, E> {
        match word {
            "alone" => Ok(Volumes::Alone),
            "together" => Ok(Volumes::Together),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Volumes, E> {
        match u32::try_from(count) {
            Ok(count) if count >= 2 => Ok(Volumes::First(count)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(count), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Volumes, E> {
        match u64::try_from(count) {
            Ok(count) => self.visit_u64(count),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(count), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_the_text_that_they_had() {
        for (volumes, text) in
            [(Volumes::Alone, "\"alone\""), (Volumes::Together, "\"together\""), (Volumes::First(3), "3")]
        {
            assert_eq!(serde_json::to_string(&volumes).expect("a value"), text);
            assert_eq!(serde_json::from_str::<Volumes>(text).expect(text), volumes);
        }
    }

    #[test]
    fn what_is_neither_a_word_nor_a_number_of_targets_is_refused_with_the_choices() {
        for text in ["0", "1", "-2", "2.5", "\"all\"", "4294967296", "[2]"] {
            let error = serde_json::from_str::<Volumes>(text).expect_err(text).to_string();
            assert!(error.contains("`alone`, `together`, or a whole number of targets from 2 on"), "{error}");
        }
    }

    #[test]
    fn no_more_are_measured_at_once_than_there_are() {
        let of = |volumes: Volumes| [0, 1, 2, 4].map(|targets| volumes.at_once(targets));
        assert_eq!(of(Volumes::Alone), [None, Some(1), Some(1), Some(1)]);
        assert_eq!(of(Volumes::First(2)), [None, None, Some(2), Some(2)]);
        assert_eq!(of(Volumes::Together), [None, Some(1), Some(2), Some(4)]);
    }
}
