//! Parts of the plan that were not measured.

use nilometer_analysis::MissingEvidence;

use crate::document::{Block, Heading, Section};

pub(crate) fn missing(missing: &MissingEvidence) -> Vec<Section> {
    if missing.is_empty() {
        return Vec::new();
    }
    vec![Section::new(Heading::of(missing.title()), vec![Block::list(missing.sentences())])]
}
