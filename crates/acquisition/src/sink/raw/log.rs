//! The end of a lane's journal: records that wait to be written. Each batch takes as many as there are.

use std::collections::VecDeque;

use nilometer_storage::{Buffer, Operation, Slot};

use nilometer_recording::journal::{Entry, RECORD};

/// Records of a lane's journal that wait or are in flight.
#[derive(Debug, Default)]
pub(super) struct Log {
    waiting: VecDeque<Entry>,
    /// Records written or in flight.
    sequence: u64,
    /// Records written.
    written: u64,
    /// Frame records in flight; one write at a time.
    flying: Option<usize>,
}

impl Log {
    /// The journal's slot.
    pub(super) const SLOT: Slot = Slot(1);

    pub(super) fn add(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
    }

    /// Records in all.
    pub(super) fn added(&self) -> u64 {
        self.sequence + self.waiting.len() as u64
    }

    /// Returns true if the first `records` records are written.
    pub(super) fn has_written(&self, records: u64) -> bool {
        self.written >= records
    }

    /// There are records to be written, and no write is in flight.
    pub(super) fn has_more(&self) -> bool {
        !self.waiting.is_empty() && self.flying.is_none()
    }

    /// A write is in flight.
    pub(super) fn is_flying(&self) -> bool {
        self.flying.is_some()
    }

    /// Number of frame records in the write in flight.
    pub(super) fn flying_frames(&self) -> usize {
        self.flying.unwrap_or(0)
    }

    /// Returns true if all records are written.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.flying.is_none()
    }

    /// Writes as many waiting records as the buffer takes.
    pub(super) fn write(&mut self, mut buffer: Buffer) -> Operation {
        let count = self.waiting.len().min(buffer.len() / RECORD);
        let offset = self.sequence * RECORD as u64;
        let mut frames = 0;
        for (entry, record) in self.waiting.drain(..count).zip(buffer.chunks_exact_mut(RECORD)) {
            frames += usize::from(matches!(entry, Entry::Frame { .. }));
            entry.put(self.sequence, record);
            self.sequence += 1;
        }
        self.flying = Some(frames);
        Operation::write(Self::SLOT, offset, (count * RECORD) as u32, buffer)
    }

    /// Completes the write in flight, and returns the number of frame records in it.
    pub(super) fn written(&mut self) -> usize {
        self.written = self.sequence;
        self.flying.take().expect("one write was in flight")
    }
}
