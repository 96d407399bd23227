//! Parts of a recording that should exist but could not be read. The view fills them with frames marked as
//! invalid.

use std::{
    io,
    ops::Range,
    path::Path,
    sync::{MutexGuard, PoisonError},
};

use super::RecordingView;
use crate::reader::Numbers;

/// Blocks that should exist but could not be read.
#[derive(Debug, Clone, Default)]
pub struct ReadFaults {
    /// Number of failed reads. A block counts once for each attempt.
    pub count: u64,
    /// Error of the first failed read.
    pub first: Option<String>,
    /// The blocks as a set, and in the order of their first failure.
    blocks: Numbers,
    in_turn: Vec<u64>,
}

impl RecordingView {
    /// Returns the blocks that should exist but could not be read.
    pub fn faults(&self) -> ReadFaults {
        self.lock_faults().clone()
    }

    /// Returns the byte ranges of blocks that failed since the first `known` of them, and updates `known`.
    pub fn faulted_since(&self, known: &mut usize) -> Vec<Range<u64>> {
        let news = {
            let in_turn = &self.lock_faults().in_turn;
            let news = in_turn[*known..].to_vec();
            *known = in_turn.len();
            news
        };
        news.into_iter().map(|block| self.range_of(block)).collect()
    }

    /// Number of blocks that could not be read so far.
    pub fn faulted(&self) -> usize {
        self.lock_faults().in_turn.len()
    }

    /// Returns true if an attempt to read this block failed.
    pub fn is_faulted(&self, block: u64) -> bool {
        self.lock_faults().blocks.contains(block)
    }

    /// Records that no file yielded a block. `path` is the first file that failed.
    pub(super) fn note_fault(&self, block: u64, path: &Path, error: &io::Error) {
        let mut faults = self.lock_faults();
        faults.count += 1;
        if !faults.blocks.contains(block) {
            faults.blocks.add(block);
            faults.in_turn.push(block);
        }
        faults.first.get_or_insert_with(|| format!("block {block} in {}: {error}", path.display()));
    }

    fn lock_faults(&self) -> MutexGuard<'_, ReadFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
