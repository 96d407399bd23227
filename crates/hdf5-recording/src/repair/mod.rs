//! Repairs the HDF5 files of a recording after a loss of power or damage. Frames stay in place: the journals have
//! the position of each, and the rest of the content, so that all metadata can be rebuilt.
//!
//! ```text
//! journals -> frames of each file -> does its index agree? -- yes --> not touched
//!                                            | no
//!                                            v
//!                     read every frame, make the metadata anew, the superblock last
//! ```
//!
//! The journals are trusted, not the files. A half-repaired file still has its old content, and can be repaired
//! again.
//!
//! After a loss of power, durable frames are there; frames that were only acknowledged may be damaged. These are
//! read and compared with their checksum, or with their simulated content. Frames without anything to compare are
//! marked as not whole.

mod agreement;
mod held;
mod known;
mod made_ahead;
mod remake;
mod shared_file;

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
use held::HeldDirectories;
pub use held::is_held;
pub(crate) use held::{opened_own, path_of};
use known::{FileFrames, Files, FrameBytes, by_file};
use made_ahead::{BegunFileTreatment, UnusedFiles, each_of_empty, each_unused};
pub(crate) use remake::is_of_frames;
pub use shared_file::{SharedDatasetError, SharedDatasetFile};

/// The limits of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairOptions {
    /// If true, nothing is changed, and outcomes are predictions.
    pub dry_run: bool,
    /// If true, the user guarantees that no other machine still records it.
    pub recorder_is_down: bool,
}

/// Reasons why a recording could not be examined.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It is no recording, or can't be opened.
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
    /// Another process locks a directory.
    #[error("{path}: another process records or repairs it: run repair again when that has ended")]
    Recorded {
        /// The directory.
        path: PathBuf,
    },
    /// Another machine may still record it, and no lock would show that.
    #[error(
        "{path}: it did not end in order, and another machine may still record it: if that machine is down, add \
         --recorder-is-down"
    )]
    Elsewhere {
        /// The directory.
        path: PathBuf,
    },
    /// A directory or a journal can't be read.
    #[error("{path}: {source}")]
    Directory {
        /// The directory or journal.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The outcome for a file; with a dry run, the outcome that a repair would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOutcome {
    /// Its index agrees with the journal, and it was not changed.
    Whole,
    /// Its metadata were rebuilt, for this reason.
    Repaired(String),
    /// Its metadata would be rebuilt, for this reason.
    ToBeRepaired(String),
    /// The recorder made it ahead and wrote no frame into it; it was removed.
    Removed,
    /// It would be removed.
    ToBeRemoved,
    /// It is damaged and can't be repaired, for this reason.
    Failed(String),
}

/// A file of a recording, with the outcome of its repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedFile {
    /// Its path.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: RepairOutcome,
    /// Frames that HDF5 readers find in it now, or would find.
    pub frames: u64,
    /// Frames among them whose bytes nothing proves correct.
    pub unproved: u64,
    /// The first lost frames that are in the journal, by number, each with the reason.
    pub lost: Vec<(u64, String)>,
    /// Number of all lost frames.
    pub lost_frames: u64,
    /// Values that only the old file had and that are lost now, each with the reason.
    pub lost_values: Vec<String>,
}

impl RepairedFile {
    /// A file without frames.
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

/// Lost frames that are listed per file, at the most.
const NAMED_MAX: usize = 20;

/// Repairs the files of the recording in these directories, and passes the outcome of each to `tell`, in order.
///
/// # Errors
/// If nothing was done; the error has the reason.
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
    // Frames acknowledged in the meantime are there now.
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
    let begun = begun_files(&recording, &files);
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
    let unused = UnusedFiles { name: recording.name(), known: &known, begun, options };
    each_unused(&repair.held, unused, tell);
    Ok(())
}

