//! The keys of a plan, taken from the types that read it, so that the printed keys are those accepted.

use crate::{KeyValue, Plan, PlanKey, ValueKind};

impl PlanKey {
    /// The keys of a whole plan, from its head on: tables are keys with keys.
    pub fn all() -> Vec<PlanKey> {
        match Plan::kind() {
            ValueKind::Table(keys) => keys,
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// Each key with its table, such as `stage.ingest`.
    fn keys_below(table: &str, keys: &[PlanKey], all: &mut Vec<(String, PlanKey)>) {
        for key in keys {
            all.push((table.to_owned(), key.clone()));
            let below = if table.is_empty() { key.name.to_owned() } else { format!("{table}.{}", key.name) };
            match &key.kind {
                ValueKind::Table(keys) | ValueKind::Tables(keys) => keys_below(&below, keys, all),
                ValueKind::Named(keys) => keys_below(&format!("{below}.x"), keys, all),
                ValueKind::OneOf(tables) => {
                    for (name, _, keys) in tables {
                        keys_below(&format!("{below}.{name}"), keys, all);
                    }
                }
                _ => {}
            }
        }
    }

    fn every_key() -> Vec<(String, PlanKey)> {
        let mut all = Vec::new();
        keys_below("", &PlanKey::all(), &mut all);
        all
    }

    fn key(table: &str, name: &str) -> PlanKey {
        let found = every_key().into_iter().find(|(of, key)| of == table && key.name == name);
        found.unwrap_or_else(|| panic!("{table}.{name}")).1
    }

    #[test]
    fn the_reference_is_what_the_types_read() {
        let access = key("stage.workload.stream", "access");
        assert_eq!((access.value.as_str(), access.is_needed), ("\"buffered\", \"direct\", \"best\"", true));
        let files = key("stage.workload.stream", "files");
        assert_eq!((files.default.as_deref(), files.is_needed, files.may_be_list), (Some("1"), false, true));
        assert_eq!(key("stage.workload.stream", "sync").default.as_deref(), Some("\"close\""));
        assert_eq!(key("", "reserve").default.as_deref(), Some("\"1 GiB\""));
        assert_eq!(key("stage", "engine").value, "\"sync\", \"io_uring\", \"pool\", \"mpi_io\"");
        assert_eq!(key("stage.background.ingest", "format").value, "\"raw\", \"cbf\", \"hdf5\"");
    }

    #[test]
    fn every_key_says_what_it_is_for_and_what_it_takes() {
        let all = every_key();
        assert!(all.len() > 200, "{}", all.len());
        for (table, PlanKey { name, kind, value, about, .. }) in &all {
            let is_said = about.last().is_some_and(|line| line.ends_with('.'));
            let has_words = !matches!(kind, ValueKind::Words(words) if words.len() < 2);
            assert!(is_said && has_words && !value.is_empty(), "{table}.{name}: {value}: {about:?}");
        }
    }

    #[test]
    fn every_key_is_one_that_the_parser_knows() {
        for (table, key) in every_key() {
            // A value that no key accepts, in a valid place: the parser complains about the value, not about
            // the key.
            let text = match table.as_str() {
                "" => format!("title = \"x\"\n{} = nan", key.name).replace("title = \"x\"\ntitle", "title"),
                "stage" | "accept.instrument" | "accept.stage" => {
                    format!("title = \"x\"\n[[{table}]]\n{} = nan", key.name)
                }
                "accept" => format!("title = \"x\"\n[accept]\n{} = nan", key.name),
                _ if table.starts_with("accept") => continue,
                _ => format!("title = \"x\"\n[[stage]]\nname = \"s\"\n[{table}]\n{} = nan", key.name),
            };
            let said = parse(&text, "p.toml", 1.0).expect_err("no value of a plan").to_string();
            assert!(!said.contains("unknown key"), "{table}.{}: {said}", key.name);
        }
    }
}
