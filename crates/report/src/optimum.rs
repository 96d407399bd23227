//! The conclusions from a whole matrix, in reports.

use serde::Serialize;

use nilometer_analysis::{ExplainedShare, StageFigures, StageOptimum, letter};

/// `write on A`, or without the target if there is only one.
pub(super) fn heading(stage: &StageFigures<'_>, of: &StageOptimum) -> String {
    let phase = of.phase.name();
    if stage.targets().len() > 1 { format!("{phase} on {}", letter(of.target)) } else { phase.to_owned() }
}

/// The same for programs.
#[derive(Serialize)]
pub(super) struct ParameterEffects<'a> {
    stage: &'a str,
    phase: &'static str,
    target: String,
    cells: usize,
    best: &'a str,
    /// The share of all differences that each parameter explains by itself.
    shares: Vec<ParameterShare<'a>>,
    /// The share that all cells together explain. The rest is the difference between repeats.
    explained_share: f64,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct ParameterShare<'a> {
    parameter: &'a str,
    share: f64,
}

pub(super) fn parameter_effects<'a>(
    stage: &'a str,
    optima: &'a [StageOptimum],
) -> impl Iterator<Item = ParameterEffects<'a>> {
    optima.iter().map(move |of| effects(stage, of))
}

fn effects<'a>(stage: &'a str, of: &'a StageOptimum) -> ParameterEffects<'a> {
    let share = |of: &'a ExplainedShare| ParameterShare { parameter: &of.parameter, share: of.share };
    ParameterEffects {
        stage,
        phase: of.phase.name(),
        target: letter(of.target),
        cells: of.cells,
        best: &of.best,
        shares: of.shares.iter().map(share).collect(),
        explained_share: of.explained,
        sentences: of.sentences(),
    }
}
