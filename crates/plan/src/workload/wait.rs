//! `wait`: does nothing on the storage, so that it measures the tool and its machine.

use nilometer_model::{Bytes, Nanos, Phase};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
};

parameters! {
    /// Waits until given times, and does nothing on the storage: differences between two targets are noise
    /// (A/A).
    WaitSweep => WaitCell {
        /// The time from one moment to the next.
        duration: Nanos,
        /// Moments that a worker waits for, one after the other.
        operations: u64 = 10,
    }
}

impl WaitCell {
    /// The time until the last moment.
    fn whole(&self) -> Nanos {
        Nanos(self.duration.0.saturating_mul(self.operations))
    }
}

impl Parameters for WaitCell {
    fn phrases(&self) -> Vec<String> {
        let Self { duration, operations } = self;
        vec![format!("{operations} times {duration}")]
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Wait]
    }

    fn block_size(&self) -> Bytes {
        Bytes(0)
    }

    fn access(&self) -> Option<Access> {
        None
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { has_workers_apart: false, ..WorkloadTraits::default() }
    }

    fn footprint(&self, _workers: u32) -> Footprint {
        Footprint::default()
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        Work::named(self.operations.saturating_mul(u64::from(workers)))
    }

    fn alignments(&self, _workers: u32) -> Vec<(&'static str, Bytes)> {
        Vec::new()
    }

    fn least_time(&self, _phase: Phase, _workers: u32) -> Nanos {
        self.whole()
    }

    fn scale(&mut self, factor: f64) {
        self.operations = scaled_count(self.operations, factor);
    }

    fn check(&self, _workers: u32) -> Result<(), String> {
        if self.duration == Nanos(0) {
            return Err("duration = \"0 ns\": write more than zero".into());
        }
        if self.operations == 0 {
            return Err("operations = 0: write at least 1".into());
        }
        Ok(())
    }
}
