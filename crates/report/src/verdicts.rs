//! For programs: what storage takes of an instrument that was recorded at full speed only.

use serde::Serialize;

use nilometer_analysis::{FullSpeed, Study, letter};

/// The same for programs.
#[derive(Serialize)]
pub(super) struct FullSpeedTold {
    instrument: String,
    target: String,
    /// What the instrument delivers.
    bytes_per_second_needed: f64,
    /// What the storage takes in the long run, with its interval; null where that is not known.
    bytes_per_second: Option<[f64; 3]>,
    passes: usize,
    sentence: String,
}

pub(super) fn full_speeds_told(study: &Study<'_>) -> Vec<FullSpeedTold> {
    study.full_speeds.iter().map(told).collect()
}

fn told(of: &FullSpeed) -> FullSpeedTold {
    FullSpeedTold {
        instrument: of.instrument.to_string(),
        target: letter(of.target),
        bytes_per_second_needed: of.needed.0,
        bytes_per_second: of.limit.map(|limit| [limit.rate.0, limit.low.0, limit.high.0]),
        passes: of.valid,
        sentence: of.to_string(),
    }
}
