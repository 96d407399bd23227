//! The numbers in the names of chunks, which are files of consecutive frames, of a scattered recording. Other
//! readers put chunks in the order of their numbers and refuse a recording in which a number is there twice.
//!
//! Chunks are numbered from 0 in the order of their frames, when they are begun. If a lane fails in the middle
//! of a chunk, the rest becomes a chunk of another lane, between two that have numbers already. Chunks behind
//! it move up by one.
//!
//! A file gets a number only while no file behind it has that number or a lower one. The lanes therefore rename
//! files from the end on. At every moment, and after any crash, each number exists once at the most and all are
//! in order. For example, lane 0 fails behind frame 39 of a chunk of 100 frames:
//!
//! ```text
//! first frame of the chunk    0      40     100    200
//! lane, file of that lane     0,0    2,1    1,0    2,0
//!
//! before                      0             1      2        numbers in the names
//! lane 2 begins at frame 40   0      -      1      2        wanted are 0 1 2 3; 1 is not free yet
//! lane 2 renames 2 to 3       0      -      1      2 > 3    after a crash it is 2 or 3: both are above 1
//! lane 1 renames 1 to 2       0      -      1 > 2  3        not before 2 is certainly free
//! lane 2 renames to 1         0      - > 1  2      3        every chunk has the number that is wanted
//! ```
//!
//! A lane that is gone renames nothing. Had lane 1 failed before its rename, its file would keep the number 1,
//! and none would be left between 0 and 1. The chunk at frame 40 would keep its name without a number
//! (`<name>.<lane>.<file>.<suffix>`), which only a journal knows.
//!
//! If a chunk has the number of its scan position, the number follows from the first frame. The rest of a
//! position whose lane failed in the middle finds its number taken, and keeps a name without one too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nilometer_model::ChunkNumber;

use nilometer_recording::journal::Head;

/// The numbers of all chunks of a recording, shared by its lanes: a clone refers to the same numbers.
#[derive(Debug, Clone, Default)]
pub struct Numbering(Arc<Mutex<Order>>);

/// All chunks, in the order of their frames.
#[derive(Debug, Default)]
struct Order {
    /// Number of frames in a position of the scan. `None` unless chunks are numbered by position.
    position: Option<u64>,
    chunks: Vec<Chunk>,
    /// Some file has another number than the wanted one, and its lane can rename it.
    moves: bool,
    /// Bytes of acknowledged frames, of all lanes.
    bytes: u64,
    /// The storage has no other names for a file: it keeps the one that it was made with.
    keeps_names: bool,
}

/// A chunk, which is one file of a lane.
#[derive(Debug)]
struct Chunk {
    /// The number of its first frame.
    first: u64,
    lane: u32,
    /// Counted from 0 in its lane.
    file: u64,
    /// Its name is settled and the file is being made: after a crash it may be there.
    named: bool,
    /// The file is there, so that it can be renamed.
    made: bool,
    /// The number in the file's name, as far as a rename has not changed it.
    held: Option<u32>,
    /// The number to which the file is being renamed. After a crash its name has this one or `held`.
    moving: Option<u32>,
    /// The final number for its name, as far as chunks are known now.
    wanted: Option<u32>,
    /// Its lane is gone: the file keeps the name that it has.
    fixed: bool,
}

/// Numbers have eight digits.
const NUMBER_MAX: u32 = 99_999_999;

impl Numbering {
    /// The numbers of a new recording whose journals begin with this head; without chunks yet.
    pub fn of(head: &Head) -> Self {
        let by_position = head.storing.kind().chunks == Some(ChunkNumber::Position);
        let position = by_position.then_some(head.frames_per_file);
        Numbering(Arc::new(Mutex::new(Order { position, ..Order::default() })))
    }

