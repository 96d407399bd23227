//! The storage's rates for instruments that were recorded at full speed only, for programs.

use serde::Serialize;

use nilometer_analysis::{FullSpeed, letter};

/// The same for programs.
#[derive(Serialize)]
pub(super) struct FullSpeedTold {
    instrument: String,
    target: String,
    /// The instrument's rate.
    bytes_per_second_needed: f64,
    /// The storage's sustained rate with its interval; null if unknown.
    bytes_per_second: Option<[Option<f64>; 3]>,
    passes: usize,
    sentence: String,
}

pub(super) fn full_speeds_told(all: &[FullSpeed]) -> Vec<FullSpeedTold> {
    all.iter().map(told).collect()
}

fn told(of: &FullSpeed) -> FullSpeedTold {
    FullSpeedTold {
        instrument: of.instrument.to_string(),
        target: letter(of.target),
        bytes_per_second_needed: of.needed.0,
        bytes_per_second: of.limit.map(|limit| {
            let high = (!limit.is_lower_bound()).then_some(limit.high.0);
            [Some(limit.rate.0), Some(limit.low.0), high]
        }),
        passes: of.valid,
        sentence: of.to_string(),
    }
}
