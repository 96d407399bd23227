//! Copies of a recording, or of a part of it, into one file: `disk2file`. A thread of its own reads and writes, and
//! replies never wait for it.
//!
//! Sources in the repository of jive5ab: "jive5ab command set" (doc/source/jive5ab-commands-sets.rst), `disk2file`
//! and `reset`; `src/mk5command/disk2file_vbs.cc` for order and codes.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, Write},
    ops::Range,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use nilometer_storage::{DetachedTask, NoOutcome};
use rustix::fs::OFlags;

use super::{peer::source::PeerSource, scan};
use crate::state::EndedScan;

/// The use that a copy makes of a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyOption {
    /// `n`: an existing file is an error.
    New,
    /// `w`: overwrite it.
    Overwrite,
    /// `a`: append to it.
    Append,
    /// `resume`: append the bytes that it does not have yet.
    Resume,
}

impl CopyOption {
    /// Reads an option of `disk2file`; `n` is the default.
    pub(super) fn read(text: &str) -> Option<Self> {
        Some(match text {
            "" | "n" => CopyOption::New,
            "w" => CopyOption::Overwrite,
            "a" => CopyOption::Append,
            "resume" => CopyOption::Resume,
            _ => return None,
        })
    }

    /// The word in commands and replies.
    pub(super) fn word(self) -> &'static str {
        match self {
            CopyOption::New => "n",
            CopyOption::Overwrite => "w",
            CopyOption::Append => "a",
            CopyOption::Resume => "resume",
        }
    }
}

/// A copy to make.
#[derive(Debug, Clone)]
pub(super) struct CopyRequest {
    pub(super) scan: EndedScan,
    /// The bytes to copy.
    pub(super) part: Range<u64>,
    /// The file, in a directory for recordings.
    pub(super) file: PathBuf,
    /// The name of the file as the station wrote it.
    pub(super) named: String,
    pub(super) option: CopyOption,
}

/// A copy that runs or has ended.
#[derive(Debug)]
struct RunningCopy {
    request: CopyRequest,
    copied: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    task: DetachedTask<io::Result<()>>,
    /// The outcome, or the reason why it failed. `None` while the copy runs.
    outcome: Option<Result<(), String>>,
}

impl RunningCopy {
    /// Takes the outcome of the task once it has one.
    fn look(&mut self) {
        if self.outcome.is_none() {
            self.outcome = match self.task.outcome() {
                Ok(outcome) => Some(outcome.map_err(|error| error.to_string())),
                Err(NoOutcome::Unfinished) => None,
                Err(NoOutcome::Gone) => Some(Err("internal error, see the log".into())),
            };
        }
    }
}

/// The state of copies, for replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CopyStatus {
    /// No copy was made since the service began.
    Never,
    /// A copy runs: its file, the first byte, the next byte, the end, and the option's word.
    Active { named: String, part: Range<u64>, next: u64, option: &'static str },
    /// The last copy is complete.
    Complete { named: String },
    /// The last copy failed or was aborted: its file and the reason.
    Failed { named: String, why: String },
}

/// The copies of this service, one at a time.
#[derive(Debug, Default)]
pub(super) struct FileCopies {
    last: Option<RunningCopy>,
    /// The files that this service made. It overwrites and appends to no others, since any client that reaches
    /// its port may name a file.
    made: BTreeSet<PathBuf>,
}

/// Bytes that are read and written at once.
const PIECE: u64 = 1 << 20;

/// A file that receives bytes at its end.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: File,
    /// True if it did not exist.
    pub(super) is_new: bool,
    /// The bytes that it has.
    pub(super) bytes: u64,
}

impl FileCopies {
    /// Begins a copy in the background. The error is the reason why it can't begin.
    pub(super) fn begin(&mut self, request: CopyRequest) -> Result<(), String> {
        if matches!(self.status(), CopyStatus::Active { .. }) {
            return Err("a disk2file is running, end it with reset = abort".into());
        }
        let exists = self.check(&request.file, &request.named, request.option)?;
        let request = if request.option == CopyOption::Resume { rest_of(request)? } else { request };
        let copied = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let task = DetachedTask::begin("disk2file", {
            let request = request.clone();
            let copied = copied.clone();
            let stop = stop.clone();
            move || copy(&request, exists, &copied, &stop)
        });
        let task = task.map_err(|error| format!("can't start a thread: {error}"))?;
        self.made.insert(request.file.clone());
        self.last = Some(RunningCopy { request, copied, stop, task, outcome: None });
        Ok(())
    }

