//! From the numbers that packets carry to their places in the recording: numbers wrap, jump, and begin anew.

use crate::format::{Geometry, Part};

/// How numbers map to places since the stream began, or began anew.
#[derive(Debug)]
pub(super) struct Order {
    /// What brings the number's highest bit to the highest of 64.
    shift: u32,
    /// Packets of a frame.
    per_frame: u64,
    anchor: Option<Anchor>,
    /// A frame far from where the stream was: its number. The next packet decides whether the stream goes on there.
    stray: Option<u64>,
}

/// A frame whose place is known.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    frame: u64,
    /// Of its first part; below zero if more than that was left out since.
    place: i64,
}

/// Frames by which two packets that belong together may differ.
const NEIGHBOURS: u64 = 8;

impl Order {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let (shift, per_frame) = (64 - geometry.number_bits.clamp(1, 64), geometry.parts.len() as u64);
        Order { shift, per_frame, anchor: None, stray: None }
    }

    /// The stream begins here, or anew: this frame is at this place.
    pub(super) fn begin(&mut self, frame: u64, place: u64) {
        self.anchor = Some(Anchor { frame, place: place.cast_signed() });
        self.stray = None;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.anchor.is_some()
    }

    /// How many frames `to` is later than `from`, the shorter way round.
    #[inline]
    fn distance(&self, from: u64, to: u64) -> i64 {
        (to.wrapping_sub(from) << self.shift).cast_signed() >> self.shift
    }

    /// The place of a packet: negative before the beginning.
    #[inline]
    pub(super) fn place(&self, Part { frame, part }: Part) -> i64 {
        let Some(anchor) = self.anchor else { return part.cast_signed() as i64 };
        let frames = self.distance(anchor.frame, frame);
        let ahead = frames.saturating_mul(self.per_frame.cast_signed());
        anchor.place.saturating_add(ahead).saturating_add(part.cast_signed() as i64)
    }

    /// From now on numbers are counted from this frame, so that they may wrap any number of times.
    pub(super) fn follow(&mut self, part: Part, place: u64) {
        self.begin(part.frame, place - part.part as u64);
    }

    /// Whether the packet before was far from where the stream is, and this one is there too.
    pub(super) fn strays(&self, Part { frame, .. }: Part) -> bool {
        self.stray.is_some_and(|before| self.distance(before, frame).unsigned_abs() <= NEIGHBOURS)
    }

    /// A packet is far from where the stream is.
    pub(super) fn stray(&mut self, part: Part) {
        self.stray = Some(part.frame);
    }

    /// Nothing is far away any more.
    pub(super) fn forget(&mut self) {
        self.stray = None;
    }

    /// Frames were left out below: everything is so many places earlier.
    pub(super) fn move_down(&mut self, places: u64) {
        if let Some(anchor) = &mut self.anchor {
            anchor.place -= places.cast_signed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(number_bits: u32, parts: usize) -> Order {
        Order::new(&Geometry { prefix: 8, parts: vec![1; parts], number_bits, behind: Vec::new() })
    }

    #[test]
    fn numbers_wrap() {
        for bits in [32, 64] {
            let mut order = order(bits, 2);
            let last = u64::MAX >> (64 - bits);
            order.begin(last - 1, 10);
            let places = [last - 2, last - 1, last, 0, 1].map(|frame| order.place(Part { frame, part: 1 }));
            assert_eq!(places, [9, 11, 13, 15, 17], "{bits} bits");
        }
    }

    #[test]
    fn far_numbers_are_believed_when_the_next_is_there_too() {
        let mut order = order(64, 1);
        order.begin(1_000_000, 0);
        let part = |frame| Part { frame, part: 0 };
        assert!(!order.strays(part(5)));
        order.stray(part(5));
        assert!(order.strays(part(6)) && !order.strays(part(1 << 60)));
        order.forget();
        assert!(!order.strays(part(6)));
    }
}
