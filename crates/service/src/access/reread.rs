//! The content of files, read again when they change: a recorder that runs for months gets new certificates and
//! tokens without a restart.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use nilometer_model::Nanos;
use nilometer_storage::{DetachedTask, NoOutcome, PATIENCE, in_time};

use crate::error::{OperatorLog, ServiceError};

/// The longest wait of a client for a look at the files. Then it gets the value read before.
const LOOK: Nanos = Nanos::from_millis(1000);

/// Reads the value from the files.
type ReadValue<T> = dyn Fn() -> Result<T, ServiceError> + Send + Sync;

/// A value that is read from files, and read again when one of them changes.
pub(super) struct Reread<T> {
    what: &'static str,
    paths: Arc<[PathBuf]>,
    read: Arc<ReadValue<T>>,
    value: RwLock<Arc<T>>,
    looks: Mutex<FileLooks<T>>,
    log: OperatorLog,
}

/// The looks at the files so far.
struct FileLooks<T> {
    /// The stamps of the files when they were last read.
    seen: Vec<Option<FileStamp>>,
    /// The error of the last read, if it failed. The next look reads again, even if no file changes: the cause may
    /// be the storage.
    failed: Option<String>,
    /// A look that did not end in time: storage hangs.
    pending: Option<DetachedTask<FileLook<T>>>,
}

/// The result of a look at the files.
struct FileLook<T> {
    stamps: Vec<Option<FileStamp>>,
    /// The value, if a file has changed or the last read failed.
    read: Option<Result<T, ServiceError>>,
}

/// A stamp that changes whenever the file does: device, inode, time of change in seconds and nanoseconds, size
/// in bytes.
type FileStamp = (u64, u64, i64, i64, u64);

impl<T: Send + 'static> Reread<T> {
    /// Reads the files. `what` names their content in the log.
    ///
    /// # Errors
    ///
    /// The content is invalid, or the storage of a file does not answer within [`PATIENCE`].
    pub(super) fn open(
        what: &'static str,
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, ServiceError> + Send + Sync + 'static,
        log: OperatorLog,
    ) -> Result<Self, ServiceError> {
        let paths: Arc<[PathBuf]> = paths.into();
        let looked_at = paths.clone();
        let first = paths.first().cloned().unwrap_or_default();
        let seen = in_time(PATIENCE, first, move || stamps(&looked_at));
        let seen = seen.map_err(ServiceError::asked_wrongly)?;
        let value = RwLock::new(Arc::new(read()?));
        let looks = Mutex::new(FileLooks { seen, failed: None, pending: None });
        Ok(Reread { what, paths, read: Arc::new(read), value, looks, log })
    }

    /// The value in the files now. If they are invalid now or their storage hangs, the log reports that once, and
    /// the previous value stays valid.
    pub(super) fn get(&self) -> Arc<T> {
        // Another thread may be looking already: do not wait for it.
        if let Ok(mut looks) = self.looks.try_lock() {
            self.look(&mut looks);
        }
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self, looks: &mut FileLooks<T>) {
        if let Some(pending) = looks.pending.take() {
            match pending.outcome() {
                Err(NoOutcome::Unfinished) => {
                    looks.pending = Some(pending);
                    return;
                }
                Ok(look) => self.take(look, looks),
                Err(NoOutcome::Gone) => {}
            }
        }
        let Ok(task) = self.begin_look(looks) else { return };
        match task.outcome_within(LOOK) {
            Ok(look) => self.take(look, looks),
            Err(NoOutcome::Unfinished) => {
                looks.pending = Some(task);
                self.report_hang();
            }
            Err(NoOutcome::Gone) => {}
        }
    }

    /// Starts to look at the files on a thread of its own, since their storage may hang.
    fn begin_look(&self, looks: &FileLooks<T>) -> std::io::Result<DetachedTask<FileLook<T>>> {
        let seen = looks.seen.clone();
        let has_failed = looks.failed.is_some();
        let paths = self.paths.clone();
        let read = self.read.clone();
        DetachedTask::begin("secrets", move || {
            let stamps = stamps(&paths);
            let read = (has_failed || stamps != seen).then(|| read());
            FileLook { stamps, read }
        })
    }

    fn take(&self, look: FileLook<T>, looks: &mut FileLooks<T>) {
        let has_changed = looks.seen != look.stamps;
        looks.seen = look.stamps;
        match look.read {
            None => {}
            Some(Ok(value)) => {
                looks.failed = None;
                *self.value.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
                (self.log)(&format!("{}: a file has changed, and was read again", self.what));
            }
            Some(Err(error)) => {
                let failed = Some(error.to_string());
                if has_changed || looks.failed != failed {
                    (self.log)(&format!(
                        "{}: {error}; the service keeps the values that it read before",
                        self.what
                    ));
                }
                looks.failed = failed;
            }
        }
    }

    fn report_hang(&self) {
        let paths: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
        (self.log)(&format!(
            "{}: the storage of {} did not answer within {} s; the service keeps the values that it read before",
            self.what,
            paths.join(", "),
            LOOK.seconds()
        ));
    }
}

