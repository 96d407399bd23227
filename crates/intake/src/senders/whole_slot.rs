//! Slots whose frames move together, because some of the pieces between them have none.
//!
//! ```text
//! slots of four pieces    A4  -   A5  B3 | -   B4  .   .
//! moved together          A4  A5  B3  B4 | .   .   .   .
//! ```

use nilometer_storage::Buffer;

use super::piece_content::{MergedShape, PieceContent};

/// A slot whose memory is in one part.
#[derive(Debug)]
pub(super) struct WholeSlot {
    pub(super) data: Buffer,
    /// The frames that have come, each time with the index of the first.
    pub(super) contents: Vec<(u64, PieceContent)>,
}

/// Moves the frames of these slots down, so that they lie one behind the other.
pub(super) fn move_together(shape: &MergedShape, slots: Vec<WholeSlot>) -> Vec<WholeSlot> {
    let of_slot = shape.frames_of_block;
    let mut moved: Vec<_> = Vec::with_capacity(slots.len());
    let mut contents = Vec::new();
    for (first, slot) in (0..).step_by(of_slot as usize).zip(slots) {
        contents.extend(slot.contents.into_iter().map(|(at, content)| (first + at, content)));
        moved.push(WholeSlot { data: slot.data, contents: Vec::new() });
    }
    // No frame moves up, so that the place for the next one is always free.
    let mut to: u64 = 0;
    for (begin, content) in contents {
        let mut from = 0;
        while from < content.frames {
            let count = (content.frames - from).min(of_slot - to % of_slot);
            move_frames(shape, &mut moved, begin + from, to, count);
            moved[(to / of_slot) as usize].contents.push((to % of_slot, content.part(shape, from, count)));
            from += count;
            to += count;
        }
    }
    moved
}

/// Moves `count` frames, which are in one slot, into one slot. Frames are counted from the first slot.
fn move_frames(shape: &MergedShape, slots: &mut [WholeSlot], from: u64, to: u64, count: u64) {
    if from == to {
        return;
    }
    let size = shape.frame_size();
    let slot = |frame: u64| (frame / shape.frames_of_block) as usize;
    let begin = |frame: u64| (frame % shape.frames_of_block) as usize * size;
    let source = begin(from)..begin(from) + count as usize * size;
    let target = begin(to)..begin(to) + count as usize * size;
    if let Ok([of_source, of_target]) = slots.get_disjoint_mut([slot(from), slot(to)]) {
        of_target.data[target].copy_from_slice(&of_source.data[source]);
    } else {
        slots[slot(to)].data.copy_within(source, target.start);
    }
}
