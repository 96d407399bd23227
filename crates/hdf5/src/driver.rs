//! A virtual file driver that does no I/O. What the library writes is kept in memory, where it reads it again, and queued
//! in the order in which it must reach the file; the owner of the file carries the writes out, by whatever engine.
//!
//! So the library never waits for storage: it can be called by the thread that issues operations, and a simulation sees
//! each byte. Frames never pass it. Their owner chooses where in the file they go ([`FileImage::allocate`]), writes them, and when they are
//! written has the library note the place: the library asks for room for a chunk, and gets the room that is filled already.
//!
//! ```text
//! owner     allocate 4 MiB at 1048576    write the frame there ......... it is written
//! library                                                                H5Dwrite_chunk: room for 4 MiB? at 1048576
//!                                                                        "write": dropped, it is there
//! owner                                                                  carries out what the library queued
//! ```
//!
//! The index therefore never has a chunk that is not written, and a frame whose write failed is one that never came.
//!
//! Metadata are put into blocks of their own ([`FileImage::arena`]), apart from frames, so that frames lie at whole pages
//! for `O_DIRECT`, and no page has both.
//!
//! The superblock is written with the flags cleared that say that somebody has the file open, and with the end of what is
//! written. A file is then one that every reader opens, at each moment after the first flush, whatever becomes of us. The
//! library would not let a second writer in by these flags; the owner holds a lock instead. (HDF5 File Format Specification
//! 3.0, II.A, superblock version 3: flags at byte 11, end of file at 28, checksum at 44.)

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    ffi::{c_char, c_int, c_uint, c_ulong, c_void},
    ops::Range,
    ptr, slice,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::ffi::{
    H5_checksum_metadata, H5FD_CLASS_VERSION, H5FD_FEAT_SUPPORTS_SWMR_IO, H5FD_MEM_DRAW, H5FD_MEM_OHDR,
    H5FD_class_t, H5FD_t, H5FDregister, haddr_t, herr_t, hid_t, hsize_t,
};

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
/// Consecutive writes become one up to this.
const WRITE_MAX: usize = 64 << 10;
/// Of the superblock, version 3.
const SUPERBLOCK: usize = 48;

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
}

