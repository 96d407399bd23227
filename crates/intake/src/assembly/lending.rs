//! Blocks of one of several streams that lie in the memory where the packets of all are recorded. The kernel
//! writes packets there, and nobody copies them.
//!
//! Such a block has a [`MergedPlace`]. It keeps its buffer of the stream's own ring meanwhile, so it can go
//! back there at any time. Blocks get places in their order: the first of the open blocks have one, and
//! those behind have none.
//!
//! ```text
//! open blocks    5      6      7      8
//! packets        16     9      -      -
//! place          yes    yes    yes    no     7 gives its place up if no packet arrived with the look
//! ```

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_storage::Buffer;

use super::{
    Assembly, Shape,
    block::{Block, BlockPlace, MergedPlace},
};

/// A stream's blocks have at most as many places as two looks of this many packets need.
const LOOK: u64 = 64;

/// A place, and its memory. `None`: the place is not in one piece, so the packets are copied there later.
#[derive(Debug)]
pub(crate) struct LentPlace {
    pub(crate) place: MergedPlace,
    pub(crate) data: Option<Buffer>,
}

/// The places of a stream's blocks.
#[derive(Debug, Default)]
pub(super) struct Lending {
    /// Number of open blocks that have a place.
    open: usize,
    /// Closed blocks that have one, by number.
    closed: VecDeque<(u64, BlockPlace)>,
}

impl Lending {
    /// A block with this number was closed.
    pub(super) fn close(&mut self, number: u64, place: Option<BlockPlace>) {
        if let Some(place) = place {
            self.open -= 1;
            self.closed.push_back((number, place));
        }
    }
}

impl Block {
    /// Moves into other memory, with the packets that have arrived. Returns the memory that it leaves.
    fn move_to(&mut self, shape: &Shape, data: Buffer) -> Buffer {
        let left = std::mem::replace(&mut self.data, data);
        for place in 0..shape.packets as usize {
            if self.has(place) {
                self.data[shape.range(place)].copy_from_slice(&left[shape.range(place)]);
            }
        }
        left
    }
}

impl Assembly {
    /// Returns true if a block has packets, or may get some of the next `ahead` ones, and has no place yet.
    pub(crate) fn lacks_place(&self, ahead: u64) -> bool {
        let at = self.lending.open;
        let begin = (self.first + at as u64) * self.shape.packets;
        let most = LOOK.div_ceil(self.shape.packets) + 2;
        let is_needed = |block: &Block| block.count > 0 || begin < self.next() + ahead;
        (at as u64) < most && self.open.get(at).is_some_and(is_needed)
    }

    /// Gives a place to the first block that has none. There must be one.
    pub(crate) fn lie_at(&mut self, LentPlace { place, data }: LentPlace) {
        let block = &mut self.open[self.lending.open];
        let own = data.map(|data| block.move_to(&self.shape, data));
        block.place = Some(BlockPlace { place, own });
        self.lending.open += 1;
    }

    /// Takes the place of the last block that has one, if no packet has arrived for it.
    pub(crate) fn take_unused_place(&mut self) -> Option<LentPlace> {
        let last = self.lending.open.checked_sub(1)?;
        if self.open[last].count == 0 { self.take_place() } else { None }
    }

    /// Takes the place of the last block that has one. Its packets move to the stream's own ring.
    pub(crate) fn take_place(&mut self) -> Option<LentPlace> {
        let last = self.lending.open.checked_sub(1)?;
        let block = &mut self.open[last];
        let BlockPlace { place, own } = block.place.take()?;
        self.lending.open = last;
        let data = own.map(|own| block.move_to(&self.shape, own));
        Some(LentPlace { place, data })
    }

    /// The place of a closed block, if it has one: `data` become those of the stream's own ring again.
    pub(crate) fn take_closed_place(&mut self, number: u64, data: &mut Buffer) -> Option<LentPlace> {
        let (_, BlockPlace { place, own }) = self.lending.closed.pop_front_if(|(of, _)| *of == number)?;
        let data = own.map(|own| std::mem::replace(data, own));
        Some(LentPlace { place, data })
    }

    /// Opens blocks for the next `most` packets of a port, as far as the ring has slots.
    ///
    /// A packet for which the kernel finds no open block has to be copied.
    pub(crate) fn open_ahead(&mut self, now: Nanos, inlet: usize, most: usize) {
        let port = &self.ports[inlet];
        let end = (port.next + most as u64 * port.count()) / self.shape.packets;
        let may_open =
            |assembly: &Self| assembly.crowded.is_none() && assembly.open.len() < assembly.most_open();
        while self.first + self.open.len() as u64 <= end && may_open(self) {
            if !self.open_one(now) {
                break;
            }
        }
    }
}
