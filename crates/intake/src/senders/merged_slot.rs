//! A slot of the ring that several streams fill: pieces, each for frames of one stream.

use nilometer_model::Nanos;
use nilometer_storage::Buffer;

use super::{
    piece_content::{MergedShape, PieceContent},
    whole_slot::WholeSlot,
};

/// Consecutive frames of a slot, for frames of one stream.
#[derive(Debug)]
pub(super) struct Piece {
    /// Frames that it has room for.
    pub(super) frames: u64,
    /// Its memory. `None` while a stream has it.
    pub(super) data: Option<Buffer>,
    /// Its frames. `None` until all have come.
    pub(super) content: Option<PieceContent>,
}

/// A slot that is being filled.
#[derive(Debug)]
pub(super) struct MergedSlot {
    pub(super) pieces: Vec<Piece>,
    /// The memory behind the pieces.
    rest: Buffer,
    /// Frames that it has room for.
    left: u64,
    /// When the last piece was reserved.
    reserved: Nanos,
}

impl MergedSlot {
    /// A slot for `frames` frames, of which these have come, one after the other.
    pub(super) fn new(shape: &MergedShape, data: Buffer, contents: Vec<PieceContent>) -> Self {
        let reserved = Nanos(0);
        let mut slot = MergedSlot { pieces: Vec::new(), rest: data, left: shape.frames_of_block, reserved };
        for content in contents {
            let piece = slot.reserve(shape, reserved, content.frames);
            piece.content = Some(content);
        }
        slot
    }

    /// Frames that no piece is reserved for.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Reserves a piece for the next frames.
    pub(super) fn reserve(&mut self, shape: &MergedShape, now: Nanos, frames: u64) -> &mut Piece {
        let mut data = std::mem::take(&mut self.rest);
        self.rest = data.split_off(frames as usize * shape.frame_size());
        self.left -= frames;
        self.reserved = now;
        self.pieces.push(Piece { frames, data: Some(data), content: None });
        self.pieces.last_mut().expect("it was added")
    }

    /// Removes the last piece: nothing is reserved for it.
    pub(super) fn remove_last(&mut self) {
        let Some(Piece { frames, data: Some(mut data), .. }) = self.pieces.pop() else { return };
        data.join(std::mem::take(&mut self.rest)).expect("the rest lies behind the last piece");
        self.rest = data;
        self.left += frames;
    }

    /// Returns true if all its frames have come.
    pub(super) fn is_complete(&self) -> bool {
        let has_all = |piece: &Piece| piece.content.as_ref().is_some_and(|has| has.frames == piece.frames);
        self.left == 0 && self.pieces.iter().all(has_all)
    }

    /// How long its last piece has been reserved. `None`: it has room for more.
    pub(super) fn waiting(&self, now: Nanos) -> Option<Nanos> {
        (self.left == 0).then(|| now.since(self.reserved))
    }

    /// Puts its memory together. No stream may have a part of it.
    pub(super) fn into_whole(self) -> WholeSlot {
        let mut contents = Vec::with_capacity(self.pieces.len());
        let mut parts = Vec::with_capacity(self.pieces.len() + 1);
        let mut at = 0;
        for Piece { frames, data, content } in self.pieces {
            parts.push(data.expect("streams gave all pieces back"));
            contents.extend(content.map(|content| (at, content)));
            at += frames;
        }
        parts.push(self.rest);
        WholeSlot { data: joined(parts), contents }
    }
}

/// Joins consecutive parts of a slot.
fn joined(parts: Vec<Buffer>) -> Buffer {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_default();
    for part in parts {
        whole.join(part).expect("pieces lie one behind the other");
    }
    whole
}