    /// Returns true if the file exists. The error is the reason why nothing may be written to it.
    fn check(&self, file: &Path, named: &str, option: CopyOption) -> Result<bool, String> {
        let exists = file.symlink_metadata().is_ok();
        // m5copy looks for these two words.
        if exists && !self.has_made(file) {
            return Err(format!("{named}, File exists, and this service did not make it"));
        }
        if exists && option == CopyOption::New {
            return Err(format!("{named}, File exists, write option w or a"));
        }
        Ok(exists)
    }

    /// Opens a file that receives the stream of another recorder.
    pub(super) fn open(
        &mut self,
        file: &Path,
        named: &str,
        option: CopyOption,
    ) -> Result<OpenedFile, String> {
        let exists = self.check(file, named, option)?;
        let opened = open(file, option, exists).and_then(|opened| {
            let bytes = opened.metadata()?.len();
            Ok(OpenedFile { file: opened, is_new: !exists, bytes })
        });
        let opened = opened.map_err(|error| format!("{named}, {error}"))?;
        self.made.insert(file.to_owned());
        Ok(opened)
    }

    /// Returns true if this service made the file.
    pub(super) fn has_made(&self, file: &Path) -> bool {
        self.made.contains(file)
    }

    /// Stops a running copy. Returns false if none runs.
    pub(super) fn abort(&mut self) -> bool {
        let runs = matches!(self.status(), CopyStatus::Active { .. });
        if let Some(last) = &self.last {
            last.stop.store(true, Ordering::Relaxed);
        }
        runs
    }

    /// The state of the last copy.
    pub(super) fn status(&mut self) -> CopyStatus {
        let Some(last) = &mut self.last else { return CopyStatus::Never };
        last.look();
        let RunningCopy { request, copied, outcome, .. } = last;
        let named = request.named.clone();
        match outcome {
            Some(Ok(())) => CopyStatus::Complete { named },
            Some(Err(why)) => CopyStatus::Failed { named, why: why.clone() },
            None => {
                let next = request.part.start + copied.load(Ordering::Relaxed);
                let option = request.option.word();
                CopyStatus::Active { named, part: request.part.clone(), next, option }
            }
        }
    }
}

/// Returns the file that a station named, if it lies directly in a directory for recordings. A name without a
/// path is a file in the first of them.
pub(super) fn file_in(named: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(named);
    let name = path.file_name()?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = match parent {
        Some(parent) => directories.iter().find(|directory| directory.as_path() == parent)?,
        None => directories.first()?,
    };
    Some(directory.join(name))
}

/// The copy of the bytes that the file does not have yet.
fn rest_of(request: CopyRequest) -> Result<CopyRequest, String> {
    let there = request.file.metadata().map_or(0, |metadata| metadata.len());
    let CopyRequest { part, .. } = &request;
    if there > part.end - part.start {
        return Err(format!("{} has more bytes than the part", request.named));
    }
    let part = part.start + there..part.end;
    Ok(CopyRequest { part, ..request })
}

/// Copies a part of a recording into a file, and syncs it.
fn copy(request: &CopyRequest, exists: bool, copied: &AtomicU64, stop: &AtomicBool) -> io::Result<()> {
    let whole = scan::view(&request.scan).map_err(io::Error::other)?;
    let mut file = open(&request.file, request.option, exists)?;
    let reader = PeerSource::Recording(Arc::new(whole)).reader();
    let mut at = request.part.start;
    while at < request.part.end {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("aborted by reset = abort"));
        }
        let mut bytes = vec![0; PIECE.min(request.part.end - at) as usize];
        reader.read(at, &mut bytes)?;
        file.write_all(&bytes)?;
        at += bytes.len() as u64;
        copied.store(at - request.part.start, Ordering::Relaxed);
    }
    file.sync_all()?;
    // The file has all other blocks.
    reader.check()
}

