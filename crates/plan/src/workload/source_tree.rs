//! The tree of directories and files that a workload makes, lists or reads.

use std::sync::Arc;

use nilometer_model::Bytes;

use super::{NamedCensus, TreeLike, parameters::Footprint};

/// The directories and files of a worker's tree, and their spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeShape {
    /// A tree with equal directories; files are empty.
    Regular {
        /// Levels of directories below the first.
        levels: u32,
        /// Directories in each directory but the lowest.
        branching: u32,
        /// Files in each directory.
        files: u32,
    },
    /// A tree like real source trees: few directories have many files, and few files most of the bytes.
    Source {
        /// Directories, the first included.
        directories: u32,
        /// Files in all.
        files: u32,
        /// Bytes of all files.
        size: Bytes,
    },
    /// A tree like one that a census counted.
    Like {
        /// Directories, the first included.
        directories: u32,
        /// Files in all.
        files: u32,
        /// Bytes of all files.
        size: Bytes,
        /// The census.
        census: Arc<NamedCensus>,
    },
}

/// Directories of a regular tree, the first included.
pub(super) fn directories(levels: u32, branching: u32) -> u64 {
    // Above 64 levels of 2 the sum is at its limit; a tree of 1 has as many directories as levels.
    let counted = if branching > 1 { levels.min(64) } else { levels };
    (0..=counted).map(|level| u64::from(branching).saturating_pow(level)).fold(0, u64::saturating_add)
}

/// The most entries: more than a tree of users has, and than fit into a plan in this program's memory.
const ENTRIES_MAX: u64 = 20_000_000;

impl TreeShape {
    /// A tree with these numbers, like the census or like source trees.
    pub(super) fn of(directories: u32, files: u32, size: Bytes, like: &TreeLike) -> Self {
        match like.census() {
            Some(census) => TreeShape::Like { directories, files, size, census: Arc::clone(census) },
            None => TreeShape::Source { directories, files, size },
        }
    }

    /// Directories, the first included.
    pub fn directories(&self) -> u64 {
        match self {
            TreeShape::Regular { levels, branching, .. } => directories(*levels, *branching),
            TreeShape::Source { directories, .. } | TreeShape::Like { directories, .. } => {
                (*directories).into()
            }
        }
    }

    /// Files in all.
    pub fn files(&self) -> u64 {
        match self {
            TreeShape::Regular { files, .. } => self.directories().saturating_mul((*files).into()),
            TreeShape::Source { files, .. } | TreeShape::Like { files, .. } => (*files).into(),
        }
    }

    /// Bytes of all files.
    pub fn size(&self) -> Bytes {
        match self {
            TreeShape::Regular { .. } => Bytes(0),
            TreeShape::Source { size, .. } | TreeShape::Like { size, .. } => *size,
        }
    }

    /// Files and directories.
    pub fn entries(&self) -> u64 {
        self.directories().saturating_add(self.files())
    }

    /// The space of this many trees on a target: each entry fills a block of the file system in part.
    pub(super) fn footprint(&self, trees: u32) -> Footprint {
        let entries = self.entries().saturating_mul(u64::from(trees));
        let bytes = self.size().0.saturating_mul(u64::from(trees));
        Footprint { bytes: Bytes(bytes.saturating_add(entries.saturating_mul(4096))), entries }
    }

    /// Numbers that reports show: `28619 files of 400 MB in 1814 directories`, and then the census.
    pub(super) fn phrases(&self) -> Vec<String> {
        let size = if self.size().0 > 0 { format!(" of {}", self.size()) } else { String::new() };
        let numbers = format!("{} files{size} in {} directories", self.files(), self.directories());
        let like = match self {
            TreeShape::Like { files, census, .. } => census.phrase(*files),
            TreeShape::Regular { .. } | TreeShape::Source { .. } => None,
        };
        std::iter::once(numbers).chain(like).collect()
    }

    /// A tree that a file system and this program's memory can be expected to take, as often as there are workers.
    pub(super) fn check(&self, trees: u32) -> Result<(), String> {
        let all = self.entries().saturating_mul(u64::from(trees));
        if let TreeShape::Like { census, .. } = self
            && self.entries() > ENTRIES_MAX
        {
            let counted = census.counts.files();
            return Err(format!(
                "a tree has at most {ENTRIES_MAX} entries, and the census has {counted} files: write `files`, the number of \
                 files of a smaller tree"
            ));
        }
        if all > 100_000_000 {
            return Err(format!("the trees have {all} entries: at most 100 million"));
        }
        if self.entries() > ENTRIES_MAX {
            return Err(format!("a tree has {} entries: at most {ENTRIES_MAX}", self.entries()));
        }
        match self {
            TreeShape::Source { directories: 0, .. } => Err("directories = 0: write at least 1".into()),
            TreeShape::Regular { files: 0, .. } | TreeShape::Source { files: 0, .. } => {
                Err("files = 0: write at least 1".into())
            }
            TreeShape::Source { size, .. } | TreeShape::Like { size, .. } if size.0 > 1 << 50 => {
                Err(format!("a tree of {size}: write at most 1 PiB"))
            }
            _ => Ok(()),
        }
    }
}
