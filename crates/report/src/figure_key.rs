//! Keys by which a reader requests the samples behind a figure: `STAGE/PHASE/TARGET`, with the cell after the
//! stage if there are several: `large files/workers 2/write/A`.

use nilometer_analysis::{CellOutcome, StudyRecording, StudyStage, letter};
use nilometer_plan::Measured;

/// The key of a stage's figure.
pub(crate) fn figure_key(stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> String {
    let cell = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let parts = [stage.name, cell, outcome.phase.name(), &letter(outcome.target)];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// The key of all cells of a stage in a phase on a target.
pub(crate) fn stage_key(stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> String {
    [stage.name, outcome.phase.name(), &letter(outcome.target)].join("/")
}

/// The key of all recordings of an instrument on a target: `pilatus-6m/A`.
pub(crate) fn recording_key(recording: &StudyRecording<'_>, of: &Measured) -> String {
    format!("{}/{}", recording.instrument, letter(of.key.target))
}

/// The number of samples behind a figure, and the command that shows them. A page shows it under the pointer.
pub(crate) fn tooltip(stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> String {
    let all = outcome.samples.len();
    let of = if outcome.valid == all { String::new() } else { format!(" of {all}") };
    let samples = if all == 1 { "sample" } else { "samples" };
    let key = figure_key(stage, outcome);
    format!("from {}{of} {samples}: nilometer report RECORD --why '{key}'", outcome.valid)
}
