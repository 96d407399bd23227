//! Chunk leases: the distribution of frames to writers.

use std::collections::{BTreeMap, VecDeque};

use nilometer_model::{Nanos, Seed};
use nilometer_storage::Arena;

use super::*;

const NOW: Nanos = Nanos(1);
/// Until this time a frame that is due now waits for the writer with the fewest chunks.
const POLITE_END: Nanos = Nanos(20_000_001);

fn ring(slots: usize, writers: usize, size: u64) -> Arc<Ring> {
    let (_, slots) = Arena::shared_out(slots, 1 << 20);
    Ring::of_leases(slots, writers, Chronicle::new(1, Nanos(0)), size)
}

fn put(ring: &Ring, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut state = ring.lock();
        let data = state.free.pop().expect("there is room");
        state.take_in(NOW, &mut vec![Frame::new(number, NOW, NOW, data)]);
    }
}

/// Returns the answer to a writer, the frame numbers, and the frames.
fn take(ring: &Ring, writer: usize) -> (Taken, Vec<u64>, Vec<Frame>) {
    let mut frames = VecDeque::new();
    let taken = ring.take(NOW, writer, &mut frames);
    (taken, frames.iter().map(|frame| frame.number).collect(), frames.into())
}

#[test]
fn writers_get_frames_of_a_parcel_each_at_the_same_time() {
    let ring = ring(16, 3, 2);
    put(&ring, 0..5);
    let mut hands: Vec<Frame> = Vec::new();
    let mut get = |writer| {
        let (taken, numbers, frames) = take(&ring, writer);
        hands.extend(frames);
        (taken, numbers)
    };
    assert_eq!(get(0), (Taken::Chunk, vec![0]));
    assert_eq!(get(1), (Taken::Chunk, vec![2]));
    assert_eq!(get(0), (Taken::Frames, vec![1]));
    assert_eq!(get(0), (Taken::Chunk, vec![4]), "its lease is over");
    assert_eq!(get(0), (Taken::Nothing, vec![]), "another of this one may come");
    assert_eq!(get(2), (Taken::Nothing, vec![]));
    assert_eq!(get(1), (Taken::Frames, vec![3]));
    assert_eq!(get(1), (Taken::Over, vec![]));
    put(&ring, 5..7);
    assert_eq!(get(1), (Taken::Later(POLITE_END), vec![]), "it had more chunks than the third");
    assert_eq!(get(2), (Taken::Chunk, vec![6]));
    assert_eq!(get(0), (Taken::Frames, vec![5]));
    assert_eq!(get(0), (Taken::Over, vec![]));
    ring.close(7);
    ring.release(NOW, &mut hands);
    assert_eq!(take(&ring, 0).0, Taken::Closed(Due { frames: 7, last: None }));
}

#[test]
fn a_frame_that_is_left_to_another_does_not_wait_for_one_that_never_asks() {
    let ring = ring(64, 2, 1);
    put(&ring, 0..1);
    assert_eq!(take(&ring, 0).0, Taken::Chunk);
    assert_eq!(take(&ring, 1).0, Taken::Nothing, "it has nothing to do");
    put(&ring, 1..2);
    let mut frames = VecDeque::new();
    assert_eq!(ring.take(NOW, 0, &mut frames), Taken::Over);
    let Taken::Later(time) = ring.take(NOW, 0, &mut frames) else { panic!("the other has fewer chunks") };
    assert_eq!(time, POLITE_END);
    assert_eq!(ring.take(time, 0, &mut frames), Taken::Chunk, "the other has hung for long enough");
}

