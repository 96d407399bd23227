//! What a format learns of a stream on the way. One stray packet does not decide, not even if it is the first.

/// As many more for it than against it, and the question is settled.
const SURE: u8 = 8;

/// A property of the stream. Until it is settled, the packets that come vote (Boyer and Moore); then it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Learned<T> {
    value: Option<T>,
    votes: u8,
}

impl<T: Copy + PartialEq> Learned<T> {
    /// Nothing has come.
    pub(super) const fn nothing() -> Self {
        Learned { value: None, votes: 0 }
    }

    /// What a packet says; what the stream is held to have after it.
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

    /// What the stream is held to have.
    pub(super) const fn value(&self) -> Option<T> {
        self.value
    }
}

/// Frames a second, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// Nothing is known.
    Unknown,
    /// It was said beforehand: a frame number beyond it can't be.
    Said(u64),
    /// A header tells it.
    Told(u64),
    /// The numbers of frames and packets went on so where seconds ended.
    Seen(Learned<u64>),
}

impl Rate {
    /// The best that is known.
    pub(super) const fn known(self) -> Option<u64> {
        match self {
            Rate::Unknown => None,
            Rate::Said(rate) | Rate::Told(rate) => Some(rate),
            Rate::Seen(rate) => rate.value(),
        }
    }

    /// Whether there is such a frame number.
    #[inline]
    pub(super) const fn has(self, frame: u64) -> bool {
        !matches!(self, Rate::Said(rate) if frame >= rate)
    }

    /// What the header of frame `frame` tells.
    #[inline]
    pub(super) fn told(&mut self, rate: impl FnOnce() -> Option<u64>, frame: u64) {
        match *self {
            Rate::Unknown => *self = rate().filter(|rate| frame < *rate).map_or(Rate::Unknown, Rate::Told),
            // It was wrong.
            Rate::Told(rate) if frame >= rate => self.see(frame + 1),
            _ => {}
        }
    }

    /// Frame `next` of a second is so many frames behind `last` of the second before, by their serial numbers: that tells the
    /// rate, whatever did not come between them.
    pub(super) fn turned(&mut self, last: u64, steps: i64, next: u64) {
        let rate = last.saturating_add_signed(steps).checked_sub(next);
        if let (Some(rate), Rate::Unknown | Rate::Seen(_)) =
            (rate.filter(|rate| *rate > last.max(next)), &self)
        {
            self.see(rate);
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
        let mut rate = Rate::Said(100);
        rate.told(|| Some(7), 99);
        rate.turned(98, 1, 0);
        assert_eq!((rate, rate.has(99), rate.has(100)), (Rate::Said(100), true, false));
    }
}
