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
    /// Its device and inode. Several paths may lead to it.
    pub identity: FileIdentity,
}

/// The device and inode of a file. Hard links of one file have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
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
        let identity = FileIdentity { device: metadata.dev(), inode: metadata.ino() };
        FileToRecall { path, bytes: Bytes(metadata.len()), is_offline, identity }
    }
}

/// The files below a directory whose bytes are not on disk.
#[derive(Debug, Default)]
pub struct OfflineFiles {
    /// In the order of their paths.
    pub files: Vec<FileToRecall>,
    /// Number of directories and entries that can't be read, with the files below them.
    pub unread: u64,
}

/// The files below a directory whose bytes are not on disk. It follows no symbolic link, enters no other file system,
/// and opens no file.
///
/// # Errors
/// If the first directory can't be read. It counts other directories that it can't read.
pub fn offline_files(root: &Path, stop: &AtomicBool) -> io::Result<OfflineFiles> {
    let device = fs::metadata(root)?.dev();
    let mut found = OfflineFiles::default();
    // Paths, because a directory may have more directories than a process may open.
    let mut waiting = found.look_into(root, device, stop)?;
    while let Some(directory) = waiting.pop().filter(|_| !stop.load(Ordering::Relaxed)) {
        match found.look_into(&directory, device, stop) {
            Ok(below) => waiting.extend(below),
            Err(error) => found.count_unread(&error),
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl OfflineFiles {
    /// Adds the files of a directory on this device. Returns the directories in it.
    fn look_into(&mut self, directory: &Path, device: u64, stop: &AtomicBool) -> io::Result<Vec<PathBuf>> {
        let mut below = Vec::new();
        for entry in fs::read_dir(directory)? {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() && metadata.dev() == device => below.push(entry.path()),
                Ok(metadata) if metadata.is_file() => self.add(FileToRecall::of(entry.path(), &metadata)),
                Ok(_) => {}
                Err(error) => self.count_unread(&error),
            }
        }
        Ok(below)
    }

    fn add(&mut self, file: FileToRecall) {
        if file.is_offline {
            self.files.push(file);
        }
    }

    /// An entry that was removed meanwhile is no loss.
    fn count_unread(&mut self, error: &io::Error) {
        self.unread += u64::from(error.kind() != io::ErrorKind::NotFound);
    }
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
    let mut left = files.len();
    let queue = Arc::new(Mutex::new(VecDeque::from(files)));
    let (sender, results) = sync_channel(at_once as usize);
    let clock = Clock::start();
    for number in 0..at_once.min(left as u32) {
        let queue = Arc::clone(&queue);
        let sender = sender.clone();
        let reader = thread::Builder::new().name(format!("recall {number}"));
        reader.spawn(move || read_all(&queue, at_once, clock, &sender))?;
    }
    drop(sender);
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
    while let Some(FileToRecall { path, bytes, is_offline, .. }) = next_of(queue) {
        let times = read_whole(&path, bytes, clock).map_err(|error| error.to_string());
        let read = RecalledFile { path, bytes, was_offline: is_offline, at_once, times };
        if results.send(read).is_err() {
            return;
        }
    }
}

fn next_of(queue: &Mutex<VecDeque<FileToRecall>>) -> Option<FileToRecall> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Reads a file to its end, which is not before this many bytes.
fn read_whole(path: &Path, bytes: Bytes, clock: Clock) -> io::Result<RecallTimes> {
    let begun = clock.now();
    let flags = OFlags::CLOEXEC.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut buffer = vec![0; STEP];
    let mut read = read_some(&mut file, &mut buffer[..1])?;
    let first = clock.now().since(begun);
    let mut all = read as u64;
    while read > 0 {
        read = read_some(&mut file, &mut buffer)?;
        all += read as u64;
    }
    if all < bytes.0 {
        let why = format!("it ended after {} of {bytes}", Bytes(all));
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
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
        let OfflineFiles { files, unread } =
            offline_files(home.path(), &AtomicBool::new(false)).expect("readable");
        assert_eq!(unread, 0);
        let names: Vec<&Path> =
            files.iter().map(|file| file.path.strip_prefix(home.path()).expect("below")).collect();
        assert_eq!(names, [Path::new("b"), Path::new("below/a")]);
        assert!(!FileToRecall::at(&home.path().join("full")).expect("a file").is_offline);
        assert!(FileToRecall::at(home.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn more_directories_than_a_process_may_open_are_all_looked_into() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1024);
        let count = most.min(5000) + 100;
        for number in 0..count {
            let below = home.path().join(number.to_string());
            fs::create_dir(&below).expect("space");
            File::create(below.join("a")).expect("space").set_len(1 << 20).expect("a hole");
        }
        let found = offline_files(home.path(), &AtomicBool::new(false)).expect("readable");
        assert_eq!((found.files.len() as u64, found.unread), (count, 0));
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
        // This one has fewer bytes now than a moment ago.
        File::options()
            .write(true)
            .open(home.path().join("5"))
            .expect("a file")
            .set_len(9999)
            .expect("space");
        let mut read = Vec::new();
        recall(files, 3, &AtomicBool::new(false), &mut |file| read.push(file)).expect("threads");
        read.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(read.len(), 7);
        for (number, file) in read.iter().enumerate() {
            let is_fault = [3, 5].contains(&number);
            assert_eq!((file.at_once, file.times.is_err()), (3, is_fault), "{file:?}");
            assert!(file.times.as_ref().is_ok_and(|times| times.first <= times.last) || is_fault);
        }
    }

    #[test]
    fn a_recall_that_is_stopped_reads_no_more() {
        let mut read = 0;
        let identity = FileIdentity::default();
        let file = FileToRecall { path: "/dev/null".into(), bytes: Bytes(0), is_offline: true, identity };
        recall(vec![file], 1, &AtomicBool::new(true), &mut |_| read += 1).expect("threads");
        assert_eq!(read, 0);
    }
}
