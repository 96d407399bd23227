//! The distribution of a tree, from a census of it: sizes of files, and directories by depth and by number of
//! files. The record keeps it, so that a campaign goes on without the census.

use nilometer_model::{CENSUS_DEPTH_MAX, CENSUS_VERSION, PowerCount, plain_serde_message};
use serde::{Deserialize, Serialize};

/// The distribution of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedCensus")]
pub struct TreeCensus {
    /// Files by their sizes.
    pub(super) sizes: Vec<PowerCount>,
    /// The directories of each depth. The first directory is alone at depth 0.
    pub(super) levels: Vec<LevelRanges>,
}

/// The directories of one depth, by the number of plain files in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRanges {
    /// Directories without directories in them.
    pub(super) leaves: Vec<PowerCount>,
    /// Directories with directories in them.
    pub(super) inner: Vec<PowerCount>,
}

/// The same counts before any check.
#[derive(Debug, Deserialize)]
struct UncheckedCensus {
    sizes: Vec<PowerCount>,
    levels: Vec<LevelRanges>,
}

/// The keys of a census that a tree depends on.
#[derive(Debug, Deserialize)]
struct CensusFile {
    directories: u64,
    files: u64,
    bytes: u64,
    unreadable: u64,
    too_deep: u64,
    other_file_systems: u64,
    sizes: Vec<PowerCount>,
    levels: Vec<LevelRanges>,
}

/// The key that makes a text a census.
#[derive(Debug, Deserialize)]
struct CensusMark {
    census_version: Option<u32>,
}

/// More files than any tree has. Products with a number of files of a plan fit into 128 bits.
const ENTRIES_MAX: u64 = 1 << 48;
/// The way to get a census, in messages.
const MAKE_ONE: &str = "make one with `nilometer census DIRECTORY --format json`";

impl TreeCensus {
    /// Reads the output of `nilometer census --format json`.
    ///
    /// # Errors
    /// The place and the reason, if the text is no census, or one of a tree that was not read whole.
    pub fn parse(text: &str) -> Result<Self, String> {
        let no_json = |error: serde_json::Error| {
            format!("it is no census: {}: {MAKE_ONE}", plain_serde_message(&error.to_string()))
        };
        match serde_json::from_str::<CensusMark>(text).map_err(no_json)?.census_version {
            Some(CENSUS_VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "census_version = {other}: this program reads {CENSUS_VERSION}: {MAKE_ONE}"
                ));
            }
            None => return Err(format!("it is no census: it has no census_version: {MAKE_ONE}")),
        }
        let file: CensusFile = serde_json::from_str(text).map_err(no_json)?;
        file.check_whole()?;
        let CensusFile { directories, files, bytes, other_file_systems, sizes, levels, .. } = file;
        let census = TreeCensus::try_from(UncheckedCensus { sizes, levels })?;
        let entered = directories.checked_sub(other_file_systems);
        check_equal("files", files, "files of `sizes`", census.files())?;
        check_equal("bytes", bytes, "bytes of `sizes`", census.bytes())?;
        check_equal(
            "directories without other_file_systems",
            entered.unwrap_or(0),
            "directories of `levels`",
            census.directories(),
        )?;
        Ok(census)
    }

    /// Files in all.
    pub fn files(&self) -> u64 {
        count_of(&self.sizes)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        sum_of(&self.sizes)
    }

    fn directories(&self) -> u64 {
        self.levels.iter().fold(0, |all, level| all.saturating_add(level.directories()))
    }

    /// Refuses counts that no tree has.
    fn check(&self) -> Result<(), String> {
        check_ranges("sizes", &self.sizes)?;
        if self.levels.len() > CENSUS_DEPTH_MAX + 1 {
            return Err(format!(
                "levels: {}, and at most {} are counted",
                self.levels.len(),
                CENSUS_DEPTH_MAX + 1
            ));
        }
        for (depth, level) in self.levels.iter().enumerate() {
            check_ranges(&format!("levels[{depth}].leaves"), &level.leaves)?;
            check_ranges(&format!("levels[{depth}].inner"), &level.inner)?;
            self.check_below(depth)?;
        }
        let first = self.levels.first().map_or(0, LevelRanges::directories);
        check_equal("directories at levels[0]", first, "first directory", 1)?;
        let in_levels = self.levels.iter().fold(0, |all: u64, level| all.saturating_add(level.files()));
        check_equal("files of `sizes`", self.files(), "files of `levels`", in_levels)?;
        match self.files().max(self.directories()) {
            _ if self.files() == 0 => Err("the tree has no file: nothing can be made like it".into()),
            entries if entries > ENTRIES_MAX => {
                Err(format!("{entries} files or directories: at most {ENTRIES_MAX}"))
            }
            _ => Ok(()),
        }
    }

    /// Directories that have others are above at least as many.
    fn check_below(&self, depth: usize) -> Result<(), String> {
        let inner = count_of(&self.levels[depth].inner);
        let below = self.levels.get(depth + 1).map_or(0, LevelRanges::directories);
        if inner > below || (inner == 0 && below > 0) {
            return Err(format!(
                "levels[{depth}]: {inner} directories with directories in them, and {below} below these"
            ));
        }
        Ok(())
    }
}