#[test]
fn what_is_left_of_a_parcel_is_a_chunk_of_another_writer_when_all_of_it_is_known() {
    let ring = ring(64, 2, 10);
    put(&ring, 0..6);
    let (_, _, first) = take(&ring, 0);
    let (_, _, second) = take(&ring, 0);
    ring.leave(NOW, 0);
    assert_eq!(take(&ring, 1).0, Taken::Nothing, "two may still be given back");
    for frame in first {
        ring.give_back(NOW, frame);
    }
    assert_eq!(take(&ring, 1).0, Taken::Nothing);
    for frame in second {
        ring.give_back(NOW, frame);
    }
    put(&ring, 6..7);
    let mut numbers = Vec::new();
    for expected in [Taken::Chunk, Taken::Frames, Taken::Frames] {
        let (taken, some, _) = take(&ring, 1);
        assert_eq!(taken, expected);
        numbers.extend(some);
    }
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn with_little_room_left_one_that_has_nothing_to_do_takes_over() {
    let ring = ring(8, 2, 100);
    put(&ring, 0..3);
    assert_eq!(take(&ring, 0).1, [0]);
    assert_eq!(take(&ring, 1).0, Taken::Nothing, "there is room");
    put(&ring, 3..6);
    assert_eq!((take(&ring, 1).0, take(&ring, 1).1), (Taken::Chunk, vec![2]));
    assert_eq!(take(&ring, 0).0, Taken::Chunk, "the other way round, as long as it is so full");
}

#[test]
fn what_waits_for_one_that_hangs_is_taken_over_after_a_while() {
    let ring = ring(64, 2, 100);
    put(&ring, 0..3);
    let mut frames = VecDeque::new();
    assert_eq!(ring.take(Nanos(10), 0, &mut frames), Taken::Chunk);
    ring.close(3);
    let Taken::Later(time) = ring.take(Nanos(20), 1, &mut frames) else { panic!("two frames wait") };
    assert_eq!(ring.take(time, 1, &mut frames), Taken::Chunk);
    assert_eq!(frames.iter().map(|frame| frame.number).collect::<Vec<_>>(), [0, 1]);
}

/// Frames that writers hold and stored, in a history determined by a seed.
struct History {
    ring: Arc<Ring>,
    random: nilometer_model::RandomStream,
    hands: Vec<VecDeque<Frame>>,
    /// The first frame of each writer's chunk.
    chunk: Vec<u64>,
    left: Vec<bool>,
    /// Stored frames by the first frame of their chunk.
    stored: BTreeMap<u64, Vec<u64>>,
    due: u64,
}

impl History {
    fn step(&mut self, total: u64) {
        let writer = self.random.below(self.hands.len() as u64) as usize;
        match self.random.below(8) {
            0 | 1 if self.due < total => self.come(),
            2 | 3 => self.release(writer),
            4 if self.random.below(20) == 0 => self.fail(writer),
            _ if self.left[writer] => self.give_back(writer),
            _ => self.take(writer),
        }
        if self.due == total {
            self.ring.close(total);
        }
    }

    fn come(&mut self) {
        if self.ring.books().slots > self.ring.lock().in_use {
            put(&self.ring, self.due..self.due + 1);
            self.due += 1;
        }
    }

    /// Acknowledges in order, like sinks of chunks.
    fn release(&mut self, writer: usize) {
        if self.left[writer] {
            return;
        }
        if let Some(frame) = self.hands[writer].pop_front() {
            let chunk = self.stored.iter_mut().rev().find(|(first, _)| **first <= frame.number);
            chunk.expect("it was begun").1.push(frame.number);
            self.ring.release(NOW, &mut vec![frame]);
        }
    }

    fn take(&mut self, writer: usize) {
        let (taken, numbers, frames) = take(&self.ring, writer);
        if taken == Taken::Chunk {
            self.chunk[writer] = numbers[0];
            // A chunk that stored nothing may have begun there.
            self.stored.entry(numbers[0]).or_default();
        }
        let first = self.chunk[writer];
        let behind = self.stored.range(first + 1..).next().map_or(u64::MAX, |(first, _)| *first);
        assert!(numbers.iter().all(|number| (first..behind).contains(number)), "{numbers:?} of {first}");
        self.hands[writer].extend(frames);
    }

    /// Lets a writer fail, unless it is the last one alive.
    fn fail(&mut self, writer: usize) {
        if self.left.iter().filter(|left| !**left).count() > 1 && !self.left[writer] {
            self.left[writer] = true;
            self.ring.leave(NOW, writer);
        }
    }

    /// Gives frames back in any order.
    fn give_back(&mut self, writer: usize) {
        let which = self.random.below(self.hands[writer].len().max(1) as u64) as usize;
        if let Some(frame) = self.hands[writer].remove(which) {
            self.ring.give_back(NOW, frame);
        }
    }
}

#[test]
fn chunks_do_not_overlap_whoever_fails_and_whatever_is_given_back() {
    for seed in 0..3000 {
        let mut random = Seed(seed).named("history").stream();
        let (writers, slots) = (1 + random.below(5) as usize, 8 + random.below(100) as usize);
        let mut history = History {
            ring: ring(slots, writers, 1 + random.below(20)),
            random,
            hands: (0..writers).map(|_| VecDeque::new()).collect(),
            chunk: vec![0; writers],
            left: vec![false; writers],
            stored: BTreeMap::new(),
            due: 0,
        };
        for _ in 0..100_000 {
            history.step(150);
            if history.ring.mark() == 150 {
                break;
            }
        }
        assert_eq!(history.ring.mark(), 150, "seed {seed}: every frame is stored");
        let numbers: Vec<u64> = history.stored.into_values().flatten().collect();
        assert!(numbers.into_iter().eq(0..150), "seed {seed}: in the order of their chunks, each once");
    }
}

#[test]
fn lanes_get_the_numbers_of_the_instrument_and_the_mark_counts_the_recorder_s_own() {
    let (_, slots) = Arena::shared_out(8, 1 << 20);
    let turn = FrameTurn { first: 2, of: 3, line: 1 };
    let ring = Ring::in_turn(slots, 2, Chronicle::new(1, Nanos(0)), Some(2), turn);
    put(&ring, 0..5);
    let mut hands: Vec<Frame> = Vec::new();
    let mut numbers = Vec::new();
    for (writer, expected) in [(0, [2]), (1, [8]), (0, [5]), (1, [11])] {
        let (_, found, frames) = take(&ring, writer);
        assert_eq!(found, expected, "writer {writer}");
        numbers.extend(found);
        hands.extend(frames);
    }
    let back = hands.remove(1);
    assert_eq!(back.number, 8);
    ring.give_back(NOW, back);
    ring.release(NOW, &mut hands);
    assert_eq!(ring.mark(), 2, "the frames 2 and 5 of the instrument are the first two of this recorder");
    let mut left: Vec<u64> = Vec::new();
    ring.close(5);
    loop {
        let (taken, found, mut frames) = take(&ring, 1);
        left.extend(found);
        if let Taken::Closed(due) = taken {
            assert_eq!(due.frames, 15, "the last of five is the instrument's fourteenth, counted from 0");
            break;
        }
        ring.release(NOW, &mut frames);
    }
    left.sort_unstable();
    assert_eq!((left, ring.mark()), (vec![8, 14], 5));
}
