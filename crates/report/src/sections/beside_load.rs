//! The cost of background loads for a workload.

use nilometer_analysis::{Interference, StageFigures};

use crate::{
    document::{Block, Heading, Section},
    interference::heading,
};

pub(super) fn beside_load(stage: &StageFigures<'_>, found: &[Interference], margin: f64) -> Vec<Section> {
    let section = |of: &Interference| {
        let heading = Heading::with("Beside a load", format!(": {}", heading(stage, of)));
        Section::part(heading, vec![Block::list(of.sentences(margin))])
    };
    found.iter().map(section).collect()
}
