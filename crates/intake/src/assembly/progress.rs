//! The progress of a stream: how far, how fast, and since when it was silent. It decides whether a jump of
//! the numbers is possible.

use nilometer_model::Nanos;

/// A stream is established after this many packets: fewer may be another sender's.
pub(super) const ESTABLISHED: u64 = 8;
/// A stream is silent if nothing arrived for the time that this many packets took before.
const INTERVALS: u64 = 256;
/// Minimum time between two measurements of the rate.
const LOOK: Nanos = Nanos::from_millis(100);

/// Progress since the stream began, or began anew.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamProgress {
    begun: Nanos,
    /// Packets that moved the stream ahead.
    packets: u64,
    /// Places by which they moved it.
    places: u64,
    /// The stream moved in this look, or in the one before.
    moves: [bool; 2],
    /// The last packet that moved it had arrived by this time.
    heard: Nanos,
    /// The last look that took all waiting packets.
    drained: Nanos,
    /// Time of the last measurement of the rate, and the places at that time.
    looked: (Nanos, u64),
    /// The highest rate measured, in places per nanosecond.
    peak: f64,
}

impl StreamProgress {
    /// Begins, or begins anew.
    pub(super) fn begin(now: Nanos) -> Self {
        StreamProgress { begun: now, heard: now, looked: (now, 0), ..StreamProgress::default() }
    }

    /// Moves ahead by `places` with `packets` packets.
    #[inline]
    pub(super) fn advance(&mut self, packets: u64, places: u64) {
        self.packets += packets;
        self.places += places;
        self.moves[0] = true;
    }

    /// Packets that moved the stream ahead.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns true if too few packets arrived to identify the stream.
    pub(super) fn is_young(&self) -> bool {
        self.packets < ESTABLISHED
    }

    /// The look that ended began now, and took all packets that had arrived by then.
    pub(super) fn drained(&mut self, now: Nanos) {
        self.drained = now;
    }

    /// Ends a look that began now.
    pub(super) fn look(&mut self, now: Nanos) {
        if self.moves[1] {
            // A packet of the look before had arrived by now. The receiver read no clock when it took the
            // packet, after that look began.
            self.heard = now;
        }
        self.moves = [false, self.moves[0]];
        let (then, places) = self.looked;
        if now.since(then) >= LOOK {
            self.peak = self.peak.max((self.places - places) as f64 / now.since(then).0 as f64);
            self.looked = (now, self.places);
        }
    }

    /// The minimum time since the stream last moved. Packets that wait in the kernel may belong to it.
    fn silence(&self) -> Nanos {
        if self.moves == [false, false] { self.drained.since(self.heard) } else { Nanos(0) }
    }

    /// Returns true if the silence lasted long enough, and many times longer than from one packet to the
    /// next.
    pub(super) fn is_silent(&self, at_least: Nanos, at_most: Nanos) -> bool {
        let interval = self.heard.since(self.begun).0 / self.packets.max(1);
        self.silence() >= Nanos(interval.saturating_mul(INTERVALS)).min(at_most).max(at_least)
    }

    /// How many places further the stream may be by now, at its highest rate.
    pub(super) fn possible(&self, now: Nanos) -> u64 {
        let mean = self.places as f64 / self.heard.since(self.begun).0.max(1) as f64;
        let rate = self.peak.max(if self.is_young() { 0.0 } else { mean });
        #[expect(clippy::cast_sign_loss, reason = "rates and times are above zero")]
        let places = (rate * MARGIN * now.since(self.begun).0 as f64) as u64;
        places.saturating_sub(self.places)
    }
}

/// Tolerance of the rates.
const MARGIN: f64 = 1.25;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A packet each millisecond for a second.
    fn stream() -> StreamProgress {
        let mut progress = StreamProgress::begin(Nanos(0));
        for at in 0..1000 {
            progress.advance(1, 1);
            look(&mut progress, at, true);
        }
        progress
    }

    fn look(progress: &mut StreamProgress, at: u64, drained: bool) {
        if drained {
            progress.drained(Nanos(at * MS));
        }
        progress.look(Nanos(at * MS));
    }

    #[test]
    fn silence_is_what_is_known_to_be_one() {
        let mut progress = stream();
        let is_silent = |progress: &StreamProgress| progress.is_silent(Nanos(5 * MS), Nanos(100 * MS));
        look(&mut progress, 1000, true);
        assert!(!is_silent(&progress));
        look(&mut progress, 1099, true);
        assert!(!is_silent(&progress), "it came by the look before at the latest");
        look(&mut progress, 2000, false);
        assert!(!is_silent(&progress), "what waits in the kernel may be of it");
        look(&mut progress, 2001, true);
        assert!(is_silent(&progress));
        progress.advance(1, 1);
        assert!(!is_silent(&progress));
    }

    #[test]
    fn it_goes_no_further_than_its_rate_allows() {
        let progress = stream();
        assert!((225..=275).contains(&progress.possible(Nanos(1000 * MS))), "{progress:?}");
        assert!((1400..=1600).contains(&progress.possible(Nanos(2000 * MS))), "{progress:?}");
        assert_eq!(StreamProgress::begin(Nanos(5)).possible(Nanos(1 << 60)), 0, "nothing is known");
    }
}
