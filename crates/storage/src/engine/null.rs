//! An engine that completes every operation at once and does nothing: the cost of the loop itself, the
//! ceiling of the harness. Workloads that issue nothing, such as a simulated instrument, use it too.

use super::immediate::{Execute, Immediate};
use crate::{Clock, Errno, OpKind, Operation, listing::Stat};

/// Does nothing, in the calling thread.
pub type Null = Immediate<Nothing>;

/// Lets each operation succeed without doing anything.
#[derive(Debug)]
pub struct Nothing;

impl Null {
    /// Creates an engine for the calling thread.
    pub fn new(depth: usize, clock: Clock) -> Self {
        Immediate::around(Nothing, depth, clock)
    }
}

impl Execute for Nothing {
    #[inline]
    fn execute(&mut self, operation: &mut Operation) -> Result<u32, Errno> {
        if operation.kind.is_data() {
            return Ok(operation.length);
        }
        // Every file is empty: the caller reads the size from the answer.
        if operation.kind == OpKind::Stat && operation.buffer.len() >= Stat::BYTES {
            Stat { size: 0, directory: false }.put(&mut operation.buffer);
            return Ok(Stat::BYTES as u32);
        }
        Ok(0)
    }
}
