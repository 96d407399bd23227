//! Compares records of different targets, dates or machines. The subjects are the targets of all records.
//!
//! Cells are aligned by stage, parameters and phase, and compared in the same words as in a report. Within a
//! record, repeats of the same round are pairs. Repeats of two records are not: Welch's method compares their
//! logarithms.
//!
//! The runs of a target with three or more records are put in chronological order, and searched for steps.
//! Network rates are compared like those of two records. docs/compare-method.md explains them.

mod against;
mod align;
mod aligned;
mod change_point;
mod differing;
mod figures;
mod history;
mod network;
mod network_against;
mod pair;
mod question;
mod recordings;
mod sequence;
mod subject;

pub use against::{AgainstBaseline, RunSpread};
pub use aligned::{AcrossQuestion, AlignedCell, AlignedStage, LoneCells};
pub use change_point::{ChangePoint, ChangeTest};
pub use differing::DifferingFact;
pub use figures::WorseCell;
pub use figures::{LeftFigure, OpenFigure};
pub use history::TargetHistory;
pub use network::{AlignedNetwork, AlignedTraffic, NetworkRates};
pub use pair::{CellDifference, PairBasis, SubjectPair};
pub(crate) use pair::{CellLogs, unpaired};
pub use recordings::{AlignedRecording, RecordingPair};
pub use sequence::{NamedStep, RunPoint, RunSequence};
pub use subject::Subject;

use nilometer_plan::Results;

use crate::{OwnTarget, PaperStudy, letter, paper::paper_studies};

/// A record with its name.
#[derive(Debug, Clone, Copy)]
pub struct NamedRecord<'a> {
    /// Its path, as the user wrote it.
    pub name: &'a str,
    /// The results.
    pub results: &'a Results,
}

/// The comparison of several records.
#[derive(Debug, Clone)]
pub struct RecordsCompared<'a> {
    /// The records in the order of the command line.
    pub records: Vec<NamedRecord<'a>>,
    /// Number of baselines; they are the first records, and the others are compared with them
    /// (`RecordsCompared::against`).
    pub baselines: usize,
    /// Each target of each record.
    pub subjects: Vec<Subject>,
    /// Indices of the subjects that are compared in pairs: of a target with a history, its first and last run.
    pub shown: Vec<usize>,
    /// The smallest difference that counts, in percent: the largest margin of the records.
    pub margin: f64,
    /// Differences in program, plan, machine and storage.
    pub differing: Vec<DifferingFact>,
    /// Workloads, by stage.
    pub stages: Vec<AlignedStage<'a>>,
    /// Instruments recorded.
    pub recordings: Vec<AlignedRecording>,
    /// Networks between machines, by stage.
    pub networks: Vec<AlignedNetwork>,
    /// Targets with three or more records.
    pub histories: Vec<TargetHistory>,
    /// The tables of published studies that one record has as an imported table, and another measured again; empty
    /// unless [`RecordsCompared::with_papers`] adds them.
    pub papers: Vec<PaperStudy>,
}

impl<'a> RecordsCompared<'a> {
    /// Compares two or more records.
    pub fn of(records: &[NamedRecord<'a>]) -> Self {
        let margin = records.iter().map(|record| record.results.margin).fold(0.0, f64::max);
        let subjects = subject::subjects(records);
        let runs = history::runs(records, &subjects);
        let shown = history::shown(subjects.len(), &runs);
        let mut stages = align::stages(records, &subjects);
        for stage in &mut stages {
            stage.questions = question::questions(&subjects, &shown, stage);
        }
        RecordsCompared {
            records: records.to_vec(),
            baselines: 1,
            recordings: recordings::aligned(records, &subjects, &shown),
            networks: network::aligned(records, &subjects, &shown),
            histories: history::histories(records, &subjects, runs, &stages, margin),
            differing: differing::differing(records, &subjects),
            subjects,
            shown,
            margin,
            stages,
            papers: Vec::new(),
        }
    }

    /// Treats the first records as baselines: with several of them, the spread from run to run counts.
    #[must_use]
    pub fn with_baselines(self, baselines: usize) -> Self {
        RecordsCompared { baselines, ..self }
    }

    /// Adds the tables of published studies that a record was imported from, with the figures of the other records.
    #[must_use]
    pub fn with_papers(self) -> Self {
        let is_imported = |subject: &Subject| self.records[subject.record].results.is_imported();
        let own = self.subjects.iter().enumerate().filter(|(_, subject)| !is_imported(subject));
        let own = own.map(|(index, subject)| OwnTarget {
            letter: letter(index),
            results: self.records[subject.record].results,
            target: subject.target,
        });
        let imported =
            self.records.iter().map(|record| record.results).filter(|results| results.is_imported());
        let mut papers = paper_studies(&own.collect::<Vec<_>>(), &imported.collect::<Vec<_>>());
        papers.retain(|study| study.is_imported && !study.own.is_empty());
        RecordsCompared { papers, ..self }
    }

    /// The name of a subject.
    pub fn name(&self, subject: usize) -> &str {
        self.subjects.get(subject).map_or("", |subject| &subject.name)
    }

    /// The record of a subject.
    pub fn results(&self, subject: usize) -> &'a Results {
        self.records[self.subjects[subject].record].results
    }

    /// The day on which a subject was measured, as `2026-11-02`; `None` if the record has no date.
    pub fn day(&self, subject: usize) -> Option<&'a str> {
        self.results(subject).started.get(..10)
    }

    /// Returns true if anything of two records could be compared.
    pub fn says_anything(&self) -> bool {
        let record = |subject: usize| self.subjects[subject].record;
        let mut questions = self.stages.iter().flat_map(|stage| &stage.questions);
        let across = questions
            .any(|question| question.pairs.iter().any(|pair| record(pair.first) != record(pair.second)));
        across
            || self.recordings.iter().any(AlignedRecording::is_shared)
            || self.networks.iter().any(|network| !network.pairs.is_empty())
            || !self.histories.is_empty()
            || !self.papers.is_empty()
    }
}
