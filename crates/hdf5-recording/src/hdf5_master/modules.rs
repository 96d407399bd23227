//! A master file over recordings of several machines, each with some modules of a detector: its virtual dataset
//! has whole frames.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_hdf5::tree::{DatasetContent, TreeGroup, TreeNode};
use nilometer_model::{Format, Nanos, Storing};
use nilometer_recording::reader::{Recording, Trust};
use nilometer_storage::{in_time, target::KeptDirectory};

use super::{
    MasterError, Whole,
    file_runs::{FileRun, runs_in_turn},
    master_name, over, shown_at, written,
};
use crate::Hdf5Contents;

/// A recording of some modules of a detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModulesPart {
    /// Its directories.
    pub directories: Vec<PathBuf>,
    /// Its number in its journals: the same path may hold another recording.
    pub recording: u64,
    /// Number of its first frame, counted over all parts: parts may begin with different frames.
    pub begins: u64,
    /// Position of its modules along the first dimension of a frame.
    pub at: u64,
    /// Size of its modules along that dimension.
    pub extent: u64,
}

/// Writes a master file over the recordings of all modules into a directory of the first part, and returns its
/// path. `None` if the frames are in several datasets, or if old files are removed. `contents` are those of the
/// whole detector; `name` is that of the whole recording.
///
/// # Errors
/// If a recording can't be read, HDF5 refuses, or the directory does not take it in time.
pub fn put_master_of_modules(
    contents: &Hdf5Contents,
    name: &str,
    directory: &Arc<dyn KeptDirectory>,
    parts: Vec<ModulesPart>,
    at_most: Nanos,
) -> Result<Option<PathBuf>, MasterError> {
    let file = master_name(name);
    let contents = contents.clone();
    let directory = directory.clone();
    let shown = directory.path().join(&file);
    in_time(at_most, shown.clone(), move || -> Result<_, MasterError> {
        let home = directory.path().to_owned();
        let Some(all) = runs_of_all(&parts, &home)? else { return Ok(None) };
        let mut paths = contents.tree.frames().into_iter().map(|(path, _)| path);
        let (Some(path), None) = (paths.next(), paths.next()) else { return Ok(None) };
        let mut left_out = BTreeSet::new();
        columns(&contents.tree, "", &mut left_out);
        let frames = all.iter().map(|run| run.first + run.count).max().unwrap_or(0);
        let whole =
            Whole { runs: &all, frames, shown: shown_at(&contents.tree, &path), left_out, linked: None };
        let tree = over(&contents.tree, "", &whole);
        directory.put(&file, &written(&file, &tree)?)?;
        Ok(Some(shown))
    })?
}

/// The paths of datasets with a value for each frame.
fn columns(group: &TreeGroup, path: &str, found: &mut BTreeSet<String>) {
    for (name, node) in &group.members {
        let path = format!("{path}/{name}");
        match node {
            TreeNode::Group(group) => columns(group, &path, found),
            TreeNode::Dataset(dataset) if matches!(dataset.content, DatasetContent::Column(_)) => {
                found.insert(path);
            }
            _ => {}
        }
    }
}

/// The runs of frames of all parts; `None` if old files are removed and the result would soon be wrong.
fn runs_of_all(parts: &[ModulesPart], home: &Path) -> Result<Option<Vec<FileRun>>, MasterError> {
    let mut all = Vec::new();
    for part in parts {
        let recording = Recording::open(&part.directories, Trust::Acknowledged)?;
        let head = recording.head();
        if head.recording != part.recording {
            let path = part.directories.first().cloned().unwrap_or_default();
            return Err(MasterError::Foreign(path));
        }
        if head.format != Format::Hdf5 || head.storing == Storing::Files {
            return Ok(None);
        }
        let across = part.at..part.at + part.extent;
        all.extend(runs_in_turn(&recording, home, 1).into_iter().map(|run| FileRun {
            first: run.first + part.begins,
            across: Some(across.clone()),
            ..run
        }));
    }
    Ok(Some(all))
}
