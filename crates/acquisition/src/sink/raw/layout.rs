//! How a lane's files are laid out, named and synced.

use nilometer_model::{Format, Instrument, Storing};
use nilometer_storage::{Slot, buffer::ALIGNMENT};

use crate::{Frame, Packed, Stream, instrument::Origin, journal::Head};

/// When files are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Each when it is full.
    EachFile,
    /// Never: frames survive the death of the process, not the loss of power. For files so small that syncing each would
    /// be all that the storage does.
    Never,
}

/// Files smaller than this are not synced one by one.
const SYNCED_MIN: u64 = 64 << 20;

/// Frames go into files of about this size, unless the instrument says otherwise, and one file is synced by parts of it:
/// large enough that making and syncing one costs little, small enough that little is not yet durable.
const FILE_SIZE: u64 = 256 << 20;

/// Three files can be open at once: one draining, one being filled, one made ahead.
pub(super) const OPEN: u64 = 3;
/// The last block of a recording may end anywhere: it is written through the cache, by another slot of its file.
pub(super) const THROUGH: Slot = Slot(FIRST + OPEN as u32);
/// What is written for another reader.
pub(super) const STREAMER: Slot = Slot(THROUGH.0 + 1);
/// Slot 0 is the directory, slot 1 the journal.
const FIRST: u32 = 2;

/// Whether frames of an instrument can be written past the cache, where the storage can: a compressed one has any length,
/// and in chunks there is nothing between frames.
pub fn is_aligned(instrument: &Instrument) -> bool {
    let whole = instrument.frame_size().0.is_multiple_of(ALIGNMENT as u64);
    instrument.format != Format::Cbf && (whole || instrument.storing != Storing::Scattered)
}

/// How many frames of this stride an instrument has in a file, or in a part that is synced as a whole.
pub fn frames_per_file(instrument: &Instrument, stride: u64) -> u64 {
    let suited = if instrument.format == Format::Cbf { 1 } else { FILE_SIZE / stride };
    instrument.frames_per_file.unwrap_or(suited).max(1)
}

/// How a lane's files are laid out.
#[derive(Debug, Clone)]
pub struct RawLayout {
    /// First part of all file names.
    pub name: String,
    /// What the journal begins with.
    pub head: Head,
    /// `O_DIRECT` for frames.
    pub direct: bool,
    /// Reserve a file's space when it is made, and that of an only file part by part. Not where it grows, nor where several
    /// lanes write it.
    pub preallocate: bool,
    /// Full files to keep; older ones are removed. All, if none; only where there are many files, and in a ring: there at
    /// least so many parts stay, and two more are being overwritten.
    pub keep: Option<u64>,
    /// When files are synced.
    pub durability: Durability,
    /// A checksum of each frame into the journal.
    pub checksums: bool,
    /// What simulated frames are made from, into the journal.
    pub origin: Option<Origin>,
    /// What packets the frames are blocks of, if they are, into the journal.
    pub stream: Option<Stream>,
    /// Rows and columns of a frame, which its CBF file says; needed for that format only.
    pub picture: Option<[usize; 2]>,
    /// Beside chunks, what `VLBIstreamer`'s own reader wants to know, if it is to read them.
    pub streamer: Option<Streamer>,
}

/// What `VLBIstreamer`'s reader is told of a recording in `<name>.cfg`, on each disk that has some of it at the end. It
/// finds the place of a byte by dividing: chunks that were closed short before the last mislead it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamer {
    /// Bytes that are stored of each packet, at least 1.
    pub packet_size: u64,
    /// Bytes in front of them that were received and not stored.
    pub stripped: u32,
}

impl Streamer {
    /// The text for libconfig, of so many files with so many bytes.
    pub(super) fn text(self, files: u64, bytes: u64) -> String {
        let Streamer { packet_size, stripped } = self;
        let packets = bytes / packet_size.max(1);
        let offset = if stripped > 0 { format!("offset_onwrite = {stripped};\n") } else { String::new() };
        format!(
            "packet_size = {packet_size}L;\n{offset}cumul = {files}L;\ntotal_packets = {packets}L;\nbuf_division = 1;\n"
        )
    }
}

/// Whether a lane knows by itself where its files end.
fn has_own_files(head: &Head) -> bool {
    let alone = head.storing == Storing::Shared && head.lanes == 1;
    head.storing.is_many_files() || head.storing == Storing::Ring || alone
}

