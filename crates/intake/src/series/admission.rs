//! Decides whether to take an image by its series alone. A message names its series before the pixels.
//!
//! Images may arrive before the start of their series, on another connection or from a forwarder. They may
//! also be left over from a series whose start was lost. The receiver can't distinguish these at once, so
//! both wait for a second:
//!
//! ```text
//! image of a series          start came | -> its recording
//!                          it was over  | -> discarded at once
//!                start may yet come     | -> waits, up to WAIT_FOR from the first image of the series on
//!                 start did not come    | -> discarded at once, whatever the number of images that follow
//! ```

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_wire::series::SeriesName;

use super::SeriesRefusal;

/// How long images wait for the start of their series, from the first of them on.
pub(super) const WAIT_FOR: Nanos = Nanos::from_millis(1000);
/// The same if another process may have the start, which has to pass it on.
const WAIT_FOR_OTHERS: Nanos = Nanos::from_millis(10_000);
/// Number of series that are remembered, of each kind.
const KNOWN_MAX: usize = 64;

/// The decision on an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It belongs to the current series.
    Take,
    /// The start of its series may still arrive.
    Wait,
    /// It is discarded for this reason.
    Discard(SeriesRefusal),
}

/// Series other than the current one.
#[derive(Debug)]
pub(super) struct OtherSeries {
    /// How long images wait for the start of their series.
    wait_for: Nanos,
    /// Series that are over, and why their images are discarded.
    over: VecDeque<(SeriesName, SeriesRefusal)>,
    /// Series whose start is missing.
    unstarted: VecDeque<UnstartedSeries>,
    /// When the receiver was last held up, by a full ring or by messages waiting for another start. A start
    /// may be queued behind these.
    held_up: Nanos,
}

/// A series whose start is missing.
#[derive(Debug)]
struct UnstartedSeries {
    name: SeriesName,
    /// When the wait for it began.
    since: Nanos,
    /// The wait is over.
    given_up: bool,
}

impl Default for OtherSeries {
    fn default() -> Self {
        OtherSeries {
            wait_for: WAIT_FOR,
            over: VecDeque::new(),
            unstarted: VecDeque::new(),
            held_up: Nanos(0),
        }
    }
}

impl OtherSeries {
    /// Waits longer for a start: another process may have it.
    pub(super) fn await_others(&mut self) {
        self.wait_for = WAIT_FOR_OTHERS;
    }

    /// Records the start of a series.
    pub(super) fn begins(&mut self, series: &SeriesName) {
        self.over.retain(|(name, _)| !name.is_same(series));
        self.unstarted.retain(|other| !other.name.is_same(series));
    }

    /// Ends a series: its images are no longer taken.
    pub(super) fn ends(&mut self, series: &SeriesName, why: SeriesRefusal) {
        self.begins(series);
        keep(&mut self.over, (series.clone(), why));
    }

    /// The reason to discard images of a series, if it is over.
    pub(super) fn over(&self, series: &SeriesName) -> Option<SeriesRefusal> {
        self.over.iter().find(|(name, _)| name.is_same(series)).map(|(_, why)| *why)
    }

    /// Records that nothing can be read now.
    pub(super) fn is_held_up(&mut self, now: Nanos) {
        self.held_up = now;
    }

    /// Restarts all waits, because nothing was read for some time.
    pub(super) fn resume(&mut self, now: Nanos) {
        self.held_up = self.held_up.max(now);
    }

    /// Restarts all waits, because another clock counts from now on.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.unstarted.clear();
        self.held_up = now;
    }

    /// Returns true if a wait that began at `since` is over.
    pub(super) fn waited_enough(&self, now: Nanos, since: Nanos) -> bool {
        now.since(since.max(self.held_up)) >= self.wait_for
    }

    /// Decides on an image of a series other than the current one. `unstarted` is the reason to discard it if
    /// its start does not arrive in time.
    pub(super) fn admission(
        &mut self,
        now: Nanos,
        series: &SeriesName,
        unstarted: SeriesRefusal,
    ) -> Admission {
        if let Some(why) = self.over(series) {
            return Admission::Discard(why);
        }
        let held_up = self.held_up;
        let Some(other) = self.unstarted.iter_mut().find(|other| other.name.is_same(series)) else {
            let name = series.clone();
            keep(&mut self.unstarted, UnstartedSeries { name, since: now, given_up: false });
            return Admission::Wait;
        };
        if !other.given_up && now.since(other.since.max(held_up)) < self.wait_for {
            return Admission::Wait;
        }
        if !std::mem::replace(&mut other.given_up, true) {
            // Starts of other series may be queued behind it: their waits begin now.
            self.held_up = now;
        }
        Admission::Discard(unstarted)
    }
}

/// Remembers one more, and forgets the oldest.
fn keep<T>(known: &mut VecDeque<T>, more: T) {
    if known.len() >= KNOWN_MAX {
        known.pop_front();
    }
    known.push_back(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> SeriesName {
        SeriesName { number, unique: String::new() }
    }

    #[test]
    fn images_wait_a_second_for_their_start_and_never_again() {
        let mut others = OtherSeries::default();
        let at = |millis: u64| Nanos::from_millis(10_000 + millis);
        let mut asked = |millis| others.admission(at(millis), &name(1), SeriesRefusal::Early);
        assert_eq!((asked(0), asked(999)), (Admission::Wait, Admission::Wait));
        assert_eq!(asked(1000), Admission::Discard(SeriesRefusal::Early));
        assert_eq!(asked(5000), Admission::Discard(SeriesRefusal::Early));
        // A start may be queued behind images for which the ring has no room, or behind those waiting for
        // another start.
        assert_eq!(others.admission(at(5000), &name(2), SeriesRefusal::Early), Admission::Wait);
        others.is_held_up(at(5500));
        assert_eq!(others.admission(at(6400), &name(2), SeriesRefusal::Early), Admission::Wait);
        assert_eq!(others.admission(at(6400), &name(3), SeriesRefusal::Early), Admission::Wait);
        let given_up = Admission::Discard(SeriesRefusal::Early);
        assert_eq!(others.admission(at(6500), &name(2), SeriesRefusal::Early), given_up);
        assert_eq!(others.admission(at(7400), &name(3), SeriesRefusal::Early), Admission::Wait);
        assert_eq!(others.admission(at(7500), &name(3), SeriesRefusal::Early), given_up);
        others.ends(&name(1), SeriesRefusal::Late);
        let late = others.admission(at(6000), &name(1), SeriesRefusal::Early);
        assert_eq!(late, Admission::Discard(SeriesRefusal::Late));
        // The detector began anew, and counts from 1.
        others.begins(&name(1));
        assert_eq!(others.admission(at(6000), &name(1), SeriesRefusal::Early), Admission::Wait);
    }

    #[test]
    fn strangers_fill_no_memory() {
        let mut others = OtherSeries::default();
        for number in 0..1000 {
            others.admission(Nanos(number), &name(number), SeriesRefusal::Early);
            others.ends(&name(number), SeriesRefusal::Early);
        }
        assert_eq!((others.over.len(), others.unstarted.len()), (KNOWN_MAX, 0));
    }
}
