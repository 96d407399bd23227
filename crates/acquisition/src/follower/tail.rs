//! The end of a journal that somebody else writes: what was added since the last look.

use nilometer_model::Format;
use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot};

use super::names::Names;
use crate::{
    cbf,
    journal::{Entry, RECORD, chunk_name},
    sink::RawLayout,
};

/// A lane that is followed.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) layout: RawLayout,
    journal: Slot,
    /// Where the file of frames is opened that is being read, and which it is.
    pub(super) frames: Slot,
    pub(super) open: Option<u64>,
    /// Of its chunks, if it writes such.
    pub(super) names: Names,
    journal_is_open: bool,
    /// Records taken so far.
    records: u64,
    pub(super) ended: bool,
    /// The last look at the journal failed.
    pub(super) fails: bool,
}

impl Tail {
    pub(super) fn new(layout: RawLayout, number: u32) -> Self {
        let slot = |which| Slot(1 + 2 * number + which);
        Tail {
            layout,
            journal: slot(0),
            frames: slot(1),
            open: None,
            names: Names::default(),
            journal_is_open: false,
            records: 0,
            ended: false,
            fails: false,
        }
    }

    /// Looks what is new: the journal is opened, or as much of it read as the buffer takes.
    pub(super) fn look(&self, buffer: Buffer) -> Operation {
        if self.journal_is_open {
            let length = buffer.len() / RECORD * RECORD;
            return Operation::read(self.journal, self.records * RECORD as u64, length as u32, buffer);
        }
        let name = self.layout.journal_name();
        Operation::named(OpKind::Open(Open::READ), ROOT, self.journal, name.as_bytes(), buffer)
    }

    /// The journal is open.
    pub(super) fn opened(&mut self) {
        self.journal_is_open = true;
    }

    /// Takes the records that are whole. A torn one is not finished yet.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Entry> {
        let records = bytes.chunks_exact(RECORD).zip(self.records..);
        let entries: Vec<_> = records.map_while(|(record, sequence)| Entry::take(sequence, record)).collect();
        self.records += entries.len() as u64;
        for entry in &entries {
            self.names.note(*entry);
        }
        self.ended |= entries.iter().any(|entry| matches!(entry, Entry::End { .. }));
        entries
    }

    /// The journal's slot is that of an operation.
    pub(super) fn is_journal(&self, operation: &Operation) -> bool {
        operation.file == self.journal
    }

    /// A file was opened, or is not there. Whether that is to be made sure of.
    pub(super) fn opened_file(&mut self, file: u64, there: bool) -> bool {
        self.open = there.then_some(file);
        self.names.opened(file, there)
    }

    /// Nothing is open any more.
    pub(super) fn closed(&mut self) {
        self.open = None;
        self.names.closed();
    }

    /// Opens a file of frames.
    pub(super) fn open(&self, file: u64, buffer: Buffer) -> Operation {
        let name = match self.names.number(file) {
            Some(number) => chunk_name(&self.layout.name, number),
            None => self.layout.file_name(file),
        };
        let kind = OpKind::Open(Open::READ.direct_if(self.layout.direct));
        Operation::named(kind, ROOT, self.frames, name.as_bytes(), buffer)
    }

    /// Reads a frame of the file that is open.
    pub(super) fn read(&self, position: u64, buffer: Buffer) -> Operation {
        let stride = self.layout.head.stride;
        // A compressed frame is as long as its file.
        let length = if self.is_cbf() { buffer.len() as u64 } else { stride };
        Operation::read(self.frames, position * stride, length as u32, buffer)
    }

    /// Makes of so many bytes that were read the frame, at the begin of the buffer. Whether it is whole.
    pub(super) fn frame(&self, read: u32, buffer: &mut [u8]) -> bool {
        let (read, length) = (read as usize, self.layout.head.frame_size as usize);
        if !self.is_cbf() {
            return read >= length;
        }
        let mut frame = vec![0; length];
        let whole = cbf::read_frame(&buffer[..read], &mut frame).is_ok();
        buffer[..length].copy_from_slice(&frame);
        whole
    }

    fn is_cbf(&self) -> bool {
        is_cbf(&self.layout)
    }
}

/// The room that a frame needs to be read.
pub(super) fn room(layout: &RawLayout) -> u64 {
    let stride = layout.head.stride;
    if is_cbf(layout) { cbf::size_max(stride / 4) } else { stride }
}

fn is_cbf(layout: &RawLayout) -> bool {
    layout.head.format == Format::Cbf
}
