//! The end of a journal that somebody else writes: what was added since the last look.

use std::collections::BTreeMap;

use nilometer_model::Format;
use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot};

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
    /// By chunk: the numbers that its name may have, the last two that were noted.
    names: BTreeMap<u64, Vec<Option<u32>>>,
    /// How many names of the file were tried in vain.
    tried: usize,
    /// The number in the name under which it was opened.
    opened_as: Option<u32>,
    /// A chunk may have got another name just before it was opened, and another its name: the journal says so.
    pub(super) doubt: bool,
    /// Another one than was meant is open.
    pub(super) is_stale: bool,
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
            names: BTreeMap::new(),
            tried: 0,
            opened_as: None,
            doubt: false,
            is_stale: false,
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
        entries.iter().for_each(|entry| self.note(*entry));
        self.ended |= entries.iter().any(|entry| matches!(entry, Entry::End { .. }));
        entries
    }

    fn note(&mut self, entry: Entry) {
        if let Entry::Chunk { file, number } = entry {
            let names = self.names.entry(file).or_default();
            names.drain(..names.len().saturating_sub(1));
            names.push(number);
            self.tried = 0;
        }
    }

    /// The journal's slot is that of an operation.
    pub(super) fn is_journal(&self, operation: &Operation) -> bool {
        operation.file == self.journal
    }

    /// The number in the name to be tried next.
    fn number(&self, file: u64) -> Option<u32> {
        self.names.get(&file)?.iter().rev().nth(self.tried).copied().flatten()
    }

    /// A file was opened, or is not there under this name. Whether that is known for sure only when the journal was looked
    /// at once more.
    pub(super) fn opened_file(&mut self, file: u64, there: bool) -> bool {
        self.doubt = self.names.contains_key(&file);
        if there {
            (self.open, self.opened_as) = (Some(file), self.number(file));
        } else {
            self.tried += 1;
        }
        self.doubt
    }

    /// The journal has nothing new. Whether there is another name to be tried, or a right one was found.
    pub(super) fn is_sure(&mut self, file: u64) -> bool {
        self.doubt = false;
        let Some(names) = self.names.get(&file) else { return true };
        if self.open.is_some() {
            // With a new name in the journal, another chunk may have got the old one.
            self.is_stale = self.number(file) != self.opened_as;
            return true;
        }
        let more = self.tried < names.len();
        self.tried = if more { self.tried } else { 0 };
        more
    }

    /// Nothing is open any more.
    pub(super) fn closed(&mut self) {
        (self.open, self.is_stale, self.tried) = (None, false, 0);
    }

    /// Opens a file of frames.
    pub(super) fn open(&self, file: u64, buffer: Buffer) -> Operation {
        let name = match self.number(file) {
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
