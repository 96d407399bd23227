//! The limit of the highest rate in each phase, for programs.

use serde::Serialize;

use nilometer_analysis::{LimitingParts, Study, letter};

/// One for each phase and target with known limits.
#[derive(Serialize)]
pub(super) struct StageLimit<'a> {
    stage: &'a str,
    phase: &'static str,
    target: String,
    /// The parameters of the highest rate.
    cell: &'a str,
    /// `the tool`, `the page cache`, `the device`, `the processors`; empty if nothing visible was at its limit.
    parts: Vec<&'static str>,
    sentence: String,
}

pub(super) fn stage_limits<'a>(study: &'a Study<'_>) -> Vec<StageLimit<'a>> {
    let all = study.stages.iter().flat_map(|stage| stage.limits.iter().map(move |of| (stage.name, of)));
    all.map(|(stage, of)| stage_limit(stage, of)).collect()
}

fn stage_limit<'a>(stage: &'a str, of: &'a LimitingParts) -> StageLimit<'a> {
    StageLimit {
        stage,
        phase: of.phase.name(),
        target: letter(of.target),
        cell: &of.cell,
        parts: of.parts.iter().map(|part| part.kind.name()).collect(),
        sentence: of.words(true),
    }
}
