//! The tail of a journal that another process writes: the records since the last look.

use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::Nanos;
use nilometer_storage::{Buffer, OpKind, Open, Operation, ROOT, Slot, buffer::ALIGNMENT};

use super::names::Names;
use crate::sink::RawLayout;
use nilometer_recording::journal::{Encoding, FrameExtent, RECORD};

/// A lane that the follower follows.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) layout: RawLayout,
    journal: Slot,
    /// Slot for the open file of frames, and the file's index in the lane.
    pub(super) frames: Slot,
    pub(super) open: Option<u64>,
    /// Names of its chunks, if it writes chunks.
    pub(super) names: Names,
    journal_is_open: bool,
    /// The time for which looks at the journal have failed.
    pub(super) fault: RefusalSpan,
    /// True if the journal has an invalid record. The follower reads it no further.
    pub(super) is_broken: bool,
}

/// The time for which storage may refuse a file that is there: until the writer's close reaches its server.
const PATIENCE: Nanos = Nanos::from_millis(1000);

/// The time for which storage has refused all attempts.
#[derive(Debug, Default)]
pub(super) struct RefusalSpan {
    since: Option<Nanos>,
    /// True if it has lasted longer than [`PATIENCE`].
    pub(super) is_counted: bool,
}

impl RefusalSpan {
    /// Records another refusal. Returns true once, when they have lasted too long.
    pub(super) fn lasts(&mut self, now: Nanos) -> bool {
        let since = *self.since.get_or_insert(now);
        let is_counted = now.since(since) >= PATIENCE;
        is_counted && !std::mem::replace(&mut self.is_counted, true)
    }
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
            fault: RefusalSpan::default(),
            is_broken: false,
        }
    }

    /// Opens the journal, or reads the records after the first `records`, as far as the buffer has room.
    pub(super) fn look(&self, records: u64, buffer: Buffer) -> Operation {
        if self.journal_is_open {
            let length = buffer.len() / RECORD * RECORD;
            return Operation::read(self.journal, records * RECORD as u64, length as u32, buffer);
        }
        let name = self.layout.journal_name();
        Operation::named(OpKind::Open(Open::GROWN), ROOT, self.journal, name.as_bytes(), buffer)
    }

    /// Records that the journal is open.
    pub(super) fn opened(&mut self) {
        self.journal_is_open = true;
    }

    /// Returns true if an operation is on the journal.
    pub(super) fn is_journal(&self, operation: &Operation) -> bool {
        operation.file == self.journal
    }

    /// Records the result of opening a file. If it may be renamed, the journal must confirm its name.
    pub(super) fn opened_file(&mut self, file: u64, there: bool, may_be_renamed: bool) {
        self.open = there.then_some(file);
        self.names.opened(there, may_be_renamed);
    }

    /// Records that the file was closed.
    pub(super) fn closed(&mut self) {
        self.open = None;
        self.names.closed();
    }

    /// Opens the file of frames that has these names now.
    pub(super) fn open(&mut self, names: Vec<String>, buffer: Buffer) -> Operation {
        self.names.update(names);
        let name = self.names.next().map_or("", String::as_str);
        let kind = OpKind::Open(Open::READ.direct_if(self.layout.direct));
        Operation::named(kind, ROOT, self.frames, name.as_bytes(), buffer)
    }

    /// Reads a frame from the open file.
    pub(super) fn read(&self, extent: &FrameExtent, buffer: Buffer) -> Operation {
        // Past the page cache, read up to the next frame, or to the end of the last page of a frame with
        // variable length.
        let length = match (self.layout.direct, &self.layout.hdf5) {
            (false, _) => extent.length,
            (true, Some(_)) => (extent.length as usize).next_multiple_of(ALIGNMENT) as u32,
            (true, None) => self.layout.head.stride as u32,
        };
        Operation::read(self.frames, extent.offset, length, buffer)
    }
}

/// Decodes a frame from the bytes read from its extent, to the beginning of the buffer. Returns true if it is
/// complete.
pub(super) fn decode(extent: &FrameExtent, read: u32, buffer: &mut [u8]) -> bool {
    let FrameExtent { encoding, length, size, .. } = *extent;
    match encoding {
        // The bytes are already in place.
        Encoding::Raw => read >= length,
        Encoding::Cbf | Encoding::Chunk(..) | Encoding::Packed12(_) | Encoding::Tiles(..) => {
            let mut frame = vec![0; size as usize];
            let stored = &buffer[..read.min(length) as usize];
            let whole = encoding.decode(stored, &mut frame).is_ok();
            buffer[..frame.len()].copy_from_slice(&frame);
            whole
        }
    }
}

/// Returns the buffer size for reading any frame of a lane.
pub(super) fn room(layout: &RawLayout) -> u64 {
    let stored = Encoding::of(layout.head.format).length_max(layout.head.frame_size);
    let in_hdf5 = layout.hdf5.as_ref().map_or(0, Hdf5Contents::stored_max);
    stored.max(layout.head.stride).max(in_hdf5)
}
