//! The content of files, read again when they change: a recorder that runs for months gets new certificates and
//! tokens without a restart.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use crate::error::{OperatorLog, ServiceError};

/// A value that is read from files, and read again when one of them changes.
pub(super) struct Reread<T> {
    what: &'static str,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, ServiceError> + Send + Sync>,
    value: RwLock<Arc<T>>,
    /// The stamps of the files when they were last read.
    seen: Mutex<Vec<Option<FileStamp>>>,
    log: OperatorLog,
}

/// A stamp that changes whenever the file does: device, inode, time of change in seconds and nanoseconds, size
/// in bytes.
type FileStamp = (u64, u64, i64, i64, u64);

impl<T> Reread<T> {
    /// Reads the files. `what` names their content in the log.
    pub(super) fn open(
        what: &'static str,
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, ServiceError> + Send + Sync + 'static,
        log: OperatorLog,
    ) -> Result<Self, ServiceError> {
        let seen = stamps(&paths);
        let value = RwLock::new(Arc::new(read()?));
        Ok(Reread { what, paths, read: Box::new(read), value, seen: Mutex::new(seen), log })
    }

    /// The value in the files now. If they are invalid now, the log reports that once, and the previous value
    /// stays valid.
    pub(super) fn get(&self) -> Arc<T> {
        // Another thread may be looking already, at storage that hangs: do not wait for it.
        if let Ok(mut seen) = self.seen.try_lock() {
            let now = stamps(&self.paths);
            if *seen != now {
                *seen = now;
                self.read_again();
            }
        }
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read_again(&self) {
        match (self.read)() {
            Ok(value) => {
                *self.value.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
                (self.log)(&format!("{}: a file has changed, and was read again", self.what));
            }
            Err(error) => (self.log)(&format!(
                "{}: {error}; the service keeps the values that it read before",
                self.what
            )),
        }
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
}
