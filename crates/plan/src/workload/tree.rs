//! `tree`: the operations of mdtest.

use nilometer_model::{Bytes, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access, Shift,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
    source_tree::directories,
    walk::check_tree,
};

/// The owner of the tree with a worker's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directories {
    /// Each worker makes and removes a tree of its own (mdtest -u).
    Unique,
    /// The first worker makes and removes one tree, and all work in it.
    Shared,
}

/// The kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Items {
    /// First directories, then files (mdtest without -D and -F).
    Both,
    /// Files only (mdtest -F).
    Files,
    /// Directories only (mdtest -D).
    Directories,
    /// Files only, which keep their names: for object stores, which can't rename.
    Objects,
}

parameters! {
    /// mdtest's phases over a tree of directories with items in each: creation, stat, read, rename, removal.
    ///
    /// It differs from mdtest in three ways. It opens a directory of the tree once and handles its items
    /// relative to it; mdtest gives each call a path from the top. Every phase goes through the tree depth
    /// first. It renames each file to another name in its directory; mdtest (-U) passes the names of
    /// directories on in a ring.
    TreeSweep => TreeCell {
        /// Levels of directories below the first (mdtest -z).
        levels: u32,
        /// Directories in each directory except the lowest (mdtest -b).
        branching: u32,
        /// Items of a worker in each directory of the tree, the first included (mdtest -I).
        items: u32,
        /// The kind of items.
        kind: Items = Items::Both,
        /// A tree a worker, or one for all.
        directories: Directories = Directories::Unique,
        /// Bytes that a worker writes into each file when it makes it, and reads from it (mdtest -w and -e).
        file_size: Bytes = Bytes(0),
        /// Let phases work on items of other workers (mdtest -N), so that no client finds its own items in
        /// its cache. Worker k stats and renames the items of worker k + N. It reads those of k + 2 N and
        /// removes those of k + 3 N, modulo the workers. In trees of their own, worker k also makes its items
        /// in the tree of k + N. With `"node"` all phases take the items of the worker in the same place on
        /// the next node (docs/cluster.md). The client here did not make those. If all workers are on one
        /// node, they take the items of the next process.
        shift: Shift = Shift::OWN,
    }
}

/// The most levels: each level on the way down keeps a directory open.
const LEVELS_MAX: u32 = 64;

/// mdtest's order.
const DIRECTORY_PHASES: [Phase; 3] =
    [Phase::MakeDirectories, Phase::StatDirectories, Phase::RemoveDirectories];
const FILE_PHASES: [Phase; 5] =
    [Phase::CreateFiles, Phase::StatFiles, Phase::ReadFiles, Phase::RenameFiles, Phase::RemoveFiles];

impl TreeCell {
    /// Directories of a tree, the first included.
    pub fn tree_directories(&self) -> u64 {
        directories(self.levels, self.branching)
    }

    /// Levels below the first directory that have directories.
    pub fn entered_levels(&self) -> u32 {
        if self.branching == 0 { 0 } else { self.levels }
    }

    /// Items of a worker.
    pub fn worker_items(&self) -> u64 {
        self.tree_directories().saturating_mul(u64::from(self.items))
    }

    fn trees(&self, workers: u32) -> u64 {
        if self.directories == Directories::Unique { u64::from(workers) } else { 1 }
    }
}

impl Parameters for TreeCell {
    fn phrases(&self) -> Vec<String> {
        let size = if self.file_size.0 > 0 { format!(" of {}", self.file_size) } else { String::new() };
        let directories = if self.directories == Directories::Unique { "unique" } else { "shared" };
        let items = format!("{} x {} items{size}", self.tree_directories(), self.items);
        let mut phrases = vec![items, directories.to_owned()];
        phrases.extend(self.shift.phrase());
        phrases
    }

    fn phases(&self) -> Vec<Phase> {
        let mut phases = vec![Phase::MakeTree];
        if matches!(self.kind, Items::Both | Items::Directories) {
            phases.extend(DIRECTORY_PHASES);
        }
        match self.kind {
            Items::Directories => {}
            Items::Objects => {
                phases.extend(FILE_PHASES.into_iter().filter(|phase| *phase != Phase::RenameFiles));
            }
            Items::Both | Items::Files => phases.extend(FILE_PHASES),
        }
        phases.push(Phase::RemoveTree);
        phases
    }

    fn block_size(&self) -> Bytes {
        Bytes(self.file_size.0.max(1))
    }

    fn access(&self) -> Option<Access> {
        (self.file_size.0 > 0).then_some(Access::Buffered)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits {
            shifts_by_node: self.shift == Shift::Node,
            has_workers_apart: self.shift == Shift::OWN,
            ..WorkloadTraits::default()
        }
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let items = self.worker_items().saturating_mul(u64::from(workers));
        let entries = items.saturating_add(self.tree_directories().saturating_mul(self.trees(workers)));
        Footprint { bytes: Bytes(entries.saturating_mul(4096.max(self.file_size.0))), entries }
    }

    fn work(&self, phase: Phase, workers: u32) -> Work {
        if matches!(phase, Phase::MakeTree | Phase::RemoveTree) {
            return Work::named(self.tree_directories().saturating_mul(self.trees(workers)));
        }
        let operations = self.worker_items().saturating_mul(u64::from(workers));
        let moves = matches!(phase, Phase::CreateFiles | Phase::ReadFiles);
        Work { bytes: if moves { operations.saturating_mul(self.file_size.0) } else { 0 }, operations }
    }

    /// Each phase needs the items that earlier phases made, renamed or removed; only stat and read may stop
    /// halfway.
    fn may_end_early(&self, phase: Phase) -> bool {
        matches!(phase, Phase::StatDirectories | Phase::StatFiles | Phase::ReadFiles)
    }

    fn scale(&mut self, factor: f64) {
        self.items = scaled_count(u64::from(self.items), factor) as u32;
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        if self.items == 0 {
            return Err("items = 0: write at least 1".into());
        }
        if self.levels > LEVELS_MAX {
            return Err(format!("levels = {}: write 0 to {LEVELS_MAX}", self.levels));
        }
        if self.file_size.0 > 1 << 30 {
            return Err(format!("file_size = \"{}\": write 0 B to 1 GiB", self.file_size));
        }
        check_tree(self.worker_items().saturating_add(self.tree_directories()), workers)
    }
}
