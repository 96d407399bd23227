//! A virtual file driver that does no I/O. It keeps the library's writes in memory, so that the library can read
//! them again. It also queues them in the order in which they must reach the file. The owner of the file carries
//! the writes out with any I/O engine.
//!
//! The library therefore never waits for storage: the thread that issues operations can call it, and a simulation
//! sees each byte.
//!
//! Frames never pass through the library. Their owner chooses their position in the file
//! ([`FileImage::allocate`]) and writes them. Once they are written, it has the library add the position to the
//! index: the library asks for room for a chunk, and gets the room that is already filled.
//!
//! ```text
//! owner     allocate 4 MiB at 1048576    write the frame there ......... it is written
//! library                                                                H5Dwrite_chunk: room for 4 MiB? at 1048576
//!                                                                        "write": dropped, it is there
//! owner                                                                  carries out what the library queued
//! ```
//!
//! The index therefore never contains a chunk that is not written; a frame whose write failed counts as never
//! received.

use std::{
    cell::RefCell,
    ffi::{c_char, c_int, c_uint, c_ulong, c_void},
    ptr, slice,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    ffi::{
        H5FD_CLASS_VERSION, H5FD_FEAT_SUPPORTS_SWMR_IO, H5FD_MEM_DRAW, H5FD_MEM_OHDR, H5FD_class_t, H5FD_t,
        H5FDregister, haddr_t, herr_t, hid_t, hsize_t,
    },
    image::{BlockKind, FileImage},
};

/// An image that the library works on.
pub(crate) type SharedImage = Arc<Mutex<FileImage>>;

pub(crate) fn lock(image: &SharedImage) -> MutexGuard<'_, FileImage> {
    image.lock().unwrap_or_else(PoisonError::into_inner)
}

std::thread_local! {
    /// The image of the file that this thread is opening; the library passes only a name.
    static OPENING: RefCell<Option<SharedImage>> = const { RefCell::new(None) };
}

/// Has the library open an image by calling `open`.
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
        // SAFETY: the class is static, and its functions obey the library's documentation.
        let id = unsafe { H5FDregister(&raw const CLASS) };
        assert!(id >= 0, "a class with all that is needed is registered");
        id
    })
}

/// The library's view of an open file. It sees the first field.
#[repr(C)]
struct OpenImage {
    base: H5FD_t,
    image: SharedImage,
    /// The end of the image.
    end: Arc<AtomicU64>,
}

/// # Safety
/// The pointer comes from `open`, and the file is not closed yet.
unsafe fn opened<'a>(file: *const H5FD_t) -> MutexGuard<'a, FileImage> {
    // SAFETY: `base` is the first field of the structure that `open` allocated.
    lock(unsafe { &(*file.cast::<OpenImage>()).image })
}

/// # Safety
/// The same contract as for [`opened`].
unsafe fn end_of(file: *const H5FD_t) -> haddr_t {
    // SAFETY: `base` is the first field of the structure that `open` allocated.
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
    let end = lock(&image).shared_end();
    Box::into_raw(Box::new(OpenImage { base, image, end })).cast()
}

unsafe extern "C" fn close(file: *mut H5FD_t) -> herr_t {
    // SAFETY: `open` allocated it, and the library does not use it again.
    drop(unsafe { Box::from_raw(file.cast::<OpenImage>()) });
    0
}

unsafe extern "C" fn cmp(left: *const H5FD_t, right: *const H5FD_t) -> c_int {
    // SAFETY: both files are open.
    let [left, right] = [left, right].map(|file| unsafe { Arc::as_ptr(&(*file.cast::<OpenImage>()).image) });
    left.cmp(&right) as c_int
}

unsafe extern "C" fn query(_file: *const H5FD_t, flags: *mut c_ulong) -> herr_t {
    if !flags.is_null() {
        // SAFETY: the library passes a pointer to a number to be filled.
        unsafe { *flags = H5FD_FEAT_SUPPORTS_SWMR_IO };
    }
    0
}

unsafe extern "C" fn alloc(file: *mut H5FD_t, kind: c_int, _dxpl: hid_t, size: hsize_t) -> haddr_t {
    // SAFETY: the file is open.
    let mut image = unsafe { opened(file) };
    let placed = if kind == H5FD_MEM_DRAW { image.take_place() } else { None };
    placed.unwrap_or_else(|| image.allocate_metadata(size))
}

unsafe extern "C" fn free(
    _: *mut H5FD_t,
    _kind: c_int,
    _dxpl: hid_t,
    _at: haddr_t,
    _size: hsize_t,
) -> herr_t {
    // Space is not reused: the library frees little, and readers of a growing file may still read it.
    0
}

unsafe extern "C" fn get_eoa(file: *const H5FD_t, _kind: c_int) -> haddr_t {
    // SAFETY: the file is open.
    unsafe { end_of(file) }
}

unsafe extern "C" fn set_eoa(file: *mut H5FD_t, _kind: c_int, end: haddr_t) -> herr_t {
    // SAFETY: the file is open.
    unsafe { opened(file) }.reserve(end);
    0
}

unsafe extern "C" fn get_eof(file: *const H5FD_t, _kind: c_int) -> haddr_t {
    // SAFETY: the file is open.
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
    // SAFETY: the file is open, and the library's buffer holds `size` bytes.
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
    let block = if kind == H5FD_MEM_OHDR { BlockKind::ObjectHeader } else { BlockKind::Other };
    // SAFETY: the file is open, and the library's buffer holds `size` bytes.
    unsafe {
        opened(file).write(block, offset, slice::from_raw_parts(from.cast(), size));
    };
    0
}

/// Passed to the library in place of a chunk's bytes. It never reads them.
pub(crate) static CHUNK_IN_PLACE: [u8; 8] = [0; 8];

/// A driver number from the range that the library leaves to unregistered drivers.
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
