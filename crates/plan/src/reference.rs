//! The keys of a plan, taken from the types that read it, so that what is printed is what is read.

use serde::{Deserialize, de::IntoDeserializer};

/// A key that a plan may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanKey {
    /// As written.
    pub name: &'static str,
    /// What may stand behind it.
    pub value: String,
    /// What holds if it is not written; none where it must be.
    pub default: Option<String>,
    /// What it is for, in lines.
    pub about: Vec<String>,
}

impl PlanKey {
    /// From a field: its name, its type in Rust's words, the choices of that type, its default and its documentation.
    pub(super) fn of(
        name: &'static str,
        kind: &str,
        choices: Option<String>,
        default: Option<String>,
        lines: &[&str],
    ) -> Self {
        let value = match kind {
            "Bytes" => "a size, such as \"4 MiB\" or \"4 MB\"".to_owned(),
            "Nanos" => "a time, such as \"100 ms\"".to_owned(),
            "bool" => "true or false".to_owned(),
            "u32" | "u64" => "a whole number".to_owned(),
            _ => choices.unwrap_or_else(|| kind.to_owned()),
        };
        let about = lines.iter().map(|line| line.trim().to_owned()).collect();
        PlanKey { name, value, default, about }
    }
}

/// The words that a type knows, if it is a choice among words: what it says when it reads another.
pub(super) fn choices<T: for<'de> Deserialize<'de>>() -> Option<String> {
    let unknown: Result<T, serde::de::value::Error> = T::deserialize("?".into_deserializer());
    let said = unknown.err()?.to_string();
    let (_, words) = said.split_once("expected ")?;
    Some(words.trim_start_matches("one of ").replace('`', "\""))
}

/// A value as a plan would write it.
pub(super) fn written<T: serde::Serialize>(value: T) -> Option<String> {
    toml::Value::try_from(value).ok().map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::WorkloadCell;

    #[test]
    fn the_reference_is_what_the_types_read() {
        let workloads = WorkloadCell::reference();
        let stream = workloads.iter().find(|(name, ..)| *name == "stream").expect("a workload");
        let key = |name| stream.2.iter().find(|key| key.name == name).expect("a parameter");
        assert_eq!(key("access").value, "\"buffered\", \"direct\", \"best\"");
        assert_eq!((key("access").default.as_deref(), key("files").default.as_deref()), (None, Some("1")));
        assert_eq!(key("sync").default.as_deref(), Some("\"close\""));
        for (name, about, keys) in &workloads {
            assert!(!about.is_empty() && !keys.is_empty(), "{name}");
            for key in keys {
                assert!(
                    key.about.last().is_some_and(|line| line.ends_with('.')) && !key.value.contains("::"),
                    "{name}: {key:?}"
                );
            }
        }
    }
}
