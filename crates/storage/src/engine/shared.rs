//! The table of open files that many threads share. An operation looks a slot up once; the file stays open
//! while an operation uses it.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, RwLock},
};

use super::{
    files::{Outcome, Reach, Table, perform},
    pool::Blocking,
};
use crate::operation::{Errno, Operation, Slot};

/// Open files by slot; slot 0 is the run's directory.
#[derive(Debug)]
pub(super) struct SharedFiles {
    table: Vec<RwLock<Option<Arc<OwnedFd>>>>,
    source: Option<OwnedFd>,
}

impl SharedFiles {
    /// Creates the table. `slots` is at least 1.
    pub(super) fn new(Reach { root, source }: Reach, slots: u32) -> Self {
        let mut table: Vec<_> = (0..slots.max(1)).map(|_| RwLock::new(None)).collect();
        table[0] = RwLock::new(Some(Arc::new(root)));
        SharedFiles { table, source }
    }

    /// Fills or empties a slot. Slot 0, the root, stays.
    fn put(&self, slot: Slot, file: Option<OwnedFd>) -> Result<u32, Errno> {
        let place = self.table.get(slot.0 as usize).filter(|_| slot.0 > 0).ok_or(Errno::EBADF)?;
        let mut place = place.write().expect("no thread panics while it holds a slot");
        if file.is_none() && place.is_none() {
            return Err(Errno::EBADF);
        }
        let before = std::mem::replace(&mut *place, file.map(Arc::new));
        drop(place);
        drop(before);
        Ok(0)
    }
}

impl Table for SharedFiles {
    fn at(&self, slot: Slot) -> Result<impl AsFd, Errno> {
        let place = self.table.get(slot.0 as usize).ok_or(Errno::EBADF)?;
        place.read().expect("no thread panics while it holds a slot").clone().ok_or(Errno::EBADF)
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }
}

impl Blocking for SharedFiles {
    fn execute(&self, operation: &mut Operation) -> Result<u32, Errno> {
        match perform(self, operation)? {
            Outcome::Answer(result) => Ok(result),
            Outcome::Opened(file) => self.put(operation.file, Some(file)),
            Outcome::Closed => self.put(operation.file, None),
        }
    }
}
