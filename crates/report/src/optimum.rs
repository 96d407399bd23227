//! What a matrix says as a whole, in reports.

use serde::Serialize;

use nilometer_analysis::{Study, StudyStage, letter};

/// `write on A`; without the target where there is one.
pub(super) fn heading(stage: &StudyStage<'_>, of: &nilometer_analysis::StageOptimum) -> String {
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
    /// What part of all differences each parameter explains by itself.
    shares: Vec<ParameterShare<'a>>,
    /// What all cells together explain; the rest is how repeats differ.
    explained_share: f64,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct ParameterShare<'a> {
    parameter: &'a str,
    share: f64,
}

pub(super) fn parameter_effects<'a>(study: &'a Study<'_>) -> Vec<ParameterEffects<'a>> {
    let all = study.stages.iter().flat_map(|stage| stage.optima.iter().map(move |of| (stage, of)));
    all.map(|(stage, of)| effects(stage, of)).collect()
}

fn effects<'a>(stage: &'a StudyStage<'_>, of: &'a nilometer_analysis::StageOptimum) -> ParameterEffects<'a> {
    let share = |of: &'a nilometer_analysis::ExplainedShare| ParameterShare {
        parameter: &of.parameter,
        share: of.share,
    };
    ParameterEffects {
        stage: stage.name,
        phase: of.phase.name(),
        target: letter(of.target),
        cells: of.cells,
        best: &of.best,
        shares: of.shares.iter().map(share).collect(),
        explained_share: of.explained,
        sentences: of.sentences(),
    }
}
