//! Reads the censuses that a plan names, before its stages become cells.

use std::sync::Arc;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    CensusText, NamedCensus, Plan, Stage, TreeCensus, TreeLike, WorkloadSweep, parameters::KeyRule,
    places::line_of,
};

/// Reads the text of the census at a path, as a plan has it. The error is a message for the user.
pub type CensusReader<'a> = &'a dyn Fn(&str) -> Result<CensusText, String>;

/// A stage whose tree can't be made.
pub(super) struct RefusedStage {
    /// Its index in the plan.
    pub(super) stage: usize,
    /// The reason.
    pub(super) why: String,
}

/// Replaces the path of each census by its counts. `text` is the plan's text.
pub(super) fn read_censuses(
    plan: &mut Plan,
    text: &str,
    reader: CensusReader<'_>,
) -> Result<(), RefusedStage> {
    for (number, stage) in plan.stage.iter_mut().enumerate() {
        for (tables, workload) in workloads(stage) {
            let broken = workload.broken_rule().map(|rule| {
                let lines = [rule.key, rule.other].map(|key| line_of_key(text, number, tables, key));
                said(rule, lines)
            });
            let done = broken.map_or_else(|| read_all(workload, reader), Err);
            done.map_err(|why| RefusedStage { stage: number, why })?;
        }
    }
    Ok(())
}

/// The workload of a stage and that of its load, each with the tables that lead to it.
fn workloads(stage: &mut Stage) -> impl Iterator<Item = (&'static [&'static str], &mut WorkloadSweep)> {
    let own = stage.workload.as_mut().map(|workload| (&["workload"][..], workload));
    let load = stage.background.as_mut().and_then(|background| background.workload.as_mut());
    own.into_iter().chain(load.map(|workload| (&["background", "workload"][..], workload)))
}

/// A broken rule in words, with the lines of both keys.
fn said(rule: KeyRule, lines: [Option<usize>; 2]) -> String {
    let KeyRule { key, other, .. } = rule;
    let [at, at_other] = lines.map(|line| line.map_or_else(String::new, |line| format!(" (line {line})")));
    if lines.iter().all(Option::is_some) {
        format!("{other}{at_other} replaces {key}{at}: leave one of them out")
    } else {
        format!("{key} is missing: write it, or {other} = \"census.json\", a census of a tree")
    }
}

fn read_all(workload: &mut WorkloadSweep, reader: CensusReader<'_>) -> Result<(), String> {
    let Some(likes) = workload.likes() else { return Ok(()) };
    for like in likes.values_mut() {
        let TreeLike::Named(path) = like else {
            return Err("like: write the path of a census, such as \"census.json\"".into());
        };
        let refused = |why| format!("like = {path:?}: {why}");
        let CensusText { text, sha256 } = reader(path).map_err(refused)?;
        let counts = TreeCensus::parse(&text).map_err(refused)?;
        *like = TreeLike::Of(Arc::new(NamedCensus { path: path.clone(), sha256, counts }));
    }
    Ok(())
}

/// The line of a key of a stage's workload. `None` if the plan has no such key.
fn line_of_key(text: &str, stage: usize, tables: &[&str], key: &str) -> Option<usize> {
    let plan = DeTable::parse(text).ok()?;
    let DeValue::Array(stages) = below(plan.get_ref(), "stage")?.1.get_ref() else { return None };
    let mut at = table(stages.get(stage)?)?;
    for name in tables {
        at = table(below(at, name)?.1)?;
    }
    // The one table there has the name of the workload.
    let workload = table(at.iter().next()?.1)?;
    Some(line_of(text, below(workload, key)?.0))
}

/// The place of a key in the text, and its value.
fn below<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<(usize, &'a Spanned<DeValue<'i>>)> {
    let mut keys = table.iter();
    keys.find(|(key, _)| *key.get_ref() == name).map(|(key, value)| (key.span().start, value))
}

fn table<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}