/// The treatment of files that the recorder began. If only the recorder was killed, the kernel has all records of
/// its journals. A loss of power may take some of them, and so may storage that goes away. All files of a recording
/// have their first frame at about the same position: a file that ends before it has no frame.
fn begun_files(recording: &Recording, files: &Files) -> BegunFileTreatment {
    let index = &recording.index;
    let was_killed = index.due.is_none() && index.boot.is_some() && index.boot == BootId::now();
    let is_complete = recording.unreadable.is_empty() && index.heads.len() == recording.head().lanes as usize;
    let with_first = files.values().filter(|file| file.frames.contains_key(&file.first));
    let frames = with_first.map(FileFrames::begin).min().filter(|_| was_killed && is_complete);
    frames.map_or(BegunFileTreatment::Keep, BegunFileTreatment::RemoveBefore)
}

fn opened(directories: &[PathBuf], trust: Trust) -> Result<Recording, RepairError> {
    let recording = Recording::open(directories, trust)?;
    let format = recording.head().format;
    if format == Format::Hdf5 {
        return Ok(recording);
    }
    Err(RepairError::NotIndexed { name: recording.name().into(), format })
}

/// Returns true if the machine went down while it recorded, or another machine recorded: frames that were not
/// durable may be lost.
fn went_down(recording: &Recording) -> bool {
    let boot = recording.index.boot;
    boot.is_some() && boot != BootId::now() && recording.index.due.is_none()
}

/// The files in the order of their first frames.
fn in_order(files: &mut BTreeMap<(usize, u64), FileFrames>) -> Vec<&mut FileFrames> {
    let mut files: Vec<_> = files.values_mut().collect();
    files.sort_by_key(|file| file.first);
    files
}

/// The files of a recording whose index does not agree with its journals, each with the reason. Files of other
/// users are skipped, because the library would read them.
///
/// # Errors
/// If a journal can't be read.
pub fn index_faults(recording: &Recording) -> Result<Vec<(PathBuf, String)>, RepairError> {
    let mut faults = Vec::new();
    if !recording.is_over() && is_held(recording) {
        // A file that is being written is whole a moment later.
        return Ok(faults);
    }
    let tree = tree_of(recording);
    for file in by_file(recording)?.values() {
        let Some(path) = file.any().map(|place| recording.path(place)) else { continue };
        let expected = Expected { recording, file, tree: tree.as_ref(), nothing_else: false };
        // A file that can't be opened has unreadable frames, and these are reported elsewhere.
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

/// The position of each frame of a recording, if its files have several datasets.
///
/// # Errors
/// If a journal can't be read.
pub(crate) fn places_of(recording: &Recording) -> Result<BTreeMap<u64, DatasetPlace>, RepairError> {
    let files = by_file(recording)?;
    let frames = files.values().flat_map(|file| file.frames.values());
    Ok(frames.filter_map(|frame| Some((frame.number, frame.in_dataset?))).collect())
}

/// The content of a recording's files beside frames, if its journal has it.
pub(crate) fn tree_of(recording: &Recording) -> Option<TreeGroup> {
    recording.index.contents().and_then(|text| serde_json::from_str(&text).ok())
}

/// A recording that is being repaired.
struct Repair<'a> {
    recording: &'a Recording,
    /// The part of it that certainly survived a loss of power.
    durable: &'a Recording,
    /// The rest of the files' content, if the journals have it.
    tree: Option<TreeGroup>,
    /// The generator of its frames, if they are simulated.
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
        // The differences may come from lost frames; then the file can't become better.
        let Err(why) = self.expected(file).check(opened).map_err(|_| why) else {
            return RepairOutcome::Whole;
        };
        let Some(tree) = &self.tree else {
            let more = "its journal does not describe the rest of the file, so repair can't rebuild it: use \
                        `nilometer export` for the frames";
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

    /// Reads the frames of a file that were not read yet, or only those that a loss of power may have destroyed.
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

    /// Repairs the master file, if there are several files. It is made again if it can't be read or lacks frames.
    fn master(&self, directories: &[PathBuf], files_changed: bool) -> Option<RepairedFile> {
        let tree = self.tree.as_ref()?;
        // The directory into which the recorder put it.
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
            // It can be made from the journals at any time.
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
