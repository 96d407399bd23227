//! Which parameters explain the rates of a matrix.

use nilometer_analysis::StudyStage;

use crate::{
    document::{Block, Heading, Section},
    optimum::heading,
};

pub(super) fn parameters(stage: &StudyStage<'_>) -> Vec<Section> {
    let section = |of: &nilometer_analysis::StageOptimum| {
        let heading = Heading::with("Parameters", format!(": {}", heading(stage, of)));
        Section::part(heading, vec![Block::list(of.sentences())])
    };
    stage.optima.iter().map(section).collect()
}
