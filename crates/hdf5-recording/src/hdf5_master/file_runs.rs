//! The parts of a recording's files that make up a virtual dataset of all frames.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_hdf5::tree::VirtualPart;
use nilometer_model::Storing;
use nilometer_recording::reader::{FrameLocation, Recording};

/// A run of consecutive frames in a file; or every n-th, if processes that record together take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRun {
    pub(super) file: Arc<Path>,
    /// Number of its first frame in the recording, and index in the file.
    pub(super) first: u64,
    pub(super) in_file: u64,
    pub(super) count: u64,
    /// Distance from each frame to the next.
    pub(super) step: u64,
    /// Range along the frame's first dimension, if the file has only some modules of it.
    pub(super) across: Option<Range<u64>>,
}

/// A frame of the recording and its place.
struct FrameInFile {
    number: u64,
    /// Its index in the file.
    in_file: u64,
    /// Lane and number of the file.
    key: (usize, u64),
    file: Arc<Path>,
}

/// The runs of all frames, as few as possible. `home` is the directory of the file that shows them. In a scan a run
/// has consecutive frames.
pub(super) fn runs_of(recording: &Recording, home: &Path, in_scan: bool) -> Vec<FileRun> {
    if in_scan {
        return runs_in_turn(recording, home, 1);
    }
    // Processes can't take more turns than there are lanes: the journal may come from any source.
    let turn = turn_of(recording);
    let turn = if turn > recording.head().lanes.into() { 1 } else { turn };
    let in_turn = runs_in_turn(recording, home, turn);
    // Processes that get frames as these come take no exact turns, but mostly do for a while.
    let stepped = stepped_runs(frames_in_files(recording, home));
    if stepped.len() < in_turn.len() { stepped } else { in_turn }
}

