//! The master file of an HDF5 recording, `<name>_master.h5`. It shows all frames as one virtual dataset, across
//! all files and directories, beside links to each file. Detectors' own writers make such files too.
//!
//! It is made from the journals when the recording is over, and can be made again from them at any time.

mod file_runs;
mod growing;
mod modules;

pub use growing::{GrowingMaster, GrowthTerms};
pub use modules::{ModulesPart, put_master_of_modules};

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
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
    reader::{OpenError, Recording, Trust},
};

use nilometer_storage::{
    in_time,
    target::{KeptDirectory, TargetError},
};

use crate::{Hdf5Contents, SharedDatasetError};
use file_runs::{FileRun, runs_of};

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
    let runs = runs_of(&recording, home, in_scan);
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