impl FileImage {
    /// Room for so many bytes of a frame, whole pieces of so many.
    pub(crate) fn allocate(&mut self, bytes: u64, alignment: u64) -> u64 {
        let offset = self.end().next_multiple_of(alignment);
        self.set_end((offset + bytes).next_multiple_of(alignment));
        offset
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
    fn allocate_metadata(&mut self, bytes: u64) -> u64 {
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

    fn read(&self, mut offset: u64, mut into: &mut [u8]) {
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
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        if self.stated > 0 && self.written > self.stated && self.addition.is_none() {
            self.queue_superblock();
        }
        self.keep(offset, bytes);
        if offset == 0 && bytes.len() >= SUPERBLOCK {
            self.superblock = bytes[..SUPERBLOCK].to_vec();
            self.queue(offset, &bytes[SUPERBLOCK..], SUPERBLOCK as u64);
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
        if superblock.len() < SUPERBLOCK {
            return;
        }
        superblock[11] = 0;
        superblock[28..36].copy_from_slice(&self.written.to_le_bytes());
        // SAFETY: it reads so many bytes.
        let checksum = unsafe { H5_checksum_metadata(superblock.as_ptr().cast(), SUPERBLOCK - 4, 0) };
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

    /// Room in front of this is in use: of a file that is opened again.
    pub(crate) fn reserve(&mut self, end: u64) {
        self.set_end(self.end().max(end));
    }
}

/// An image that the library works on.
pub(crate) type SharedImage = Arc<Mutex<FileImage>>;

pub(crate) fn lock(image: &SharedImage) -> MutexGuard<'_, FileImage> {
    image.lock().unwrap_or_else(PoisonError::into_inner)
}

std::thread_local! {
    /// The image of the file that is opened by this thread: the library passes a name only.
    static OPENING: RefCell<Option<SharedImage>> = const { RefCell::new(None) };
}

/// Has the library open an image by `open`.
pub(crate) fn while_opening<T>(image: &SharedImage, open: impl FnOnce() -> T) -> T {
    OPENING.set(Some(image.clone()));
    let opened = open();
    OPENING.set(None);
    opened
}

/// The driver, registered with the library once.
pub(crate) fn driver() -> hid_t {
    static DRIVER: OnceLock<hid_t> = OnceLock::new();
    *DRIVER.get_or_init(|| {
        crate::handle::begin();
        // SAFETY: the class is static, and its functions do what the library's documentation asks of them.
        let id = unsafe { H5FDregister(&raw const CLASS) };
        assert!(id >= 0, "a class with all that is needed is registered");
        id
    })
}

/// What the library has of an open file. It sees the first field.
#[repr(C)]
struct OpenImage {
    base: H5FD_t,
    image: SharedImage,
    /// That of the image.
    end: Arc<AtomicU64>,
}

/// # Safety
/// The pointer is one that `open` gave, and the file is not closed yet.
unsafe fn opened<'a>(file: *const H5FD_t) -> MutexGuard<'a, FileImage> {
    // SAFETY: `base` is the first field of what `open` allocated.
    lock(unsafe { &(*file.cast::<OpenImage>()).image })
}

/// # Safety
/// The same.
unsafe fn end_of(file: *const H5FD_t) -> haddr_t {
    // SAFETY: `base` is the first field of what `open` allocated.
    unsafe { &(*file.cast::<OpenImage>()).end }.load(Ordering::Relaxed)
}

unsafe extern "C" fn open(
    _name: *const c_char,
    _flags: c_uint,
    _fapl: hid_t,
    maxaddr: haddr_t,
) -> *mut H5FD_t {
    let Some(image) = OPENING.with_borrow(Clone::clone) else { return ptr::null_mut() };
    let base = H5FD_t {
        driver_id: 0,
        cls: ptr::null(),
        fileno: 0,
        access_flags: 0,
        feature_flags: 0,
        maxaddr,
        base_addr: 0,
        threshold: 0,
        alignment: 0,
        paged_aggr: false,
    };
    let end = lock(&image).end.clone();
    Box::into_raw(Box::new(OpenImage { base, image, end })).cast()
}

unsafe extern "C" fn close(file: *mut H5FD_t) -> herr_t {
    // SAFETY: `open` made it, and the library does not use it again.
    drop(unsafe { Box::from_raw(file.cast::<OpenImage>()) });
    0
}

unsafe extern "C" fn cmp(left: *const H5FD_t, right: *const H5FD_t) -> c_int {
    // SAFETY: both are open.
    let [left, right] = [left, right].map(|file| unsafe { Arc::as_ptr(&(*file.cast::<OpenImage>()).image) });
    left.cmp(&right) as c_int
}

unsafe extern "C" fn query(_file: *const H5FD_t, flags: *mut c_ulong) -> herr_t {
    if !flags.is_null() {
        // SAFETY: the library asks for a number there.
        unsafe { *flags = H5FD_FEAT_SUPPORTS_SWMR_IO };
    }
    0
}

unsafe extern "C" fn alloc(file: *mut H5FD_t, kind: c_int, _dxpl: hid_t, size: hsize_t) -> haddr_t {
    // SAFETY: it is open.
    let mut image = unsafe { opened(file) };
    let placed = if kind == H5FD_MEM_DRAW { image.placed.take() } else { None };
    placed.unwrap_or_else(|| image.allocate_metadata(size))
}

unsafe extern "C" fn free(
    _: *mut H5FD_t,
    _kind: c_int,
    _dxpl: hid_t,
    _at: haddr_t,
    _size: hsize_t,
) -> herr_t {
    // Little of what is made is given up, and readers of a file that grows may still look there.
    0
}

unsafe extern "C" fn get_eoa(file: *const H5FD_t, _kind: c_int) -> haddr_t {
    // SAFETY: it is open.
    unsafe { end_of(file) }
}

unsafe extern "C" fn set_eoa(file: *mut H5FD_t, _kind: c_int, end: haddr_t) -> herr_t {
    // SAFETY: it is open.
    unsafe { opened(file) }.reserve(end);
    0
}

unsafe extern "C" fn get_eof(file: *const H5FD_t, _kind: c_int) -> haddr_t {
    // SAFETY: it is open.
    unsafe { end_of(file) }
}

unsafe extern "C" fn read(
    file: *mut H5FD_t,
    _kind: c_int,
    _dxpl: hid_t,
    offset: haddr_t,
    size: usize,
    into: *mut c_void,
) -> herr_t {
    // SAFETY: it is open, and the library has room for so many bytes.
    unsafe { opened(file).read(offset, slice::from_raw_parts_mut(into.cast(), size)) };
    0
}

unsafe extern "C" fn write(
    file: *mut H5FD_t,
    kind: c_int,
    _dxpl: hid_t,
    offset: haddr_t,
    size: usize,
    from: *const c_void,
) -> herr_t {
    if kind == H5FD_MEM_DRAW && from == CHUNK_IN_PLACE.as_ptr().cast() {
        return 0;
    }
    // SAFETY: it is open, and the library has so many bytes there.
    unsafe {
        let mut image = opened(file);
        image.leads = kind == H5FD_MEM_OHDR;
        image.write(offset, slice::from_raw_parts(from.cast(), size));
    };
    0
}

/// What the library is handed in the place of a chunk's bytes. It never reads them.
pub(crate) static CHUNK_IN_PLACE: [u8; 8] = [0; 8];

/// A number that the library keeps for drivers that are not registered with its makers.
const DRIVER_NUMBER: c_int = 300;

static CLASS: H5FD_class_t = H5FD_class_t {
    version: H5FD_CLASS_VERSION,
    value: DRIVER_NUMBER,
    name: c"nilometer".as_ptr(),
    maxaddr: (1 << 62) - 1,
    fc_degree: crate::ffi::H5F_CLOSE_WEAK,
    terminate: None,
    sb_size: None,
    sb_encode: None,
    sb_decode: None,
    fapl_size: 0,
    fapl_get: None,
    fapl_copy: None,
    fapl_free: None,
    dxpl_size: 0,
    dxpl_copy: None,
    dxpl_free: None,
    open: Some(open),
    close: Some(close),
    cmp: Some(cmp),
    query: Some(query),
    get_type_map: None,
    alloc: Some(alloc),
    free: Some(free),
    get_eoa: Some(get_eoa),
    set_eoa: Some(set_eoa),
    get_eof: Some(get_eof),
    get_handle: None,
    read: Some(read),
    write: Some(write),
    read_vector: None,
    write_vector: None,
    read_selection: None,
    write_selection: None,
    flush: None,
    truncate: None,
    lock: None,
    unlock: None,
    del: None,
    ctl: None,
    // All kinds of metadata from one list, and raw data from another.
    fl_map: [1, 1, 1, 3, 3, 1, 1],
};
