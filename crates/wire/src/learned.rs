//! Properties that a format learns from its stream. A single stray packet does not decide them, not even the
//! first.

/// A value is settled when it has this many more votes for than against it.
const SURE: u8 = 8;

/// A property of the stream. Until it is settled, the packets vote on it (Boyer and Moore). Then it no longer
/// changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Learned<T> {
    value: Option<T>,
    votes: u8,
}

impl<T: Copy + PartialEq> Learned<T> {
    /// Starts without a value.
    pub(super) const fn nothing() -> Self {
        Learned { value: None, votes: 0 }
    }

    /// Takes the vote of a packet and returns the present value.
    #[inline]
    pub(super) fn vote(&mut self, seen: T) -> T {
        match self.value {
            Some(value) if value == seen => self.votes = (self.votes + 1).min(SURE),
            Some(_) if self.votes == SURE => {}
            Some(_) if self.votes > 1 => self.votes -= 1,
            _ => {
                self.value = Some(seen);
                self.votes = 1;
            }
        }
        self.value.expect("a vote leaves a value")
    }

    /// Returns the present value.
    pub(super) const fn value(&self) -> Option<T> {
        self.value
    }
}

/// Frames per second, with the source of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// The rate is unknown.
    Unknown,
    /// The user gave the rate, so higher frame numbers are invalid.
    Said(u64),
    /// A header states the rate.
    Told(u64),
    /// The rate follows from the numbers of frames and packets at the ends of seconds.
    Seen(Learned<u64>),
}

impl Rate {
    /// Returns the best value.
    pub(super) const fn known(self) -> Option<u64> {
        match self {
            Rate::Unknown => None,
            Rate::Said(rate) | Rate::Told(rate) => Some(rate),
            Rate::Seen(rate) => rate.value(),
        }
    }

    /// Returns true if this frame number is possible.
    #[inline]
    pub(super) const fn has(self, frame: u64) -> bool {
        !matches!(self, Rate::Said(rate) if frame >= rate)
    }

    /// Takes the rate that the header of frame `frame` states.
    #[inline]
    pub(super) fn told(&mut self, rate: impl FnOnce() -> Option<u64>, frame: u64) {
        match *self {
            Rate::Unknown => *self = rate().filter(|rate| frame < *rate).map_or(Rate::Unknown, Rate::Told),
            // The stated rate was wrong.
            Rate::Told(rate) if frame >= rate => self.see(frame + 1),
            _ => {}
        }
    }

    /// Takes the rate from the end of a second. By their serial numbers, frame `next` of a second follows
    /// `steps` frames after `last` of the second before. This gives the rate even if frames between them are
    /// missing. A header that states another one is wrong: some writers state twice the rate.
    pub(super) fn turned(&mut self, last: u64, steps: i64, next: u64) {
        let rate = last.saturating_add_signed(steps).checked_sub(next);
        let Some(rate) = rate.filter(|rate| *rate > last.max(next)) else { return };
        match *self {
            Rate::Said(_) => {}
            Rate::Told(told) if told == rate => {}
            _ => self.see(rate),
        }
    }

    fn see(&mut self, rate: u64) {
        let mut seen = if let Rate::Seen(seen) = *self { seen } else { Learned::nothing() };
        seen.vote(rate);
        *self = Rate::Seen(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_packet_does_not_decide() {
        let mut station = Learned::nothing();
        assert_eq!(station.vote('s'), 's', "there is no other");
        assert_eq!(station.vote('m'), 'm', "one against one: the later");
        for _ in 0..2 {
            station.vote('m');
        }
        assert_eq!((station.vote('s'), station.value()), ('m', Some('m')));
        for _ in 0..SURE {
            station.vote('m');
        }
        assert!((0..1000).all(|_| station.vote('s') == 'm'), "a flood does not turn what is settled");
    }

    #[test]
    fn rates_are_taken_from_where_they_are_surest() {
        let mut rate = Rate::Unknown;
        rate.turned(24, 1, 0);
        assert_eq!((rate.known(), rate.has(1000)), (Some(25), true));
        for (last, steps, next) in [(9, 1, 10), (24, -1, 0), (24, 0, 0), (20, 3, 4)] {
            rate.turned(last, steps, next);
            assert_eq!(rate.known(), Some(25), "its clock jumped, or its numbers fell back");
        }
        rate.turned(20, 8, 3);
        rate.turned(20, 1000, 3);
        assert_eq!(rate.known(), Some(25), "whatever was lost between, and one that strays does not decide");
        let mut rate = Rate::Unknown;
        rate.told(|| Some(100), 3);
        assert_eq!(rate, Rate::Told(100));
        rate.told(|| Some(100), 100);
        assert_eq!(rate.known(), Some(101), "the header was wrong");
        let mut rate = Rate::Told(50);
        rate.turned(49, 1, 0);
        assert_eq!(rate, Rate::Told(50), "both agree");
        rate.turned(24, 1, 0);
        assert_eq!(rate.known(), Some(25), "the end of a second is surer than what headers state");
        let mut rate = Rate::Said(100);
        rate.told(|| Some(7), 99);
        rate.turned(98, 1, 0);
        assert_eq!((rate, rate.has(99), rate.has(100)), (Rate::Said(100), true, false));
    }
}
