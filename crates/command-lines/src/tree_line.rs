//! A tree of directories with items in each: the load of an mdtest line.

use nilometer_model::Bytes;

use crate::mdtest_operations::{MDTEST_OPERATIONS, MdtestOperation};

/// A tree of directories with items in each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeLine {
    /// Levels of directories below the first one.
    pub levels: u32,
    /// Directories in each directory that is not on the lowest level.
    pub branching: u32,
    /// Items in each directory.
    pub items: u32,
    /// `both`, `files` or `directories`.
    pub kind: &'static str,
    /// True if each worker has a tree of its own.
    pub is_unique: bool,
    /// Bytes written into each file.
    pub file_size: Bytes,
    /// Phases work on items of the worker that is this many workers before.
    pub shift: u32,
    /// The phases that the line measures, by their options; all if empty.
    pub phases: Vec<String>,
}

/// The most items: more would take hours.
pub const ITEMS_MOST: u32 = 10_000_000;

impl TreeLine {
    /// The number of directories, the first one included.
    pub fn tree_directories(&self) -> u64 {
        (0..=self.levels)
            .map(|level| u64::from(self.branching).saturating_pow(level))
            .fold(0, u64::saturating_add)
    }

    /// The operations whose figures the line gives.
    pub fn figures(&self) -> Vec<MdtestOperation> {
        let of_kind = |name: &str| match self.kind {
            "files" => name.starts_with("File"),
            "directories" => name.starts_with("Directory"),
            _ => !name.starts_with("Tree"),
        };
        let is_asked = |option: &str| self.phases.is_empty() || self.phases.iter().any(|of| of == option);
        let is_given = |operation: &MdtestOperation| of_kind(operation.name) && is_asked(operation.option);
        MDTEST_OPERATIONS.into_iter().filter(is_given).collect()
    }
}
