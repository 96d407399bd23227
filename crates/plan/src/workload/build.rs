//! `build`: the storage operations of `make`.

use nilometer_model::{Bytes, Nanos, Phase};

use super::{
    Access, TreeLike, TreeShape,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled_count},
    tree_scale::TreeNumbers,
    unpack::FILE_BLOCK,
    walk::warm_phrase,
};
use crate::offered_rate::PATIENCE;

parameters! {
    /// The storage operations of `make -j N`, with N workers on one tree a process.
    ///
    /// Each worker takes the next source, reads it and its headers, writes an object to a temporary name, and
    /// renames it. When all objects are there, the worker that made the last one reads them all and writes
    /// the program.
    ///
    /// The tree has the spread of real source trees; the same numbers give the same tree. Nothing is
    /// computed: a worker waits for a think time instead of a compiler.
    BuildSweep => BuildCell: Clone {
        /// Make a tree like one that `nilometer census --format json` counted: the file of the census, relative to
        /// the plan. Sizes, depths and files per directory follow it, and directories and bytes too.
        #[serde(default, skip_serializing_if = "TreeLike::is_none")]
        like: TreeLike = TreeLike::None,
        /// Directories in all, the first included. Needed without `like`.
        #[unless(like)]
        directories: u32,
        /// Files in all: 45 % of them are sources, 35 % headers. Needed without `like`; otherwise the default is the
        /// number of the census.
        #[or(like)]
        files: u32,
        /// Bytes of all files. Needed without `like`.
        #[unless(like)]
        size: Bytes,
        /// Sources to compile.
        units: u32,
        /// Headers that each of them reads; a few headers are read often.
        headers: u32 = 100,
        /// The wait of a worker before each object, as if a compiler worked on a processor of its own.
        #[serde(default)]
        think_time: Nanos = Nanos(0),
        /// Drop this machine's caches before, also of names and inodes. The bytes that the device or the
        /// network then delivers prove it. Needs root; without it, reports say "not provable".
        cold: bool = true,
    }
}

/// The length of an object, as a multiple of its source's.
pub const OBJECT_TIMES: u64 = 2;

/// The role of a file of a source tree in a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// May be compiled.
    Source,
    /// Is read with sources.
    Header,
    /// Is not read.
    Other,
}

impl FileRole {
    /// The role of the file with this number: of twenty in a row, nine are sources and seven are headers.
    pub const fn of(file: u32) -> Self {
        match file % 20 {
            0..=8 => FileRole::Source,
            9..=15 => FileRole::Header,
            _ => FileRole::Other,
        }
    }
}

/// Number of sources among this many files.
fn sources(files: u32) -> u32 {
    files / 20 * 9 + (files % 20).min(9)
}

impl BuildCell {
    /// The tree of a process.
    pub fn shape(&self) -> TreeShape {
        TreeShape::of(self.directories, self.files, self.size, &self.like)
    }

    /// Bytes of all that are compiled, if they are as long as others.
    fn compiled(&self) -> u64 {
        let all = u128::from(self.size.0) * u128::from(self.units);
        (all / u128::from(self.files.max(1))) as u64
    }

    /// The number of opened files: for each unit the source, its headers and the object; then all objects and
    /// the program.
    fn opened(&self) -> u64 {
        u64::from(self.units).saturating_mul(u64::from(self.headers) + 3).saturating_add(1)
    }
}

impl BuildCell {
    fn tree_numbers(&mut self) -> TreeNumbers<'_> {
        let BuildCell { like, directories, files, size, .. } = self;
        TreeNumbers { like, directories, files, size }
    }
}

impl Parameters for BuildCell {
    fn phrases(&self) -> Vec<String> {
        let mut phrases = self.shape().phrases();
        phrases[0] = format!("{} units of {}", self.units, phrases[0]);
        phrases.push(format!("{} headers each", self.headers));
        let thinks = self.think_time > Nanos(0);
        phrases.extend(thinks.then(|| format!("thinks {}", self.think_time)));
        phrases.extend(warm_phrase(self.cold));
        phrases
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::LayOut, Phase::Build]
    }

    fn block_size(&self) -> Bytes {
        FILE_BLOCK
    }

    fn access(&self) -> Option<Access> {
        Some(Access::Buffered)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { one_a_process: true, has_workers_apart: false, ..WorkloadTraits::default() }
    }

    fn footprint(&self, trees: u32) -> Footprint {
        let tree = self.shape().footprint(trees);
        let made = u64::from(self.units) + 1;
        let bytes = self.compiled().saturating_mul(2 * OBJECT_TIMES).saturating_add(4096 * made);
        let trees = u64::from(trees);
        Footprint {
            bytes: Bytes(tree.bytes.0.saturating_add(bytes.saturating_mul(trees))),
            entries: tree.entries.saturating_add(made.saturating_mul(trees)),
        }
    }

    fn work(&self, phase: Phase, trees: u32) -> Work {
        let trees = u64::from(trees);
        let mean = self.size.0 / u64::from(self.files.max(1));
        let headers = mean.saturating_mul(u64::from(self.headers)).saturating_mul(self.units.into());
        let objects = self.compiled().saturating_mul(1 + 3 * OBJECT_TIMES);
        let [bytes, operations] = match phase {
            Phase::LayOut => [self.size.0, self.files.into()],
            _ => [headers.saturating_add(objects), self.opened()],
        };
        Work { bytes: bytes.saturating_mul(trees), operations: operations.saturating_mul(trees) }
    }

    fn think_time(&self, phase: Phase) -> Nanos {
        let units = if phase.is_setup() { 0 } else { u64::from(self.units) };
        Nanos(self.think_time.0.saturating_mul(units))
    }

    fn drops_caches(&self, phase: Phase) -> bool {
        self.cold && !phase.is_setup()
    }

    /// Headers are read again and again, sources once.
    fn least_delivered(&self, done: Work) -> Bytes {
        Bytes(done.operations / (u64::from(self.headers) + 3) * 64)
    }

    fn follow_census(&mut self) {
        self.tree_numbers().follow();
    }

    fn scale(&mut self, factor: f64) {
        self.tree_numbers().scale(factor);
        self.units = (scaled_count(self.units.into(), factor) as u32).min(sources(self.files).max(1));
    }

    fn check(&self, _workers: u32) -> Result<(), String> {
        let most = sources(self.files);
        if self.units == 0 || self.units > most {
            let Self { units, files, .. } = self;
            return Err(format!("units = {units}: write 1 to {most}, as many as {files} files have sources"));
        }
        if self.headers > 100_000 {
            return Err(format!("headers = {}: write 0 to 100000", self.headers));
        }
        if self.think_time > PATIENCE {
            return Err(format!("think_time = \"{}\": write at most \"{PATIENCE}\"", self.think_time));
        }
        self.shape().check(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_counted_as_files_are_given_their_roles() {
        for files in [1, 8, 9, 10, 19, 20, 21, 28_619] {
            let counted = (0..files).filter(|&file| FileRole::of(file) == FileRole::Source).count();
            assert_eq!(sources(files) as usize, counted, "{files}");
        }
    }
}
