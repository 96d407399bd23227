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
        format!("`{other}`{at_other} replaces `{key}`{at}: leave one of them out")
    } else {
        format!(
            "`{key}` is missing: write it, or {other} = \"census.json\" (`nilometer plan keys` shows all that a table \
             needs)"
        )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanSources, ResolvedPlan, parse_from};

    /// A directory with 100 files of a kibibyte each.
    const CENSUS: &str = r#"{"census_version": 1, "directories": 1, "files": 100, "bytes": 102400, "unreadable": 0,
        "too_deep": 0, "other_file_systems": 0, "sizes": [{"from": 1024, "count": 100, "sum": 102400}],
        "levels": [{"leaves": [{"from": 64, "count": 1, "sum": 100}], "inner": []}]}"#;

    fn parsed(keys: &str, census: &str, scale: f64) -> Result<ResolvedPlan, String> {
        let text = format!("title = \"t\"\n[[stage]]\nname = \"s\"\n{keys}\n");
        let catalogue = &|_: &str| Err("none".to_owned());
        let censuses = &|path: &str| match path {
            "c.json" => Ok(CensusText { text: census.to_owned(), sha256: "0123456789abcdef".into() }),
            _ => Err("no such file".to_owned()),
        };
        let sources = PlanSources { catalogue, censuses };
        parse_from(&text, "p.toml", scale, &sources).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_follow_from_the_census_at_any_scale_and_the_record_has_its_counts() {
        let name = |keys: &str, scale| parsed(keys, CENSUS, scale).expect(keys).cells[0].to_string();
        let like = "like c.json 0123456789ab (median 1 KiB to 2 KiB; largest 1 KiB to 2 KiB; 0 levels deep)";
        let unpack = "[stage.workload.unpack]\nlike = \"c.json\"";
        let numbers = "100 files of 100 KiB in 1 directories";
        assert_eq!(name(unpack, 1.0), format!("{numbers}, {like}, 1 worker"));
        let half = "50 files of 50 KiB in 1 directories";
        assert_eq!(name(unpack, 0.5), format!("{half}, {like}, 1 worker"));
        assert_eq!(name(&format!("{unpack}\nfiles = 50"), 1.0), format!("{half}, {like}, 1 worker"));
        let walk = "[stage.workload.walk]\nlike = \"c.json\"\ntotal_files = 100\ncold = false";
        assert_eq!(name(walk, 0.5), format!("{half}, {like}, caches as they are, 1 worker"));
        let plan = parsed(unpack, CENSUS, 1.0).expect("a plan");
        let kept = serde_json::to_string(&plan).expect("JSON");
        assert_eq!(serde_json::from_str::<ResolvedPlan>(&kept).expect("a record has it"), plan);
        let no_census = kept.replace("\"sum\":102400", "\"sum\":1");
        assert!(serde_json::from_str::<ResolvedPlan>(&no_census).is_err(), "a record is checked as well");
    }

    #[test]
    fn a_tree_like_source_trees_is_recorded_as_before() {
        let keys = "[stage.workload.unpack]\ndirectories = 1\nfiles = 2\nsize = \"3 B\"";
        let plan = parsed(keys, CENSUS, 1.0).expect("a plan");
        let kept = serde_json::to_string(&plan.cells[0]).expect("JSON");
        assert!(
            kept.ends_with(
                r#""workload":{"unpack":{"directories":1,"files":2,"size":"3 B","durable":false}}}}}"#
            ),
            "{kept}"
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_both_places() {
        let refused = |keys: &str| parsed(keys, CENSUS, 1.0).expect_err(keys);
        for (keys, why) in [
            (
                "[stage.workload.unpack]\nsize = \"1 B\"\nlike = \"c.json\"",
                "`like` (line 6) replaces `size` (line 5)",
            ),
            (
                "[stage.workload.walk]\nlike = \"c.json\"\nlevels = 3",
                "`like` (line 5) replaces `levels` (line 6)",
            ),
            ("[stage.workload.search]\ndirectories = 1\nfiles = 1", "`size` is missing: write it, or like"),
            (
                "[stage.workload.build]\nlike = \"d.json\"\nunits = 1",
                "p.toml:3: stage `s`: like = \"d.json\": no such file",
            ),
            (
                "[stage.workload.wait]\nduration = \"1 s\"\n[stage.background.workload.unpack]\nlike = \"c.json\"\n\
                 size = \"1 B\"",
                "`like` (line 7) replaces `size` (line 8)",
            ),
            ("[stage.workload.unpack]\nlike = { path = \"c.json\" }", "is missing"),
        ] {
            let message = refused(keys);
            assert!(message.contains(why), "{why}: {message}");
        }
    }

    #[test]
    fn counts_that_no_tree_has_are_refused_with_their_place() {
        for (old, new, why) in [
            (
                "\"unreadable\": 0",
                "\"unreadable\": 2",
                "it lacks a part of its tree (unreadable = 2, too_deep = 0)",
            ),
            (
                "\"bytes\": 102400",
                "\"bytes\": 1",
                "its counts don't add up: 1 bytes, and 102400 bytes of `sizes`",
            ),
            ("1024,", "1000,", "sizes[0]: from = 1000 is no power of two"),
            ("\"sum\": 102400", "\"sum\": 1", "sizes[0]: 100 values from 1024 to 2047 have no sum of 1"),
            (
                "\"inner\": []",
                "\"inner\": [{\"from\": 0, \"count\": 1, \"sum\": 0}]",
                "levels[0]: 1 directories with",
            ),
            ("\"directories\": 1", "\"directories\": 2", "and 1 directories of `levels`"),
            (
                "\"files\": 100",
                "\"files\": true",
                "it is no census: found `true`, expected a whole number, 0 or more at line 1",
            ),
            ("\"census_version\": 1", "\"version\": 1", "it is no census: it has no census_version"),
        ] {
            let census = CENSUS.replace(old, new);
            let message = parsed("[stage.workload.unpack]\nlike = \"c.json\"", &census, 1.0).expect_err(why);
            assert!(message.starts_with("p.toml:3: stage `s`: like = \"c.json\": "), "{message}");
            assert!(message.contains(why), "{why}: {message}");
        }
        let nothing = r#"{"census_version": 1, "directories": 1, "files": 0, "bytes": 0, "unreadable": 0, "too_deep": 0,
            "other_file_systems": 0, "sizes": [],
            "levels": [{"leaves": [{"from": 0, "count": 1, "sum": 0}], "inner": []}]}"#;
        let message = parsed("[stage.workload.unpack]\nlike = \"c.json\"", nothing, 1.0).expect_err("empty");
        assert!(message.contains("the tree has no file"), "{message}");
    }
}
