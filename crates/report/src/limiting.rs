//! The limit of the highest rate in each phase, for programs.

use serde::Serialize;

use nilometer_analysis::{LimitingParts, letter};

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

pub(super) fn stage_limits<'a>(
    stage: &'a str,
    limits: &'a [LimitingParts],
) -> impl Iterator<Item = StageLimit<'a>> {
    limits.iter().map(move |of| stage_limit(stage, of))
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