/// The greatest common distance between frame numbers in each file: 1, or the number of processes that take
/// turns.
fn turn_of(recording: &Recording) -> u64 {
    let storing = recording.head().storing;
    let mut first_there = BTreeMap::new();
    let mut turn = 0;
    for (number, place) in recording.index.frames.iter() {
        let first = *first_there.entry((place.lane, file_of(storing, place))).or_insert(number);
        turn = common_divisor(turn, number - first);
        if turn == 1 {
            break;
        }
    }
    turn.max(1)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The runs of frames with the same remainder by `turn`.
pub(super) fn runs_in_turn(recording: &Recording, home: &Path, turn: u64) -> Vec<FileRun> {
    let mut runs: Vec<Vec<FileRun>> = vec![Vec::new(); turn as usize];
    for placed in frames_in_files(recording, home) {
        let runs = &mut runs[(placed.number % turn) as usize];
        match runs.last_mut() {
            Some(run) if run.has_place_for(&placed) => run.count = (placed.number - run.first) / turn + 1,
            _ => runs.push(FileRun { step: turn, ..placed.begins() }),
        }
    }
    runs.concat()
}

/// Runs of frames at one distance in each file. A run ends at the first frame at another distance.
fn stepped_runs(frames: impl Iterator<Item = FrameInFile>) -> Vec<FileRun> {
    let mut open: BTreeMap<(usize, u64), FileRun> = BTreeMap::new();
    let mut done = Vec::new();
    for placed in frames {
        if !open.get_mut(&placed.key).is_some_and(|run| run.takes(&placed)) {
            done.extend(open.insert(placed.key, placed.begins()));
        }
    }
    done.extend(open.into_values());
    done
}

/// All frames in order.
fn frames_in_files(recording: &Recording, home: &Path) -> impl Iterator<Item = FrameInFile> {
    let head = *recording.head();
    let mut files: BTreeMap<(usize, u64), Arc<Path>> = BTreeMap::new();
    recording.index.frames.iter().map(move |(number, place)| {
        let in_file = if head.storing == Storing::Positions { number % head.frames_per_file } else { number };
        let key = (place.lane, file_of(head.storing, place));
        let file = files.entry(key).or_insert_with(|| seen_from(home, &recording.path(place)).into());
        FrameInFile { number, in_file, key, file: file.clone() }
    })
}

/// All parts of a single file have the same key.
fn file_of(storing: Storing, place: FrameLocation) -> u64 {
    if storing.is_many_files() { place.file() } else { 0 }
}

/// A path relative to a directory: by its name inside it, or in a sibling directory. Both can then be moved, or
/// mounted elsewhere, together.
fn seen_from(home: &Path, path: &Path) -> PathBuf {
    if let Ok(within) = path.strip_prefix(home) {
        return within.to_owned();
    }
    let beside =
        home.parent().filter(|above| *above != Path::new("")).and_then(|above| path.strip_prefix(above).ok());
    match beside {
        Some(beside) => Path::new("..").join(beside),
        None => std::path::absolute(path).unwrap_or(path.into()),
    }
}

impl FrameInFile {
    /// A run that begins with this frame.
    fn begins(self) -> FileRun {
        let FrameInFile { number, in_file, file, .. } = self;
        FileRun { file, first: number, in_file, count: 1, step: 1, across: None }
    }
}

impl FileRun {
    /// Returns true if the frame continues the run. Frames lost in between have blank places there too.
    fn has_place_for(&self, placed: &FrameInFile) -> bool {
        let is_behind = placed.in_file > self.in_file && self.file == placed.file;
        is_behind && placed.number - self.first == placed.in_file - self.in_file
    }

    /// Takes the frame if it is the next at the same distance. The second one determines the distance.
    fn takes(&mut self, placed: &FrameInFile) -> bool {
        let step = if self.count == 1 { placed.number - self.first } else { self.step };
        let ahead = self.count * step;
        let is_next = placed.number == self.first + ahead && placed.in_file == self.in_file + ahead;
        if is_next {
            self.step = step;
            self.count += 1;
        }
        is_next
    }

    /// Number of frames in the file up to the last of the run.
    fn end(&self) -> u64 {
        self.in_file + (self.count - 1) * self.step + 1
    }

    /// The run as a part of the dataset at this path.
    pub(super) fn part(&self, path: &str) -> VirtualPart {
        VirtualPart {
            // HDF5 takes a single `%` as the start of a number.
            file: self.file.to_string_lossy().replace('%', "%%"),
            dataset: path.into(),
            length: self.end(),
            from: self.in_file,
            to: self.first,
            count: self.count,
            step: self.step,
            within: Vec::new(),
            across: self.across.clone(),
        }
    }

    /// The run in a dataset whose frames are in a scan; `scan` has its dimensions after the first. Files begin
    /// with a line, so that lines in the file are lines of the whole.
    pub(super) fn parts_in_scan(&self, path: &str, scan: &[u64]) -> Vec<VirtualPart> {
        let file = self.part(path);
        let Some(line) = Some(scan.iter().product::<u64>()).filter(|_| !scan.is_empty()) else {
            return vec![file];
        };
        let parts = blocks_of(self.in_file..self.end(), scan).into_iter().map(|mut block| {
            let first = block.remove(0);
            VirtualPart {
                length: self.end().div_ceil(line),
                from: first.start,
                to: (self.first - self.in_file) / line + first.start,
                count: first.end - first.start,
                within: block,
                ..file.clone()
            }
        });
        parts.collect()
    }
}

/// Splits consecutive frames into blocks of a scan, one range per dimension; `scan` has its dimensions after the
/// first. The blocks are the rest of the first line, whole lines, and the start of the last line. Whole ranges of
/// trailing dimensions are left out.
///
/// ```text
/// 5..17 in lines of 6:   . . . . . x
///                        x x x x x x     0..1 5..6,   1..2,   2..3 0..5
///                        x x x x x .
/// ```
fn blocks_of(frames: Range<u64>, scan: &[u64]) -> Vec<Vec<Range<u64>>> {
    let Some((_, deeper)) = scan.split_first() else { return vec![vec![frames]] };
    let line: u64 = scan.iter().product();
    let mut blocks = Vec::new();
    let mut at = frames.start;
    while at < frames.end {
        let number = at / line;
        let begin = at % line;
        let whole = if begin == 0 { (frames.end - at) / line } else { 0 };
        if whole > 0 {
            blocks.push(std::iter::once(number..number + whole).collect());
            at += whole * line;
            continue;
        }
        let upto = frames.end.min((number + 1) * line);
        let in_line = blocks_of(begin..begin + (upto - at), deeper);
        blocks.extend(
            in_line.into_iter().map(|block| std::iter::once(number..number + 1).chain(block).collect()),
        );
        at = upto;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The frames of a block.
    fn frames_of(block: &[Range<u64>], scan: &[u64]) -> Vec<u64> {
        let whole = scan.iter().map(|side| 0..*side).skip(block.len() - 1);
        let ranges: Vec<_> = block.iter().cloned().chain(whole).collect();
        let mut all = vec![0];
        for (range, side) in ranges.into_iter().zip(std::iter::once(&0).chain(scan)) {
            all = all.into_iter().flat_map(|at| range.clone().map(move |place| at * side + place)).collect();
        }
        all
    }

    #[test]
    fn files_are_found_from_where_the_one_over_them_is() {
        let seen = |home: &str, path: &str| seen_from(Path::new(home), Path::new(path)).display().to_string();
        assert_eq!(seen("/data/run.0", "/data/run.0/run.0.h5"), "run.0.h5");
        assert_eq!(seen("/data/run.0", "/data/run.1/run.1.h5"), "../run.1/run.1.h5");
        assert_eq!(seen("/disk0/run", "/disk1/run/run.1.h5"), "/disk1/run/run.1.h5");
        assert_eq!(seen("run.0", "/data/run.1/run.1.h5"), "/data/run.1/run.1.h5");
    }

    #[test]
    fn frames_that_take_turns_for_a_while_are_in_few_runs() {
        // The second file missed a turn, and the first got its frame 10; frame 20 came to nobody.
        let of_second = |number: u64| (number % 2 == 1) == (number < 10) && number != 10;
        let placed = |number: u64| {
            let key = (usize::from(of_second(number)), 0);
            FrameInFile { number, in_file: number, key, file: Path::new(&format!("{}.h5", key.0)).into() }
        };
        let runs = stepped_runs((0..30).filter(|number| *number != 20).map(placed));
        let mut there = BTreeSet::new();
        for run in &runs {
            let numbers = (0..run.count).map(|index| run.first + index * run.step);
            for number in numbers {
                assert_eq!(run.file, placed(number).file, "{number}");
                assert!(there.insert(number), "{number} is in two runs");
            }
            assert_eq!(run.in_file, run.first);
        }
        assert!(there.into_iter().eq((0..30).filter(|number| *number != 20)));
        assert!(runs.len() <= 6, "{runs:?}");
    }

    #[test]
    fn blocks_of_a_scan_are_its_frames_in_order_and_as_few_as_can_be() {
        for scan in [&[][..], &[1], &[6], &[3, 4], &[2, 3, 2], &[1, 5]] {
            for start in 0..30 {
                for end in start + 1..40 {
                    let blocks = blocks_of(start..end, scan);
                    let there: Vec<_> = blocks.iter().flat_map(|block| frames_of(block, scan)).collect();
                    assert_eq!(there, (start..end).collect::<Vec<_>>(), "{scan:?}");
                    assert!(blocks.len() <= 1 + 2 * scan.len(), "{blocks:?}");
                }
            }
        }
        let whole = std::iter::once(1..2).collect();
        assert_eq!(blocks_of(5..17, &[6]), [vec![0..1, 5..6], whole, vec![2..3, 0..5]]);
    }
}
