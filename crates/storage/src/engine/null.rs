//! Does nothing at once: what the loop itself costs, the ceiling of the harness. Also the engine of workloads that
//! issue nothing, such as a simulated instrument.

use super::immediate::{Execute, Immediate};
use crate::{Clock, Errno, Operation};

/// See the module.
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
        Ok(if operation.kind.is_data() { operation.length } else { 0 })
    }
}