    /// The same for storage that can't rename files: a chunk between two others gets no number if none is free.
    #[must_use]
    pub fn without_renames(self) -> Self {
        self.lock().keeps_names = true;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane begins a chunk with the frame of the number `first`, in its file `file`.
    pub(super) fn begin(&self, lane: u32, file: u64, first: u64) {
        self.lock().begin(lane, file, first);
    }

    /// The number for the name of a file about to be made. `None` if its number is not free yet.
    pub(super) fn name(&self, lane: u32, file: u64) -> Option<u32> {
        self.lock().name(lane, file)
    }

    /// The file was made.
    pub(super) fn made(&self, lane: u32, file: u64) {
        self.lock().made(lane, file);
    }

    /// A file of the lane that may be renamed now, and its new number. From here on both numbers count as
    /// used.
    pub(super) fn next_move(&self, lane: u32) -> Option<(u64, u32)> {
        self.lock().next_move(lane)
    }

    /// The rename that [`Numbering::next_move`] asked for is durable: the old number is free.
    pub(super) fn moved(&self, lane: u32, file: u64) {
        self.lock().moved(lane, file);
    }

    /// Returns true if no file of the lane needs another name for now.
    pub(super) fn is_settled(&self, lane: u32) -> bool {
        let order = self.lock();
        // A rename that is going on may free a number for a chunk that has none.
        let comes_free = order.chunks.iter().any(|chunk| chunk.moving.is_some() && !chunk.fixed);
        let waits = |chunk: &Chunk| chunk.is_to_move() || comes_free && chunk.is_without_number();
        !order.moves || !order.chunks.iter().any(|chunk| chunk.lane == lane && waits(chunk))
    }

    /// Ends the lane's part: it renames nothing any more.
    pub(super) fn leave(&self, lane: u32) {
        self.lock().leave(lane);
    }

    /// Counts `bytes` of acknowledged frames.
    pub(super) fn stored(&self, bytes: u64) {
        self.lock().bytes += bytes;
    }

    /// The highest number plus one, and the bytes of acknowledged frames.
    pub(super) fn totals(&self) -> (u64, u64) {
        let order = self.lock();
        let last = order.chunks.iter().filter_map(|chunk| chunk.wanted).max();
        (last.map_or(0, |last| u64::from(last) + 1), order.bytes)
    }
}

impl Chunk {
    /// The lowest number that the name of its file may have after a crash: renames only go up.
    fn lowest(&self) -> Option<u32> {
        self.held.or(self.moving)
    }

    fn is_without_number(&self) -> bool {
        self.made && !self.fixed && self.wanted.is_none()
    }

    fn is_to_move(&self) -> bool {
        self.made && !self.fixed && self.wanted.is_some() && self.wanted != self.held
    }
}

impl Order {
    fn begin(&mut self, lane: u32, file: u64, first: u64) {
        let at = self.chunks.partition_point(|chunk| chunk.first <= first);
        let (named, made, fixed) = (false, false, false);
        let (held, moving, wanted) = (None, None, None);
        self.chunks.insert(at, Chunk { first, lane, file, named, made, held, moving, wanted, fixed });
        // At the end, where nearly all chunks begin, no other number changes.
        if at + 1 == self.chunks.len() {
            self.number(at);
        } else {
            self.plan();
        }
    }

    /// The index of a chunk in the order of frames. It searches from the end, because callers mostly look for
    /// recent chunks.
    fn find(&self, lane: u32, file: u64) -> Option<usize> {
        self.chunks.iter().rposition(|chunk| (chunk.lane, chunk.file) == (lane, file))
    }

    /// Settles the number in the name of a file that is about to be made.
    fn name(&mut self, lane: u32, file: u64) -> Option<u32> {
        let at = self.find(lane, file)?;
        // The lane needs the file at once and can't wait for renames. It gets a name without a number, and a
        // rename when its number is free.
        let number = self.chunks[at].wanted.filter(|number| self.is_free(at, *number));
        let chunk = &mut self.chunks[at];
        (chunk.named, chunk.held, chunk.fixed) = (true, number, self.keeps_names);
        number
    }

    fn made(&mut self, lane: u32, file: u64) {
        let Some(at) = self.find(lane, file) else { return };
        self.chunks[at].made = true;
        self.moves |= self.chunks[at].is_to_move();
    }

    /// Returns true if every file behind this one has a higher number, or none.
    fn is_free(&self, at: usize, number: u32) -> bool {
        // Files behind are in order, so the first with a number has the lowest.
        self.chunks[at + 1..].iter().find_map(Chunk::lowest).is_none_or(|behind| behind > number)
    }

    fn next_move(&mut self, lane: u32) -> Option<(u64, u32)> {
        if !self.moves {
            return None;
        }
        // From the end on: the last file of a row has to move before the one in front of it finds a free
        // number. A file in the middle of a rename still has another number than the wanted one, and is left
        // out.
        let may = |at: &usize| {
            let chunk = &self.chunks[*at];
            let number = chunk.wanted.filter(|_| chunk.lane == lane && chunk.is_to_move());
            chunk.moving.is_none() && number.is_some_and(|number| self.is_free(*at, number))
        };
        let at = (0..self.chunks.len()).rev().find(may)?;
        let chunk = &mut self.chunks[at];
        chunk.moving = chunk.wanted;
        Some((chunk.file, chunk.wanted?))
    }

