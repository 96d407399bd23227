//! Which number each chunk of a scattered recording has. Readers put chunks in the order of their numbers, and refuse a
//! recording in which one is there twice.
//!
//! Chunks are numbered from 0 in the order of their frames, when they are begun. Where a lane fails in the middle of a
//! chunk, the rest of it is one more between two that have numbers already: those behind move up by one. A number is free
//! again only when the lane that had it has renamed its file, and files do not overtake each other: at every moment, and
//! after any crash, no number is there twice and all are in order. A lane that is gone can't rename: what finds no number
//! before its files keeps a name without one, which only a journal knows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the lanes of a recording know together. Clones are the same recording's.
#[derive(Debug, Clone, Default)]
pub struct Numbering(Arc<Mutex<Order>>);

/// All chunks, in the order of their frames.
#[derive(Debug, Default)]
struct Order {
    chunks: Vec<Chunk>,
    /// Some file has another number than it should.
    moves: bool,
    bytes: u64,
}

/// A chunk: a file of a lane.
#[derive(Debug)]
struct Chunk {
    /// Its first frame.
    first: u64,
    lane: u32,
    file: u64,
    /// The file may be there.
    named: bool,
    /// It is.
    made: bool,
    /// In the file's name.
    held: Option<u32>,
    /// The file is being renamed to this.
    moving: Option<u32>,
    /// The number that it should have.
    wanted: Option<u32>,
    /// Its lane is gone.
    fixed: bool,
}

/// Numbers have eight digits.
const NUMBER_MAX: u32 = 99_999_999;

impl Numbering {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane begins a chunk with this frame.
    pub(super) fn begin(&self, lane: u32, file: u64, first: u64) {
        self.lock().begin(lane, file, first);
    }

    /// The number that the name of a new file has, if it can have one yet.
    pub(super) fn name(&self, lane: u32, file: u64) -> Option<u32> {
        self.lock().name(lane, file)
    }

    /// The new file is there.
    pub(super) fn made(&self, lane: u32, file: u64) {
        self.lock().made(lane, file);
    }

    /// A file of the lane that is to be renamed now, and to which number.
    pub(super) fn next_move(&self, lane: u32) -> Option<(u64, u32)> {
        self.lock().next_move(lane)
    }

    /// It is renamed, and will be after any crash.
    pub(super) fn moved(&self, lane: u32, file: u64) {
        self.lock().moved(lane, file);
    }

    /// No file of the lane has another number than it should.
    pub(super) fn is_settled(&self, lane: u32) -> bool {
        let order = self.lock();
        !order.moves || !order.chunks.iter().any(|chunk| chunk.lane == lane && chunk.is_to_move())
    }

    /// The lane renames nothing any more.
    pub(super) fn leave(&self, lane: u32) {
        self.lock().leave(lane);
    }

    /// So many bytes of frames are stored.
    pub(super) fn stored(&self, bytes: u64) {
        self.lock().bytes += bytes;
    }

    /// How many numbers there are, and bytes of frames.
    pub(super) fn totals(&self) -> (u64, u64) {
        let order = self.lock();
        let last = order.chunks.iter().filter_map(|chunk| chunk.wanted).max();
        (last.map_or(0, |last| u64::from(last) + 1), order.bytes)
    }
}

impl Chunk {
    /// The lowest number that its file may have.
    fn lowest(&self) -> Option<u32> {
        self.held.or(self.moving)
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
        if at + 1 == self.chunks.len() {
            self.number(at);
        } else {
            self.plan();
        }
    }

    /// Lately begun ones are looked for most often.
    fn find(&self, lane: u32, file: u64) -> Option<usize> {
        self.chunks.iter().rposition(|chunk| (chunk.lane, chunk.file) == (lane, file))
    }

    /// The file may be there from now on.
    fn name(&mut self, lane: u32, file: u64) -> Option<u32> {
        let at = self.find(lane, file)?;
        let number = self.chunks[at].wanted.filter(|number| self.is_free(at, *number));
        let chunk = &mut self.chunks[at];
        (chunk.named, chunk.held) = (true, number);
        number
    }

    fn made(&mut self, lane: u32, file: u64) {
        let Some(at) = self.find(lane, file) else { return };
        self.chunks[at].made = true;
        self.moves |= self.chunks[at].is_to_move();
    }

    /// No file behind this one has this number, or one below.
    fn is_free(&self, at: usize, number: u32) -> bool {
        self.chunks[at + 1..].iter().find_map(Chunk::lowest).is_none_or(|behind| behind > number)
    }

    fn next_move(&mut self, lane: u32) -> Option<(u64, u32)> {
        if !self.moves {
            return None;
        }
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
        self.plan();
    }

    fn leave(&mut self, lane: u32) {
        self.chunks.retain(|chunk| chunk.lane != lane || chunk.named);
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.lane == lane) {
            chunk.fixed = true;
        }
        self.plan();
    }

    /// Files keep their numbers as far as possible; what has none gets one.
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

    /// Gives a chunk the number behind that of the chunk before. Those that follow without a gap move up; if one of them
    /// can't, it gets none.
    fn number(&mut self, at: usize) {
        let before = self.chunks[..at].iter().rev().find_map(|chunk| chunk.wanted);
        let number = before.map_or(0, |before| before + 1);
        let mut next = number;
        let mut pushed = Vec::new();
        for (place, chunk) in self.chunks.iter().enumerate().skip(at + 1) {
            match if chunk.fixed { chunk.lowest() } else { chunk.wanted } {
                Some(wanted) if wanted > next => break,
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
        self.chunks[at].wanted = Some(number);
        for place in pushed {
            self.chunks[place].wanted = self.chunks[place].wanted.map(|wanted| wanted + 1);
        }
    }
}