impl RawLayout {
    /// As suits such files: space is reserved where `direct` and more than one write fills a file, and for a ring always;
    /// all files are kept, each is synced unless it is small.
    pub fn suited(name: String, head: Head, direct: bool) -> Self {
        let large = head.frames_per_file.saturating_mul(head.stride) >= SYNCED_MIN;
        RawLayout {
            name,
            head,
            direct,
            preallocate: head.storing == Storing::Ring
                || direct && head.frames_per_file > 1 && has_own_files(&head),
            keep: None,
            durability: if large { Durability::EachFile } else { Durability::Never },
            checksums: false,
            origin: None,
            stream: None,
            picture: None,
            streamer: None,
        }
    }

    /// Up to where space is reserved for a file, or for this part of an only one.
    pub(super) fn reserved(&self, file: u64) -> u64 {
        let parts = if self.is_files() { 1 } else { self.parts().unwrap_or(file.saturating_add(1)) };
        self.file_size().saturating_mul(parts)
    }

    /// How many parts a ring has: those that stay, that being filled, and the next.
    pub(super) fn parts(&self) -> Option<u64> {
        (self.head.storing == Storing::Ring).then(|| self.keep.unwrap_or(1).max(1).saturating_add(OPEN - 1))
    }

    /// Bytes of a full file, or of a part.
    pub fn file_size(&self) -> u64 {
        self.head.frames_per_file.saturating_mul(self.head.stride)
    }

    /// The journal's name.
    pub fn journal_name(&self) -> String {
        self.head.journal_name(&self.name)
    }

    /// The name of a file of frames.
    pub fn file_name(&self, file: u64) -> String {
        self.head.file_name(&self.name, file)
    }

    /// Where the frame that is the `issued`th of a file or part is put in the file that is there.
    pub(super) fn position(&self, file: u64, issued: u64, number: u64) -> u64 {
        match self.head.storing {
            Storing::Files | Storing::Scattered => issued,
            Storing::Growing => file * self.head.frames_per_file + issued,
            Storing::Ring => file % self.parts().unwrap_or(u64::MAX) * self.head.frames_per_file + issued,
            Storing::Shared => number,
        }
    }

    /// Bytes of a frame that is whole.
    fn whole(&self) -> u32 {
        self.head.frame_size as u32
    }

    /// The frame's bytes in its slot.
    pub(super) fn bytes<'a>(&self, frame: &'a Frame) -> &'a [u8] {
        let length = frame.packed.as_deref().map_or(self.whole(), |packed| packed.length);
        &frame.data[..length as usize]
    }

    /// Bytes that are written of a frame: up to the next one, or all of the last block of a recording.
    pub(super) fn written(&self, packed: Option<&Packed>) -> u32 {
        match packed {
            Some(packed) if packed.length < self.whole() => packed.length,
            _ => self.head.stride as u32,
        }
    }

    /// Whether so many bytes can't be written past the cache, as all frames but a last, shorter block can.
    pub(super) fn is_odd(&self, length: u32) -> bool {
        let shorter = u64::from(length) < self.head.stride;
        self.direct && shorter && !(length as usize).is_multiple_of(ALIGNMENT)
    }

    /// The slot of a file while it is open.
    pub(super) fn slot(&self, file: u64) -> Slot {
        match self.head.storing {
            Storing::Files | Storing::Scattered => Slot(FIRST + (file % OPEN) as u32),
            Storing::Growing | Storing::Shared | Storing::Ring => Slot(FIRST),
        }
    }

    /// Frames have files of their own that are made and closed one after the other.
    pub(super) fn is_files(&self) -> bool {
        self.head.storing.is_many_files()
    }

    /// They are numbered over all lanes.
    pub(super) fn is_scattered(&self) -> bool {
        self.head.storing == Storing::Scattered
    }

    /// Which file is removed when this one is full, if old ones are.
    pub(super) fn removed_with(&self, file: u64) -> Option<u64> {
        let keep = self.keep.filter(|_| self.head.storing == Storing::Files)?;
        file.checked_sub(keep.max(1))
    }

    /// What of a ring is overwritten by this part.
    pub(super) fn overwritten_by(&self, file: u64) -> Option<u64> {
        file.checked_sub(self.parts()?)
    }
}
