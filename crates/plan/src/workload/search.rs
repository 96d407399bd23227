//! `search`: the file accesses of recursive grep.

use nilometer_model::{Bytes, Phase};

use super::{
    Access, TreeShape,
    parameters::{Footprint, Parameters, Work, parameters},
    tree_scale::scale_tree,
    unpack::FILE_BLOCK,
    walk::warm_phrase,
};

parameters! {
    /// Reads all files of a tree a worker, like recursive grep: list, open, read, close. It searches them for
    /// a string that none of them has.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree. Its files are
    /// random bytes, which no file system can compress.
    SearchSweep => SearchCell {
        /// Directories in all, the first included.
        directories: u32,
        /// Files in all.
        files: u32,
        /// Bytes of all files.
        size: Bytes,
        /// Drop this machine's caches before, also of names and inodes. The bytes that the device or the
        /// network then delivers prove it. Needs root; without it, reports say "not provable".
        cold: bool = true,
    }
}

impl SearchCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        let SearchCell { directories, files, size, .. } = *self;
        TreeShape::Source { directories, files, size }
    }
}

impl Parameters for SearchCell {
    fn phrases(&self) -> Vec<String> {
        std::iter::once(self.shape().phrase()).chain(warm_phrase(self.cold)).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::LayOut, Phase::Search]
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

    fn drops_caches(&self, phase: Phase) -> bool {
        self.cold && !phase.is_setup()
    }

    /// Nine tenths of the bytes read, as the end of a file may be in its inode.
    fn least_delivered(&self, done: Work) -> Bytes {
        Bytes(done.bytes / 10 * 9)
    }

    fn scale(&mut self, factor: f64) {
        scale_tree(&mut self.directories, &mut self.files, &mut self.size, factor);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        self.shape().check(workers)
    }
}
