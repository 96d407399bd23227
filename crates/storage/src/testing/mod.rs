//! The test kit: what storage is tested on and with, by this crate and by those above it. No program that ships contains it
//! (feature `test-kit`).
//!
//! - Conformance suites for engines, targets and workloads ([`conformance`]).
//! - Targets that need no machine: [`Memory`] in real time, and [`Simulated`] in virtual time, which can lose its power. Both
//!   are made of one tree of files in memory, which a property test holds against a real directory.
//! - Engines around engines: faults on purpose, a cap on the rate, counts ([`wrap`]).

/// What every engine around another leaves to it: how many operations it takes, and the time.
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
