//! The files in HDF5 of a recording made whole again, after the power was lost or somebody damaged them. Frames stay where they
//! are: the journals know the place of each, and what else is in the files, so that all metadata can be made anew.
//!
//! ```text
//! journals -> frames of each file -> does its index agree? -- yes --> not touched
//!                                            | no
//!                                            v
//!                     read every frame, make the metadata anew, the superblock last
//! ```
//!
//! The journals are believed, not the files. A file that is left half repaired is what it was before, and is repaired again.
//!
//! After a loss of power, what was durable is there. Of what was only acknowledged anything may be: it is read, and compared
//! with its checksum, or made again if it is simulated. What can be compared with nothing is put into the file as not whole.

mod agreement;
mod held;
mod known;
mod made_ahead;
mod remake;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use nilometer_hdf5::{ReadFile, tree::TreeGroup};
use nilometer_model::Format;
use nilometer_recording::{
    instrument::{Content, Origin},
    journal::DatasetPlace,
    reader::{OpenError, Recording, Trust},
};
use nilometer_storage::{new_file::NewFile, process::BootId};
use rustix::fs::{self, AtFlags, OFlags};

use crate::hdf5_master::{master_name, master_of};
use agreement::{Expected, frames_of};
use held::{HeldDirectories, is_held};
pub(crate) use held::{opened_own, path_of};
use known::{FileFrames, FrameBytes, by_file};
use made_ahead::{each_of_empty, each_unused};
pub(crate) use remake::is_of_frames;

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairOptions {
    /// Nothing is changed: only said what would be.
    pub dry_run: bool,
    /// The user knows that no other machine records it any more.
    pub recorder_is_down: bool,
}

/// Why nothing of a recording was looked at.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It is none, or can't be opened.
    #[error(transparent)]
    Recording(#[from] OpenError),
    /// Its files have no index.
    #[error("{name} is a recording in the format {}: only files in hdf5 have an index that can be repaired", .format.name())]
    NotIndexed {
        /// The recording.
        name: String,
        /// Its format.
        format: Format,
    },
    /// Somebody holds a directory.
    #[error("{path}: it is being recorded, or repaired by another: repair it when that is over")]
    Recorded {
        /// The directory.
        path: PathBuf,
    },
    /// Another machine may hold it, and no lock would say so.
    #[error(
        "{path}: it was not ended in order, and another machine may still record it: if that is down, say \
         --recorder-is-down"
    )]
    Elsewhere {
        /// The directory.
        path: PathBuf,
    },
    /// A directory or a journal can't be read.
    #[error("{path}: {source}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What became of a file of a recording, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOutcome {
    /// Its index agrees with the journal: it was not touched.
    Whole,
    /// Its metadata were made anew: why.
    Repaired(String),
    /// The same, if something were to be changed.
    ToBeRepaired(String),
    /// The recorder made it before it needed it, and wrote nothing into it: it is removed.
    Removed,
    /// The same, if something were to be changed.
    ToBeRemoved,
    /// It is not whole, and can't be made so: why.
    Failed(String),
}

/// A file of a recording that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: RepairOutcome,
    /// Frames that readers of HDF5 find in it now, or would.
    pub frames: u64,
    /// Of these, frames of which nobody knows whether they are right.
    pub unproved: u64,
    /// Frames that the journal has and that are not there any more, by number, and why: the first of them.
    pub lost: Vec<(u64, String)>,
    /// How many there are.
    pub lost_frames: u64,
    /// What the file alone said of its frames, and does not say any more, and why.
    pub lost_values: Vec<String>,
}

impl RepairedFile {
    /// Without frames.
    fn empty(path: PathBuf, outcome: RepairOutcome) -> Self {
        RepairedFile {
            path,
            outcome,
            frames: 0,
            unproved: 0,
            lost: Vec::new(),
            lost_frames: 0,
            lost_values: Vec::new(),
        }
    }
}

/// As many lost frames of a file are named.
const NAMED_MAX: usize = 20;

/// Repairs the files of the recording in these directories, and tells what became of each, in order.
///
/// # Errors
/// If nothing was done, and why.
pub fn repair_recording(
    directories: &[PathBuf],
    options: RepairOptions,
    tell: &mut dyn FnMut(&RepairedFile),
) -> Result<(), RepairError> {
    let first = match opened(directories, Trust::Acknowledged) {
        Err(error @ RepairError::Recording(OpenError::Empty { .. })) => {
            each_of_empty(directories, options, tell)?;
            return Err(error);
        }
        opened => opened?,
    };
    let held = HeldDirectories::hold(&first, options)?;
    // What was acknowledged meanwhile is there now.
    let recording = opened(directories, Trust::Acknowledged)?;
    let durable = opened(directories, Trust::Durable)?;
    let origin = recording.index.origin.as_ref().map(Origin::content);
    let repair = Repair {
        tree: tree_of(&recording),
        content: origin.and_then(Result::ok),
        went_down: went_down(&recording),
        recording: &recording,
        durable: &durable,
        held,
        options,
    };
    let mut files = by_file(&recording)?;
    let mut any = false;
    let mut known: Vec<_> = files.values().filter_map(|file| Some(recording.path(file.any()?))).collect();
    for file in in_order(&mut files) {
        let repaired = repair.file(file);
        any |= matches!(repaired.outcome, RepairOutcome::Repaired(_) | RepairOutcome::ToBeRepaired(_));
        tell(&repaired);
    }
    if let Some(master) = repair.master(directories, any) {
        tell(&master);
        known.push(master.path);
    }
    each_unused(&repair.held, recording.name(), &known, options, tell);
    Ok(())
}

