//! How the stream goes: how far, how fast, and since when nothing of it came. What a jump of its numbers is held against.

use nilometer_model::Nanos;

/// After so many packets a stream is established: fewer may be those of somebody else.
pub(super) const ESTABLISHED: u64 = 8;
/// Nothing came for as long as so many packets take, as they came before: the stream does not go on there.
const INTERVALS: u64 = 256;
/// The rate is looked at so often, at the most.
const LOOK: Nanos = Nanos::from_millis(100);

/// Since the stream began, or began anew.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamProgress {
    begun: Nanos,
    /// Packets that went further than those before.
    packets: u64,
    /// Places by which they did.
    places: u64,
    /// It went further in this look, or in the one before.
    moves: [bool; 2],
    /// By then the last packet that went further had come.
    heard: Nanos,
    /// A look at which everything that had come was taken.
    drained: Nanos,
    /// When the rate was looked at, and the places by then.
    looked: (Nanos, u64),
    /// The highest of these rates, in places a nanosecond.
    peak: f64,
}

impl StreamProgress {
    /// It begins, or begins anew.
    pub(super) fn begin(now: Nanos) -> Self {
        StreamProgress { begun: now, heard: now, looked: (now, 0), ..StreamProgress::default() }
    }

    /// So many packets took it so many places further.
    #[inline]
    pub(super) fn advance(&mut self, packets: u64, places: u64) {
        self.packets += packets;
        self.places += places;
        self.moves[0] = true;
    }

    /// Packets that went further than those before.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Too few came to know what the stream is.
    pub(super) fn is_young(&self) -> bool {
        self.packets < ESTABLISHED
    }

    /// The look that is over began now, and took all that had come by then.
    pub(super) fn drained(&mut self, now: Nanos) {
        self.drained = now;
    }

    /// A look is over that began now.
    pub(super) fn look(&mut self, now: Nanos) {
        if self.moves[1] {
            // A packet of the look before had come by now. When it was taken, later than that look began, nobody read a clock.
            self.heard = now;
        }
        self.moves = [false, self.moves[0]];
        let (then, places) = self.looked;
        if now.since(then) >= LOOK {
            self.peak = self.peak.max((self.places - places) as f64 / now.since(then).0 as f64);
            self.looked = (now, self.places);
        }
    }

    /// For how long nothing came that went further, at least: packets that wait in the kernel may be some.
    fn silence(&self) -> Nanos {
        if self.moves == [false, false] { self.drained.since(self.heard) } else { Nanos(0) }
    }

    /// Whether nothing came for so long, and for many times as long as from one packet to the next.
    pub(super) fn is_silent(&self, at_least: Nanos, at_most: Nanos) -> bool {
        let interval = self.heard.since(self.begun).0 / self.packets.max(1);
        self.silence() >= Nanos(interval.saturating_mul(INTERVALS)).min(at_most).max(at_least)
    }

    /// How many places further it can be by now at the highest rate at which it went.
    pub(super) fn possible(&self, now: Nanos) -> u64 {
        let mean = self.places as f64 / self.heard.since(self.begun).0.max(1) as f64;
        let rate = self.peak.max(if self.is_young() { 0.0 } else { mean });
        #[expect(clippy::cast_sign_loss, reason = "rates and times are above zero")]
        let places = (rate * MARGIN * now.since(self.begun).0 as f64) as u64;
        places.saturating_sub(self.places)
    }
}

/// Rates are known to so much.
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