/// Opens the file without following a link.
fn open(file: &Path, option: CopyOption, exists: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    match option {
        _ if !exists => options.create_new(true),
        CopyOption::Append | CopyOption::Resume => options.append(true),
        CopyOption::New | CopyOption::Overwrite => options.truncate(true),
    };
    options.open(file)
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, Storing};
    use nilometer_recording::view::laid_out::{PACKET_CASES, laid_out};

    use super::*;

    fn of_paths(paths: Vec<PathBuf>) -> EndedScan {
        EndedScan { name: "x".into(), paths, ..EndedScan::default() }
    }

    /// Copies a part of a recording to a file and waits for the end.
    fn copied(copies: &mut FileCopies, request: &CopyRequest) -> CopyStatus {
        copies.begin(request.clone()).expect("it can begin");
        let last = copies.last.as_mut().expect("it has begun");
        let outcome = last.task.outcome_within(Nanos::from_millis(60_000)).expect("it ends");
        last.outcome = Some(outcome.map_err(|error| error.to_string()));
        copies.status()
    }

    #[test]
    fn a_part_is_copied_overwritten_and_appended_to() {
        let blocks: Vec<_> = (0..10).map(|block| Some(block % 2).filter(|_| block % 4 != 3)).collect();
        let (lanes, reference) = laid_out(PACKET_CASES[0], Storing::Files, 2, &blocks, 3);
        let home = tempfile::tempdir().expect("space");
        let file = home.path().join("x.vdif");
        let part = 1000..reference.len() as u64 - 500;
        let request = CopyRequest {
            scan: of_paths(lanes.paths()),
            part: part.clone(),
            file: file.clone(),
            named: "x.vdif".into(),
            option: CopyOption::New,
        };
        let expected = &reference[part.start as usize..part.end as usize];
        let mut copies = FileCopies::default();
        assert_eq!(copies.status(), CopyStatus::Never);
        assert_eq!(copied(&mut copies, &request), CopyStatus::Complete { named: "x.vdif".into() });
        assert!(std::fs::read(&file).expect("it is there") == expected);
        assert!(copies.begin(request.clone()).expect_err("it exists").contains("exists"));
        copied(&mut copies, &CopyRequest { option: CopyOption::Append, ..request.clone() });
        assert!(std::fs::read(&file).expect("it is there") == [expected, expected].concat());
        copied(&mut copies, &CopyRequest { option: CopyOption::Overwrite, ..request.clone() });
        assert!(std::fs::read(&file).expect("it is there") == expected);
        assert!(!copies.abort(), "nothing runs");
        let cut = File::options().write(true).open(&file).expect("it is there");
        cut.set_len(700).expect("space");
        let resume = CopyRequest { option: CopyOption::Resume, ..request.clone() };
        for _ in 0..2 {
            copied(&mut copies, &resume);
            assert!(std::fs::read(&file).expect("it is there") == expected, "the rest was copied, once");
        }
        let shorter = CopyRequest { part: part.start..part.end - 1, ..resume };
        assert!(copies.begin(shorter).expect_err("it is longer").contains("more bytes"));
    }

    #[test]
    fn a_copy_without_blocks_that_cannot_be_read_has_failed() {
        let (lanes, reference) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 4], 3);
        let directory = &lanes.paths()[0];
        let files =
            std::fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("a file").path());
        let data =
            files.max_by_key(|file| file.metadata().map_or(0, |metadata| metadata.len())).expect("one");
        File::options().write(true).open(data).and_then(|file| file.set_len(10)).expect("it is there");
        let home = tempfile::tempdir().expect("space");
        let request = CopyRequest {
            scan: of_paths(lanes.paths()),
            part: 0..reference.len() as u64,
            file: home.path().join("x.vdif"),
            named: "x.vdif".into(),
            option: CopyOption::New,
        };
        let CopyStatus::Failed { why, .. } = copied(&mut FileCopies::default(), &request) else {
            panic!("blocks are missing")
        };
        assert!(why.contains("can't be read, invalid frames replace them"), "{why}");
        assert_eq!(std::fs::metadata(&request.file).expect("it is there").len(), reference.len() as u64);
    }

    #[test]
    fn files_of_others_are_not_touched() {
        let home = tempfile::tempdir().expect("space");
        let file = home.path().join("theirs");
        std::fs::write(&file, "data").expect("space");
        for option in [CopyOption::New, CopyOption::Overwrite, CopyOption::Append] {
            let request = CopyRequest {
                scan: EndedScan::default(),
                part: 0..8,
                file: file.clone(),
                named: "theirs".into(),
                option,
            };
            let why = FileCopies::default().begin(request).expect_err("it is not ours");
            assert!(why.contains("this service did not make it"), "{why}");
        }
        assert_eq!(std::fs::read(&file).expect("it is there"), b"data");
    }

    #[test]
    fn files_lie_in_directories_for_recordings() {
        let directories = ["/disk1".into(), "/disk2".into()];
        let of = |named| file_in(named, &directories);
        assert_eq!(of("x.vdif"), Some("/disk1/x.vdif".into()));
        assert_eq!(of("/disk2/x.vdif"), Some("/disk2/x.vdif".into()));
        for wrong in ["", "/etc/passwd", "../x", "/disk1/../x", "/disk1/scan/x", "x/..", "/", ".."] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(file_in("x", &[]), None);
    }
}
