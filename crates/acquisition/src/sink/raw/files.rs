//! A lane's files of frames: the one being filled, the one made ahead, and those whose writes are still in flight.

use std::collections::VecDeque;

use nilometer_storage::Slot;

use super::Place;

/// Three files can be open at once: one draining, one being filled, one made ahead.
const OPEN: u64 = 3;
/// Slot 0 is the directory, slot 1 the journal.
const FIRST: u32 = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Files {
    frames_per_file: u64,
    /// The file being filled, and how many of its frames were issued.
    current: u64,
    issued: u64,
    /// Files below this are made.
    made: u64,
    /// Writes in flight by file.
    flying: VecDeque<(u64, u64)>,
}

impl Files {
    pub(super) fn new(frames_per_file: u64) -> Self {
        Files { frames_per_file, current: 0, issued: 0, made: 0, flying: VecDeque::new() }
    }

    /// The slot of a file while it is open.
    pub(super) fn slot(file: u64) -> Slot {
        Slot(FIRST + (file % OPEN) as u32)
    }

    /// A file was made.
    pub(super) fn ready(&mut self, file: u64) {
        self.made = file + 1;
    }

    /// Where the next frame goes, if its file is made.
    pub(super) fn place(&self) -> Option<Place> {
        (self.current < self.made).then_some(Place { file: self.current, position: self.issued })
    }

    /// The next frame was issued; whether that filled its file.
    pub(super) fn roll(&mut self) -> bool {
        match self.flying.back_mut() {
            Some((file, count)) if *file == self.current => *count += 1,
            _ => self.flying.push_back((self.current, 1)),
        }
        self.issued += 1;
        if self.issued < self.frames_per_file {
            return false;
        }
        (self.current, self.issued) = (self.current + 1, 0);
        true
    }

    /// A write came back.
    pub(super) fn landed(&mut self, file: u64) {
        if let Some((_, count)) = self.flying.iter_mut().find(|(flying, _)| *flying == file) {
            *count -= 1;
        }
        self.flying.retain(|(_, count)| *count > 0);
    }

    /// Nothing is in flight to this file.
    pub(super) fn is_quiet(&self, file: u64) -> bool {
        self.flying.iter().all(|(flying, _)| *flying != file)
    }

    /// The file being filled and its frames so far.
    pub(super) fn last(&self) -> (u64, u64) {
        (self.current, self.issued)
    }
}
