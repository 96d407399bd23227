//! Aligns the cells of several records: the same stage with the same parameters.

use std::collections::{BTreeMap, HashMap};

use nilometer_model::Phase;
use nilometer_plan::{Cell, Measurement, Results};

use super::{AcrossQuestion, NamedRecord, Subject};
use crate::{
    CellOutcome,
    parameters::{parameters, varying},
    study::{common, labels, shown_outcomes},
};

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

/// The key of a cell, with a number if several in one plan are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CellKey {
    stage: String,
    measurement: String,
    again: usize,
}

/// The stages of all records, without answers.
pub(super) fn stages<'a>(records: &[NamedRecord<'a>], subjects: &[Subject]) -> Vec<AlignedStage<'a>> {
    let mut found =
        Found { stages: Vec::new(), rows: HashMap::new(), cells: HashMap::new(), subjects: subjects.len() };
    for (index, record) in records.iter().enumerate() {
        let keys = keys(record.results);
        let first = subjects.iter().position(|subject| subject.record == index).unwrap_or(0);
        for outcome in shown_outcomes(record.results) {
            let cell = &record.results.cells[outcome.cell];
            found.put(cell, &keys[outcome.cell], first + outcome.target, outcome);
        }
    }
    for stage in &mut found.stages {
        stage.rows.sort_by_key(|row| row.phase);
        name_cells(stage);
        stage.lone = lone(stage, subjects.len());
    }
    found.stages
}

/// The key of each cell of a record, in order.
fn keys(results: &Results) -> Vec<CellKey> {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    let key = |cell: &Cell| {
        let again = seen.entry((cell.stage.clone(), measurement(cell))).or_insert(0);
        *again += 1;
        CellKey { stage: cell.stage.clone(), measurement: measurement(cell), again: *again }
    };
    results.cells.iter().map(key).collect()
}

/// All parameters of a workload. For a recording, those in the plan: further facts in a later catalogue make it
/// no other cell.
fn measurement(cell: &Cell) -> String {
    match &cell.measurement {
        // Another version of the program measures in the same way.
        Measurement::Recording(_) | Measurement::Imported(_) => cell.to_string(),
        workload @ Measurement::Workload(_) => {
            serde_json::to_string(workload).unwrap_or_else(|_| cell.to_string())
        }
    }
}

/// The rows found so far.
struct Found<'a> {
    stages: Vec<AlignedStage<'a>>,
    /// Indices of the stage and row, by key and phase.
    rows: HashMap<(CellKey, Phase), (usize, usize)>,
    /// The number of a cell among all, for all its phases.
    cells: HashMap<CellKey, usize>,
    subjects: usize,
}

impl<'a> Found<'a> {
    fn put(&mut self, cell: &'a Cell, key: &CellKey, subject: usize, outcome: CellOutcome<'a>) {
        let phase = outcome.phase;
        let (stage, row) = match self.rows.get(&(key.clone(), phase)) {
            Some(place) => *place,
            None => self.add(cell, key, phase),
        };
        self.stages[stage].rows[row].outcomes[subject] = Some(outcome);
    }

    fn add(&mut self, cell: &'a Cell, key: &CellKey, phase: Phase) -> (usize, usize) {
        let known = self.stages.iter().position(|stage| stage.name == cell.stage);
        let stage = known.unwrap_or_else(|| {
            self.stages.push(AlignedStage::new(&cell.stage));
            self.stages.len() - 1
        });
        let next = self.cells.len();
        let number = *self.cells.entry(key.clone()).or_insert(next);
        let rows = &mut self.stages[stage].rows;
        let outcomes = vec![None; self.subjects];
        rows.push(AlignedCell { label: String::new(), number, cell, phase, outcomes });
        let place = (stage, rows.len() - 1);
        self.rows.insert((key.clone(), phase), place);
        place
    }
}

/// Groups rows by phase, and names each by the parameters that tell its cell from others.
fn name_cells(stage: &mut AlignedStage<'_>) {
    let numbered: BTreeMap<usize, &Cell> = stage.rows.iter().map(|row| (row.number, row.cell)).collect();
    let cells: Vec<&Cell> = numbered.values().copied().collect();
    let known: Vec<_> = cells.iter().map(|cell| parameters(cell)).collect();
    let labels = labels(&cells, &known, &varying(&known));
    stage.common = common(&cells);
    let labels: BTreeMap<usize, String> = numbered.into_keys().zip(labels).collect();
    for row in &mut stage.rows {
        row.label.clone_from(&labels[&row.number]);
    }
}

/// Rows that some subjects lack, by the subjects that have them.
fn lone(stage: &AlignedStage<'_>, subjects: usize) -> Vec<LoneCells> {
    let mut found: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
    for row in &stage.rows {
        let having: Vec<usize> = (0..subjects).filter(|&subject| row.outcomes[subject].is_some()).collect();
        if having.len() < subjects {
            found.entry(having).or_default().push(row.words());
        }
    }
    found.into_iter().map(|(subjects, cells)| LoneCells { subjects, cells }).collect()
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
    const fn new(name: &'a str) -> Self {
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
