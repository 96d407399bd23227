//! `hot_file`: one file that all read at the same time.

use nilometer_model::{Bytes, Phase};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled, whole_blocks},
};

parameters! {
    /// One file that every worker of every process reads whole, from its beginning, at the same time: cold, and again.
    HotFileSweep => HotFileCell {
        /// Bytes of the file: a whole number of blocks.
        file_size: Bytes,
        /// Bytes an operation.
        block_size: Bytes,
        /// Through the page cache or past it. Through it, workers on one node share the bytes that the first
        /// of them read.
        access: Access,
    }
}

impl Parameters for HotFileCell {
    fn phrases(&self) -> Vec<String> {
        let Self { file_size, block_size, access } = self;
        vec![format!("one file of {file_size} by {block_size}"), access.name().to_owned()]
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::LayOut, Phase::Read, Phase::ReadAgain]
    }

    fn block_size(&self) -> Bytes {
        self.block_size
    }

    fn access(&self) -> Option<Access> {
        Some(self.access)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits {
            in_sequence_through_the_cache: self.access == Access::Buffered,
            has_workers_apart: false,
            ..WorkloadTraits::default()
        }
    }

    fn footprint(&self, _workers: u32) -> Footprint {
        Footprint { bytes: self.file_size, entries: 1 }
    }

    fn work(&self, phase: Phase, workers: u32) -> Work {
        let readers = if phase == Phase::LayOut { 1 } else { u64::from(workers) };
        Work::moved(Bytes(self.file_size.0.saturating_mul(readers)), self.block_size)
    }

    /// False for all phases: workers lay out and read the whole file.
    fn may_end_early(&self, _phase: Phase) -> bool {
        false
    }

    fn scale(&mut self, factor: f64) {
        self.file_size = scaled(self.file_size, factor, self.block_size);
    }

    fn check(&self, _workers: u32) -> Result<(), String> {
        whole_blocks(self.file_size, self.block_size)
    }
}
