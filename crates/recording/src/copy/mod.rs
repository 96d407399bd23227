//! Copies of recordings: all files of all lanes, with every block verified as the journals say.
//!
//! ```text
//! Recording -> files with their blocks -> read, check -> temporary name -> sync -> own name
//! journals last: until then nothing takes the copy for a recording
//! ```
//!
//! A copy that was killed goes on at the byte where it was. It first reads the bytes that it finds back, also those
//! of files that were whole, and keeps those that are right by their checksums. Without checksums it compares them
//! with the source. The result counts every block, whichever run copied it.

mod destination;
mod partial_copy;
mod recorder_locks;
mod source_files;
mod stretches;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_model::{ByteRate, Nanos};
use nilometer_storage::Clock;

use crate::{
    instrument::{Content, Origin},
    reader::Recording,
    recording_file::{PageCache, RecordingFile},
    recording_storage::{RecordingStorage, StoredFile},
};
use destination::CopyDirectory;
use partial_copy::{PartialCopy, reopen};
use recorder_locks::{DeviceNumber, RecorderLock, recorder_locks};
use source_files::{SourceFile, check_names, source_files};
use stretches::{AT_ONCE, BlockInFile, BlockState, Stretch, stretches};

/// Settings of a copy.
#[derive(Debug, Clone)]
pub struct CopySettings {
    /// Existing directories. Each gets a directory with the recording's name, and the lanes in turn.
    pub to: Vec<PathBuf>,
    /// Limit on the rate. With a limit the copy gives way to no recorder.
    pub at_most: Option<ByteRate>,
}

/// A report of a copy in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyNews {
    /// This number of bytes is copied.
    Done(u64),
    /// The copy waits for the recorder with this process number.
    Waits(u32),
    /// No recorder runs any more.
    GoesOn,
}

/// Why there is no copy, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The directory has other files.
    #[error("{path} exists: name another directory, or remove it")]
    Exists {
        /// The directory of the copy.
        path: PathBuf,
    },
    /// The directory has an incomplete copy of another recording.
    #[error("{path} has an incomplete copy of another recording: name another directory, or remove it")]
    OtherRecording {
        /// The directory of the copy.
        path: PathBuf,
    },
    /// Another process copies to the same directory.
    #[error("{path}: another copy of it is running")]
    Running {
        /// The directory of the copy.
        path: PathBuf,
    },
    /// The recorder still writes the recording.
    #[error("{path} is still being recorded: end the recording first")]
    Recording {
        /// A directory of the recording.
        path: PathBuf,
    },
    /// Two lanes have a file of this name.
    #[error("two lanes have a file {name}: name as many directories to copy to as the recording has")]
    SameName {
        /// The name.
        name: String,
    },
    /// Storage failed.
    #[error("{path}: {source}")]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// The error of the storage.
        source: io::Error,
    },
    /// The user stopped it.
    #[error("interrupted: the same command goes on with it")]
    Interrupted,
}

/// The result of a copy.
#[derive(Debug, Clone, Default)]
pub struct CopyResult {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes that an earlier copy had written already.
    pub found: u64,
    /// Number of blocks that are right by their checksums, or equal those of the simulated instrument.
    pub right: u64,
    /// Number of blocks without anything for comparison.
    pub unchecked: u64,
    /// Blocks that are damaged in the source and therefore in the copy, with their files.
    pub damaged: Vec<(u64, PathBuf)>,
    /// Files of the source that can't be read, and why. The copy lacks them.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Time for which it waited for recorders.
    pub waited: Nanos,
    /// The directories of the copy.
    pub directories: Vec<PathBuf>,
}

impl CopyResult {
    /// Returns true if the copy has everything, and no damage was found.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty() && self.unreadable.is_empty()
    }
}

/// How often a copy looks for recorders, and for a stop while it waits.
const LOOK: Nanos = Nanos::from_millis(200);

/// Copies a recording. Calls `tell` several times a second, and stops if that returns false.
///
/// # Errors
/// If the copy can't begin, or its storage fails. Damage of the source is part of the result.
pub fn copy(
    recording: &Recording,
    settings: &CopySettings,
    tell: &mut dyn FnMut(CopyNews) -> bool,
) -> Result<CopyResult, CopyError> {
    let lanes = recording.index.heads.len();
    for lane in 0..lanes {
        check_not_recorded(recording.directory(lane))?;
    }
    let files = source_files(recording)?;
    check_names(&files, settings.to.len())?;
    let number = recording.head().recording;
    let open = |above: &PathBuf| CopyDirectory::open(above, recording.name(), number);
    let to = settings.to.iter().take(lanes).map(open).collect::<Result<Vec<_>, _>>()?;
    let content = recording.index.origin.as_ref().and_then(|origin| Origin::content(origin).ok());
    let directories = to.iter().map(|directory| directory.path.clone()).collect();
    let clock = Clock::start();
    let mut copying = Copying {
        storage: recording.storage().clone(),
        recording,
        content,
        devices: devices_of(recording, &to),
        at_most: settings.at_most,
        names: BTreeSet::new(),
        looked: None,
        clock,
        read: 0,
        done: 0,
        tell,
        result: CopyResult { directories, ..CopyResult::default() },
    };
    let directory_of = |file: &SourceFile| to[file.lane % to.len()].path.as_path();
    // The journals are last in the list, and the first to lose their names: no file is missing beside them.
    for file in files.iter().rev() {
        let path = directory_of(file).join(&file.name);
        reopen(&path).map_err(|source| CopyError::Storage { path, source })?;
    }
    for file in &files {
        copying.file(file, directory_of(file))?;
    }
    if copying.result.unreadable.is_empty() {
        for directory in &to {
            let failed = |source| CopyError::Storage { path: directory.path.clone(), source };
            directory.finish().map_err(failed)?;
        }
    }
    Ok(copying.result)
}