fn opened(directories: &[PathBuf], trust: Trust) -> Result<Recording, RepairError> {
    let recording = Recording::open(directories, trust)?;
    let format = recording.head().format;
    if format == Format::Hdf5 {
        return Ok(recording);
    }
    Err(RepairError::NotIndexed { name: recording.name().into(), format })
}

/// The machine went down while it recorded, or it was another one: what was not durable may be lost.
fn went_down(recording: &Recording) -> bool {
    let boot = recording.index.boot;
    boot.is_some() && boot != BootId::now() && recording.index.due.is_none()
}

/// By their first frames.
fn in_order(files: &mut BTreeMap<(usize, u64), FileFrames>) -> Vec<&mut FileFrames> {
    let mut files: Vec<_> = files.values_mut().collect();
    files.sort_by_key(|file| file.first);
    files
}

/// What of the index of a recording's files does not agree with its journals, a file each, and why. Files of others are not
/// looked at: the library reads them.
///
/// # Errors
/// If a journal can't be read.
pub fn index_faults(recording: &Recording) -> Result<Vec<(PathBuf, String)>, RepairError> {
    let mut faults = Vec::new();
    if !recording.is_over() && is_held(recording) {
        // What is written just now is whole a moment later.
        return Ok(faults);
    }
    let tree = tree_of(recording);
    for file in by_file(recording)?.values() {
        let Some(path) = file.any().map(|place| recording.path(place)) else { continue };
        let expected = Expected { recording, file, tree: tree.as_ref(), nothing_else: false };
        // What can't be opened has frames that can't be read: that is said of them.
        let Ok(opened) = opened_own(&path) else { continue };
        faults.extend(expected.check(&opened).err().map(|why| (path, why)));
    }
    Ok(faults)
}

/// The files of a recording, each with the number of its first frame.
///
/// # Errors
/// If a journal can't be read.
pub(crate) fn files_of(recording: &Recording) -> Result<Vec<(PathBuf, u64)>, RepairError> {
    let files = by_file(recording)?;
    Ok(files.values().filter_map(|file| Some((recording.path(file.any()?), file.first))).collect())
}

/// Where each frame of a recording stands among the datasets of its file, if that has several.
///
/// # Errors
/// If a journal can't be read.
pub(crate) fn places_of(recording: &Recording) -> Result<BTreeMap<u64, DatasetPlace>, RepairError> {
    let files = by_file(recording)?;
    let frames = files.values().flat_map(|file| file.frames.values());
    Ok(frames.filter_map(|frame| Some((frame.number, frame.in_dataset?))).collect())
}

/// What is in the files of a recording beside frames, if its journal says it.
pub(crate) fn tree_of(recording: &Recording) -> Option<TreeGroup> {
    recording.index.contents().and_then(|text| serde_json::from_str(&text).ok())
}

/// A recording that is being repaired.
struct Repair<'a> {
    recording: &'a Recording,
    /// What of it survived a loss of power for sure.
    durable: &'a Recording,
    /// What else is in its files, if the journals say so.
    tree: Option<TreeGroup>,
    /// What makes its frames again, if they are simulated.
    content: Option<Content>,
    went_down: bool,
    held: HeldDirectories,
    options: RepairOptions,
}

