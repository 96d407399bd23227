//! Parts of the plan that were not measured.

use nilometer_analysis::Study;

use crate::document::{Block, Heading, Section};

pub(crate) fn missing(study: &Study<'_>) -> Vec<Section> {
    let missing = &study.missing;
    if missing.is_empty() {
        return Vec::new();
    }
    vec![Section::new(Heading::of(missing.title()), vec![Block::list(missing.sentences())])]
}
