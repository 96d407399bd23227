//! A lane's files of frames, or the parts of its only file. One is being filled and one is made ahead; earlier
//! ones may still have writes in flight.

use std::collections::VecDeque;

/// The file being filled, the files made ahead, and the writes in flight.
#[derive(Debug)]
pub(super) struct Files {
    frames_per_file: u64,
    /// The file being filled, and the number of its frames that were issued.
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

    /// A file was made.
    pub(super) fn ready(&mut self, file: u64) {
        self.made = file + 1;
    }

    /// The file for the next frame and the number of frames before it there. `None` if the file is not made
    /// yet.
    pub(super) fn next(&self) -> Option<(u64, u64)> {
        (self.current < self.made).then_some((self.current, self.issued))
    }

    /// Counts the next frame as issued. Returns true if that filled its file.
    pub(super) fn roll(&mut self) -> bool {
        match self.flying.back_mut() {
            Some((file, count)) if *file == self.current => *count += 1,
            _ => self.flying.push_back((self.current, 1)),
        }
        self.issued += 1;
        if self.issued < self.frames_per_file {
            return false;
        }
        self.end();
        true
    }

    /// No more frames go into the file being filled.
    pub(super) fn end(&mut self) {
        self.current += 1;
        self.issued = 0;
    }

    /// A write came back.
    pub(super) fn landed(&mut self, file: u64) {
        if let Some((_, count)) = self.flying.iter_mut().find(|(flying, _)| *flying == file) {
            *count -= 1;
        }
        self.flying.retain(|(_, count)| *count > 0);
    }

    /// Returns true if no write is in flight to this file or an earlier one.
    pub(super) fn is_quiet(&self, file: u64) -> bool {
        self.flying.iter().all(|(flying, _)| *flying > file)
    }

    /// The file being filled and its frames so far.
    pub(super) fn last(&self) -> (u64, u64) {
        (self.current, self.issued)
    }
}
