//! The test kit for storage, used by this crate and by those above it. No shipped program contains it
//! (feature `test-kit`).
//!
//! - Conformance suites for engines, targets and workloads ([`conformance`]).
//! - Targets that need no machine: [`Memory`] in real time, and [`Simulated`] in virtual time, which can lose
//!   its power. Both use one tree of files in memory, which a property test compares with a real directory.
//! - Engines around engines: deliberate faults, a cap on the rate, counts ([`wrap`]).

/// Forwards the methods that every wrapper leaves to its inner engine: the depth and the clock.
macro_rules! forward_depth_and_clock {
    () => {
        fn depth(&self) -> usize {
            self.inner.depth()
        }

        fn now(&self) -> nilometer_model::Nanos {
            self.inner.now()
        }

        fn tick(&mut self) -> nilometer_model::Nanos {
            self.inner.tick()
        }
    };
}

pub mod conformance;
mod memory;
mod memory_engine;
mod simulated;
mod tree;
#[cfg(test)]
pub(crate) mod trial;
pub mod wrap;

pub use memory::Memory;
pub use memory_engine::{Copies, MemoryEngine};
pub use simulated::{Cost, Device, Simulated, SimulatedEngine, Speed, WriteCache};
