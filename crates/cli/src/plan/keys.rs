//! `nilometer plan keys`: lists the keys of a plan, from the types that read it.

use nilometer_plan::{PlanKey, ValueKind};

/// A table of a plan: its heading, its purpose, its keys.
pub(super) struct PlanTable {
    pub(super) heading: String,
    pub(super) about: String,
    pub(super) rows: Vec<KeyRow>,
}

/// A key of a table.
pub(super) struct KeyRow {
    pub(super) name: &'static str,
    /// The values that the key takes.
    pub(super) value: String,
    /// The default, or `needed` if the key has none and must be there. `None` for an optional key without a
    /// default.
    pub(super) default: Option<String>,
    pub(super) about: String,
}

/// The text in place of the default of a required key.
const NEEDED: &str = "needed";

/// All tables of a plan, its head first. A table that occurs twice is explained at its first place.
pub(super) fn tables() -> Vec<PlanTable> {
    let mut walk = TableWalk { tables: Vec::new(), explained: Vec::new() };
    walk.add("", String::new(), "The head of a plan.", &PlanKey::all());
    walk.tables
}

struct TableWalk {
    tables: Vec<PlanTable>,
    /// The contents of each explained table, and its place.
    explained: Vec<(ValueKind, String)>,
}

impl TableWalk {
    /// Adds the table at this path, and then the tables in it.
    fn add(&mut self, path: &str, heading: String, about: &str, keys: &[PlanKey]) {
        let rows = keys.iter().filter_map(|key| self.row(key, keys)).collect();
        self.tables.push(PlanTable { heading, about: about.into(), rows });
        for key in keys {
            self.add_below(path, key);
        }
    }

    /// A row for a key whose value is no table, or a table that is explained elsewhere; `None` for other
    /// tables.
    fn row(&self, key: &PlanKey, all: &[PlanKey]) -> Option<KeyRow> {
        let known = self.explained.iter().find(|(kind, _)| *kind == key.kind);
        let value = match (known, &key.kind) {
            (Some((_, place)), _) => format!("as [{place}]"),
            (
                None,
                ValueKind::Table(_) | ValueKind::Tables(_) | ValueKind::Named(_) | ValueKind::OneOf(_),
            ) => {
                return None;
            }
            (None, _) => key.value.clone(),
        };
        let is_one = all.iter().any(|key| key.may_be_list) && !key.may_be_list && known.is_none();
        let value = if is_one { format!("{value} (one)") } else { value };
        let default = key.default.clone().or_else(|| key.is_needed.then(|| NEEDED.to_owned()));
        Some(KeyRow { name: key.name, value, default, about: key.about.join(" ") })
    }

    fn add_below(&mut self, path: &str, key: &PlanKey) {
        if self.explained.iter().any(|(kind, _)| *kind == key.kind) {
            return;
        }
        let below = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        let about = key.about.join(" ");
        match &key.kind {
            ValueKind::Table(keys) => {
                self.explained.push((key.kind.clone(), below.clone()));
                self.add(&below, format!("[{below}]"), &about, keys);
            }
            ValueKind::Tables(keys) => self.add(&below, format!("[[{below}]]"), &about, keys),
            ValueKind::Named(keys) => self.add(&below, format!("[{below}.NAME]"), &about, keys),
            ValueKind::OneOf(tables) => {
                self.explained.push((key.kind.clone(), below.clone()));
                for (name, about, keys) in tables {
                    self.add(&format!("{below}.{name}"), format!("[{below}.{name}]"), about, keys);
                }
            }
            _ => {}
        }
    }
}

/// The keys as text for a terminal.
pub(super) fn text() -> String {
    let mut lines = Vec::new();
    for PlanTable { heading, about, rows } in tables() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(if heading.is_empty() { about } else { format!("{heading}  {about}") });
        for KeyRow { name, value, default, about } in rows {
            let default = default.map_or_else(String::new, |default| format!(" [{default}]"));
            lines.push(format!("  {name} = {value}{default}"));
            lines.push(format!("      {about}"));
        }
    }
    lines.join("\n")
}

/// The keys as the page of the documentation.
pub(super) fn markdown() -> String {
    let mut lines = vec![PAGE.to_owned()];
    for PlanTable { heading, about, rows } in tables() {
        let heading = if heading.is_empty() { "Head".to_owned() } else { format!("`{heading}`") };
        lines.extend([String::new(), format!("## {heading}"), String::new(), about, String::new()]);
        lines.extend(["| key | value | default | |", "|---|---|---|---|"].map(str::to_owned));
        for KeyRow { name, value, default, about } in rows {
            let default = match default {
                Some(default) if default != NEEDED => format!("`{default}`"),
                other => other.unwrap_or_default(),
            };
            lines.push(format!("| `{name}` | {value} | {default} | {about} |"));
        }
    }
    lines.join("\n")
}

/// The beginning of the page.
const PAGE: &str = "# The keys of a plan

`nilometer plan keys --format markdown` prints this page, from the types that read a plan. Times, sizes and rates \
are texts with a unit. For an editor that checks a plan while you write it: \
`nilometer plan keys --format json-schema > plan.schema.json`.";

#[cfg(test)]
mod tests {
    use super::*;

    fn table(heading: &str) -> PlanTable {
        tables().into_iter().find(|table| table.heading == heading).unwrap_or_else(|| panic!("{heading}"))
    }

    fn row(heading: &str, name: &str) -> KeyRow {
        let found = table(heading).rows.into_iter().find(|row| row.name == name);
        found.unwrap_or_else(|| panic!("{heading} {name}"))
    }

    #[test]
    fn each_table_stands_once_and_leads_to_where_another_is_explained() {
        let headings: Vec<String> = tables().into_iter().map(|table| table.heading).collect();
        for heading in ["", "[[stage]]", "[stage.setting.NAME]", "[stage.workload.stream]", "[stage.ingest]"]
        {
            assert_eq!(headings.iter().filter(|known| *known == heading).count(), 1, "{headings:?}");
        }
        for heading in ["[[accept.instrument]]", "[accept.instrument.condition]", "[stage.background]"] {
            assert!(headings.iter().any(|known| known == heading), "{headings:?}");
        }
        assert!(!headings.iter().any(|heading| heading.starts_with("[stage.background.")), "{headings:?}");
        assert_eq!(row("[stage.background]", "ingest").value, "as [stage.ingest]");
        assert_eq!(row("[stage.background]", "workload").value, "as [stage.workload]");
    }

    #[test]
    fn keys_that_can_not_be_a_list_say_so() {
        assert_eq!(row("[[stage]]", "name").value, "a text (one)");
        assert_eq!(row("[[stage]]", "depth").value, "a whole number");
        assert_eq!(row("", "title").value, "a text");
        let defaults = ["title", "repeats", "source"].map(|name| row("", name).default);
        assert_eq!(defaults, [Some("needed".into()), Some("3".into()), None]);
    }
}
