//! `visibility`: files that one process writes and closes, and the time until others see them.

use nilometer_model::{Bytes, Nanos, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
};

/// The way in which others learn of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// By a message, once it is closed: at their first look all data must be there (close-to-open
    /// consistency).
    Message,
    /// They look again and again from before the writer makes it, as jobs do that wait for a file.
    Poll,
}

parameters! {
    /// Files that one process writes and closes while all others look for them.
    ///
    /// It measures how long until others see them, and if they see them whole. It also counts others that see
    /// the second of two files without the first. The processes write in turn. They also rewrite one file, so
    /// that its data in a cache are stale. It needs two processes at least; two nodes show the most.
    VisibilitySweep => VisibilityCell {
        /// Turns of each process as the writer.
        rounds: u32,
        /// Bytes of each file, written and read at once.
        file_size: Bytes,
        /// The way in which others learn of a file.
        notice: Notice = Notice::Message,
        /// The time between two looks at a file.
        interval: Nanos = Nanos::from_millis(1),
        /// Look for a file for at most this time. After it, the file counts as never seen.
        patience: Nanos = Nanos::from_millis(10_000),
    }
}

/// Two new files, and one of them rewritten.
const WRITTEN_A_ROUND: u64 = 3;
/// A file is in memory whole, at each process.
const FILE_MAX: Bytes = Bytes(64 << 20);

impl Parameters for VisibilityCell {
    fn phrases(&self) -> Vec<String> {
        let Self { rounds, file_size, notice, interval, .. } = *self;
        let notice = match notice {
            Notice::Message => "told when closed".to_owned(),
            Notice::Poll => format!("polled every {interval}"),
        };
        vec![format!("{rounds} x files of {file_size}"), notice]
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Visibility]
    }

    fn block_size(&self) -> Bytes {
        self.file_size
    }

    fn access(&self) -> Option<Access> {
        Some(Access::Buffered)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { has_workers_apart: false, least_processes: 2, ..WorkloadTraits::default() }
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let files = 2 * u64::from(self.rounds) * u64::from(workers);
        Footprint { bytes: Bytes(self.file_size.0.max(4096).saturating_mul(files)), entries: files }
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        let turns = u64::from(self.rounds) * u64::from(workers);
        Work::named(
            turns.saturating_mul(WRITTEN_A_ROUND).saturating_mul(u64::from(workers.saturating_sub(1))),
        )
    }

    fn scale(&mut self, factor: f64) {
        self.rounds = scaled_count(u64::from(self.rounds), factor) as u32;
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        if workers != 1 {
            return Err(format!(
                "workers = {workers}: each process looks for files of another: write workers = 1"
            ));
        }
        if !(1..=100_000).contains(&self.rounds) {
            return Err(format!("rounds = {}: write 1 to 100000", self.rounds));
        }
        if self.file_size == Bytes(0) || self.file_size > FILE_MAX {
            return Err(format!("file_size = \"{}\": write 1 B to {FILE_MAX}", self.file_size));
        }
        if self.interval == Nanos(0) || self.patience < self.interval {
            return Err(format!(
                "interval = \"{}\", patience = \"{}\": write an interval above zero, and a patience no \
                 shorter",
                self.interval, self.patience
            ));
        }
        Ok(())
    }
}
