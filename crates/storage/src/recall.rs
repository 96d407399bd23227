//! Reads files that may be on tape, and measures when their first and last bytes come. Finds such files by their
//! attributes, without opening one.

use std::{
    collections::VecDeque,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use nilometer_model::{Bytes, RecallTimes, RecalledFile, is_hollow};
use rustix::fs::OFlags;

use crate::Clock;

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToRecall {
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// True if its bytes are not on disk, as far as its blocks show.
    pub is_offline: bool,
}

impl FileToRecall {
    /// Looks at a file's attributes, which brings nothing back.
    ///
    /// # Errors
    /// If there is none, or if it is no plain file.
    pub fn at(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        Ok(Self::of(path.into(), &metadata))
    }

    fn of(path: PathBuf, metadata: &Metadata) -> Self {
        let allocated = metadata.blocks().saturating_mul(512);
        let is_offline = is_hollow(metadata.len(), allocated);
        FileToRecall { path, bytes: Bytes(metadata.len()), is_offline }
    }
}

/// The files below a directory whose bytes are not on disk, in the order of their paths. It follows no symbolic link,
/// enters no other file system, opens no file, and leaves out directories that it can't read.
///
/// # Errors
/// If the first directory can't be read.
pub fn offline_files(root: &Path, stop: &AtomicBool) -> io::Result<Vec<FileToRecall>> {
    let device = fs::metadata(root)?.dev();
    let mut found = Vec::new();
    let mut open = vec![fs::read_dir(root)?];
    while let Some(mut entries) = open.pop() {
        for entry in entries.by_ref().flatten() {
            if stop.load(Ordering::Relaxed) {
                return Ok(found);
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && metadata.dev() == device {
                open.extend(fs::read_dir(entry.path()));
            }
            let file = FileToRecall::of(entry.path(), &metadata);
            found.extend(Some(file).filter(|file| metadata.is_file() && file.is_offline));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// How often a recall looks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a read behind the first byte.
const STEP: usize = 1 << 20;

/// Reads files, `at_once` at a time, and hands each to `done` as soon as it is read. Ends early if `stop` becomes true:
/// reads that wait for a tape then go on until the process ends.
///
/// # Errors
/// If no thread can be started.
pub fn recall(
    files: Vec<FileToRecall>,
    at_once: u32,
    stop: &AtomicBool,
    done: &mut dyn FnMut(RecalledFile),
) -> io::Result<()> {
    let left = files.len();
    let queue = Arc::new(Mutex::new(VecDeque::from(files)));
    let (sender, results) = sync_channel(at_once as usize);
    let clock = Clock::start();
    for number in 0..at_once {
        let queue = Arc::clone(&queue);
        let sender = sender.clone();
        let reader = thread::Builder::new().name(format!("recall {number}"));
        reader.spawn(move || read_all(&queue, at_once, clock, &sender))?;
    }
    drop(sender);
    let mut left = left;
    while left > 0 && !stop.load(Ordering::Relaxed) {
        match results.recv_timeout(LOOK_EVERY) {
            Ok(read) => {
                left -= 1;
                done(read);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a reading thread failed")),
        }
    }
    Ok(())
}

/// Reads files until none is left, or nobody takes the results.
fn read_all(
    queue: &Mutex<VecDeque<FileToRecall>>,
    at_once: u32,
    clock: Clock,
    results: &SyncSender<RecalledFile>,
) {
    while let Some(FileToRecall { path, bytes, is_offline }) = next_of(queue) {
        let times = read_whole(&path, clock).map_err(|error| error.to_string());
        let read = RecalledFile { path, bytes, was_offline: is_offline, at_once, times };
        if results.send(read).is_err() {
            return;
        }
    }
}

fn next_of(queue: &Mutex<VecDeque<FileToRecall>>) -> Option<FileToRecall> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Reads a file to its end.
fn read_whole(path: &Path, clock: Clock) -> io::Result<RecallTimes> {
    let begun = clock.now();
    let flags = OFlags::CLOEXEC.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut buffer = vec![0; STEP];
    let mut read = read_some(&mut file, &mut buffer[..1])?;
    let first = clock.now().since(begun);
    while read > 0 {
        read = read_some(&mut file, &mut buffer)?;
    }
    Ok(RecallTimes { first, last: clock.now().since(begun) })
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_blocks_are_found_and_others_are_not() {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("below")).expect("space");
        for name in ["b", "below/a"] {
            let file = File::create(home.path().join(name)).expect("space");
            file.set_len(1 << 20).expect("a hole");
        }
        fs::write(home.path().join("full"), vec![7; 1 << 20]).expect("space");
        std::os::unix::fs::symlink(home.path(), home.path().join("loop")).expect("space");
        let found = offline_files(home.path(), &AtomicBool::new(false)).expect("readable");
        let names: Vec<&Path> =
            found.iter().map(|file| file.path.strip_prefix(home.path()).expect("below")).collect();
        assert_eq!(names, [Path::new("b"), Path::new("below/a")]);
        assert!(!FileToRecall::at(&home.path().join("full")).expect("a file").is_offline);
        assert!(FileToRecall::at(home.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn every_file_is_read_once_and_a_fault_is_a_result() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut files = Vec::new();
        for number in 0..7 {
            let path = home.path().join(number.to_string());
            fs::write(&path, vec![1; 10_000]).expect("space");
            files.push(FileToRecall::at(&path).expect("a file"));
        }
        fs::remove_file(home.path().join("3")).expect("it is there");
        let mut read = Vec::new();
        recall(files, 3, &AtomicBool::new(false), &mut |file| read.push(file)).expect("threads");
        read.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(read.len(), 7);
        for (number, file) in read.iter().enumerate() {
            assert_eq!((file.at_once, file.times.is_err()), (3, number == 3), "{file:?}");
            assert!(file.times.as_ref().is_ok_and(|times| times.first <= times.last) || number == 3);
        }
    }

    #[test]
    fn a_recall_that_is_stopped_reads_no_more() {
        let mut read = 0;
        let file = FileToRecall { path: "/dev/null".into(), bytes: Bytes(0), is_offline: true };
        recall(vec![file], 1, &AtomicBool::new(true), &mut |_| read += 1).expect("threads");
        assert_eq!(read, 0);
    }
}
