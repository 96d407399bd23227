//! The history of targets that several records have measured.

use std::collections::BTreeMap;

use super::{
    AlignedStage, NamedRecord, RunSequence, Subject,
    question::Asked,
    sequence::{RUNS_LEAST, days, sequence},
};
use crate::facts::fact;

/// A target with three or more records.
#[derive(Debug, Clone)]
pub struct TargetHistory {
    /// Its path.
    pub path: String,
    /// Its runs in chronological order, as indices into the subjects.
    pub runs: Vec<usize>,
    /// A sequence for each phase of a stage.
    pub sequences: Vec<RunSequence>,
}

/// The runs of each target with a history, in chronological order.
pub(super) fn runs(records: &[NamedRecord<'_>], subjects: &[Subject]) -> Vec<Vec<usize>> {
    let mut targets: BTreeMap<[String; 3], Vec<usize>> = BTreeMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        targets.entry(identity(records, subject)).or_default().push(index);
    }
    // Runs without dates have no order.
    let is_dated = |run: &usize| days(records, &subjects[*run]).is_some();
    let several = |runs: &Vec<usize>| runs.len() >= RUNS_LEAST && runs.iter().all(is_dated);
    let mut all: Vec<Vec<usize>> = targets.into_values().filter(several).collect();
    for runs in &mut all {
        let when = |run: &usize| days(records, &subjects[*run]).unwrap_or(0.0);
        runs.sort_by(|one, other| when(one).total_cmp(&when(other)));
    }
    all
}

/// The identity of a target: path, file system, and the server if there is one, else the machine.
fn identity(records: &[NamedRecord<'_>], subject: &Subject) -> [String; 3] {
    let entry = subject.entry(records);
    let source = entry.description.as_ref().map_or("", |described| &described.source);
    let is_elsewhere = source.contains([':', '@']);
    let machine = || fact(records[subject.record].results, "host").unwrap_or_default();
    let place = if is_elsewhere { source } else { machine() };
    [entry.path.clone(), entry.file_system.clone(), place.to_owned()]
}

/// The subjects that are compared in pairs: of a history, its first and last run.
pub(super) fn shown(subjects: usize, runs: &[Vec<usize>]) -> Vec<usize> {
    let is_between = |subject: &usize| {
        let mut middles = runs.iter().map(|runs| &runs[1..runs.len() - 1]);
        middles.any(|middle| middle.contains(subject))
    };
    (0..subjects).filter(|subject| !is_between(subject)).collect()
}

/// The sequences of each target, with the steps among all of them.
pub(super) fn histories(
    records: &[NamedRecord<'_>],
    subjects: &[Subject],
    runs: Vec<Vec<usize>>,
    stages: &[AlignedStage<'_>],
    margin: f64,
) -> Vec<TargetHistory> {
    let history = |runs: Vec<usize>| {
        let path = subjects[runs[0]].entry(records).path.clone();
        TargetHistory { path, sequences: sequences(subjects, &runs, stages), runs }
    };
    let mut all: Vec<TargetHistory> = runs.into_iter().map(history).collect();
    let count = all.iter().map(|history| history.sequences.len()).sum();
    for sequence in all.iter_mut().flat_map(|history| &mut history.sequences) {
        sequence.look(records, subjects, count, margin);
    }
    all
}

fn sequences(subjects: &[Subject], runs: &[usize], stages: &[AlignedStage<'_>]) -> Vec<RunSequence> {
    let mut sequences = Vec::new();
    for stage in stages {
        let of = |phase| sequence(&Asked { subjects, stage, phase }, runs);
        sequences.extend(stage.phases().into_iter().filter_map(of));
    }
    sequences
}
