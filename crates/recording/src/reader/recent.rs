//! When frames were complete: the first and the latest, and those a short time before the latest. What is missing among these
//! may be on its way.

use std::collections::BTreeMap;

use nilometer_model::Nanos;

/// So long after a frame, whatever is missing before it will not come any more.
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// See the module. Times are on the clock of the recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    /// The frame with the lowest number, and when it was complete.
    first: Option<(u64, Nanos)>,
    /// That with the highest.
    latest: Option<(u64, Nanos)>,
    /// When others were, as far as that may be less than so long before.
    frames: BTreeMap<u64, Nanos>,
}

impl Recent {
    /// A frame was complete at a time.
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

    /// The first and the latest frame that were heard of, with the times when they were complete.
    pub(crate) fn span(&self) -> Option<[(u64, Nanos); 2]> {
        Some([self.first?, self.latest?])
    }

    /// A frame was removed.
    pub(super) fn forget(&mut self, number: u64) {
        self.frames.remove(&number);
    }

    /// Whether the latest frame was complete soon after this one.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.frames.get(&number).is_some_and(|at| !self.is_old(*at))
    }

    fn is_old(&self, at: Nanos) -> bool {
        self.latest.is_some_and(|(_, latest)| latest.since(at) >= PATIENCE)
    }
}
