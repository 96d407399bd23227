//! `unpack`: the file operations of `tar -x`.

use nilometer_model::{Bytes, Phase};

use super::{
    Access, TreeShape,
    parameters::{Footprint, Parameters, Work, parameters},
    tree_scale::scale_tree,
};

parameters! {
    /// Makes a tree of many small files a worker from an archive in memory, in the archive's order. It makes
    /// directories, and makes, writes and closes files, one after the other.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree. It sets no times,
    /// modes and owners, and decompresses nothing.
    UnpackSweep => UnpackCell {
        /// Directories in all, the first included.
        directories: u32,
        /// Files in all.
        files: u32,
        /// Bytes of all files.
        size: Bytes,
        /// Sync each file before closing it; tar does not.
        durable: bool = false,
    }
}

impl UnpackCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        let UnpackCell { directories, files, size, .. } = *self;
        TreeShape::Source { directories, files, size }
    }
}

impl Parameters for UnpackCell {
    fn phrases(&self) -> Vec<String> {
        let durable = self.durable.then(|| "each synced".to_owned());
        std::iter::once(self.shape().phrase()).chain(durable).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Unpack]
    }

    fn block_size(&self) -> Bytes {
        FILE_BLOCK
    }

    fn access(&self) -> Option<Access> {
        Some(Access::Buffered)
    }

    fn footprint(&self, workers: u32) -> Footprint {
        self.shape().footprint(workers)
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        let workers = u64::from(workers);
        Work {
            bytes: self.size.0.saturating_mul(workers),
            operations: u64::from(self.files).saturating_mul(workers),
        }
    }

    /// An archive that was unpacked in part is no figure of unpacking it.
    fn may_end_early(&self, _phase: Phase) -> bool {
        false
    }

    fn scale(&mut self, factor: f64) {
        scale_tree(&mut self.directories, &mut self.files, &mut self.size, factor);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        self.shape().check(workers)
    }
}

/// The most bytes of an operation on a file of a tree, as recursive grep reads them.
pub const FILE_BLOCK: Bytes = Bytes(128 << 10);
