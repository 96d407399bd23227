//! A stage that several records have: its cells side by side, and the questions about them.

use nilometer_model::Phase;
use nilometer_plan::Cell;

use super::SubjectPair;
use crate::{CellOutcome, Quantity};

/// A stage of one or more records.
#[derive(Debug, Clone)]
pub struct AlignedStage<'a> {
    /// Its name.
    pub name: &'a str,
    /// The common parameters of its cells, in words.
    pub common: String,
    /// A row for each phase of each cell, in the order of the records.
    pub rows: Vec<AlignedCell<'a>>,
    /// One question per phase.
    pub questions: Vec<AcrossQuestion>,
    /// Rows that some subjects lack.
    pub lone: Vec<LoneCells>,
}

/// A phase of a cell, with the results of all subjects.
#[derive(Debug, Clone)]
pub struct AlignedCell<'a> {
    /// The parameters that tell the cell from others of its stage; empty for a single one.
    pub label: String,
    /// The number of the cell among all, in the order of the records.
    pub number: usize,
    /// The cell.
    pub cell: &'a Cell,
    /// The phase.
    pub phase: Phase,
    /// Outcomes by subject; `None` if it was not measured.
    pub outcomes: Vec<Option<CellOutcome<'a>>>,
}

/// Rows that the same subjects have, and others lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoneCells {
    /// The subjects that have them.
    pub subjects: Vec<usize>,
    /// The parameters and phase of each row, in words.
    pub cells: Vec<String>,
}

/// The comparison of subjects in a phase, over all its cells.
#[derive(Debug, Clone)]
pub struct AcrossQuestion {
    /// The phase.
    pub phase: Phase,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// Subjects that are compared by their rates, the fastest first.
    pub order: Vec<usize>,
    /// All pairs of at most three subjects, else each with the fastest.
    pub pairs: Vec<SubjectPair>,
    /// Pairs by processor time of the whole machine per GB, if it was measured. The first needs more.
    pub needs: Vec<SubjectPair>,
}

impl AlignedCell<'_> {
    /// Its parameters and its phase.
    pub fn words(&self) -> String {
        if self.label.is_empty() {
            self.phase.name().to_owned()
        } else {
            format!("{}, {}", self.label, self.phase.name())
        }
    }

    /// The outcome of a subject.
    pub fn outcome(&self, subject: usize) -> Option<&CellOutcome<'_>> {
        self.outcomes.get(subject)?.as_ref()
    }
}

impl<'a> AlignedStage<'a> {
    pub(super) const fn new(name: &'a str) -> Self {
        AlignedStage {
            name,
            common: String::new(),
            rows: Vec::new(),
            questions: Vec::new(),
            lone: Vec::new(),
        }
    }

    /// The rows of a phase, with their indices.
    pub fn of_phase(&self, phase: Phase) -> impl Iterator<Item = (usize, &AlignedCell<'a>)> + '_ {
        self.rows.iter().enumerate().filter(move |(_, row)| row.phase == phase)
    }

    /// The phases, in their order.
    pub fn phases(&self) -> Vec<Phase> {
        let mut phases: Vec<Phase> = self.rows.iter().map(|row| row.phase).collect();
        phases.dedup();
        phases
    }
}