/// Returns an error if a recorder has a lock on a directory of the recording.
fn check_not_recorded(directory: &Path) -> Result<(), CopyError> {
    // A directory that is gone is recorded by nobody.
    let Ok(status) = rustix::fs::stat(directory) else { return Ok(()) };
    // A program that looks whether somebody records holds the lock for a moment.
    let clock = Clock::start();
    let is_locked = |look: u32| {
        clock.sleep_until(Nanos(LOCK_LOOK.0 * u64::from(look)));
        recorder_locks().iter().any(|lock| lock.is_on(&status))
    };
    if (0..LOCK_LOOKS).all(is_locked) {
        return Err(CopyError::Recording { path: directory.to_owned() });
    }
    Ok(())
}

/// Looks at the lock of a directory that is to be copied, and the time between two.
const LOCK_LOOKS: u32 = 3;
const LOCK_LOOK: Nanos = Nanos::from_millis(20);

/// The devices from which and to which it copies.
fn devices_of(recording: &Recording, to: &[CopyDirectory]) -> Vec<DeviceNumber> {
    let lanes = 0..recording.index.heads.len();
    let from = lanes.map(|lane| recording.directory(lane));
    let all = from.chain(to.iter().map(|directory| directory.path.as_path()));
    all.filter_map(|path| rustix::fs::stat(path).ok()).map(|status| DeviceNumber::of(&status)).collect()
}

/// A copy in progress.
struct Copying<'a> {
    storage: Arc<dyn RecordingStorage>,
    recording: &'a Recording,
    /// The frames of a simulated instrument, if they can be made again.
    content: Option<Content>,
    devices: Vec<DeviceNumber>,
    at_most: Option<ByteRate>,
    /// The files that it has come to.
    names: BTreeSet<PathBuf>,
    /// The time of the last look for recorders.
    looked: Option<Nanos>,
    clock: Clock,
    /// Bytes read from the source, for the limit on the rate.
    read: u64,
    /// Bytes copied, or found of an earlier copy.
    done: u64,
    tell: &'a mut dyn FnMut(CopyNews) -> bool,
    result: CopyResult,
}

