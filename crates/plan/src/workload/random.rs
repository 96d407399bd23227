//! `random`: aligned blocks of an existing file in random order.

use nilometer_model::{Bytes, Capability, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, parameters, scaled, scaled_count, whole_blocks},
};

/// The direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reads, cold.
    Read,
    /// Overwrites, durable before the file is closed.
    Write,
    /// Both on a cold file, in the share of `reads`; written data are durable before the file is closed.
    Mix,
}

/// The choice of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Independent choices, so some blocks appear more than once.
    Uniform,
    /// No block twice until each had its turn; then all again, in another order.
    Full,
}

parameters! {
    /// Aligned random reads, writes or both of a file a worker, which is written before.
    RandomSweep => RandomCell {
        /// Bytes a file; a whole number of blocks.
        file_size: Bytes,
        /// Bytes an operation.
        block_size: Bytes,
        /// Through the page cache or past it.
        access: Access,
        /// Operations a worker. With full coverage, operations beyond the number of blocks begin again.
        operations: u64,
        /// The direction of the data.
        mode: Mode = Mode::Read,
        /// The share of reads in a mix, in percent.
        reads: u32 = 50,
        /// The choice of blocks.
        coverage: Coverage = Coverage::Uniform,
    }
}

impl Parameters for RandomCell {
    fn phrases(&self) -> Vec<String> {
        let mut phrases =
            vec![format!("{} of {}", self.block_size, self.file_size), self.access.name().to_owned()];
        match self.mode {
            Mode::Read => {}
            Mode::Write => phrases.push("overwrites".into()),
            Mode::Mix => phrases.push(format!("{} % reads", self.reads)),
        }
        if self.coverage == Coverage::Full {
            phrases.push("each block in turn".into());
        }
        phrases
    }

    fn needs(&self) -> Vec<Capability> {
        if self.mode == Mode::Read { Vec::new() } else { vec![Capability::WriteAnywhere] }
    }

    fn phases(&self) -> Vec<Phase> {
        let measured = match self.mode {
            Mode::Read => Phase::Read,
            Mode::Write => Phase::Write,
            Mode::Mix => Phase::Mix,
        };
        vec![Phase::LayOut, measured]
    }

    fn block_size(&self) -> Bytes {
        self.block_size
    }

    fn access(&self) -> Option<Access> {
        Some(self.access)
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let bytes = Bytes(self.file_size.0.saturating_mul(u64::from(workers)));
        Footprint { bytes, entries: u64::from(workers) }
    }

    fn work(&self, phase: Phase, workers: u32) -> Work {
        let workers = u64::from(workers);
        match phase {
            Phase::LayOut => Work::moved(Bytes(self.file_size.0.saturating_mul(workers)), Bytes(1 << 20)),
            _ => Work {
                bytes: self.operations.saturating_mul(self.block_size.0).saturating_mul(workers),
                operations: self.operations.saturating_mul(workers),
            },
        }
    }

    fn scale(&mut self, factor: f64) {
        self.file_size = scaled(self.file_size, factor, self.block_size);
        self.operations = scaled_count(self.operations, factor);
    }

    fn check(&self, _workers: u32) -> Result<(), String> {
        whole_blocks(self.file_size, self.block_size)?;
        if self.reads > 100 {
            return Err(format!("reads = {}: write 0 to 100 percent", self.reads));
        }
        if self.operations == 0 {
            return Err("operations = 0: write at least 1".into());
        }
        Ok(())
    }
}
