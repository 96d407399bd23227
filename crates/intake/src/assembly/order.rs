//! Maps packet numbers to places in the recording: numbers wrap, jump, and begin anew.

use nilometer_wire::{Geometry, Part};

/// How numbers map to places since the stream began, or began anew.
#[derive(Debug)]
pub(super) struct Order {
    /// Shift that moves the number's highest bit to the highest of 64.
    shift: u32,
    /// Packets of a frame.
    per_frame: u64,
    anchor: Option<Anchor>,
}

/// A frame with a known place.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    frame: u64,
    /// The place of its first part. Negative if more than that was left out since.
    place: i64,
}

impl Order {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let shift = 64 - geometry.number_bits.clamp(1, 64);
        let per_frame = geometry.parts.len() as u64;
        Order { shift, per_frame, anchor: None }
    }

    /// The stream begins, or begins anew: this frame is at this place.
    pub(super) fn begin(&mut self, frame: u64, place: u64) {
        self.anchor = Some(Anchor { frame, place: place.cast_signed() });
    }

    pub(super) fn has_begun(&self) -> bool {
        self.anchor.is_some()
    }

    /// How many frames `to` is later than `from`, the shorter way round.
    #[inline]
    pub(super) fn distance(&self, from: u64, to: u64) -> i64 {
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

    /// Counts numbers from this frame from now on, so that they may wrap any number of times.
    pub(super) fn follow(&mut self, part: Part, place: u64) {
        self.begin(part.frame, place - part.part as u64);
    }

    /// Moves all places up by `places`, because the stream began earlier.
    pub(super) fn move_up(&mut self, places: u64) {
        if let Some(anchor) = &mut self.anchor {
            anchor.place += places.cast_signed();
        }
    }

    /// Moves all places down by `places`, because frames below were left out.
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
}
