//! `small_writes`: one large amount as tiny writes, against the same amount at once.

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
    /// Each tiny write is a system call. The program makes its bytes, which is a copy, before.
    Each,
    /// The program copies tiny pieces into a buffer of 64 KiB and writes that when it is full, as C's stdio and most
    /// languages do.
    Collected,
    /// One system call for all, of bytes that are there: nothing is made of pieces.
    AtOnce,
}

/// What [`Way::Collected`] collects.
pub const COLLECTED: Bytes = Bytes(64 << 10);

parameters! {
    /// One large amount written in tiny pieces or at once, through the page cache, durable at the end.
    SmallWritesSweep => SmallWritesCell {
        /// Bytes of all, a worker: a whole number of writes; all at once, 1 GiB at most.
        total: Bytes,
        /// Bytes of a tiny write, 64 KiB at most.
        write_size: Bytes = Bytes(100),
        /// How the amount gets to the storage.
        way: Way = Way::Each,
    }
}

impl Parameters for SmallWritesCell {
    fn phrases(&self) -> Vec<String> {
        let Self { total, write_size, way } = self;
        match way {
            Way::Each => vec![format!("{total} by {write_size}")],
            Way::Collected => vec![format!("{total} by {write_size}"), format!("collected to {COLLECTED}")],
            Way::AtOnce => vec![format!("{total} at once")],
        }
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Write]
    }

    fn block_size(&self) -> Bytes {
        match self.way {
            Way::Each => self.write_size,
            Way::Collected => COLLECTED,
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
        if self.write_size.0 == 0 || self.write_size > COLLECTED {
            return Err(format!("write_size = \"{}\": write 1 B to {COLLECTED}", self.write_size));
        }
        if self.total.0 == 0 {
            return Err("total = \"0 B\": write at least one write_size".into());
        }
        if self.way == Way::AtOnce {
            check_block("total", self.total).map_err(|why| format!("way = \"at_once\" with {why}"))?;
        }
        if !self.total.0.is_multiple_of(self.write_size.0) {
            let Self { total, write_size, .. } = self;
            return Err(format!("total = \"{total}\" is not a whole number of writes of \"{write_size}\""));
        }
        Ok(())
    }
}
