//! Targets or workers that should be alike, and the ones that differ.

use nilometer_analysis::StudyStage;

use crate::document::{Block, Heading, Section};

pub(super) fn siblings(stage: &StudyStage<'_>, margin: f64) -> Vec<Section> {
    let section = |of: &nilometer_analysis::SiblingGroup| {
        let heading = Heading::with("Siblings", format!(": {}", of.heading()));
        Section::part(heading, vec![Block::list(of.sentences(margin))])
    };
    stage.siblings.iter().map(section).collect()
}
