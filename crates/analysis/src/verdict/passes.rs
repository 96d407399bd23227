//! The passes at full speed behind a verdict: their long-term rate, and the cache that they filled.

use nilometer_model::{
    Sample,
    sustained::{RateStep, SustainedRate, step},
};

/// The long-term rate of the storage.
pub(super) fn long_run<'a>(passes: impl Iterator<Item = &'a Sample>) -> Option<SustainedRate> {
    Sample::long_run(&passes.collect::<Vec<_>>())
}

/// A longer wait than 1 / `CACHE_PART` of the time that a fall of the rate cost may be its cause.
const CACHE_PART: f64 = 2.0;

/// The step at which a cache filled up. `None` if the recorder's wait for a processor may have made the step.
pub(super) fn cache_step(pass: &Sample) -> Option<RateStep> {
    let found = step(&pass.series)?;
    let written: u64 = pass.series.bins().iter().map(|bin| bin.bytes).sum();
    let behind = written.saturating_sub(found.volume.0) as f64 / found.after.0.max(1.0);
    let cost = behind * (1.0 - found.after.0 / found.before.0);
    (pass.recorder_wait().waited.seconds() <= cost / CACHE_PART).then_some(found)
}