impl TryFrom<UncheckedCensus> for TreeCensus {
    type Error = String;

    fn try_from(UncheckedCensus { sizes, levels }: UncheckedCensus) -> Result<Self, String> {
        let census = TreeCensus { sizes, levels };
        census.check()?;
        Ok(census)
    }
}

impl CensusFile {
    /// Refuses a census that lacks a part of its tree.
    fn check_whole(&self) -> Result<(), String> {
        let CensusFile { unreadable, too_deep, .. } = self;
        if *unreadable > 0 || *too_deep > 0 {
            return Err(format!(
                "it lacks a part of its tree (unreadable = {unreadable}, too_deep = {too_deep}): make it of a tree \
                 that you can read whole, or as root"
            ));
        }
        Ok(())
    }
}

impl LevelRanges {
    pub(super) fn directories(&self) -> u64 {
        count_of(&self.leaves).saturating_add(count_of(&self.inner))
    }

    pub(super) fn files(&self) -> u64 {
        sum_of(&self.leaves).saturating_add(sum_of(&self.inner))
    }
}

fn count_of(ranges: &[PowerCount]) -> u64 {
    ranges.iter().fold(0, |all, range| all.saturating_add(range.count))
}

fn sum_of(ranges: &[PowerCount]) -> u64 {
    ranges.iter().fold(0, |all, range| all.saturating_add(range.sum))
}

fn check_equal(name: &str, one: u64, other_name: &str, other: u64) -> Result<(), String> {
    if one == other {
        Ok(())
    } else {
        Err(format!("its counts don't add up: {one} {name}, and {other} {other_name}"))
    }
}

/// Ranges rise, and each has values whose sum they can have.
fn check_ranges(name: &str, ranges: &[PowerCount]) -> Result<(), String> {
    let mut next = 0;
    for (place, range) in ranges.iter().enumerate() {
        let PowerCount { from, count, sum } = *range;
        if from != 0 && !from.is_power_of_two() {
            return Err(format!("{name}[{place}]: from = {from} is no power of two"));
        }
        if from < next {
            return Err(format!("{name}[{place}]: from = {from} comes after {}", next - 1));
        }
        let [least, most] = [from, range.most()].map(|value| u128::from(value) * u128::from(count));
        if count == 0 || !(least..=most).contains(&u128::from(sum)) {
            return Err(format!(
                "{name}[{place}]: {count} values from {from} to {} have no sum of {sum}",
                range.most()
            ));
        }
        next = range.most().saturating_add(1);
    }
    Ok(())
}
