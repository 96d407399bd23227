//! The stages of a plan behind recordings, for the names of verdicts and recordings.

use nilometer_plan::{Measured, Results};

/// The stages of the plan with these recordings, in its order, unless they have the name of the recorded
/// instrument.
pub fn stages_of<'a>(results: &'a Results, samples: &[&Measured]) -> Vec<&'a str> {
    let mut stages: Vec<&str> = Vec::new();
    for cell in samples.iter().filter_map(|measured| results.cells.get(measured.key.cell)) {
        let named = cell.as_recording().is_some_and(|run| run.label() != cell.stage);
        if named && !stages.contains(&cell.stage.as_str()) {
            stages.push(&cell.stage);
        }
    }
    stages
}
