//! A tree of directories and files in numbers, without a name: sizes, ages, depths, entries and owners as counts.
//! Anybody can make a tree like it from them, and learns no file's name, path or owner.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::is_hollow;

/// Counts of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Directories, the first included.
    pub directories: u64,
    /// Plain files, each once for each of its names.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Sockets, pipes and devices.
    pub specials: u64,
    /// Names of files that have several.
    pub hard_links: u64,
    /// Bytes of all files, as `ls -l` has them.
    pub bytes: u64,
    /// Bytes that the file system has allocated for files. Less for holes or compression.
    pub allocated_bytes: u64,
    /// Files whose blocks show that their bytes are on tape, unless they are holes.
    pub offline: u64,
    /// The bytes of these files.
    pub offline_bytes: u64,
    /// Files of which the same would hold, except that the file system reports holes in them.
    pub sparse: u64,
    /// Files by their sizes.
    pub sizes: PowerCounts,
    /// Files by the time since they were written.
    pub ages: AgeCounts,
    /// Entries by their depth: those of the first directory are at 0. The last has all that are deeper.
    pub depths: Vec<u64>,
    /// Directories by their number of entries.
    pub entries: PowerCounts,
    /// Directories by their depth and their number of plain files: the first directory is at 0.
    pub levels: Vec<LevelCounts>,
    /// Users who own entries.
    pub users: OwnerCount,
    /// Groups who own entries.
    pub groups: OwnerCount,
    /// Directories and entries that the walk could not read.
    pub unreadable: u64,
    /// Entries that somebody removed before the walk looked at them. No other count has them.
    pub vanished: u64,
    /// Directories of other file systems. The census has nothing below them.
    pub other_file_systems: u64,
    /// Directories below the greatest depth. The census has nothing below them.
    pub too_deep: u64,
}

/// One entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedEntry {
    /// Its kind.
    pub kind: CountedKind,
    /// The number of directories between it and the first one.
    pub depth: usize,
    /// The number of its user.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
}

/// The kind of an entry, with the figures that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedKind {
    /// A directory.
    Directory,
    /// A plain file.
    File {
        /// Its size in bytes.
        bytes: u64,
        /// Allocated bytes.
        allocated: u64,
        /// Seconds since it was written; negative if that is in the future.
        age: i64,
        /// True if it has several names.
        is_linked: bool,
        /// True if the file system reports that its missing bytes are holes.
        is_sparse: bool,
    },
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Special,
}

/// The directories of one depth, by the number of plain files in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LevelCounts {
    /// Directories without directories in them.
    pub leaves: PowerCounts,
    /// Directories with directories in them.
    pub inner: PowerCounts,
}

/// A directory whose entries a census has all counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedDirectory {
    /// The number of directories above it.
    pub level: usize,
    /// Its entries of all kinds.
    pub entries: u64,
    /// The plain files among them.
    pub files: u64,
    /// True if the walk entered a directory in it.
    pub is_inner: bool,
}

/// Counts by powers of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PowerCounts(Vec<PowerCount>);

/// The values from a power of two up to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerCount {
    /// The least value: 0, or a power of two.
    pub from: u64,
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

/// Counts of files by age.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AgeCounts {
    /// Written in the future, by this machine's clock.
    pub future: u64,
    /// For each of [`AgeCounts::LIMITS`], the files that are younger and in none before.
    pub younger: [u64; AgeCounts::LIMITS.len()],
    /// Older than all limits.
    pub older: u64,
}

/// A number of different owners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerCount {
    seen: BTreeSet<u32>,
    is_more: bool,
}

/// The version of the counts as JSON. It rises if a key changes its meaning or goes.
pub const CENSUS_VERSION: u32 = 1;
/// The greatest depth with a count of its own.
pub const CENSUS_DEPTH_MAX: usize = 255;
/// The most owners that a census tells apart.
const OWNERS_MAX: usize = 65_536;
const DAY: u64 = 24 * 60 * 60;

impl Census {
    /// Counts an entry.
    pub fn add(&mut self, entry: &CountedEntry) {
        let depth = entry.depth.min(CENSUS_DEPTH_MAX);
        if self.depths.len() <= depth {
            self.depths.resize(depth + 1, 0);
        }
        self.depths[depth] += 1;
        self.users.add(entry.user);
        self.groups.add(entry.group);
        match entry.kind {
            CountedKind::Directory => self.directories += 1,
            CountedKind::Symlink => self.symlinks += 1,
            CountedKind::Special => self.specials += 1,
            CountedKind::File { bytes, allocated, age, is_linked, is_sparse } => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(bytes);
                self.allocated_bytes = self.allocated_bytes.saturating_add(allocated);
                self.hard_links += u64::from(is_linked);
                self.sparse += u64::from(is_sparse);
                if is_hollow(bytes, allocated) && !is_sparse {
                    self.offline += 1;
                    self.offline_bytes = self.offline_bytes.saturating_add(bytes);
                }
                self.sizes.add(bytes);
                self.ages.add(age);
            }
        }
    }

    /// Counts a directory after its last entry.
    pub fn leave(&mut self, directory: CountedDirectory) {
        let CountedDirectory { level, entries, files, is_inner } = directory;
        self.entries.add(entries);
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelCounts::default());
        }
        let counts = &mut self.levels[level];
        if is_inner { counts.inner.add(files) } else { counts.leaves.add(files) }
    }
}

