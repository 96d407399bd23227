//! The interface to a client's library: requests use whole paths, and no call waits for its answer.

use std::{ffi::CString, sync::Arc};

use nilometer_model::Nanos;
use nilometer_storage::{Clock, Completion, Errno, Open, Operation, Wait, Wake, listing::Stat};

/// Runs operations and reports when they are done. It belongs to the thread of its engine.
pub(crate) trait Client {
    /// A file that is open on the server. Dropping it closes it, without waiting for the server.
    type File;

    /// Begins an operation. The memory of the flight's operation must not move until the operation is finished.
    fn begin(&mut self, request: Request<'_, Self::File>, flight: Flight);
    /// Appends finished operations, waiting as `wait` says. It never waits when nothing is under way.
    fn take(&mut self, wait: Wait, clock: &Clock, finished: &mut Vec<Finished<Self::File>>);
    /// Returns a handle that makes a waiting `take` return.
    fn waker(&self) -> Arc<dyn Wake>;
}

/// An operation in the form that a server understands. Its data are in the buffer of the flight's operation.
#[derive(Debug)]
pub(crate) enum Request<'a, F> {
    /// Opens a file. [`Open`] says if it must exist before.
    Open(CString, Open),
    /// Closes a file and waits for the server's answer.
    Close(F),
    /// Reads from the operation's offset.
    Read(&'a F),
    /// Writes to the operation's offset.
    Write(&'a F),
    /// Makes written data survive a loss of power.
    Sync(&'a F),
    /// Truncates the file to the operation's offset.
    Truncate(&'a F),
    /// Gets the type and size of the entry at a path.
    Look(CString),
    /// Lists all names in a directory.
    List(CString),
    /// Removes a file.
    Unlink(CString),
    /// Removes an empty directory.
    RemoveDir(CString),
    /// Makes a directory.
    MakeDir(CString),
    /// Renames the first path to the second.
    Rename(CString, CString),
}

/// An operation that has begun.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) operation: Operation,
    pub(crate) due: Nanos,
    pub(crate) issued: Nanos,
}

/// The memory of an operation. The flight owns it and waits for the answer, so it stays valid until then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationMemory {
    pub(crate) start: *mut u8,
    pub(crate) length: u32,
    /// The offset in the file.
    pub(crate) offset: u64,
}

impl Flight {
    /// Returns the memory that holds the operation's bytes.
    pub(crate) fn memory(&mut self) -> OperationMemory {
        let operation = &mut self.operation;
        let length = operation.length.min(operation.buffer.len() as u32);
        OperationMemory { start: operation.buffer.as_mut_ptr(), length, offset: operation.offset }
    }
}

/// A name in a directory, with its type as listings encode it.
pub(crate) type NamedEntry = (Vec<u8>, u8);

/// The result of a request that succeeded.
#[derive(Debug)]
pub(crate) enum Reply<F> {
    /// The number of bytes moved, or 0.
    Done(u32),
    /// The opened file.
    Opened(F),
    /// The type and size of an entry.
    Entry(Stat),
    /// The names in a directory.
    Entries(Vec<NamedEntry>),
}

/// An operation with its outcome.
#[derive(Debug)]
pub(crate) struct Finished<F> {
    pub(crate) flight: Flight,
    pub(crate) ended: Nanos,
    pub(crate) outcome: Result<Reply<F>, Errno>,
}

impl Flight {
    /// Turns the flight into the completion of its operation.
    pub(crate) fn completed(self, result: Result<u32, Errno>, finished: Nanos) -> Completion {
        let Flight { operation, due, issued } = self;
        Completion { operation, result, due, issued, finished }
    }
}
