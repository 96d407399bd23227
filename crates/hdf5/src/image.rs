//! What of a file that is being written is in memory, all but the frames: where everything in it has its room, and what is
//! to be written, in which order. [`crate::driver`] shows it to the library.
//!
//! Metadata are put into blocks of their own ([`FileImage::arena`]), apart from frames, so that frames lie at whole pages
//! for `O_DIRECT`, and no page has both.
//!
//! The superblock is written with the flags cleared that say that somebody has the file open, and with the end of what is
//! written. A file is then one that every reader opens, at each moment after the first flush, whatever becomes of us. The
//! library would not let a second writer in by these flags; the owner holds a lock instead. (HDF5 File Format Specification
//! 3.0, II.A, superblock version 3: flags at byte 11, end of file at 28, checksum at 44.)

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::ffi::H5_checksum_metadata;

/// Bytes that are to be written into the file, in order and each after the one before is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// Where, in bytes from the start of the file.
    pub offset: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// Bytes of a block for metadata, and of what frames are aligned to.
const ARENA: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Bytes that a page takes beside its own: its place in the map, and the allocator's.
const PAGE_ENTRY: u64 = 48;
/// Consecutive writes become one up to this.
const WRITE_MAX: usize = 64 << 10;
/// Bytes of the superblock, version 3, which files begin with.
pub const SUPERBLOCK: u64 = 48;
const SUPERBLOCK_LENGTH: usize = SUPERBLOCK as usize;

/// What the library writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The header of an object, which leads to all else of it.
    ObjectHeader,
    /// Anything else.
    Other,
}

/// What is added to a complete file, so that a reader finds a whole file whenever the writing ends: first what is new, where
/// nothing was before, then the superblock with the new end, then what was there, headers of objects last, which lead to it
/// now. Each has room for what is added, so that it is one block that changes. The library itself keeps such an order only
/// while readers watch, and then it adds no objects.
#[derive(Debug, Default)]
struct Addition {
    /// Room that was given to metadata since it began.
    fresh: Vec<Range<u64>>,
    /// What was written since, by whether it is what leads to others, and by offsets: how many bytes.
    touched: BTreeMap<(bool, u64), usize>,
}

impl Addition {
    fn is_fresh(&self, offset: u64) -> bool {
        self.fresh.iter().any(|room| room.contains(&offset))
    }
}

/// What of a file is in memory: all but the frames.
#[derive(Debug, Default)]
pub(crate) struct FileImage {
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    /// Room that is given to somebody ends here. The library asks for it several times a chunk: it need not wait for the
    /// lock then. It is changed with the lock held.
    end: Arc<AtomicU64>,
    /// What is written, or in the index, ends here.
    written: u64,
    /// Room for all but the superblock begins here, if some of the file is there already. Until the superblock has its room,
    /// the file is empty: the library would otherwise read one.
    behind: u64,
    /// Room for metadata.
    arena: Range<u64>,
    /// Where the next chunk that the library asks room for is already.
    placed: Option<u64>,
    /// As the library wrote it last.
    superblock: Vec<u8>,
    /// Where the file ends by the superblock that was queued last; 0 before the first.
    stated: u64,
    writes: VecDeque<FileWrite>,
    /// What is added to a file that is complete: its writes are queued when all is known.
    addition: Option<Addition>,
    /// What is written now are headers of objects, which lead to all else: the last of what is changed.
    leads: bool,
    /// Bytes that the library read.
    #[cfg(test)]
    pub(crate) bytes_read: std::cell::Cell<u64>,
}

impl FileImage {
    /// Room for so many bytes of a frame, whole pieces of so many.
    pub(crate) fn allocate(&mut self, bytes: u64, alignment: u64) -> u64 {
        let offset = self.end().next_multiple_of(alignment);
        self.set_end((offset + bytes).next_multiple_of(alignment));
        offset
    }

    /// Bytes of memory that it takes: its pages, and what waits to be written.
    pub(crate) fn memory(&self) -> u64 {
        let waiting: u64 = self.writes.iter().map(|write| write.bytes.len() as u64).sum();
        self.pages.len() as u64 * (PAGE + PAGE_ENTRY) + waiting
    }

    /// The next chunk that the library asks room for is here, with so many bytes.
    pub(crate) fn place(&mut self, offset: u64, bytes: u64) {
        self.placed = Some(offset);
        self.written = self.written.max(offset + bytes);
    }

    /// The library did not ask.
    pub(crate) fn forget_place(&mut self) -> bool {
        self.placed.take().is_some()
    }

    /// Room for a block of metadata. The kernel may end a write at a page when the process is killed, and half a block is
    /// none: no block that is not larger than a page lies on two.
    pub(crate) fn allocate_metadata(&mut self, bytes: u64) -> u64 {
        if self.behind > 0 && self.end() == 0 {
            self.set_end(self.behind);
            return 0;
        }
        let start = self.arena.start;
        let fits = bytes > PAGE || start % PAGE + bytes <= PAGE;
        let mut offset = if fits { start } else { start.next_multiple_of(PAGE) };
        if offset + bytes > self.arena.end {
            offset = self.end().next_multiple_of(PAGE);
            self.arena.end = offset + bytes.next_multiple_of(ARENA);
            self.set_end(self.arena.end);
        }
        self.arena.start = offset + bytes;
        if let Some(addition) = &mut self.addition {
            addition.fresh.push(offset..self.arena.start);
        }
        offset
    }

