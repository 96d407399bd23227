//! What of a recording should be there and could not be read: frames stand in its place that are marked as invalid.

use std::{
    io,
    ops::Range,
    path::Path,
    sync::{MutexGuard, PoisonError},
};

use super::RecordingView;
use crate::reader::Numbers;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct ReadFaults {
    /// Blocks, each counted as often as it was tried.
    pub count: u64,
    /// What was wrong with the first.
    pub first: Option<String>,
    /// Which blocks, and in which order that was seen.
    blocks: Numbers,
    in_turn: Vec<u64>,
}

impl RecordingView {
    /// What could not be read though it should be there.
    pub fn faults(&self) -> ReadFaults {
        self.lock_faults().clone()
    }

    /// Where blocks are, in bytes, that could not be read since so many of them were known, which is brought up to date.
    pub fn faulted_since(&self, known: &mut usize) -> Vec<Range<u64>> {
        let news = {
            let in_turn = &self.lock_faults().in_turn;
            let news = in_turn[*known..].to_vec();
            *known = in_turn.len();
            news
        };
        news.into_iter().map(|block| self.range_of(block)).collect()
    }

    /// How many blocks could not be read so far.
    pub fn faulted(&self) -> usize {
        self.lock_faults().in_turn.len()
    }

    /// Whether this block could not be read, when that was tried.
    pub fn is_faulted(&self, block: u64) -> bool {
        self.lock_faults().blocks.contains(block)
    }

    /// A block could not be read from any file, and not from this one.
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
