//! One writer a record: a lock file beside it, held while a campaign writes. The kernel lets go of it when the process
//! dies, however it dies, so that a file which a kill left behind stops nobody.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::RecordError;

/// Held until it is dropped; the file goes with it.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
}

/// A process that was killed lets go a moment later.
const TRIES: u32 = 40;
const STEP: Duration = Duration::from_millis(50);

impl Lock {
    /// Takes the lock of a record.
    pub(super) fn of(record: &Path) -> Result<Self, RecordError> {
        let mut path = record.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let failed = |source| RecordError::Lock { path: path.clone(), source };
        for _ in 0..TRIES {
            if let Some(file) = try_lock(&path).map_err(failed)? {
                return Ok(Lock { path, file });
            }
            thread::sleep(STEP);
        }
        let mut holder = String::new();
        // Only for the message.
        drop(File::open(&path).and_then(|mut file| file.read_to_string(&mut holder)));
        Err(RecordError::InUse { path: record.into(), holder: holder.trim().into() })
    }
}

/// None if somebody else has it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Who had it before may have removed the file that was opened here.
    if !fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino())) {
        return Ok(None);
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Some(file))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is held: whoever opened it meanwhile sees that it is gone.
        drop(fs::remove_file(&self.path));
        drop(self.file.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_a_file_left_behind_stops_nobody() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = directory.path().join("r.sqlite");
        fs::write(directory.path().join("r.sqlite.lock"), "12345\n").expect("left by a killed process");
        let lock = Lock::of(&record).expect("nobody holds it");
        let error = Lock::of(&record).expect_err("held").to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(lock);
        assert!(!directory.path().join("r.sqlite.lock").exists());
        Lock::of(&record).expect("free again");
    }
}
