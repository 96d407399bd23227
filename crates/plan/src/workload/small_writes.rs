//! `small_writes`: one large amount as tiny writes, against the same amount at once.

use nilometer_model::{Bytes, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled},
};

/// The way of the amount to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// One system call for each tiny write. The program copies its bytes together before.
    Each,
    /// The program copies tiny pieces into a buffer and writes it when it is full, as C's stdio and most
    /// languages do.
    Collected,
    /// One system call for all, or for each GiB of it. The bytes are ready, and no pieces are copied.
    AtOnce,
}

/// The buffer of the program in records that lack it.
const COLLECTED: Bytes = Bytes(64 << 10);
/// The most that one system call is given: the kernel takes less than 2 GiB.
pub const AT_ONCE_MAX: Bytes = Bytes(1 << 30);

parameters! {
    /// One large amount written in tiny pieces or at once, through the page cache, durable at the end.
    SmallWritesSweep => SmallWritesCell {
        /// Bytes in all, a worker: a whole number of writes.
        total: Bytes,
        /// Bytes of a tiny write, at most 64 KiB.
        write_size: Bytes = Bytes(100),
        /// The way of the amount to the storage.
        way: Way = Way::Each,
        /// The buffer that collects writes, as in languages. Perl, Java and Python have 8 KiB. glibc's stdio
        /// has 4 KiB on a file system that states blocks of 4 KiB (`st_blksize`). Few have 64 KiB.
        #[serde(default)]
        buffer: Bytes = Bytes(8 << 10),
    }
}

impl SmallWritesCell {
    /// Bytes of a system call.
    pub fn call_size(&self) -> Bytes {
        match self.way {
            Way::Each => self.write_size,
            Way::Collected if self.buffer.0 == 0 => COLLECTED,
            Way::Collected => self.buffer,
            Way::AtOnce => self.total.min(AT_ONCE_MAX),
        }
    }
}

impl Parameters for SmallWritesCell {
    fn phrases(&self) -> Vec<String> {
        let Self { total, write_size, .. } = self;
        match self.way {
            Way::Each => vec![format!("{total} by {write_size}")],
            Way::Collected => {
                vec![format!("{total} by {write_size}"), format!("collected to {}", self.call_size())]
            }
            Way::AtOnce => vec![format!("{total} at once")],
        }
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Write]
    }

    fn block_size(&self) -> Bytes {
        self.call_size()
    }

    fn access(&self) -> Option<Access> {
        Some(Access::Buffered)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { in_sequence_through_the_cache: true, ..WorkloadTraits::default() }
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
        if self.way == Way::Collected && (self.buffer < self.write_size || self.buffer.0 > 1 << 20) {
            let Self { write_size, buffer, .. } = self;
            return Err(format!("buffer = \"{buffer}\": write {write_size} (a write_size) to 1 MiB"));
        }
        if !self.total.0.is_multiple_of(self.write_size.0) {
            let Self { total, write_size, .. } = self;
            return Err(format!("total = \"{total}\" is not a whole number of writes of \"{write_size}\""));
        }
        Ok(())
    }
}
