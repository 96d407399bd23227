//! The cost of background loads for a workload.

use nilometer_analysis::StudyStage;

use crate::{
    document::{Block, Heading, Section},
    interference::heading,
};

pub(super) fn beside_load(stage: &StudyStage<'_>, margin: f64) -> Vec<Section> {
    let section = |of: &nilometer_analysis::Interference| {
        let heading = Heading::with("Beside a load", format!(": {}", heading(stage, of)));
        Section::part(heading, vec![Block::list(of.sentences(margin))])
    };
    stage.interferences.iter().map(section).collect()
}
