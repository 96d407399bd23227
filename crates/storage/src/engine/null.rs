//! Does nothing at once: what the loop itself costs, the ceiling of the harness. Also the engine of workloads that
//! issue nothing, such as a simulated instrument.

use super::immediate::{Execute, Immediate};
use crate::{Clock, Errno, OpKind, Operation, listing::Stat};

/// Does nothing, in the calling thread.
pub type Null = Immediate<Nothing>;

/// Each operation succeeds, and nothing is done.
#[derive(Debug)]
pub struct Nothing;

impl Null {
    /// For the calling thread.
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
        // Whatever is looked at is an empty file: its answer is read.
        if operation.kind == OpKind::Stat && operation.buffer.len() >= Stat::BYTES {
            Stat { size: 0, directory: false }.put(&mut operation.buffer);
            return Ok(Stat::BYTES as u32);
        }
        Ok(0)
    }
}