impl PowerCount {
    /// The greatest value of the range.
    pub fn most(&self) -> u64 {
        if self.from == 0 { 0 } else { self.from - 1 + self.from }
    }
}

impl PowerCounts {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let place = value.checked_ilog2().map_or(0, |power| power as usize + 1);
        while self.0.len() <= place {
            let from = self.0.len().checked_sub(1).map_or(0, |power| 1 << power);
            self.0.push(PowerCount { from, ..PowerCount::default() });
        }
        let counted = &mut self.0[place];
        counted.count += 1;
        counted.sum = counted.sum.saturating_add(value);
    }

    /// The ranges with values, the least first.
    pub fn ranges(&self) -> impl Iterator<Item = &PowerCount> {
        self.0.iter().filter(|range| range.count > 0)
    }

    /// The least value of the range in which the middle value lies; `None` without values.
    pub fn median_from(&self) -> Option<u64> {
        let all: u64 = self.0.iter().map(|range| range.count).sum();
        let mut before = 0;
        self.ranges().find_map(|range| {
            before += range.count;
            (2 * before >= all).then_some(range.from)
        })
    }
}

impl AgeCounts {
    /// Ages in seconds, the least first, with their words.
    pub const LIMITS: [(u64, &'static str); 7] = [
        (DAY, "a day"),
        (7 * DAY, "a week"),
        (30 * DAY, "30 days"),
        (90 * DAY, "90 days"),
        (365 * DAY, "a year"),
        (2 * 365 * DAY, "2 years"),
        (5 * 365 * DAY, "5 years"),
    ];

    fn add(&mut self, age: i64) {
        let Ok(age) = u64::try_from(age) else {
            self.future += 1;
            return;
        };
        let place = AgeCounts::LIMITS.iter().position(|(limit, _)| age < *limit);
        *place.map_or(&mut self.older, |place| &mut self.younger[place]) += 1;
    }
}

impl OwnerCount {
    fn add(&mut self, owner: u32) {
        if self.seen.len() < OWNERS_MAX {
            self.seen.insert(owner);
        } else if !self.seen.contains(&owner) {
            self.is_more = true;
        }
    }

    /// The number of owners; the least number if there are [more](OwnerCount::is_more).
    pub fn count(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Returns true if there are more owners than a census tells apart.
    pub fn is_more(&self) -> bool {
        self.is_more
    }
}

impl Census {
    /// Returns true if the walk missed a part of the tree that it was to count. Other file systems are no such part.
    pub fn is_partial(&self) -> bool {
        self.unreadable > 0 || self.too_deep > 0
    }
}

impl Serialize for OwnerCount {
    /// The number alone, without the owners.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: u64, age: i64) -> CountedEntry {
        let kind = CountedKind::File { bytes, allocated: 4096, age, is_linked: false, is_sparse: false };
        CountedEntry { kind, depth: 1, user: 7, group: 8 }
    }

    #[test]
    fn sizes_lie_between_powers_of_two_and_every_size_has_a_place() {
        let mut census = Census::default();
        for bytes in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            census.add(&file(bytes, 0));
        }
        let ranges: Vec<(u64, u64)> = census.sizes.ranges().map(|range| (range.from, range.count)).collect();
        assert_eq!(ranges, [(0, 1), (1, 1), (2, 2), (4, 1), (512, 1), (1024, 1), (1 << 63, 1)]);
        assert_eq!(census.sizes.median_from(), Some(2));
        assert_eq!((census.files, census.bytes, census.depths), (8, u64::MAX, vec![0, 8]));
        assert_eq!(PowerCounts::default().median_from(), None);
    }

    #[test]
    fn files_without_blocks_are_offline_unless_they_have_holes() {
        let mut census = Census::default();
        for (allocated, is_sparse) in [(0, false), (4096, false), (0, true), (1 << 20, false)] {
            let kind = CountedKind::File { bytes: 1 << 20, allocated, age: 0, is_linked: false, is_sparse };
            census.add(&CountedEntry { kind, depth: 0, user: 7, group: 8 });
        }
        assert_eq!((census.offline, census.offline_bytes, census.sparse), (2, 2 << 20, 1));
    }

    #[test]
    fn ages_have_limits_and_a_clock_may_be_wrong() {
        let mut ages = AgeCounts::default();
        for age in [-1, 0, 86_399, 86_400, i64::MAX] {
            ages.add(age);
        }
        assert_eq!((ages.future, ages.younger[0], ages.younger[1], ages.older), (1, 2, 1, 1));
    }

    #[test]
    fn owners_are_counted_and_never_listed() {
        let mut owners = OwnerCount::default();
        for owner in [1000, 1001, 1000] {
            owners.add(owner);
        }
        assert_eq!(serde_json::to_string(&owners).expect("JSON"), "2");
        for owner in 0..=OWNERS_MAX as u32 {
            owners.add(owner);
        }
        assert!(owners.is_more() && owners.count() == OWNERS_MAX as u64);
    }
}