    pub(crate) fn read(&self, mut offset: u64, mut into: &mut [u8]) {
        #[cfg(test)]
        self.bytes_read.set(self.bytes_read.get() + into.len() as u64);
        while !into.is_empty() {
            let at = (offset % PAGE) as usize;
            let length = into.len().min(PAGE as usize - at);
            let (part, rest) = into.split_at_mut(length);
            match self.pages.get(&(offset / PAGE)) {
                Some(page) => part.copy_from_slice(&page[at..at + length]),
                None => part.fill(0),
            }
            into = rest;
            offset += length as u64;
        }
    }

    fn keep(&mut self, mut offset: u64, mut bytes: &[u8]) {
        self.written = self.written.max(offset + bytes.len() as u64);
        while !bytes.is_empty() {
            let at = (offset % PAGE) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(PAGE as usize - at));
            let page = self.pages.entry(offset / PAGE).or_insert_with(|| Box::new([0; PAGE as usize]));
            page[at..at + part.len()].copy_from_slice(part);
            bytes = rest;
            offset += part.len() as u64;
        }
    }

    /// The library writes. What it wrote before, and the chunks that were placed, may be referred to from here on: readers
    /// refuse what lies behind the end that the superblock states, so that comes first.
    pub(crate) fn write(&mut self, kind: BlockKind, offset: u64, bytes: &[u8]) {
        self.leads = kind == BlockKind::ObjectHeader;
        if self.stated > 0 && self.written > self.stated && self.addition.is_none() {
            self.queue_superblock();
        }
        self.keep(offset, bytes);
        if offset == 0 && bytes.len() >= SUPERBLOCK_LENGTH {
            self.superblock = bytes[..SUPERBLOCK_LENGTH].to_vec();
            self.queue(offset, &bytes[SUPERBLOCK_LENGTH..], SUPERBLOCK);
        } else {
            self.queue(offset, bytes, 0);
        }
    }

    fn queue(&mut self, offset: u64, bytes: &[u8], skipped: u64) {
        let offset = offset + skipped;
        if bytes.is_empty() {
            return;
        }
        if let Some(addition) = &mut self.addition {
            let length = addition.touched.entry((self.leads, offset)).or_default();
            *length = bytes.len().max(*length);
            return;
        }
        for (piece, bytes) in (0..).zip(bytes.chunks(WRITE_MAX)) {
            self.queue_piece(offset + piece * WRITE_MAX as u64, bytes);
        }
    }

    fn queue_piece(&mut self, offset: u64, bytes: &[u8]) {
        if let Some(last) = self.writes.back_mut()
            && last.offset + last.bytes.len() as u64 == offset
            && last.bytes.len() + bytes.len() <= WRITE_MAX
        {
            last.bytes.extend_from_slice(bytes);
            return;
        }
        self.writes.push_back(FileWrite { offset, bytes: bytes.to_vec() });
    }

    /// Queues the superblock behind all that it refers to: nobody has the file open, and it ends where what is written does.
    pub(crate) fn queue_superblock(&mut self) {
        let mut superblock = self.superblock.clone();
        if superblock.len() < SUPERBLOCK_LENGTH {
            return;
        }
        superblock[11] = 0;
        superblock[28..36].copy_from_slice(&self.written.to_le_bytes());
        // SAFETY: it reads so many bytes.
        let checksum = unsafe { H5_checksum_metadata(superblock.as_ptr().cast(), SUPERBLOCK_LENGTH - 4, 0) };
        superblock[44..48].copy_from_slice(&checksum.to_le_bytes());
        self.stated = self.written;
        self.queue(0, &superblock, 0);
    }

    /// What is written from now on is added to a file that is complete.
    pub(crate) fn begin_addition(&mut self) {
        self.addition = Some(Addition::default());
    }

    /// All of it is known: it is queued.
    pub(crate) fn queue_addition(&mut self) {
        let Some(addition) = self.addition.take() else { return };
        let (fresh, changed): (Vec<_>, Vec<_>) =
            addition.touched.iter().partition(|((_, offset), _)| addition.is_fresh(*offset));
        for ((_, offset), length) in fresh {
            self.queue_again(*offset, *length);
        }
        self.queue_superblock();
        for ((_, offset), length) in changed {
            self.queue_again(*offset, *length);
        }
    }

    fn queue_again(&mut self, offset: u64, length: usize) {
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes);
        self.queue(offset, &bytes, 0);
    }

    /// What is to be written next.
    pub(crate) fn next_write(&mut self) -> Option<FileWrite> {
        self.writes.pop_front()
    }

    /// What of a write was not done, before all others.
    pub(crate) fn put_back(&mut self, write: FileWrite) {
        self.writes.push_front(write);
    }

    /// These are the bytes of the file.
    pub(crate) fn load(&mut self, bytes: &[u8]) {
        self.keep(0, bytes);
        self.set_end(bytes.len() as u64);
    }

    /// Where what is written ends.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Where room that is given to somebody ends.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn set_end(&mut self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// Room is given behind this only, but for the superblock, which is asked for first: what is in front of it is others'.
    pub(crate) fn begin_behind(&mut self, begin: u64) {
        self.behind = begin.max(SUPERBLOCK);
    }

    /// The next chunk that the library asks room for, if it is there already.
    pub(crate) fn take_place(&mut self) -> Option<u64> {
        self.placed.take()
    }

    /// How far room is given, for whoever asks without the lock.
    pub(crate) fn shared_end(&self) -> Arc<AtomicU64> {
        self.end.clone()
    }

    /// Room in front of this is in use: of a file that is opened again.
    pub(crate) fn reserve(&mut self, end: u64) {
        self.set_end(self.end().max(end));
    }
}
