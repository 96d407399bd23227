//! One system call at a time.

use super::{
    files::Files,
    immediate::{Execute, Immediate},
};
use crate::{Clock, Errno, Operation};

/// See the module.
pub type Sync = Immediate<SystemCalls>;

/// Each operation is a system call in the calling thread.
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
