//! A file of a copy. It has a temporary name until it is whole and synced, and a later copy goes on with it.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::recording_file::ReadAccess;

/// A file that is being copied.
#[derive(Debug)]
pub(super) struct PartialCopy {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    /// Bytes of an earlier copy.
    found: u64,
    /// Bytes written since the last sync.
    unsynced: u64,
}

/// Bytes after which it syncs, so that the storage gets an even load.
const SYNC: u64 = 64 << 20;

impl PartialCopy {
    /// Opens the file for a copy to this path, with the bytes of an earlier one.
    pub(super) fn open(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        let temporary = temporary_of(&path);
        let mut options = OpenOptions::new();
        let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow);
        let file = options.open(&temporary)?;
        let found = file.metadata()?.len();
        Ok(PartialCopy { file, temporary, path, found, unsynced: 0 })
    }

    /// Reads bytes of an earlier copy. Returns false if it has fewer.
    pub(super) fn read_found(&self, offset: u64, into: &mut [u8]) -> io::Result<bool> {
        if offset + into.len() as u64 > self.found {
            return Ok(false);
        }
        self.file.read_exact_at(into, offset).map(|()| true)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Gives the file its name. It then has `length` bytes and survives a loss of power.
    pub(super) fn finish(self, length: u64, access: ReadAccess) -> io::Result<()> {
        self.file.set_len(length)?;
        let group = self.file.metadata()?.gid();
        let mode = access.mode_in_group(group) | 0o600;
        self.file.set_permissions(Permissions::from_mode(mode))?;
        self.file.sync_all()?;
        if self.path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        fs::rename(&self.temporary, &self.path)?;
        sync_directory_of(&self.path)
    }
}

fn temporary_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.copying"))
}

/// Gives the file of an earlier copy its temporary name again, so that this copy checks it.
pub(super) fn reopen(path: &Path) -> io::Result<()> {
    match fs::rename(path, temporary_of(path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        renamed => renamed.and_then(|()| sync_directory_of(path)),
    }
}

/// Syncs the directory of a file, so that its name survives a loss of power.
pub(super) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let above = path.parent().unwrap_or(Path::new("."));
    File::open(above)?.sync_all()
}
