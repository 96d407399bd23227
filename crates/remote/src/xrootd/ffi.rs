//! Safe wrappers of the functions of `shim.cc`. Each request owns everything that it needs until it is
//! answered.

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

/// Sets an integer of the library unless the user has set it, and returns its value.
pub(super) fn default(key: &CStr, value: i32) -> i32 {
    // SAFETY: the key is a C string, which the library copies.
    unsafe { nilometer_xrootd_default(key.as_ptr(), value) }
}

/// A file of the library, open or not. Dropping it closes it in the background.
#[derive(Debug)]
pub(super) struct XRootDFile(NonNull<c_void>);

// SAFETY: any thread may use the library's files, and this one has a single owner.
unsafe impl Send for XRootDFile {}

impl XRootDFile {
    /// Makes a file that is not open yet.
    pub(super) fn new() -> Self {
        // SAFETY: the function has no arguments.
        let file = unsafe { nilometer_xrootd_file_new() };
        XRootDFile(NonNull::new(file).expect("new never gives null"))
    }

    /// Opens a file. `how` is the shim's mode: 0 reads, 1 writes, 2 does both, 3 creates a new file. The waiter
    /// must own this file and keep it until the answer.
    pub(super) fn open<A: Answered + Send>(handle: FileHandle, url: &CStr, how: c_int, waiting: Box<A>) {
        // SAFETY: the waiter owns the file, and the library copies the URL.
        unsafe { nilometer_xrootd_open(handle.0, url.as_ptr(), how, done::<A>, begun(waiting)) }
    }

    /// Returns a handle for requests whose waiter owns the file.
    pub(super) fn handle(&self) -> FileHandle {
        FileHandle(self.0.as_ptr())
    }

    /// Closes a file. The waiter must own it and keep it until the answer.
    pub(super) fn close<A: Answered + Send>(handle: FileHandle, waiting: Box<A>) {
        // SAFETY: the waiter owns the file.
        unsafe { nilometer_xrootd_close(handle.0, done::<A>, begun(waiting)) }
    }

    /// Reads. The file must stay open until the answer.
    pub(super) fn read<A: Answered + Send>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        // SAFETY: the waiter owns memory of at least this length. The engine closes no file with operations
        // under way.
        unsafe {
            nilometer_xrootd_read(self.0.as_ptr(), offset, length, start.cast(), done::<A>, begun(waiting));
        }
    }

    /// Writes. The file must stay open until the answer.
    pub(super) fn write<A: Answered + Send>(&self, memory: OperationMemory, waiting: Box<A>) {
        let OperationMemory { start, length, offset } = memory;
        // SAFETY: as for `read`.
        unsafe {
            nilometer_xrootd_write(self.0.as_ptr(), offset, length, start.cast(), done::<A>, begun(waiting));
        }
    }

    /// Syncs. The file must stay open until the answer.
    pub(super) fn sync<A: Answered + Send>(&self, waiting: Box<A>) {
        // SAFETY: the engine closes no file with operations under way.
        unsafe { nilometer_xrootd_sync(self.0.as_ptr(), done::<A>, begun(waiting)) }
    }

    /// Truncates. The file must stay open until the answer.
    pub(super) fn truncate<A: Answered + Send>(&self, size: u64, waiting: Box<A>) {
        // SAFETY: as for `sync`.
        unsafe { nilometer_xrootd_truncate(self.0.as_ptr(), size, done::<A>, begun(waiting)) }
    }
}

impl Drop for XRootDFile {
    fn drop(&mut self) {
        // SAFETY: this was the only owner of the file, which has no operations under way.
        unsafe { nilometer_xrootd_discard(self.0.as_ptr()) }
    }
}

/// A file owned by the waiter of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileHandle(*mut c_void);

/// A server, or the manager of several servers, for requests by path.
#[derive(Debug)]
pub(super) struct XRootDServer(NonNull<c_void>);

// SAFETY: any thread may use the library's file systems, and this one has a single owner.
unsafe impl Send for XRootDServer {}

impl XRootDServer {
    /// Makes a connection without contacting the server.
    pub(super) fn at(url: &CString) -> Self {
        // SAFETY: the library copies the URL.
        let server = unsafe { nilometer_xrootd_server_new(url.as_ptr()) };
        XRootDServer(NonNull::new(server).expect("new never gives null"))
    }

    fn raw(&self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Gets the size of an entry, and `d` for a directory. `seconds` is the limit; 0 selects the library's own.
    pub(super) fn stat<A: Answered + Send>(&self, path: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: the library copies paths, here and below, and has the server's own parts in each request.
        unsafe { nilometer_xrootd_stat(self.raw(), path.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }

    /// Lists all names, each as `d`, `f` or `?`, the name and a zero byte.
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

    /// Gets a value of the server's configuration, as text.
    pub(super) fn configuration<A: Answered + Send>(&self, key: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_query(self.raw(), 0, key.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }

    /// Gets the space at a path, as text.
    pub(super) fn space<A: Answered + Send>(&self, path: &CStr, seconds: u16, waiting: Box<A>) {
        // SAFETY: as for `stat`.
        unsafe { nilometer_xrootd_query(self.raw(), 1, path.as_ptr(), seconds, done::<A>, begun(waiting)) }
    }
}

impl Drop for XRootDServer {
    fn drop(&mut self) {
        // SAFETY: this was the only owner of the server. Requests under way own their parts of it.
        unsafe { nilometer_xrootd_server_delete(self.raw()) }
    }
}