    fn moved(&mut self, lane: u32, file: u64) {
        let Some(at) = self.find(lane, file) else { return };
        let chunk = &mut self.chunks[at];
        chunk.held = chunk.moving.take().or(chunk.held);
        // A chunk that was begun meanwhile got no number where this file would have had to move on: it gets
        // one now.
        self.plan();
    }

    fn leave(&mut self, lane: u32) {
        // A chunk never named has no file: its number goes to the chunk that takes its frames. A rename in
        // progress keeps `moving`: the file has either number for ever.
        self.chunks.retain(|chunk| chunk.lane != lane || chunk.named);
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.lane == lane) {
            chunk.fixed = true;
        }
        self.plan();
    }

    /// Decides anew which number each chunk should have: files keep theirs as far as possible, and chunks
    /// without one get one.
    fn plan(&mut self) {
        for chunk in &mut self.chunks {
            chunk.wanted = chunk.moving.or(chunk.held);
        }
        for at in 0..self.chunks.len() {
            if self.chunks[at].wanted.is_none() && !self.chunks[at].fixed {
                self.number(at);
            }
        }
        self.moves = self.chunks.iter().any(Chunk::is_to_move);
    }

    /// Gives a chunk the number behind that of the chunk before it. Chunks that follow without a gap in their
    /// numbers move up by one; if one of them can't, the new one gets no number.
    fn number(&mut self, at: usize) {
        if let Some(frames) = self.position {
            self.number_by_position(at, frames);
            return;
        }
        let before = self.chunks[..at].iter().rev().find_map(|chunk| chunk.wanted);
        let number = before.map_or(0, |before| before + 1);
        let mut next = number;
        let mut pushed = Vec::new();
        for (place, chunk) in self.chunks.iter().enumerate().skip(at + 1) {
            // A fixed file may have the lower of its two numbers, so that one must be above ours.
            match if chunk.fixed { chunk.lowest() } else { chunk.wanted } {
                // A gap: chunks behind it need not move.
                Some(wanted) if wanted > next => break,
                // It can't move at all, or has to arrive first: then `moved` plans anew.
                Some(_) if chunk.fixed || chunk.moving.is_some() => return,
                Some(_) => {
                    next += 1;
                    pushed.push(place);
                }
                None => {}
            }
        }
        if next > NUMBER_MAX {
            return;
        }
        // Only now are all of them certain to move.
        self.chunks[at].wanted = Some(number);
        for place in pushed {
            self.chunks[place].wanted = self.chunks[place].wanted.map(|wanted| wanted + 1);
        }
    }
}

