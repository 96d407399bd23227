//! Completion times of the first and the latest frame, and of those shortly before the latest. Frames missing
//! among the latter may still be on their way.

use std::collections::BTreeMap;

use nilometer_model::Nanos;

/// Frames still missing this long after a later one will not arrive.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// Completion times of the latest frames, on the recording's clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    /// The frame with the lowest number, and its completion time.
    first: Option<(u64, Nanos)>,
    /// The frame with the highest number, and its completion time.
    latest: Option<(u64, Nanos)>,
    /// Completion times of other frames, at most `PATIENCE` before the latest.
    frames: BTreeMap<u64, Nanos>,
}

impl Recent {
    /// Adds a frame that was complete at a time.
    pub(super) fn add(&mut self, number: u64, at: Nanos) {
        if self.first.is_none_or(|(first, _)| number < first) {
            self.first = Some((number, at));
        }
        if self.latest.is_none_or(|(latest, _)| latest <= number) {
            self.latest = Some((number, at));
        }
        if self.is_old(at) {
            return;
        }
        self.frames.insert(number, at);
        while self.frames.first_key_value().is_some_and(|(_, at)| self.is_old(*at)) {
            self.frames.pop_first();
        }
    }

    /// Returns the first and the latest frame, with their completion times.
    pub(crate) fn span(&self) -> Option<[(u64, Nanos); 2]> {
        Some([self.first?, self.latest?])
    }

    /// Forgets a removed frame.
    pub(super) fn forget(&mut self, number: u64) {
        self.frames.remove(&number);
    }

    /// Returns true if the latest frame was complete soon after this one.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.frames.get(&number).is_some_and(|at| !self.is_old(*at))
    }

    fn is_old(&self, at: Nanos) -> bool {
        self.latest.is_some_and(|(_, latest)| latest.since(at) >= PATIENCE)
    }
}
