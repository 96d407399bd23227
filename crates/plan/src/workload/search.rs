//! `search`: the file accesses of recursive grep.

use nilometer_model::{Bytes, Phase};

use super::{
    Access, TreeLike, TreeShape,
    parameters::{Footprint, Parameters, Work, parameters},
    tree_scale::TreeNumbers,
    unpack::FILE_BLOCK,
    walk::warm_phrase,
};

parameters! {
    /// Reads all files of a tree a worker, like recursive grep: list, open, read, close. It searches them for
    /// a string that none of them has.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree. Its files are
    /// random bytes, which no file system can compress.
    SearchSweep => SearchCell: Clone {
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
        /// Drop this machine's caches before, also of names and inodes. The bytes that the device or the
        /// network then delivers prove it. Needs root; without it, reports say "not provable".
        cold: bool = true,
    }
}

impl SearchCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        TreeShape::of(self.directories, self.files, self.size, &self.like)
    }
}

impl SearchCell {
    fn tree_numbers(&mut self) -> TreeNumbers<'_> {
        let SearchCell { like, directories, files, size, .. } = self;
        TreeNumbers { like, directories, files, size }
    }
}

impl Parameters for SearchCell {
    fn phrases(&self) -> Vec<String> {
        self.shape().phrases().into_iter().chain(warm_phrase(self.cold)).collect()
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
