//! What a format learns of a stream on the way. One stray packet does not decide, not even if it is the first.

/// As many more for it than against it, and the question is settled.
const SURE: u8 = 8;

/// A property of the stream. Until it is settled, the packets that come vote (Boyer and Moore); then it stays.
#[derive(Debug, Clone, Copy)]
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
            _ => (self.value, self.votes) = (Some(seen), 1),
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
    /// The highest frame number of a second was one less.
    Seen(u64),
}

impl Rate {
    /// The best that is known.
    pub(super) const fn known(self) -> Option<u64> {
        match self {
            Rate::Unknown => None,
            Rate::Said(rate) | Rate::Told(rate) | Rate::Seen(rate) => Some(rate),
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
            Rate::Told(rate) if frame >= rate => *self = Rate::Seen(frame + 1),
            _ => {}
        }
    }

    /// Frame 0 of a second came behind `last` of the second before. One that was lost or overtaken makes it seem less.
    pub(super) fn turned(&mut self, last: u64) {
        match *self {
            Rate::Unknown => *self = Rate::Seen(last + 1),
            Rate::Seen(rate) => *self = Rate::Seen(rate.max(last + 1)),
            Rate::Said(_) | Rate::Told(_) => {}
        }
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
        rate.turned(24);
        rate.turned(26);
        rate.turned(25);
        assert_eq!((rate, rate.known(), rate.has(1000)), (Rate::Seen(27), Some(27), true));
        let mut rate = Rate::Unknown;
        rate.told(|| Some(100), 3);
        assert_eq!(rate, Rate::Told(100));
        rate.told(|| Some(100), 100);
        assert_eq!(rate, Rate::Seen(101), "the header was wrong");
        let mut rate = Rate::Said(100);
        rate.told(|| Some(7), 99);
        rate.turned(98);
        assert_eq!((rate, rate.has(99), rate.has(100)), (Rate::Said(100), true, false));
    }
}
