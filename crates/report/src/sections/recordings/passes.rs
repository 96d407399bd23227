//! The passes of a recording: which of several a chart shows.

use nilometer_analysis::{StudyRecording, letter};
use nilometer_model::Goal;
use nilometer_plan::Measured;

use super::Setting;

/// The place of a recording among those of one target that differ in nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// Counted from 1, in the order of the campaign.
    number: usize,
    count: usize,
}

impl Pass {
    /// `None` if the sample is no recording.
    pub(super) fn of(recording: &StudyRecording<'_>, measured: &Measured) -> Option<Self> {
        let kind = |measured: &Measured| -> Option<(usize, Goal, String)> {
            let ingest = measured.sample.ingest.as_ref()?;
            Some((measured.key.target, ingest.goal, Setting::of(ingest).to_string()))
        };
        let wanted = kind(measured)?;
        let place = |measured: &Measured| (measured.key.cell, measured.key.repeat);
        let alike = recording.samples.iter().filter(|other| kind(other).as_ref() == Some(&wanted));
        let mut places: Vec<(usize, u32)> = alike.map(|other| place(other)).collect();
        places.sort_unstable();
        let before = places.iter().position(|other| *other == place(measured))?;
        Some(Pass { number: before + 1, count: places.len() })
    }

    /// `2 of 3`.
    pub(super) fn words(self) -> String {
        format!("{} of {}", self.number, self.count)
    }

    pub(super) fn is_one_of_several(self) -> bool {
        self.count > 1
    }
}

/// Names the drawn passes of targets that have several: `: A pass 2 of 3, B pass 1 of 3`.
pub(super) fn drawn_passes(recording: &StudyRecording<'_>, drawn: &[&Measured]) -> String {
    let name = |measured: &&Measured| {
        let pass = Pass::of(recording, measured).filter(|pass| pass.is_one_of_several())?;
        Some(format!("{} pass {}", letter(measured.key.target), pass.words()))
    };
    let names: Vec<String> = drawn.iter().filter_map(name).collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}
