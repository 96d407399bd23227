//! Differences in program, plan, machine and storage between the subjects: possible causes of different figures.

use nilometer_model::observed::ClockState;
use nilometer_plan::{ResolvedPlan, Results, ShownScale, TargetEntry};

use super::{NamedRecord, Subject};

/// A fact that is not the same for all subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingFact {
    /// Its name: `kernel`, `seed`, `file system`.
    pub what: String,
    /// Each value with its subjects, in their order; an empty value if a record does not contain it.
    pub values: Vec<(String, Vec<usize>)>,
}

/// Facts that always differ, or that never explain different figures.
const NOT_TOLD: [&str; 4] = ["command", "nilometer", ClockState::FACT, "boot id"];

/// The differing facts in the order program, plan, machine, storage.
pub(super) fn differing(records: &[NamedRecord<'_>], subjects: &[Subject]) -> Vec<DifferingFact> {
    let facts: Vec<Vec<(String, String)>> = subjects
        .iter()
        .map(|subject| facts(records[subject.record].results, subject.entry(records)))
        .collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in facts.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_imported: Vec<bool> =
        subjects.iter().map(|subject| records[subject.record].results.is_imported()).collect();
    names.into_iter().filter_map(|name| differing_in(&facts, &is_imported, name)).collect()
}

/// Compares a fact of all subjects. Imported results state few facts, and some of their own: a fact that only they
/// state, or only they lack, is no difference.
fn differing_in(facts: &[Vec<(String, String)>], is_imported: &[bool], what: &str) -> Option<DifferingFact> {
    let states =
        |facts: &Vec<(String, String)>| facts.iter().any(|(name, value)| name == what && !value.is_empty());
    let is_imported_fact =
        facts.iter().zip(is_imported).all(|(facts, is_imported)| *is_imported || !states(facts));
    let mut values: Vec<(String, Vec<usize>)> = Vec::new();
    for (subject, facts) in facts.iter().enumerate() {
        let value = facts.iter().find(|(name, _)| name == what).map_or("", |(_, value)| value);
        if value.is_empty() && is_imported[subject] != is_imported_fact {
            continue;
        }
        match values.iter_mut().find(|(known, _)| known == value) {
            Some((_, subjects)) => subjects.push(subject),
            None => values.push((value.to_owned(), vec![subject])),
        }
    }
    (values.len() > 1).then(|| DifferingFact { what: what.to_owned(), values })
}

/// The facts of a subject: name and value.
fn facts(results: &Results, target: &TargetEntry) -> Vec<(String, String)> {
    let mut facts = vec![("program version".to_owned(), results.version.clone())];
    facts.push(("plan".into(), results.title.clone()));
    if let Some(campaign) = &results.campaign {
        facts.extend(of_plan(&campaign.plan));
    }
    facts.push(("rounds".into(), results.repeats.to_string()));
    facts.push(("margin".into(), format!("{} %", results.margin)));
    let told = results.environment.iter().filter(|(key, _)| !NOT_TOLD.contains(&key.as_str()));
    facts.extend(told.cloned());
    facts.extend(of_target(target));
    facts
}

fn of_plan(plan: &ResolvedPlan) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("scale", ShownScale(plan.scale).to_string()),
        fact("seed", plan.seed.to_string()),
        fact("warm-up rounds", plan.warm_up.to_string()),
        fact("processes", plan.ranks.to_string()),
        fact("copied from", plan.source.clone().unwrap_or_default()),
    ]
}

fn of_target(target: &TargetEntry) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![fact("file system", target.file_system.clone())];
    let Some(described) = &target.description else { return facts };
    let profile = &described.profile;
    facts.extend([
        fact("mounted from", described.source.clone()),
        fact("mount options", described.options.clone()),
        fact("device", described.device.clone().unwrap_or_default()),
        fact("size of the file system", described.space.size.to_string()),
        fact("O_DIRECT", format!("{:?}", described.direct)),
        fact("layout of files", profile.layout.as_ref().map_or_else(String::new, ToString::to_string)),
        fact("redundancy", profile.redundancy.clone().unwrap_or_default()),
    ]);
    facts.extend(described.facts.iter().cloned());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told_and_who_has_which() {
        let record = |kernel: &str, file_system: &str| Results {
            version: "0.1.0".into(),
            environment: vec![("kernel".into(), kernel.into()), ("command".into(), kernel.into())],
            targets: vec![TargetEntry { file_system: file_system.into(), ..TargetEntry::default() }],
            ..Results::default()
        };
        let results = [record("6.1", "ext4"), record("6.12", "ext4"), record("6.1", "xfs")];
        let records: Vec<NamedRecord<'_>> =
            results.iter().map(|results| NamedRecord { name: "r", results }).collect();
        let found = differing(&records, &super::super::subject::subjects(&records));
        let of = |what: &str, values: &[(&str, &[usize])]| DifferingFact {
            what: what.into(),
            values: values.iter().map(|(value, who)| ((*value).to_owned(), who.to_vec())).collect(),
        };
        let kernel = of("kernel", &[("6.1", &[0, 2]), ("6.12", &[1])]);
        assert_eq!(found, [kernel, of("file system", &[("ext4", &[0, 1]), ("xfs", &[2])])]);
    }

    #[test]
    fn a_fact_that_imported_results_do_not_state_is_no_difference() {
        let own = Results {
            environment: vec![("kernel".into(), "6.1".into())],
            targets: vec![TargetEntry::default()],
            ..Results::default()
        };
        let run = nilometer_plan::ImportedRun {
            source: "a table".into(),
            task: "dd".into(),
            parameters: Vec::new(),
            figure: String::new(),
        };
        let imported = Results {
            environment: vec![("imported from".into(), "a.csv".into())],
            cells: vec![nilometer_plan::Cell::imported("dd", run)],
            ..own.clone()
        };
        let told = |results: [&Results; 2]| {
            let records = results.map(|results| NamedRecord { name: "r", results });
            let found = differing(&records, &super::super::subject::subjects(&records));
            found.into_iter().map(|fact| fact.what).collect::<Vec<_>>()
        };
        assert_eq!(told([&own, &imported]), Vec::<String>::new());
        let bare = Results { environment: Vec::new(), ..own.clone() };
        assert_eq!(told([&own, &bare]), ["kernel"], "between campaigns it is");
    }
}
