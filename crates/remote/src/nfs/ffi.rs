//! Safe wrappers of the functions of `shim.c`. Each request owns everything that it needs until it is answered.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::NonNull,
    rc::Rc,
};

use nilometer_storage::Errno;

use crate::{
    answer::{Answered, Done, LibraryAnswer, begun, done},
    client::OperationMemory,
};

unsafe extern "C" {
    fn nilometer_nfs_mount(
        url: *const c_char,
        milliseconds: c_int,
        error: *mut c_int,
        message: *mut c_char,
        room: usize,
    ) -> *mut c_void;
    fn nilometer_nfs_unmount(nfs: *mut c_void);
    fn nilometer_nfs_descriptor(nfs: *mut c_void) -> c_int;
    fn nilometer_nfs_events(nfs: *mut c_void) -> c_int;
    fn nilometer_nfs_service(nfs: *mut c_void, events: c_int) -> c_int;
    fn nilometer_nfs_most(nfs: *mut c_void, write: c_int) -> u64;
    fn nilometer_nfs_space(nfs: *mut c_void, path: *const c_char, space: *mut [u64; 5]) -> c_int;
    fn nilometer_nfs_open(
        nfs: *mut c_void,
        path: *const c_char,
        how: c_int,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_nfs_close(nfs: *mut c_void, file: *mut c_void, done: Done, context: *mut c_void);
    fn nilometer_nfs_read(
        nfs: *mut c_void,
        file: *mut c_void,
        offset: u64,
        length: u64,
        into: *mut c_void,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_nfs_write(
        nfs: *mut c_void,
        file: *mut c_void,
        offset: u64,
        length: u64,
        from: *const c_void,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_nfs_sync(nfs: *mut c_void, file: *mut c_void, done: Done, context: *mut c_void);
    fn nilometer_nfs_truncate(
        nfs: *mut c_void,
        file: *mut c_void,
        size: u64,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_nfs_stat(nfs: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_nfs_list(nfs: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_nfs_unlink(nfs: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_nfs_remove_dir(nfs: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_nfs_make_dir(nfs: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_nfs_rename(
        nfs: *mut c_void,
        from: *const c_char,
        to: *const c_char,
        done: Done,
        context: *mut c_void,
    );
}

/// The reason why an export can't be mounted or used.
#[derive(Debug)]
pub(super) struct NfsFault {
    pub(super) errno: Errno,
    pub(super) why: String,
}

/// A connection to an export, for one thread.
#[derive(Debug)]
pub(super) struct NfsContext(NonNull<c_void>);

/// Buffer size for a message of the library.
const MESSAGE: usize = 400;

impl NfsContext {
    /// Mounts the export in the URL, within this time.
    pub(super) fn mount(url: &CStr, milliseconds: i32) -> Result<Rc<Self>, NfsFault> {
        let mut message = [0_u8; MESSAGE];
        let mut error: c_int = 0;
        let room = message.len();
        // SAFETY: the shim writes one number, and at most `room` bytes that end with a zero.
        let nfs = unsafe {
            let text = message.as_mut_ptr().cast();
            nilometer_nfs_mount(url.as_ptr(), milliseconds, &raw mut error, text, room)
        };
        let said = CStr::from_bytes_until_nul(&message).map(CStr::to_string_lossy).unwrap_or_default();
        let fault = || NfsFault { errno: Errno(error), why: said.trim().replace('\n', "; ") };
        NonNull::new(nfs).map(|nfs| Rc::new(NfsContext(nfs))).ok_or_else(fault)
    }

    fn raw(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Returns the socket and the poll(2) events to wait for, or `None` without a connection.
    pub(super) fn awaited(&self) -> Option<(c_int, i16)> {
        // SAFETY: the context is valid.
        let descriptor = unsafe { nilometer_nfs_descriptor(self.raw()) };
        // SAFETY: the context is valid.
        let events = unsafe { nilometer_nfs_events(self.raw()) };
        (descriptor >= 0).then_some((descriptor, events as i16))
    }

    /// Sends and receives without blocking, and delivers answers. Returns true if the connection is still
    /// usable.
    pub(super) fn service(&self, events: i16) -> bool {
        // SAFETY: the context is valid, and only this thread uses it.
        unsafe { nilometer_nfs_service(self.raw(), events.into()) >= 0 }
    }

    /// Returns the largest read and the largest write in bytes, or 0 if the library can't.
    pub(super) fn most(&self) -> [u64; 2] {
        // SAFETY: the context is valid.
        unsafe { [nilometer_nfs_most(self.raw(), 0), nilometer_nfs_most(self.raw(), 1)] }
    }

    /// Returns the size, free space, space available to this user, inodes and free inodes.
    pub(super) fn space(&self, path: &CStr) -> Result<[u64; 5], Errno> {
        let mut space = [0; 5];
        // SAFETY: the shim writes five numbers.
        match unsafe { nilometer_nfs_space(self.raw(), path.as_ptr(), &raw mut space) } {
            0 => Ok(space),
            error => Err(Errno(error)),
        }
    }

    pub(super) fn open<A: Answered>(&self, path: &CStr, how: c_int, waiting: Box<A>) {
        // SAFETY: the library copies paths, here and below.
        unsafe { nilometer_nfs_open(self.raw(), path.as_ptr(), how, done::<A>, begun(waiting)) }
    }

    pub(super) fn stat<A: Answered>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_stat(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn list<A: Answered>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_list(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn unlink<A: Answered>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_unlink(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn remove_dir<A: Answered>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_remove_dir(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn make_dir<A: Answered>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_make_dir(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn rename<A: Answered>(&self, from: &CStr, to: &CStr, waiting: Box<A>) {
        // SAFETY: as for `open`.
        unsafe { nilometer_nfs_rename(self.raw(), from.as_ptr(), to.as_ptr(), done::<A>, begun(waiting)) }
    }
}

impl Drop for NfsContext {
    fn drop(&mut self) {
        // SAFETY: files hold the context, so none is open. The call answers requests under way with an error.
        unsafe { nilometer_nfs_unmount(self.raw()) }
    }
}

/// An open file. Dropping it closes it.
#[derive(Debug)]
pub(super) struct NfsFile {
    file: NonNull<c_void>,
    context: Rc<NfsContext>,
}

impl NfsFile {
    /// Makes a file from the number that an open returned.
    ///
    /// # Safety
    /// The number must come from an open in this context, and may be used only once.
    pub(super) unsafe fn of_number(number: u64, context: Rc<NfsContext>) -> Option<Self> {
        let file = NonNull::new(std::ptr::with_exposed_provenance_mut(number as usize))?;
        Some(NfsFile { file, context })
    }

    /// Reads. The file must stay open until the answer.
    pub(super) fn read<A: Answered>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        let nfs = self.context.raw();
        // SAFETY: the waiter owns memory of at least this length. The engine closes no file with operations
        // under way.
        unsafe {
            nilometer_nfs_read(
                nfs,
                self.file.as_ptr(),
                offset,
                length.into(),
                start.cast(),
                done::<A>,
                begun(waiting),
            );
        }
    }

    /// Writes. The file must stay open until the answer.
    pub(super) fn write<A: Answered>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        let nfs = self.context.raw();
        // SAFETY: as for `read`.
        unsafe {
            nilometer_nfs_write(
                nfs,
                self.file.as_ptr(),
                offset,
                length.into(),
                start.cast(),
                done::<A>,
                begun(waiting),
            );
        }
    }

    /// Syncs. The file must stay open until the answer.
    pub(super) fn sync<A: Answered>(&self, waiting: Box<A>) {
        // SAFETY: the engine closes no file with operations under way.
        unsafe { nilometer_nfs_sync(self.context.raw(), self.file.as_ptr(), done::<A>, begun(waiting)) }
    }

    /// Truncates. The file must stay open until the answer.
    pub(super) fn truncate<A: Answered>(&self, size: u64, waiting: Box<A>) {
        // SAFETY: as for `sync`.
        unsafe {
            nilometer_nfs_truncate(self.context.raw(), self.file.as_ptr(), size, done::<A>, begun(waiting));
        }
    }

    /// Closes the file and passes the answer to the waiter.
    pub(super) fn close<A: Answered>(self, waiting: Box<A>) {
        let context = self.context.clone();
        let file = self.file;
        // Dropping `self` would close the file again. Only its context must still be released.
        let held = std::mem::ManuallyDrop::new(self);
        // SAFETY: the field is read once, and never dropped in its place.
        drop(unsafe { std::ptr::read(&raw const held.context) });
        // SAFETY: this was the only owner of the file, and it is not used again. The engine holds the context
        // until the answer.
        unsafe { nilometer_nfs_close(context.raw(), file.as_ptr(), done::<A>, begun(waiting)) }
    }
}

/// Ignores the answer to a close.
struct Unheard;

impl Answered for Unheard {
    fn answered(self: Box<Self>, _: LibraryAnswer<'_>) {}
}

impl Drop for NfsFile {
    fn drop(&mut self) {
        // SAFETY: this was the only owner of the file, which has no operations under way. `self` holds the
        // context.
        unsafe {
            nilometer_nfs_close(
                self.context.raw(),
                self.file.as_ptr(),
                done::<Unheard>,
                begun(Box::new(Unheard)),
            );
        }
    }
}