impl Repair<'_> {
    fn file(&self, file: &mut FileFrames) -> RepairedFile {
        let path = file.any().map(|place| self.recording.path(place)).unwrap_or_default();
        let access = if self.options.dry_run { OFlags::RDONLY } else { OFlags::RDWR };
        let outcome = match self.held.open(&path, access) {
            Ok(opened) => self.opened(&opened, file),
            Err(error) => {
                let why = format!("it can't be opened: {error}");
                file.frames.values_mut().for_each(|frame| frame.bytes = FrameBytes::Lost(why.clone()));
                RepairOutcome::Failed(why)
            }
        };
        told(path, outcome, file)
    }

    fn opened(&self, opened: &File, file: &mut FileFrames) -> RepairOutcome {
        if self.went_down {
            self.prove(file, true);
            for number in self.expected(file).not_found_before(opened) {
                let unproved =
                    file.frames.get_mut(&number).filter(|frame| frame.bytes == FrameBytes::Unproved);
                if let Some(frame) = unproved {
                    frame.bytes =
                        FrameBytes::Lost("it was not there when the file was repaired before".into());
                }
            }
        }
        let Err(why) = self.expected(file).check(opened) else { return RepairOutcome::Whole };
        self.prove(file, false);
        // What it lacks may be lost: then it is as good as it can be.
        let Err(why) = self.expected(file).check(opened).map_err(|_| why) else {
            return RepairOutcome::Whole;
        };
        let Some(tree) = &self.tree else {
            let more = "its journal does not say what else is in the file, so that it can't be made again: `nilometer export` \
                        reads the frames";
            return RepairOutcome::Failed(format!("{why}; {more}"));
        };
        if self.options.dry_run {
            return RepairOutcome::ToBeRepaired(why);
        }
        match remake::remake(opened, tree, self.expected(file)) {
            Ok(lost) => file.lost_values = lost,
            Err(error) => return RepairOutcome::Failed(format!("{why}; it was left as it is: {error}")),
        }
        match self.expected(file).check(opened) {
            Ok(()) => RepairOutcome::Repaired(why),
            Err(still) => RepairOutcome::Failed(format!("{why}; and when it was repaired: {still}")),
        }
    }

    fn expected<'a>(&'a self, file: &'a FileFrames) -> Expected<'a> {
        let recording = self.recording;
        Expected { recording, file, tree: self.tree.as_ref(), nothing_else: self.went_down }
    }

    /// Reads the frames of a file that were not read yet; or only those that a loss of power may have taken.
    fn prove(&self, file: &mut FileFrames, may_be_lost: bool) {
        let mut frames = self.recording.frames();
        let durable = &self.durable.index;
        for frame in file.frames.values_mut() {
            let is_durable = durable.places(frame.number).any(|place| place == frame.place);
            if frame.bytes == FrameBytes::Unread && !(may_be_lost && is_durable) {
                frame.prove(&mut frames, self.content.as_ref(), may_be_lost);
            }
        }
    }

    /// The file over all others, where there are several: made anew if it can't be read or does not have all frames.
    fn master(&self, directories: &[PathBuf], files_changed: bool) -> Option<RepairedFile> {
        let tree = self.tree.as_ref()?;
        // Where it was put when the recording was over.
        let heads = &self.recording.index.heads;
        let lane = (0..heads.len()).min_by_key(|lane| heads[*lane].lane)?;
        let home = self.recording.directory(lane).to_owned();
        let others = directories.iter().filter(|directory| **directory != home).cloned();
        let directories: Vec<_> = std::iter::once(home.clone()).chain(others).collect();
        let path = home.join(master_name(self.recording.name()));
        let frames = self.recording.index.expected();
        let outcome = match master_of(&directories, tree) {
            Ok(None) => return None,
            Ok(Some(bytes)) => self.put_master(&path, &bytes, files_changed),
            Err(error) => RepairOutcome::Failed(error.to_string()),
        };
        Some(RepairedFile { frames, ..RepairedFile::empty(path, outcome) })
    }

    fn put_master(&self, path: &Path, bytes: &[u8], files_changed: bool) -> RepairOutcome {
        let there = self.held.open(path, OFlags::RDONLY);
        let why = match &there {
            Ok(file) => self.is_over_all(file).err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("it is not there".to_owned()),
            Err(error) => return RepairOutcome::Failed(format!("it can't be opened: {error}")),
        };
        let changed = files_changed.then(|| "files that it is over were repaired".to_owned());
        let Some(why) = why.or(changed) else { return RepairOutcome::Whole };
        if self.options.dry_run {
            return RepairOutcome::ToBeRepaired(why);
        }
        match self.replace(path, bytes, there.is_ok()) {
            Ok(()) => RepairOutcome::Repaired(why),
            Err(error) => RepairOutcome::Failed(format!("{why}; it can't be written: {error}")),
        }
    }

    fn is_over_all(&self, file: &File) -> Result<(), String> {
        let unreadable = |error| format!("it can't be read: {error}");
        let frames = frames_of(self.tree.as_ref());
        let data =
            ReadFile::open(&path_of(file)).and_then(|read| read.dataset(&frames.path)).map_err(unreadable)?;
        let frames = data.dimensions().first().copied().unwrap_or(0);
        let expected = self.recording.index.expected();
        if frames == expected { Ok(()) } else { Err(format!("it has {frames} of {expected} frames")) }
    }

    fn replace(&self, path: &Path, bytes: &[u8], is_there: bool) -> io::Result<()> {
        let directory = self.held.directory(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let file = NewFile::create_in(directory.try_clone()?, name)?;
        file.file().write_all(bytes)?;
        if is_there {
            // It is made from the journals at any time.
            fs::unlinkat(directory, name, AtFlags::empty())?;
        }
        file.finish(0o666)
    }
}

fn told(path: PathBuf, outcome: RepairOutcome, file: &FileFrames) -> RepairedFile {
    let lost_values = file.lost_values.clone();
    let mut told = RepairedFile { lost_values, ..RepairedFile::empty(path, outcome) };
    for (number, frame) in &file.frames {
        match &frame.bytes {
            FrameBytes::Lost(why) => {
                told.lost_frames += 1;
                let named = told.lost.len() < NAMED_MAX;
                told.lost.extend(named.then(|| (*number, why.clone())));
            }
            bytes => {
                told.frames += 1;
                told.unproved += u64::from(*bytes == FrameBytes::Unproved);
            }
        }
    }
    told
}
