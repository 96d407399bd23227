//! The master file of an HDF5 recording, `<name>_master.h5`. It shows all frames as one virtual dataset, across
//! all files and directories, beside links to each file. Detectors' own writers make such files too.
//!
//! It is made from the journals when the recording is over, and can be made again from them at any time.

mod growing;
mod modules;

pub use growing::{GrowingMaster, GrowthTerms};
pub use modules::{ModulesPart, put_master_of_modules};

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_hdf5::{
    Hdf5Error, Hdf5File, Hdf5FileOptions,
    nexus::AngleColumn,
    tree::{
        DatasetContent, FrameColumn, TreeDataset, TreeGroup, TreeNode, VirtualDataset, VirtualPart, WriteTime,
    },
};
use nilometer_model::{FileNames, Format, Nanos, Storing};
use nilometer_recording::{
    journal::Head,
    reader::{FrameLocation, OpenError, Recording, Trust},
};

use nilometer_storage::{
    in_time,
    target::{KeptDirectory, TargetError},
};

use crate::{Hdf5Contents, SharedDatasetError};

/// Errors of making a master file.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    /// The recording can't be read.
    #[error(transparent)]
    Recording(#[from] OpenError),
    /// HDF5 refuses the content.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// The directory can't be written.
    #[error("can't write it: {0}")]
    Storage(#[from] io::Error),
    /// The directory holds another recording.
    #[error("{} is not visible here: the directory of that name holds another recording", .0.display())]
    Foreign(PathBuf),
    /// The directory took too long.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The one file of all frames can't be completed.
    #[error("{0}; run `nilometer repair` with the directory")]
    Shared(#[from] SharedDatasetError),
}

/// A run of consecutive frames in a file; or every n-th, if processes that record together take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileRun {
    file: PathBuf,
    /// Number of its first frame in the recording, and index in the file.
    first: u64,
    in_file: u64,
    count: u64,
    /// Distance from each frame to the next.
    step: u64,
    /// Range along the frame's first dimension, if the file has only some modules of it.
    across: Option<Range<u64>>,
}

/// The group with the links.
const ENTRY: &str = "/entry";
const FILES: &str = "files";
/// More links would fill the screen of anybody who lists them.
const LINKS_MAX: usize = 10_000;

/// The name of the master file of a recording.
pub(crate) fn master_name(name: &str) -> String {
    format!("{name}_master.h5")
}

/// The name of the link to a file, by its index from 0.
fn link_name(file: u64) -> String {
    format!("data_{:06}", file + 1)
}

/// Returns true if a recording with this head gets a master file: if it is in HDF5 and has several files.
fn has_master(head: &Head) -> bool {
    let one_file = (head.lanes == 1 || head.storing.kind().one_for_all) && !head.storing.is_many_files();
    // If old files are removed with their frames, the master file would soon be wrong.
    head.format == Format::Hdf5 && !one_file && head.storing != Storing::Files
}

/// The path at which [`put_master`] writes the master file of a recording with this name and head. `None` if the
/// recording gets none. `first` is its first directory.
pub fn master_path(name: &str, head: &Head, first: &Path) -> Option<PathBuf> {
    has_master(head).then(|| first.join(master_name(name)))
}

/// The bytes of the master file, for a recording in these directories; it belongs into the first. `None` if all
/// frames are in one file or not in HDF5, or if old files are removed with their frames.
///
/// # Errors
/// If the recording can't be read, or HDF5 refuses.
pub(crate) fn master_of(directories: &[PathBuf], tree: &TreeGroup) -> Result<Option<Vec<u8>>, MasterError> {
    let recording = Recording::open(directories, Trust::Acknowledged)?;
    if !has_master(recording.head()) {
        return Ok(None);
    }
    let home = directories.first().map_or(Path::new(""), PathBuf::as_path);
    let in_scan = !tree.frames().iter().all(|(_, shape)| shape.scan.is_empty());
    // Processes can't take more turns than there are lanes: the journal may come from any source.
    let turn = if in_scan { 1 } else { turn_of(&recording) };
    let turn = if turn > recording.head().lanes.into() { 1 } else { turn };
    let runs = runs(&recording, home, turn);
    let frames = recording.index.expected();
    let path = tree.frames().into_iter().next().map(|(path, _)| path).unwrap_or_default();
    let per_file = recording.head().frames_per_file;
    let linked = (recording.head().names == FileNames::Dectris).then_some(per_file);
    let shown = shown_at(tree, &path);
    let tree = over(tree, "", &Whole { runs: &runs, frames, shown, left_out: BTreeSet::new(), linked });
    written(&master_name(recording.name()), &tree).map(Some)
}

/// The path at which readers see the frames at `path`.
fn shown_at(tree: &TreeGroup, path: &str) -> String {
    tree.shown_frames(path).map_or_else(|| path.to_owned(), |(shown, _)| shown)
}

/// The bytes of a file without frames.
fn written(name: &str, tree: &TreeGroup) -> Result<Vec<u8>, MasterError> {
    let options = Hdf5FileOptions { watched: false, ..Hdf5FileOptions::default() };
    let file = Hdf5File::create(name, tree, options)?;
    let mut closed = file.close(0, &TreeGroup::default())?;
    let mut bytes = vec![0; closed.size() as usize];
    while let Some(write) = closed.next_write() {
        let begin = write.offset as usize;
        bytes[begin..begin + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    Ok(bytes)
}

/// Writes the master file into the first directory of a recording, if the recording has several files. Waits at
/// most `at_most` for storage that hangs, and returns the path of the file. Other processes recorded parts of the
/// recording in the directories `others`.
///
/// # Errors
/// If the recording can't be read, HDF5 refuses, or the directory does not take it in time.
pub fn put_master(
    contents: &Hdf5Contents,
    name: &str,
    directories: &[Arc<dyn KeptDirectory>],
    others: Vec<PathBuf>,
    at_most: Nanos,
) -> Result<Option<PathBuf>, MasterError> {
    let own = directories.iter().map(|directory| directory.path().to_owned());
    let paths: Vec<_> = own.chain(others).collect();
    let Some(first) = directories.first().cloned() else { return Ok(None) };
    let contents = contents.clone();
    let file = master_name(name);
    let shown = first.path().join(&file);
    in_time(at_most, shown.clone(), move || -> Result<_, MasterError> {
        let Some(bytes) = master_of(&paths, &contents.tree)? else { return Ok(None) };
        if contents.names == FileNames::Dectris {
            first.replace(&file, &bytes)?;
        } else {
            first.put(&file, &bytes)?;
        }
        Ok(Some(shown))
    })?
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

/// The runs of frames, as few as possible. Frames with the same remainder by `turn` form their own runs.
fn runs(recording: &Recording, home: &Path, turn: u64) -> Vec<FileRun> {
    let head = *recording.head();
    let mut paths: BTreeMap<(usize, u64), PathBuf> = BTreeMap::new();
    let mut runs: Vec<Vec<FileRun>> = vec![Vec::new(); turn as usize];
    for (number, place) in recording.index.frames.iter() {
        let in_file = if head.storing == Storing::Positions { number % head.frames_per_file } else { number };
        let path = paths.entry((place.lane, file_of(head.storing, place)));
        let file = path.or_insert_with(|| seen_from(home, &recording.path(place)));
        let runs = &mut runs[(number % turn) as usize];
        match runs.last_mut() {
            Some(run) if run.has_place_for(number, in_file) && run.file == *file => {
                run.count = (number - run.first) / turn + 1;
            }
            _ => {
                let file = file.clone();
                runs.push(FileRun { file, first: number, in_file, count: 1, step: turn, across: None });
            }
        }
    }
    runs.concat()
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

impl FileRun {
    /// Returns true if the frame continues the run. Frames lost in between have blank places there too.
    fn has_place_for(&self, number: u64, in_file: u64) -> bool {
        in_file > self.in_file && number - self.first == in_file - self.in_file
    }

    /// Number of frames in the file up to the last of the run.
    fn end(&self) -> u64 {
        self.in_file + (self.count - 1) * self.step + 1
    }

    /// The run as a part of the dataset at this path.
    fn part(&self, path: &str) -> VirtualPart {
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
    fn parts_in_scan(&self, path: &str, scan: &[u64]) -> Vec<VirtualPart> {
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

/// All frames that the master file covers.
struct Whole<'a> {
    runs: &'a [FileRun],
    frames: u64,
    /// The path at which readers see the frames.
    shown: String,
    /// Datasets that the master file omits.
    left_out: BTreeSet<String>,
    /// Frames of a full file, if links to the files stand beside the frames, as in the layout of DECTRIS.
    linked: Option<u64>,
}

impl Whole<'_> {
    /// Returns true for omitted datasets, and for other names of them.
    fn leaves_out(&self, path: &str, node: &TreeNode) -> bool {
        match node {
            TreeNode::Dataset(_) => self.left_out.contains(path),
            // durin, a plug-in for XDS, would read the virtual dataset by that name, and not the files.
            TreeNode::SoftLink(to) if self.linked.is_some() && *to == self.shown => true,
            TreeNode::HardLink(to) | TreeNode::SoftLink(to) => self.left_out.contains(to),
            TreeNode::Group(_) | TreeNode::ExternalLink { .. } => false,
        }
    }

    fn parts(&self, path: &str) -> Vec<VirtualPart> {
        self.runs.iter().map(|run| run.part(path)).collect()
    }

    /// The dataset that shows the files' datasets at this path.
    fn content(&self, path: &str, content: &DatasetContent) -> DatasetContent {
        match content {
            DatasetContent::Frames(shape) => {
                let line = shape.scan.iter().product::<u64>().max(1);
                let sides = shape.scan.iter().chain(&shape.frame).copied();
                DatasetContent::Virtual(VirtualDataset {
                    element: shape.element.into(),
                    shape: [self.frames.div_ceil(line)].into_iter().chain(sides).collect(),
                    parts: self.runs.iter().flat_map(|run| run.parts_in_scan(path, &shape.scan)).collect(),
                    fill: shape.fill.clone(),
                })
            }
            DatasetContent::Column(column) => self.column(path, column),
            other => other.clone(),
        }
    }

    /// The values of all frames in a column. Angles follow from the numbers of frames, also of those in no file.
    fn column(&self, path: &str, column: &FrameColumn) -> DatasetContent {
        let angles = AngleColumn::of_key(&column.key).and_then(|angle| angle.angles(self.frames));
        if let Some(angles) = angles {
            return DatasetContent::Value(angles.into(), WriteTime::Opening);
        }
        DatasetContent::Virtual(VirtualDataset {
            element: column.element,
            shape: vec![self.frames],
            parts: self.parts(path),
            fill: Some(column.unknown()),
        })
    }

    /// Links to the frames of each file, for the group of the frames: the number follows from the frames in it.
    fn links_beside_frames(&self, frames_per_file: u64) -> Vec<(String, TreeNode)> {
        let mut links = BTreeMap::new();
        for run in self.runs {
            links.entry(run.first / frames_per_file).or_insert_with(|| {
                let file = run.file.to_string_lossy().into_owned();
                TreeNode::ExternalLink { file, path: self.shown.clone() }
            });
        }
        links.into_iter().take(LINKS_MAX).map(|(file, link)| (link_name(file), link)).collect()
    }

    /// Links to the frames of each file, with the names that detectors' own writers use.
    fn links(&self) -> TreeGroup {
        let mut seen = BTreeSet::new();
        let files = self.runs.iter().map(|run| &run.file).filter(|file| seen.insert(*file));
        let mut group = TreeGroup::nexus("NXcollection").attribute("description", "the frames of each file");
        for (number, file) in (1_u32..).zip(files).take(LINKS_MAX) {
            let file = file.to_string_lossy().into_owned();
            let link = TreeNode::ExternalLink { file, path: self.shown.clone() };
            group = group.with(&link_name(u64::from(number) - 1), link);
        }
        group
    }
}

/// The tree of the files, with virtual datasets over their content. If each file has only some modules, values
/// beside the pixels stay in the files, and their other names are left out too.
fn over(group: &TreeGroup, path: &str, whole: &Whole<'_>) -> TreeGroup {
    let mut made = TreeGroup { attributes: group.attributes.clone(), members: Vec::new() };
    for (name, node) in &group.members {
        let path = format!("{path}/{name}");
        if whole.leaves_out(&path, node) {
            continue;
        }
        let node = match node {
            TreeNode::Group(group) => TreeNode::Group(over(group, &path, whole)),
            TreeNode::Dataset(dataset) => TreeNode::Dataset(TreeDataset {
                attributes: dataset.attributes.clone(),
                content: whole.content(&path, &dataset.content),
            }),
            other => other.clone(),
        };
        made.members.push((name.clone(), node));
    }
    if let Some(frames_per_file) = whole.linked {
        let is_of_frames = whole.shown.rsplit_once('/').is_some_and(|(parent, _)| parent == path);
        made.members
            .extend(is_of_frames.then(|| whole.links_beside_frames(frames_per_file)).into_iter().flatten());
        return made;
    }
    if path == ENTRY && made.members.iter().all(|(name, _)| name != FILES) {
        made.members.push((FILES.into(), TreeNode::Group(whole.links())));
    }
    made
}

#[cfg(test)]
mod tests {
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
