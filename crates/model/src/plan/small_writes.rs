//! `small_writes`: one large amount as tiny writes, against the same amount at once.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Access, Phase,
    parameters::{Footprint, Parameters, Work, check_block, parameters, scaled},
};
use crate::Bytes;

/// How the amount gets to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Each tiny write is a system call.
    Each,
    /// The program collects tiny writes in a buffer of 64 KiB, as C's stdio and most languages do.
    Collected,
    /// One system call for all.
    AtOnce,
}

/// What [`Way::Collected`] collects.
pub const COLLECTED: Bytes = Bytes(64 << 10);

parameters! {
    /// One large amount written in tiny pieces or at once, through the page cache, durable at the end.
    SmallWritesSweep => SmallWritesCell {
        /// Bytes of all, a worker.
        total: Bytes,
        /// Bytes of a tiny write.
        write_size: Bytes = Bytes(100),
        /// How the amount gets to the storage.
        way: Way = Way::Each,
    }
}

impl Parameters for SmallWritesCell {
    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Write]
    }

    fn block_size(&self) -> Bytes {
        match self.way {
            Way::Each => self.write_size,
            Way::Collected => Bytes(COLLECTED.0.max(self.write_size.0)),
            Way::AtOnce => self.total,
        }
    }

    fn access(&self) -> Option<Access> {
        Some(Access::Buffered)
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let bytes = Bytes(self.total.0.saturating_mul(u64::from(workers)));
        Footprint { bytes, entries: u64::from(workers) }
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        Work::moved(self.footprint(workers).bytes, self.block_size())
    }

    fn scale(&mut self, factor: f64) {
        self.total = scaled(self.total, factor, self.write_size);
    }

    fn check(&self, _workers: u32) -> Result<(), String> {
        check_block("total", self.total)?;
        check_block("write_size", self.write_size)?;
        if !self.total.0.is_multiple_of(self.write_size.0) {
            let Self { total, write_size, .. } = self;
            return Err(format!("total = \"{total}\" is not a whole number of writes of \"{write_size}\""));
        }
        Ok(())
    }
}

impl fmt::Display for SmallWritesCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, write_size, way } = self;
        match way {
            Way::Each => write!(f, "{total} by {write_size}"),
            Way::Collected => write!(f, "{total} by {write_size}, collected to {COLLECTED}"),
            Way::AtOnce => write!(f, "{total} at once"),
        }
    }
}
