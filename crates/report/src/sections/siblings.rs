//! Targets or workers that should be alike, and the ones that differ.

use nilometer_analysis::SiblingGroup;

use crate::document::{Block, Heading, Section};

pub(super) fn siblings(groups: &[SiblingGroup], margin: f64) -> Vec<Section> {
    let section = |of: &SiblingGroup| {
        let heading = Heading::with("Siblings", format!(": {}", of.heading()));
        Section::part(heading, vec![Block::list(of.sentences(margin))])
    };
    groups.iter().map(section).collect()
}
