//! The end of a journal that somebody else writes: what was added since the last look.

use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot, buffer::ALIGNMENT};

use super::names::Names;
use crate::sink::RawLayout;
use nilometer_recording::journal::{Encoding, FrameExtent, RECORD};

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
    /// The last look at the journal failed.
    pub(super) fails: bool,
    /// A record of the journal says what can't be: it is read no further.
    pub(super) is_broken: bool,
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
            fails: false,
            is_broken: false,
        }
    }

    /// Looks what is new behind so many records: the journal is opened, or as much of it read as the buffer takes.
    pub(super) fn look(&self, records: u64, buffer: Buffer) -> Operation {
        if self.journal_is_open {
            let length = buffer.len() / RECORD * RECORD;
            return Operation::read(self.journal, records * RECORD as u64, length as u32, buffer);
        }
        let name = self.layout.journal_name();
        Operation::named(OpKind::Open(Open::GROWN), ROOT, self.journal, name.as_bytes(), buffer)
    }

    /// The journal is open.
    pub(super) fn opened(&mut self) {
        self.journal_is_open = true;
    }

    /// The journal's slot is that of an operation.
    pub(super) fn is_journal(&self, operation: &Operation) -> bool {
        operation.file == self.journal
    }

    /// A file was opened, or is not there. One that may be renamed is to be made sure of.
    pub(super) fn opened_file(&mut self, file: u64, there: bool, may_be_renamed: bool) {
        self.open = there.then_some(file);
        self.names.opened(there, may_be_renamed);
    }

    /// Nothing is open any more.
    pub(super) fn closed(&mut self) {
        self.open = None;
        self.names.closed();
    }

    /// Opens the file of frames that has these names by now.
    pub(super) fn open(&mut self, names: Vec<String>, buffer: Buffer) -> Operation {
        self.names.update(names);
        let name = self.names.next().map_or("", String::as_str);
        let kind = OpKind::Open(Open::READ.direct_if(self.layout.direct));
        Operation::named(kind, ROOT, self.frames, name.as_bytes(), buffer)
    }

    /// Reads a frame of the file that is open.
    pub(super) fn read(&self, extent: &FrameExtent, buffer: Buffer) -> Operation {
        // Past the cache: up to the next frame, or to the page that one ends in that is as long as it came out.
        let length = match (self.layout.direct, &self.layout.hdf5) {
            (false, _) => extent.length,
            (true, Some(_)) => (extent.length as usize).next_multiple_of(ALIGNMENT) as u32,
            (true, None) => self.layout.head.stride as u32,
        };
        Operation::read(self.frames, extent.offset, length, buffer)
    }
}

/// Makes the frame of so many bytes that were read of its extent, at the beginning of the buffer. Whether it is whole.
pub(super) fn decode(extent: &FrameExtent, read: u32, buffer: &mut [u8]) -> bool {
    let FrameExtent { encoding, length, size, .. } = *extent;
    match encoding {
        // It is there already.
        Encoding::Raw => read >= length,
        Encoding::Cbf | Encoding::Chunk(..) | Encoding::Tiles(..) => {
            let mut frame = vec![0; size as usize];
            let stored = &buffer[..read.min(length) as usize];
            let whole = encoding.decode(stored, &mut frame).is_ok();
            buffer[..frame.len()].copy_from_slice(&frame);
            whole
        }
    }
}

/// The room that a frame needs to be read.
pub(super) fn room(layout: &RawLayout) -> u64 {
    let stored = Encoding::of(layout.head.format).length_max(layout.head.frame_size);
    let in_hdf5 = layout.hdf5.as_ref().map_or(0, Hdf5Contents::stored_max);
    stored.max(layout.head.stride).max(in_hdf5)
}
