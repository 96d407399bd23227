//! The functions of `shim.cc`, and what makes them safe to call: each request owns what it needs until it is answered.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::NonNull,
};

use crate::{
    answer::{Answered, Done, begun, done},
    client::OperationMemory,
};

unsafe extern "C" {
    fn nilometer_xrootd_default(key: *const c_char, value: c_int) -> c_int;
    fn nilometer_xrootd_file_new() -> *mut c_void;
    fn nilometer_xrootd_discard(file: *mut c_void);
    fn nilometer_xrootd_open(
        file: *mut c_void,
        url: *const c_char,
        how: c_int,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_close(file: *mut c_void, done: Done, context: *mut c_void);
    fn nilometer_xrootd_read(
        file: *mut c_void,
        offset: u64,
        length: u32,
        into: *mut c_void,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_write(
        file: *mut c_void,
        offset: u64,
        length: u32,
        from: *const c_void,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_sync(file: *mut c_void, done: Done, context: *mut c_void);
    fn nilometer_xrootd_truncate(file: *mut c_void, size: u64, done: Done, context: *mut c_void);
    fn nilometer_xrootd_server_new(url: *const c_char) -> *mut c_void;
    fn nilometer_xrootd_server_delete(server: *mut c_void);
    fn nilometer_xrootd_stat(
        server: *mut c_void,
        path: *const c_char,
        seconds: u16,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_list(server: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_xrootd_unlink(server: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_xrootd_remove_dir(
        server: *mut c_void,
        path: *const c_char,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_make_dir(server: *mut c_void, path: *const c_char, done: Done, context: *mut c_void);
    fn nilometer_xrootd_rename(
        server: *mut c_void,
        from: *const c_char,
        to: *const c_char,
        done: Done,
        context: *mut c_void,
    );
    fn nilometer_xrootd_query(
        server: *mut c_void,
        code: c_int,
        argument: *const c_char,
        seconds: u16,
        done: Done,
        context: *mut c_void,
    );
}

/// Sets an integer of the library where its user has not, and says what it is then.
pub(super) fn default(key: &CStr, value: i32) -> i32 {
    // SAFETY: the key is a string of C; the library copies it.
    unsafe { nilometer_xrootd_default(key.as_ptr(), value) }
}

/// A file of the library, open or not. It is closed in the background when it is dropped.
#[derive(Debug)]
pub(super) struct XRootDFile(NonNull<c_void>);

// SAFETY: the library's files may be used by any thread; only one owns this.
unsafe impl Send for XRootDFile {}

impl XRootDFile {
    /// Not open yet.
    pub(super) fn new() -> Self {
        // SAFETY: it takes nothing.
        let file = unsafe { nilometer_xrootd_file_new() };
        XRootDFile(NonNull::new(file).expect("new never gives null"))
    }

    /// `how` as the shim has it: 0 to read, 1 to write, 2 for both, 3 to make a new one. What waits must own this file, and keep
    /// it until it is answered.
    pub(super) fn open<A: Answered + Send>(handle: FileHandle, url: &CStr, how: c_int, waiting: Box<A>) {
        // SAFETY: what waits owns the file; the library copies the URL.
        unsafe { nilometer_xrootd_open(handle.0, url.as_ptr(), how, done::<A>, begun(waiting)) }
    }

    /// By which a request can be begun that owns the file.
    pub(super) fn handle(&self) -> FileHandle {
        FileHandle(self.0.as_ptr())
    }

    /// What waits must own this file, and keep it until it is answered.
    pub(super) fn close<A: Answered + Send>(handle: FileHandle, waiting: Box<A>) {
        // SAFETY: what waits owns the file.
        unsafe { nilometer_xrootd_close(handle.0, done::<A>, begun(waiting)) }
    }

    /// The file must stay until the answer.
    pub(super) fn read<A: Answered + Send>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        // SAFETY: what waits owns the memory, of at least this length; the engine closes no file with operations under way.
        unsafe {
            nilometer_xrootd_read(self.0.as_ptr(), offset, length, start.cast(), done::<A>, begun(waiting));
        }
    }

    /// The file must stay until the answer.
    pub(super) fn write<A: Answered + Send>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        // SAFETY: as for reading.
        unsafe {
            nilometer_xrootd_write(self.0.as_ptr(), offset, length, start.cast(), done::<A>, begun(waiting));
        }
    }

    /// The file must stay until the answer.
    pub(super) fn sync<A: Answered + Send>(&self, waiting: Box<A>) {
        // SAFETY: the engine closes no file with operations under way.
        unsafe { nilometer_xrootd_sync(self.0.as_ptr(), done::<A>, begun(waiting)) }
    }

    /// The file must stay until the answer.
    pub(super) fn truncate<A: Answered + Send>(&self, size: u64, waiting: Box<A>) {
        // SAFETY: as above.
        unsafe { nilometer_xrootd_truncate(self.0.as_ptr(), size, done::<A>, begun(waiting)) }
    }
}

impl Drop for XRootDFile {
    fn drop(&mut self) {
        // SAFETY: nobody else has the file, and nothing is under way with it.
        unsafe { nilometer_xrootd_discard(self.0.as_ptr()) }
    }
}

/// A file that what waits for an answer owns.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileHandle(*mut c_void);

/// A server, or the manager of several, for requests by path.
#[derive(Debug)]
pub(super) struct XRootDServer(NonNull<c_void>);

// SAFETY: the library's file systems may be used by any thread; only one owns this.
unsafe impl Send for XRootDServer {}

impl XRootDServer {
    /// Nothing is asked of it yet.
    pub(super) fn at(url: &CString) -> Self {
        // SAFETY: the library copies the URL.
        let server = unsafe { nilometer_xrootd_server_new(url.as_ptr()) };
        XRootDServer(NonNull::new(server).expect("new never gives null"))
    }

    fn raw(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// What is at a path: its size, and `d` for a directory. 0 seconds are the library's own limit.
    pub(super) fn stat<A: Answered + Send>(&self, path: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: the library copies paths, here and below, and has the server's own parts in each request.
        unsafe { nilometer_xrootd_stat(self.raw(), path.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }

    /// All names: `d`, `f` or `?`, the name and a zero, of each.
    pub(super) fn list<A: Answered + Send>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_list(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn unlink<A: Answered + Send>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_unlink(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn remove_dir<A: Answered + Send>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_remove_dir(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn make_dir<A: Answered + Send>(&self, path: &CStr, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_make_dir(self.raw(), path.as_ptr(), done::<A>, begun(waiting)) }
    }

    pub(super) fn rename<A: Answered + Send>(&self, from: &CStr, to: &CStr, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_rename(self.raw(), from.as_ptr(), to.as_ptr(), done::<A>, begun(waiting)) }
    }

    /// The value of a key of its configuration, as text.
    pub(super) fn configuration<A: Answered + Send>(&self, key: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_query(self.raw(), 0, key.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }

    /// The space at a path, as text.
    pub(super) fn space<A: Answered + Send>(&self, path: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_query(self.raw(), 1, path.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }
}

impl Drop for XRootDServer {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; requests under way have their own parts of it.
        unsafe { nilometer_xrootd_server_delete(self.raw()) }
    }
}
