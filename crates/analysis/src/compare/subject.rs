//! The subjects of a comparison: each target of each record, with the shortest name that tells it from the
//! others.

use std::collections::BTreeMap;

use nilometer_plan::{Results, TargetEntry};

use super::NamedRecord;
use crate::facts::fact;

/// A target of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Index into the records.
    pub record: usize,
    /// Index into the record's targets.
    pub target: usize,
    /// Its path, plus machine, date and record if they are needed to tell it from the others.
    pub name: String,
}

impl Subject {
    /// The target as the record has it.
    pub fn entry<'a>(&self, records: &[NamedRecord<'a>]) -> &'a TargetEntry {
        &records[self.record].results.targets[self.target]
    }
}

/// A feature that may tell subjects with the same path apart.
type Distinction = fn(&NamedRecord<'_>) -> String;

/// The features, the most useful first.
const DISTINCTIONS: [Distinction; 4] = [
    |record| fact(record.results, "host").map_or_else(String::new, |host| format!(" on {host}")),
    |record| format!(" {}", day(record.results)),
    |record| format!(" {}", time(record.results)),
    |record| format!(" ({})", record.name),
];

/// All targets of all records, in the order of the command line.
pub(super) fn subjects(records: &[NamedRecord<'_>]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let targets = record.results.targets.iter().enumerate();
        subjects.extend(targets.map(|(target, entry)| Subject {
            record: index,
            target,
            name: entry.path.clone(),
        }));
    }
    for distinction in DISTINCTIONS {
        tell_apart(records, &mut subjects, distinction);
    }
    subjects
}

/// Extends names that several subjects share, if the feature differs between these.
fn tell_apart(records: &[NamedRecord<'_>], subjects: &mut [Subject], distinction: Distinction) {
    let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        named.entry(subject.name.clone()).or_default().push(index);
    }
    for alike in named.into_values() {
        let added: Vec<String> =
            alike.iter().map(|&index| distinction(&records[subjects[index].record])).collect();
        if added.iter().any(|text| *text != added[0]) {
            for (index, text) in alike.into_iter().zip(added) {
                subjects[index].name.push_str(&text);
            }
        }
    }
}

/// `2026-11-20`.
pub(super) fn day(results: &Results) -> &str {
    results.started.get(..10).unwrap_or(&results.started)
}

/// `14:05:59`.
fn time(results: &Results) -> &str {
    results.started.get(11..19).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(started: &str, host: &str, paths: &[&str]) -> Results {
        let target = |path: &&str| TargetEntry { path: (*path).into(), ..TargetEntry::default() };
        Results {
            started: started.into(),
            environment: vec![("host".into(), host.into())],
            targets: paths.iter().map(target).collect(),
            ..Results::default()
        }
    }

    fn names(results: &[Results]) -> Vec<String> {
        let files = ["a.sqlite", "b.sqlite", "c.sqlite"];
        let records: Vec<NamedRecord<'_>> =
            files.into_iter().zip(results).map(|(name, results)| NamedRecord { name, results }).collect();
        subjects(&records).into_iter().map(|subject| subject.name).collect()
    }

    #[test]
    fn names_have_what_tells_them_apart_and_no_more() {
        let monday = "2026-11-23T08:00:00Z";
        let (a, b) = (record(monday, "n1", &["/x", "/y"]), record("2026-11-24T08:00:00Z", "n1", &["/x"]));
        assert_eq!(names(&[a.clone(), b.clone()]), ["/x 2026-11-23", "/y", "/x 2026-11-24"]);
        let other_machine = record(monday, "n2", &["/x"]);
        assert_eq!(names(&[a.clone(), other_machine]), ["/x on n1", "/y", "/x on n2"]);
        let later = record("2026-11-23T09:30:00Z", "n1", &["/x"]);
        assert_eq!(names(&[later.clone(), a.clone()])[..2], ["/x 09:30:00", "/x 08:00:00"]);
        assert_eq!(names(&[b.clone(), b])[1], "/x (b.sqlite)");
        assert_eq!(names(&[record("", "n1", &["/x"]), later])[0], "/x ", "a record that does not say when");
    }
}