impl Copying<'_> {
    /// Copies a file, unless an earlier lane has the same file beside its frames.
    fn file(&mut self, source: &SourceFile, directory: &Path) -> Result<(), CopyError> {
        let path = directory.join(&source.name);
        if !self.names.insert(path.clone()) {
            return Ok(());
        }
        let opened = match self.open(source) {
            Ok(opened) => opened,
            Err(error) => {
                self.result.unreadable.push((source.path.clone(), error.to_string()));
                return Ok(());
            }
        };
        let failed = |error| CopyError::Storage { path: path.clone(), source: error };
        let mut copied = PartialCopy::open(directory, &source.name).map_err(failed)?;
        match self.bytes(source, &*opened.file, &mut copied) {
            Ok(length) => {
                copied.finish(length, opened.access).map_err(failed)?;
                self.result.bytes += length;
            }
            Err(CopyFault::Source(error)) => {
                self.result.unreadable.push((source.path.clone(), error.to_string()));
            }
            Err(CopyFault::Copy(error)) => return Err(failed(error)),
            Err(CopyFault::Stopped) => return Err(CopyError::Interrupted),
        }
        Ok(())
    }

    fn open(&self, source: &SourceFile) -> io::Result<RecordingFile> {
        let user = self.recording.user(source.lane);
        self.storage.open_of(&source.path, user, PageCache::Through)
    }

    /// Copies the bytes of a file, and returns their number.
    fn bytes(
        &mut self,
        source: &SourceFile,
        from: &dyn StoredFile,
        to: &mut PartialCopy,
    ) -> Result<u64, CopyFault> {
        let mut at = 0;
        for stretch in stretches(&source.blocks) {
            self.give_way()?;
            at = stretch.bytes.end;
            let read = self.stretch(source, &stretch, from, to)?;
            self.done += read;
            if read < stretch.bytes.end - stretch.bytes.start {
                // The file ends early. All further blocks are damaged.
                let rest = &source.blocks[stretch.blocks.end..];
                self.result.damaged.extend(rest.iter().map(|block| (block.number, source.path.clone())));
                return Ok(stretch.bytes.start + read);
            }
        }
        loop {
            self.give_way()?;
            let end = source.length.unwrap_or(u64::MAX).min(at + AT_ONCE).max(at);
            let rest = Stretch { bytes: at..end, blocks: 0..0 };
            let read = self.stretch(source, &rest, from, to)?;
            at += read;
            self.done += read;
            if at < end || end == source.length.unwrap_or(u64::MAX) {
                return Ok(at);
            }
        }
    }

    /// Copies a stretch, unless an earlier copy has it. Returns the bytes read, fewer only at the end of the file.
    fn stretch(
        &mut self,
        source: &SourceFile,
        stretch: &Stretch,
        from: &dyn StoredFile,
        to: &mut PartialCopy,
    ) -> Result<u64, CopyFault> {
        let blocks = &source.blocks[stretch.blocks.clone()];
        let begin = stretch.bytes.start;
        let mut bytes = vec![0; (stretch.bytes.end - begin) as usize];
        let is_found = to.read_found(begin, &mut bytes).map_err(CopyFault::Copy)?;
        if is_found && self.proves(blocks, &bytes, begin) {
            self.result.right += blocks.len() as u64;
            self.result.found += bytes.len() as u64;
            return Ok(bytes.len() as u64);
        }
        let found = is_found.then(|| bytes.clone());
        let read = read_up_to(from, &mut bytes, begin).map_err(CopyFault::Source)?;
        bytes.truncate(read);
        self.read += read as u64;
        for block in blocks {
            match block.state(&bytes, begin, self.content.as_ref()) {
                BlockState::Right => self.result.right += 1,
                BlockState::Unchecked => self.result.unchecked += 1,
                BlockState::Damaged => self.result.damaged.push((block.number, source.path.clone())),
            }
        }
        if found.is_some_and(|found| found == bytes) {
            self.result.found += read as u64;
        } else {
            to.write(begin, &bytes).map_err(CopyFault::Copy)?;
        }
        Ok(read as u64)
    }

    /// Returns true if checksums prove every byte that matters in a stretch of an earlier copy.
    fn proves(&self, blocks: &[BlockInFile], bytes: &[u8], begin: u64) -> bool {
        let content = self.content.as_ref();
        let covered: u64 = blocks.iter().map(|block| u64::from(block.extent.length)).sum();
        let right = |block: &BlockInFile| block.state(bytes, begin, content) == BlockState::Right;
        !blocks.is_empty() && covered == bytes.len() as u64 && blocks.iter().all(right)
    }

    /// Keeps to the rate, or waits until no recorder runs on the same file systems.
    fn give_way(&mut self) -> Result<(), CopyFault> {
        let begun = self.clock.now();
        self.news(CopyNews::Done(self.done))?;
        if let Some(rate) = self.at_most {
            return self.wait_until(Nanos::from_seconds(self.read as f64 / rate.0));
        }
        if self.looked.is_some_and(|looked| begun.since(looked) < LOOK) {
            return Ok(());
        }
        let mut waits = false;
        while let Some(process) = self.recorder() {
            if !waits {
                self.news(CopyNews::Waits(process))?;
            }
            waits = true;
            self.wait_until(self.clock.now() + LOOK)?;
        }
        self.looked = Some(self.clock.now());
        if waits {
            self.result.waited += self.clock.now().since(begun);
            self.news(CopyNews::GoesOn)?;
        }
        Ok(())
    }

    /// The process of a recorder on one of the file systems.
    fn recorder(&self) -> Option<u32> {
        let locks = recorder_locks();
        let here = |lock: &&RecorderLock| self.devices.contains(&lock.device);
        locks.iter().find(here).map(|lock| lock.process)
    }

    /// Sleeps, and looks for a stop in between.
    fn wait_until(&mut self, time: Nanos) -> Result<(), CopyFault> {
        while self.clock.now() < time {
            self.clock.sleep_until(time.min(self.clock.now() + LOOK));
            self.news(CopyNews::Done(self.done))?;
        }
        Ok(())
    }

    fn news(&mut self, news: CopyNews) -> Result<(), CopyFault> {
        if (self.tell)(news) { Ok(()) } else { Err(CopyFault::Stopped) }
    }
}

/// Why a file is not copied.
#[derive(Debug)]
enum CopyFault {
    /// The source can't be read.
    Source(io::Error),
    /// The copy can't be written, or read back.
    Copy(io::Error),
    Stopped,
}

/// Reads until `into` is full or the file ends.
fn read_up_to(file: &dyn StoredFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
