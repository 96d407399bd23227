//! `unpack`: the file operations of `tar -x`.

use nilometer_model::{Bytes, Capability, Phase};

use super::{
    Access, DataSource, TreeLike, TreeShape,
    parameters::{Footprint, Parameters, Work, parameters},
    tree_scale::TreeNumbers,
};

parameters! {
    /// Makes a tree of many small files a worker from an archive in memory, in the archive's order. It makes
    /// directories, and makes, writes and closes files, one after the other.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree. It sets no times,
    /// modes and owners, and decompresses nothing.
    UnpackSweep => UnpackCell: Clone {
        /// Make a tree like one that `nilometer census --format json` counted: the file of the census, relative to
        /// the plan. Sizes, depths and files per directory follow it, and directories and bytes too.
        #[serde(default, skip_serializing_if = "TreeLike::is_none")]
        like: TreeLike = TreeLike::None,
        /// Directories in all, the first included. Needed without `like`.
        #[unless(like)]
        directories: u32,
        /// Files in all. Needed without `like`; otherwise the default is the number of the census.
        #[or(like)]
        files: u32,
        /// Bytes of all files. Needed without `like`.
        #[unless(like)]
        size: Bytes,
        /// Sync each file before closing it; tar does not.
        durable: bool = false,
        /// The source of written data. With "disk" workers copy such a tree from the target to the directory of
        /// --copy-to, as a load beside users (docs/migration.md).
        #[serde(default, skip_serializing_if = "DataSource::is_memory")]
        source: DataSource = DataSource::Memory,
    }
}

impl UnpackCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        TreeShape::of(self.directories, self.files, self.size, &self.like)
    }

    /// True if workers copy the tree from the target to other storage.
    pub fn is_copied(&self) -> bool {
        self.source == DataSource::Disk
    }
}

impl UnpackCell {
    fn tree_numbers(&mut self) -> TreeNumbers<'_> {
        let UnpackCell { like, directories, files, size, .. } = self;
        TreeNumbers { like, directories, files, size }
    }
}

impl Parameters for UnpackCell {
    fn phrases(&self) -> Vec<String> {
        let durable = self.durable.then(|| "each synced".to_owned());
        let copied = self.is_copied().then(|| "copied to other storage".to_owned());
        self.shape().phrases().into_iter().chain(durable).chain(copied).collect()
    }

    fn needs(&self) -> Vec<Capability> {
        self.is_copied().then_some(Capability::Mounted).into_iter().collect()
    }

    fn phases(&self) -> Vec<Phase> {
        if self.is_copied() { vec![Phase::LayOut, Phase::Unpack] } else { vec![Phase::Unpack] }
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

    fn follow_census(&mut self) {
        self.tree_numbers().follow();
    }

    fn scale(&mut self, factor: f64) {
        self.tree_numbers().scale(factor);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        self.shape().check(workers)
    }
}

/// The most bytes of an operation on a file of a tree, as recursive grep reads them.
pub const FILE_BLOCK: Bytes = Bytes(128 << 10);
