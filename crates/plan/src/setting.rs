//! A setting outside of the program as a dimension of a plan: a mount option, a tuning of the kernel, an MTU.
//! The user's own commands apply it, read it back and undo it around each repeat, so that it is shuffled like
//! any parameter.

use std::collections::BTreeMap;

use nilometer_model::Nanos;
use serde::{Deserialize, Serialize};

use crate::plan_table::plan_table;

plan_table! {
    /// A setting as written: its values, and how each is applied.
    #[derive(Debug, Clone, PartialEq)]
    SettingSweep {
        /// The values, each as a text.
        values: Vec<String>,
        /// Apply a value with this command. A shell runs it, with `NILOMETER_VALUE` and the target's path in
        /// `NILOMETER_TARGET`.
        apply: String as "a command",
        /// Print the value in force with this command, as the plan writes it. Without the command, nothing
        /// checks the value.
        read_back: Option<String> as "a command",
        /// Undo the value with this command, in the same way. It also runs after a failure, and at `--resume`
        /// after a kill.
        undo: String as "a command",
        /// End each command if it takes longer.
        time_limit: Nanos = Nanos::from_millis(60_000),
    }
}

/// One value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedSetting {
    /// Its name in reports.
    pub name: String,
    /// The value.
    pub value: String,
    /// The command that applies it.
    pub apply: String,
    /// The command that prints the value in force.
    pub read_back: Option<String>,
    /// The command that undoes it.
    pub undo: String,
    /// The time limit of each command.
    pub time_limit: Nanos,
}

impl AppliedSetting {
    /// `read ahead KiB 4096`.
    pub fn phrase(&self) -> String {
        format!("{} {}", self.name, self.value)
    }

    /// The commands that it runs.
    pub fn commands(&self) -> impl Iterator<Item = &String> {
        [&self.apply, &self.undo].into_iter().chain(&self.read_back)
    }
}

/// All combinations of one value for each setting, in the order of names and of values.
pub(super) fn combinations(settings: &BTreeMap<String, SettingSweep>) -> Vec<Vec<AppliedSetting>> {
    let mut all = vec![Vec::new()];
    for (name, sweep) in settings {
        let mut more = Vec::new();
        for chosen in &all {
            for value in &sweep.values {
                let mut chosen: Vec<AppliedSetting> = chosen.clone();
                chosen.push(sweep.at(name, value));
                more.push(chosen);
            }
        }
        all = more;
    }
    all
}

impl SettingSweep {
    fn at(&self, name: &str, value: &str) -> AppliedSetting {
        AppliedSetting {
            name: name.into(),
            value: value.into(),
            apply: self.apply.clone(),
            read_back: self.read_back.clone(),
            undo: self.undo.clone(),
            time_limit: self.time_limit,
        }
    }
}

/// Refuses settings of a stage that make no sense; the message says how to correct them.
pub(super) fn check_settings(settings: &BTreeMap<String, SettingSweep>) -> Result<(), String> {
    for (name, sweep) in settings {
        let wrong = |key: &str, why: &str| Err(format!("setting.\"{name}\": {key} {why}"));
        if name.trim().is_empty() {
            return Err("setting: a name is empty: write the name for reports".into());
        }
        if sweep.values.is_empty() {
            return wrong("values", "is empty: write at least one text");
        }
        if sweep.values.iter().any(|value| value.trim().is_empty() || value.contains(['\0', '\n'])) {
            return wrong("values", "has an empty text, or one of several lines: write one line");
        }
        let mut distinct = sweep.values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < sweep.values.len() {
            return wrong("values", "has a value twice: leave one out");
        }
        for (key, command) in [
            ("apply", Some(&sweep.apply)),
            ("undo", Some(&sweep.undo)),
            ("read_back", sweep.read_back.as_ref()),
        ] {
            if command.is_some_and(|command| command.trim().is_empty()) {
                return wrong(key, "is empty: write a command");
            }
        }
        if sweep.time_limit.0 == 0 {
            return wrong("time_limit", "is zero: write more, or leave it out");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{ResolvedPlan, parse};

    const PLAN: &str = r#"
title = "read ahead"
[[stage]]
name = "files"
workers = [1, 2]
[stage.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "best"
[stage.setting."read ahead"]
values = ["128", "4096"]
apply = "echo $NILOMETER_VALUE > /sys/block/sda/queue/read_ahead_kb"
read_back = "cat /sys/block/sda/queue/read_ahead_kb"
undo = "echo 128 > /sys/block/sda/queue/read_ahead_kb"
[stage.setting.scheduler]
values = ["none", "mq-deadline"]
apply = "echo $NILOMETER_VALUE > /sys/block/sda/queue/scheduler"
undo = "echo none > /sys/block/sda/queue/scheduler"
"#;

    fn read(text: &str) -> Result<ResolvedPlan, String> {
        parse(text, "my.toml", 1.0).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_dimensions_of_the_matrix() {
        let plan = read(PLAN).expect("a valid plan");
        assert_eq!(plan.cells.len(), 8);
        let told = plan.cells[7].to_string();
        assert!(told.ends_with("2 workers, read ahead 4096, scheduler mq-deadline"), "{told}");
        let run = plan.cells[0].as_workload().expect("a workload");
        assert_eq!((run.settings.len(), run.settings[1].read_back.as_deref()), (2, None));
        let recorded = serde_json::to_string(&plan).expect("it can be written");
        assert_eq!(serde_json::from_str::<ResolvedPlan>(&recorded).expect("it can be read"), plan);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (from, to, parts) in [
            ("[\"128\", \"4096\"]", "[]", &["my.toml:4", "setting.\"read ahead\": values is empty"][..]),
            ("[\"128\", \"4096\"]", "[\"128\", \"128\"]", &["my.toml:4", "twice"]),
            ("[\"128\", \"4096\"]", "[\" \"]", &["my.toml:4", "write one line"]),
            (
                "undo = \"echo none > /sys/block/sda/queue/scheduler\"",
                "",
                &["line 15", "the key `undo` is missing"],
            ),
            ("undo = \"echo none", "undo = \"\"\n#", &["my.toml:4", "undo is empty"]),
            ("read_back", "readback", &["line 13", "`read_back`"]),
        ] {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN, "{from}");
            let error = read(&text).expect_err(to);
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
        }
    }
}
