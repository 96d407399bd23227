//! `locks`: a file that processes lock in turn.

use nilometer_model::{Bytes, Capability, Nanos, Phase};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
};

parameters! {
    /// A file that processes lock in turn (`fcntl`, all of its bytes, exclusively).
    ///
    /// It measures if the lock keeps others out while one process holds it, and the time until the next one
    /// has it. It needs two processes at least; two nodes show the most.
    LocksSweep => LocksCell {
        /// Turns of each process as the holder of the lock.
        rounds: u32,
        /// Half of the time that each holds the lock. Others try to get it at the beginning and in the
        /// middle.
        hold: Nanos = Nanos::from_millis(20),
    }
}

/// The longest that a process waits for others by design.
const HOLD_MAX: Nanos = Nanos::from_millis(60_000);

impl LocksCell {
    /// The time that a process holds the lock in a turn.
    fn turn(&self) -> Nanos {
        Nanos(self.hold.0.saturating_mul(2))
    }
}

impl Parameters for LocksCell {
    fn phrases(&self) -> Vec<String> {
        vec![format!("a lock held {} x {} by each process", self.rounds, self.turn())]
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Locks]
    }

    fn block_size(&self) -> Bytes {
        Bytes(0)
    }

    fn access(&self) -> Option<Access> {
        None
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { has_workers_apart: false, least_processes: 2, ..WorkloadTraits::default() }
    }

    fn footprint(&self, _workers: u32) -> Footprint {
        Footprint { bytes: Bytes(4096), entries: 1 }
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        Work::named(u64::from(self.rounds) * u64::from(workers))
    }

    fn alignments(&self, _workers: u32) -> Vec<(&'static str, Bytes)> {
        Vec::new()
    }

    fn least_time(&self, _phase: Phase, workers: u32) -> Nanos {
        Nanos(self.turn().0.saturating_mul(self.rounds.into()).saturating_mul(workers.into()))
    }

    fn needs(&self) -> Vec<Capability> {
        vec![Capability::Mounted]
    }

    fn scale(&mut self, factor: f64) {
        self.rounds = scaled_count(u64::from(self.rounds), factor) as u32;
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        if workers != 1 {
            return Err(format!("workers = {workers}: processes lock a file in turn: write workers = 1"));
        }
        if !(1..=100_000).contains(&self.rounds) {
            return Err(format!("rounds = {}: write 1 to 100000", self.rounds));
        }
        if self.hold == Nanos(0) || self.hold > HOLD_MAX {
            return Err(format!("hold = \"{}\": write more than zero, and at most {HOLD_MAX}", self.hold));
        }
        Ok(())
    }
}
