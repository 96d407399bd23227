//! The numbers of a tree: those at another scale, and those that follow from a census.

use nilometer_model::Bytes;

use super::{TreeLike, like_tree::LikeTree, parameters::scaled_count};

/// The numbers of a cell's tree.
pub(super) struct TreeNumbers<'a> {
    /// The tree that it resembles.
    pub(super) like: &'a TreeLike,
    /// Directories in all, the first included.
    pub(super) directories: &'a mut u32,
    /// Files in all.
    pub(super) files: &'a mut u32,
    /// Bytes of all files.
    pub(super) size: &'a mut Bytes,
}

impl TreeNumbers<'_> {
    /// Multiplies them by a factor. Each is at least one.
    pub(super) fn scale(self, factor: f64) {
        *self.directories = scaled_count(u64::from(*self.directories), factor) as u32;
        *self.files = scaled_count(u64::from(*self.files), factor) as u32;
        *self.size = Bytes(scaled_count(self.size.0, factor));
        self.follow();
    }

    /// Takes directories and bytes from the census, if there is one: as many as belong to this number of files.
    /// With 0 files it takes these from there too.
    pub(super) fn follow(self) {
        let Some(census) = self.like.census() else { return };
        if *self.files == 0 {
            *self.files = u32::try_from(census.counts.files()).unwrap_or(u32::MAX);
        }
        let tree = LikeTree::of(&census.counts, *self.files);
        *self.directories = u32::try_from(tree.directories()).unwrap_or(u32::MAX);
        *self.size = Bytes(tree.bytes());
    }
}
