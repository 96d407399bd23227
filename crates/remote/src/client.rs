//! What the library of a client is asked, and how it answers: by whole paths, without waiting.

use std::{ffi::CString, sync::Arc};

use nilometer_model::Nanos;
use nilometer_storage::{Clock, Completion, Errno, Open, Operation, Wait, Wake, listing::Stat};

/// Has operations under way, and says when they are done. It belongs to the thread of its engine.
pub(crate) trait Client {
    /// A file that is open on the server. One that is dropped is closed, without waiting for that.
    type File;

    /// Begins one. The memory of the flight's operation stays where it is until it is finished.
    fn begin(&mut self, request: Request<'_, Self::File>, flight: Flight);
    /// Appends what is finished, waiting as told; at most as long as something is under way.
    fn take(&mut self, wait: Wait, clock: &Clock, finished: &mut Vec<Finished<Self::File>>);
    /// Makes a waiting `take` return.
    fn waker(&self) -> Arc<dyn Wake>;
}

/// One operation, as a server understands it. Data are in the buffer of the flight's operation.
#[derive(Debug)]
pub(crate) enum Request<'a, F> {
    /// A file that is opened; what is to be there before is as [`Open`] says.
    Open(CString, Open),
    /// A file that is closed: the server's answer is waited for.
    Close(F),
    /// From the operation's offset.
    Read(&'a F),
    /// To the operation's offset.
    Write(&'a F),
    /// What was written survives the loss of power.
    Sync(&'a F),
    /// To the operation's offset.
    Truncate(&'a F),
    /// What is there.
    Look(CString),
    /// All names in a directory.
    List(CString),
    /// A file is removed.
    Unlink(CString),
    /// An empty directory is removed.
    RemoveDir(CString),
    /// A directory is made.
    MakeDir(CString),
    /// From one name to another.
    Rename(CString, CString),
}

/// An operation that was begun.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) operation: Operation,
    pub(crate) due: Nanos,
    pub(crate) issued: Nanos,
}

/// The memory of an operation. It belongs to the flight, which waits for the answer: so it lives until that comes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationMemory {
    pub(crate) start: *mut u8,
    pub(crate) length: u32,
    /// Of the file.
    pub(crate) offset: u64,
}

impl Flight {
    /// Where the bytes of the operation are.
    pub(crate) fn memory(&mut self) -> OperationMemory {
        let operation = &mut self.operation;
        let length = operation.length.min(operation.buffer.len() as u32);
        OperationMemory { start: operation.buffer.as_mut_ptr(), length, offset: operation.offset }
    }
}

/// A name in a directory, and its type as listings have it.
pub(crate) type NamedEntry = (Vec<u8>, u8);

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Reply<F> {
    /// It is done: bytes moved, or 0.
    Done(u32),
    /// The file is open.
    Opened(F),
    /// What is there.
    Entry(Stat),
    /// What is in the directory.
    Entries(Vec<NamedEntry>),
}

/// An operation with what came of it.
#[derive(Debug)]
pub(crate) struct Finished<F> {
    pub(crate) flight: Flight,
    pub(crate) ended: Nanos,
    pub(crate) outcome: Result<Reply<F>, Errno>,
}

impl Flight {
    /// It is over.
    pub(crate) fn completed(self, result: Result<u32, Errno>, finished: Nanos) -> Completion {
        let Flight { operation, due, issued } = self;
        Completion { operation, result, due, issued, finished }
    }
}