impl<T> fmt::Debug for Reread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reread").field("paths", &self.paths).finish_non_exhaustive()
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Option<FileStamp>> {
    paths.iter().map(|path| stamp(path)).collect()
}

/// The stamp of a file, or `None` if there is no such file.
fn stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &Path) -> Result<u32, ServiceError> {
        let text = fs::read_to_string(path).map_err(ServiceError::failed)?;
        text.trim().parse().map_err(ServiceError::asked_wrongly)
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_is_wrong_changes_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("number");
        let write = |text: &str| {
            let next = directory.path().join("next");
            fs::write(&next, text).expect("space");
            fs::rename(&next, &path).expect("the same directory");
        };
        write("1");
        let file = path.clone();
        let reread = Reread::open("number", vec![path.clone()], move || number(&file), |_| {});
        let reread = reread.expect("it is a number");
        assert_eq!(*reread.get(), 1);
        write("22");
        assert_eq!(*reread.get(), 22);
        write("none");
        assert_eq!(*reread.get(), 22);
        fs::remove_file(&path).expect("it is there");
        assert_eq!(*reread.get(), 22);
        write("3");
        assert_eq!(*reread.get(), 3);
        assert!(Reread::open("number", Vec::new(), move || number(Path::new("/none")), |_| {}).is_err());
    }

    #[test]
    fn a_read_that_failed_is_tried_again_although_no_file_changes() {
        static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("number");
        fs::write(&path, "1").expect("space");
        // The storage of the file fails while another file is away.
        let gate = directory.path().join("gate");
        fs::write(&gate, "").expect("space");
        let [file, gate_of_read] = [&path, &gate].map(Clone::clone);
        let read = move || {
            let fault = || ServiceError::failed(std::io::Error::from_raw_os_error(5));
            if gate_of_read.exists() { number(&file) } else { Err(fault()) }
        };
        let log = |line: &str| SAID.lock().expect("no test fails in it").push(line.to_owned());
        let reread = Reread::open("number", vec![path.clone()], read, log).expect("it is a number");
        fs::remove_file(&gate).expect("it is there");
        fs::write(&path, "22").expect("space");
        assert_eq!([(); 3].map(|()| *reread.get()), [1; 3]);
        fs::write(&gate, "").expect("space");
        while *reread.get() == 1 {
            std::thread::yield_now();
        }
        assert_eq!(*reread.get(), 22);
        let said = SAID.lock().expect("no test fails in it");
        assert_eq!(said.len(), 2, "the fault once, and the new value: {said:?}");
    }

    /// Reads the number in a file. While the file `wait` stands beside it, it never ends.
    fn slow_number(path: &Path) -> Result<u32, ServiceError> {
        while path.with_file_name("wait").exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        number(path)
    }

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn lines() -> Vec<String> {
        LINES.lock().expect("no test fails in it").clone()
    }

    #[test]
    fn storage_that_hangs_is_reported_once_and_the_value_read_before_stays() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("number");
        fs::write(&path, "1").expect("space");
        let file = path.clone();
        let log = |line: &str| LINES.lock().expect("no test fails in it").push(line.to_owned());
        let reread = Reread::open("number", vec![path.clone()], move || slow_number(&file), log);
        let reread = reread.expect("it is a number");
        fs::write(directory.path().join("wait"), "").expect("space");
        fs::write(&path, "22").expect("space");
        for _ in 0..100 {
            assert_eq!(*reread.get(), 1);
        }
        assert_eq!(lines().len(), 1, "{:?}", lines());
        assert!(lines()[0].contains("did not answer within 1 s"), "{:?}", lines());
        fs::remove_file(directory.path().join("wait")).expect("it is there");
        while *reread.get() == 1 {
            std::thread::yield_now();
        }
        assert_eq!(*reread.get(), 22);
        assert_eq!(lines()[1..], ["number: a file has changed, and was read again"]);
    }
}
