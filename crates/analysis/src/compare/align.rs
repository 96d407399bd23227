//! Aligns the cells of several records: the same stage with the same parameters.

use std::collections::{BTreeMap, HashMap};

use nilometer_model::Phase;
use nilometer_plan::{Cell, Measurement, Results};

use super::{AlignedCell, AlignedStage, LoneCells, NamedRecord, Subject};
use crate::{
    CellOutcome,
    parameters::{parameters, varying},
    stage_figures::{common, labels, shown_outcomes},
};

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