impl Order {
    fn number_by_position(&mut self, at: usize, frames: u64) {
        let position = u32::try_from(self.chunks[at].first / frames.max(1));
        let position = position.ok().filter(|position| *position <= NUMBER_MAX);
        // Nothing moves here: a position has one number, and only the first of its chunks can have it.
        let is_taken = self.chunks.iter().any(|chunk| chunk.wanted.is_some() && chunk.wanted == position);
        self.chunks[at].wanted = position.filter(|_| !is_taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The files of a lane, in the order of their frames, with the numbers in their names.
    fn held(order: &Order) -> Vec<Option<u32>> {
        order.chunks.iter().map(|chunk| chunk.held).collect()
    }

    fn make(order: &mut Order, lane: u32, file: u64, first: u64) -> Option<u32> {
        order.begin(lane, file, first);
        let number = order.name(lane, file);
        order.made(lane, file);
        number
    }

    #[test]
    fn chunks_are_numbered_in_the_order_of_their_frames_whoever_makes_files_first() {
        let mut order = Order::default();
        order.begin(0, 0, 0);
        order.begin(1, 0, 100);
        assert_eq!((order.name(1, 0), order.name(0, 0)), (Some(1), Some(0)));
        assert_eq!(make(&mut order, 0, 1, 200), Some(2));
        assert!(!order.moves);
    }

    #[test]
    fn a_chunk_whose_number_is_about_to_be_free_is_not_settled() {
        let numbering = Numbering::default();
        for lane in 0..3 {
            make(&mut numbering.lock(), lane, 0, u64::from(lane) * 100);
        }
        numbering.leave(0);
        make(&mut numbering.lock(), 1, 1, 40);
        assert_eq!(numbering.lock().next_move(2), Some((0, 3)));
        assert_eq!(make(&mut numbering.lock(), 3, 0, 60), None);
        assert!(!numbering.is_settled(3), "it gets a number when that rename is over");
        numbering.moved(2, 0);
        assert!(!numbering.is_settled(3) && numbering.lock().chunks[2].wanted == Some(2));
    }

    #[test]
    fn what_is_put_between_waits_until_those_behind_have_moved_highest_first() {
        let mut order = Order::default();
        for lane in 0..3 {
            make(&mut order, lane, 0, u64::from(lane) * 100);
        }
        order.leave(0);
        assert_eq!(make(&mut order, 2, 1, 40), None, "its number is not free yet");
        assert_eq!((order.next_move(1), order.next_move(2)), (None, Some((0, 3))));
        assert_eq!(order.next_move(1), None, "the highest is being renamed");
        order.moved(2, 0);
        assert_eq!(order.next_move(1), Some((0, 2)));
        assert_eq!(order.next_move(2), None);
        order.moved(1, 0);
        assert_eq!(order.next_move(2), Some((1, 1)));
        order.moved(2, 1);
        assert_eq!(held(&order), [Some(0), Some(1), Some(2), Some(3)]);
        assert!(!order.moves);
    }

    #[test]
    fn files_of_a_lane_that_is_gone_keep_their_numbers_and_those_it_may_have() {
        let mut order = Order::default();
        for lane in 0..3 {
            make(&mut order, lane, 0, u64::from(lane) * 100);
        }
        order.leave(0);
        make(&mut order, 1, 1, 40);
        assert_eq!(order.next_move(2), Some((0, 3)));
        // It may or may not have been renamed.
        order.leave(2);
        assert_eq!(order.next_move(1), None, "2 and 3 may be there");
        assert_eq!(held(&order), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(make(&mut order, 1, 2, 300), Some(4));
        assert!(!order.moves, "what is between 0 and 1 gets no number");
    }

    #[test]
    fn a_number_that_no_file_got_is_used() {
        let mut order = Order::default();
        make(&mut order, 0, 0, 0);
        order.begin(1, 0, 100);
        make(&mut order, 0, 1, 200);
        order.leave(1);
        assert_eq!(make(&mut order, 2, 0, 100), Some(1));
        assert_eq!(held(&order), [Some(0), Some(1), Some(2)]);
    }

    proptest! {
        #[test]
        fn at_every_moment_each_number_is_there_once_and_in_order(
            steps in prop::collection::vec((0_u32..5, 0_u8..8, any::<u64>()), 1..300),
            may_leave in any::<bool>(),
        ) {
            let mut order = Order::default();
            let (mut files, mut moving, mut gone) = ([0_u64; 5], [None; 5], [false; 5]);
            for (lane, kind, random) in steps {
                let at = lane as usize;
                if gone[at] {
                    continue;
                }
                match kind {
                    // At the end, or anywhere before.
                    0..4 => {
                        let last = order.chunks.last().map_or(0, |chunk| chunk.first);
                        let first = if kind > 0 { last + 10 } else { random % (last + 1) };
                        make(&mut order, lane, files[at], first);
                        files[at] += 1;
                    }
                    4 if may_leave && random % 8 == 0 => {
                        order.leave(lane);
                        gone[at] = true;
                    }
                    _ => match moving[at].take() {
                        Some((file, _)) => order.moved(lane, file),
                        None => moving[at] = order.next_move(lane),
                    },
                }
                // A file that is being renamed may have either number.
                let names = order.chunks.iter().flat_map(|chunk| [chunk.held, chunk.moving]);
                let names: Vec<u32> = names.flatten().collect();
                prop_assert!(names.is_sorted_by(|one, next| one < next), "{:?}", order.chunks);
            }
            for lane in (0..5).cycle().take(10 * order.chunks.len() * order.chunks.len()) {
                let at = lane as usize;
                match moving[at].take() {
                    _ if gone[at] => {}
                    Some((file, _)) => order.moved(lane, file),
                    None => moving[at] = order.next_move(lane),
                }
            }
            prop_assert!(!order.moves, "{:?}", order.chunks);
            if !gone.contains(&true) {
                prop_assert!(held(&order).into_iter().eq((0..).map(Some).take(order.chunks.len())));
            }
        }
    }
}
