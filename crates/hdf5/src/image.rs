//! The in-memory image of a file being written, without the frames: the allocation of its space, and the queued
//! writes in order. [`crate::driver`] shows it to the library.
//!
//! Metadata get blocks of their own ([`FileImage::arena`]), apart from frames. Frames then lie at whole pages for
//! `O_DIRECT`, and no page has both.
//!
//! We write the superblock without the flags that mark a file as open, and with the current end of the written
//! bytes. Every reader can then open the file at each moment after the first flush, even if this process dies.
//! The library would use these flags to keep a second writer out; the owner holds a lock instead.
//!
//! (HDF5 File Format Specification 3.0, II.A, superblock version 3: flags at byte 11, end of file at 28, checksum
//! at 44.)

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::ffi::H5_checksum_metadata;

/// Bytes to be written into the file, in order and each after the one before is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// Position, in bytes from the start of the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Bytes of a block for metadata; such blocks and frames begin at multiples of [`PAGE`].
const ARENA: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Bytes of memory per page beside the page itself: its entry in the map, and the allocator's overhead.
const PAGE_ENTRY: u64 = 48;
/// Consecutive writes are merged up to this size.
const WRITE_MAX: usize = 64 << 10;
/// Bytes of the superblock, version 3, which begins every file.
pub const SUPERBLOCK: u64 = 48;
const SUPERBLOCK_LENGTH: usize = SUPERBLOCK as usize;

/// The kind of a block that the library writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The header of an object, which leads to all other parts of it.
    ObjectHeader,
    /// Anything else.
    Other,
}

/// The changes made to a complete file, ordered so that a reader finds a whole file whenever the writing ends.
/// First come new blocks in unused space, then the superblock with the new end, then changed blocks. Headers of
/// objects, which now lead to the new blocks, come last.
///
/// Each header has room for the additions, so that only one block changes. The library itself keeps such an order
/// only while readers watch, and then it adds no objects.
#[derive(Debug, Default)]
struct Addition {
    /// Space allocated to metadata since the addition began.
    fresh: Vec<Range<u64>>,
    /// Lengths of the blocks written since, by (is an object header, offset).
    touched: BTreeMap<(bool, u64), usize>,
}

impl Addition {
    fn is_fresh(&self, offset: u64) -> bool {
        self.fresh.iter().any(|room| room.contains(&offset))
    }
}

/// The in-memory part of a file: everything except the frames.
#[derive(Debug, Default)]
pub(crate) struct FileImage {
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    /// End of the allocated space. The library asks for it several times per chunk, so it can read it without the
    /// lock. It only changes while the lock is held.
    end: Arc<AtomicU64>,
    /// End of the bytes that are written or in the index.
    written: u64,
    /// Start of the space for everything except the superblock, if another writer has filled part of the file.
    /// Until the superblock is allocated, the file counts as empty: the library would otherwise read a
    /// superblock.
    behind: u64,
    /// Free space for metadata.
    arena: Range<u64>,
    /// Position of the next chunk that the library will ask room for; its bytes are already there.
    placed: Option<u64>,
    /// The superblock as the library last wrote it.
    superblock: Vec<u8>,
    /// The end of file in the superblock that was queued last; 0 before the first.
    stated: u64,
    writes: VecDeque<FileWrite>,
    /// Present while a complete file is being extended; its writes are queued together at the end.
    addition: Option<Addition>,
    /// True if the block being written is an object header; such changes must come last.
    leads: bool,
    /// Bytes that the library read.
    #[cfg(test)]
    pub(crate) bytes_read: std::cell::Cell<u64>,
}

impl FileImage {
    /// Allocates `bytes` for a frame, with both ends at a multiple of the alignment.
    pub(crate) fn allocate(&mut self, bytes: u64, alignment: u64) -> u64 {
        let offset = self.end().next_multiple_of(alignment);
        self.set_end((offset + bytes).next_multiple_of(alignment));
        offset
    }

    /// Bytes of memory in use: the pages, and the queued writes.
    pub(crate) fn memory(&self) -> u64 {
        let waiting: u64 = self.writes.iter().map(|write| write.bytes.len() as u64).sum();
        self.pages.len() as u64 * (PAGE + PAGE_ENTRY) + waiting
    }

    /// Sets the position and size of the next chunk that the library will ask room for.
    pub(crate) fn place(&mut self, offset: u64, bytes: u64) {
        self.placed = Some(offset);
        self.written = self.written.max(offset + bytes);
    }

    /// Clears that position; true if the library did not ask for it.
    pub(crate) fn forget_place(&mut self) -> bool {
        self.placed.take().is_some()
    }

    /// Allocates a block of metadata. If the process is killed, the kernel may end a write at a page boundary,
    /// and half a block is useless. A block no larger than a page therefore never crosses a page boundary.
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

    /// Takes a write of the library. From here on, blocks may refer to earlier writes and placed chunks. Readers
    /// refuse anything behind the end in the superblock, so the superblock is queued first.
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

    /// Queues the superblock after everything that it refers to: not marked as open, and with the end of the
    /// written bytes.
    pub(crate) fn queue_superblock(&mut self) {
        let mut superblock = self.superblock.clone();
        if superblock.len() < SUPERBLOCK_LENGTH {
            return;
        }
        superblock[11] = 0;
        superblock[28..36].copy_from_slice(&self.written.to_le_bytes());
        // SAFETY: the buffer holds the bytes that the function reads.
        let checksum = unsafe { H5_checksum_metadata(superblock.as_ptr().cast(), SUPERBLOCK_LENGTH - 4, 0) };
        superblock[44..48].copy_from_slice(&checksum.to_le_bytes());
        self.stated = self.written;
        self.queue(0, &superblock, 0);
    }

    /// Treats all further writes as an addition to a complete file.
    pub(crate) fn begin_addition(&mut self) {
        self.addition = Some(Addition::default());
    }

    /// Queues the writes of the finished addition.
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

    /// Takes the next write.
    pub(crate) fn next_write(&mut self) -> Option<FileWrite> {
        self.writes.pop_front()
    }

    /// Puts the unfinished rest of a write before all others.
    pub(crate) fn put_back(&mut self, write: FileWrite) {
        self.writes.push_front(write);
    }

    /// Loads the bytes of an existing file.
    pub(crate) fn load(&mut self, bytes: &[u8]) {
        self.keep(0, bytes);
        self.set_end(bytes.len() as u64);
    }

    /// End of the written bytes.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// End of the allocated space.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn set_end(&mut self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// Allocates only behind `begin`, except for the superblock, which the library asks for first. Other writers
    /// own the bytes before it.
    pub(crate) fn begin_behind(&mut self, begin: u64) {
        self.behind = begin.max(SUPERBLOCK);
    }

    /// Takes the position of the next chunk, if its bytes are already there.
    pub(crate) fn take_place(&mut self) -> Option<u64> {
        self.placed.take()
    }

    /// The end of the allocated space, for callers without the lock.
    pub(crate) fn shared_end(&self) -> Arc<AtomicU64> {
        self.end.clone()
    }

    /// Marks the space up to `end` as in use, for a file that is opened again.
    pub(crate) fn reserve(&mut self, end: u64) {
        self.set_end(self.end().max(end));
    }
}
