//! The plan of a build: its sources, their headers, and the queue from which workers take units.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use nilometer_model::{Nanos, RandomStream};
use nilometer_plan::{BuildCell, FileRole};

use super::super::SourceTree;

/// The most directories of headers.
const INCLUDE_MAX: usize = 16;

/// The plan that all workers of a build share.
#[derive(Debug)]
pub struct BuildPlan {
    pub(super) tree: Arc<SourceTree>,
    /// The sources to compile, in the order of their directories.
    sources: Vec<u32>,
    /// The directories with the most headers.
    pub(super) include: Vec<u32>,
    /// The headers in them, the most frequently read first.
    headers_there: Vec<Header>,
    /// The number of headers that a unit reads.
    headers: u32,
    /// The time that compiling a unit takes.
    pub(super) think_time: Nanos,
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The index of its directory among the directories of headers.
    pub(super) directory: usize,
    /// Its number in the tree.
    pub(super) file: u32,
}

impl BuildPlan {
    /// Plans the build of a tree: sources at even distances among all files, headers from the directories that
    /// have the most.
    pub fn new(cell: &BuildCell, tree: Arc<SourceTree>) -> Self {
        let all: Vec<u32> =
            (0..tree.files()).filter(|&file| FileRole::of(file) == FileRole::Source).collect();
        let place = |unit: u32| u64::from(unit) * all.len() as u64 / u64::from(cell.units);
        let sources = (0..cell.units).map(|unit| all[place(unit) as usize]).collect();
        let include = most_headers(&tree);
        let in_directory = |(directory, &number): (usize, &u32)| {
            headers(&tree, number).map(|file| Header { directory, file }).collect::<Vec<_>>()
        };
        let headers_there = include.iter().enumerate().flat_map(in_directory).collect();
        let BuildCell { headers, think_time, .. } = *cell;
        BuildPlan { tree, sources, include, headers_there, headers, think_time }
    }

    /// The number of units.
    pub fn units(&self) -> u32 {
        self.sources.len() as u32
    }

    /// The number of headers that each unit reads: 0 if there are none.
    pub(super) fn headers_a_unit(&self) -> u32 {
        if self.headers_there.is_empty() { 0 } else { self.headers }
    }

    /// The number of this unit's source in the tree.
    pub(super) fn source(&self, unit: u32) -> u32 {
        self.sources[unit as usize]
    }

    /// Draws the next header: the smallest of three draws. A tenth of all headers therefore takes a quarter of
    /// the reads.
    pub(super) fn header(&self, choice: &mut RandomStream) -> Option<Header> {
        let all = self.headers_there.len() as u64;
        let drawn = (0..3).map(|_| choice.below(all.max(1))).min()?;
        self.headers_there.get(drawn as usize).copied()
    }
}

fn headers(tree: &SourceTree, directory: u32) -> impl Iterator<Item = u32> {
    tree.files_of(directory).filter(|&file| FileRole::of(file) == FileRole::Header)
}

fn most_headers(tree: &SourceTree) -> Vec<u32> {
    let mut directories: Vec<u32> =
        (0..tree.directories()).filter(|&number| headers(tree, number).next().is_some()).collect();
    directories.sort_by_key(|&number| std::cmp::Reverse(headers(tree, number).count()));
    directories.truncate(INCLUDE_MAX);
    directories
}

/// The queue of units, shared by the workers of a process.
#[derive(Debug, Default)]
pub struct BuildQueue {
    taken: AtomicU32,
    finished: AtomicU32,
    failed: AtomicBool,
}

impl BuildQueue {
    /// Takes the next of `units` units. Returns `None` if none is left, or one failed.
    pub(super) fn claim(&self, units: u32) -> Option<u32> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let unit = self.taken.fetch_add(1, Ordering::Relaxed);
        (unit < units).then_some(unit)
    }

    /// Counts a finished object and returns the number so far. The worker that gets the last number may read
    /// the objects of all others.
    pub(super) fn finish(&self) -> u32 {
        self.finished.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Stops the queue: no more units are taken.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}
