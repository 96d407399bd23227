//! `open_files`: the speed of access to any file.

use nilometer_model::{Bytes, Phase};

use super::{
    Access, TreeLike, TreeShape,
    parameters::{Footprint, Parameters, Work, parameters, scaled_count},
    tree_scale::TreeNumbers,
    unpack::FILE_BLOCK,
    walk::warm_phrase,
};

parameters! {
    /// Opens random files of a tree a worker, and reads their first and last bytes. It measures how fast any
    /// file is available.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree.
    OpenFilesSweep => OpenFilesCell: Clone {
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
        /// Files that a worker opens, each drawn independently of the others.
        operations: u64 = 1000,
        /// Drop this machine's caches before, also of names and inodes. The bytes that the device or the
        /// network then delivers prove it. Needs root; without it, reports say "not provable".
        cold: bool = true,
    }
}

impl OpenFilesCell {
    /// The tree of a worker.
    pub fn shape(&self) -> TreeShape {
        TreeShape::of(self.directories, self.files, self.size, &self.like)
    }
}

impl OpenFilesCell {
    fn tree_numbers(&mut self) -> TreeNumbers<'_> {
        let OpenFilesCell { like, directories, files, size, .. } = self;
        TreeNumbers { like, directories, files, size }
    }
}

impl Parameters for OpenFilesCell {
    fn phrases(&self) -> Vec<String> {
        let mut phrases = self.shape().phrases();
        phrases[0] = format!("{} of {}", self.operations, phrases[0]);
        phrases.extend(warm_phrase(self.cold));
        phrases
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::LayOut, Phase::OpenFiles]
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

    fn work(&self, phase: Phase, workers: u32) -> Work {
        let workers = u64::from(workers);
        match phase {
            Phase::LayOut => Work {
                bytes: self.size.0.saturating_mul(workers),
                operations: u64::from(self.files).saturating_mul(workers),
            },
            _ => Work {
                bytes: self.operations.saturating_mul(2 * workers),
                operations: self.operations.saturating_mul(workers),
            },
        }
    }

    fn drops_caches(&self, phase: Phase) -> bool {
        self.cold && !phase.is_setup()
    }

    /// Files that are drawn again may be cached; half of the draws are different files.
    fn least_delivered(&self, done: Work) -> Bytes {
        Bytes(done.operations.min(self.files.into()) * 32)
    }

    fn follow_census(&mut self) {
        self.tree_numbers().follow();
    }

    fn scale(&mut self, factor: f64) {
        self.tree_numbers().scale(factor);
        self.operations = scaled_count(self.operations, factor);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        if self.operations == 0 {
            return Err("operations = 0: write at least 1".into());
        }
        self.shape().check(workers)
    }
}
