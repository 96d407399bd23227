//! An engine that makes one system call at a time.

use super::{
    files::Files,
    immediate::{Execute, Immediate},
};
use crate::{Clock, Errno, Operation};

/// The engine that makes each system call in the calling thread.
pub type Sync = Immediate<SystemCalls>;

/// Runs each operation as a system call in the calling thread.
#[derive(Debug)]
pub struct SystemCalls(Files);

impl Sync {
    pub(super) fn new(files: Files, clock: Clock) -> Self {
        Immediate::around(SystemCalls(files), 1, clock)
    }
}

impl Execute for SystemCalls {
    #[inline]
    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        self.0.execute(operation)
    }
}
