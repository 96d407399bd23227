//! A file that receives the stream of another recorder.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use nilometer_model::Bytes;

use super::receiver::PeerSink;
use crate::storage_space::space_of;

/// A file that receives a stream.
#[derive(Debug)]
pub(crate) struct FileSink {
    file: File,
    path: PathBuf,
    /// The bytes that stay free on its storage.
    reserve: Bytes,
    /// True until the first byte, if the file is new. A new file without a byte is removed at the end.
    is_unused: bool,
}

impl FileSink {
    /// A sink into an open file, at its end. `is_new` says that this transfer made the file.
    pub(crate) fn new(file: File, path: PathBuf, reserve: Bytes, is_new: bool) -> Self {
        FileSink { file, path, reserve, is_unused: is_new }
    }
}

impl PeerSink for FileSink {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        require_room(self.path.parent().unwrap_or(&self.path), self.reserve, bytes.len() as u64)?;
        self.is_unused = false;
        self.file.write_all(bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.is_unused {
            return fs::remove_file(&self.path);
        }
        self.file.sync_all()
    }
}

/// Fails if the storage of a directory has no room for more bytes beside the reserve.
pub(super) fn require_room(directory: &Path, reserve: Bytes, bytes: u64) -> io::Result<()> {
    let room = space_of(&[directory.to_owned()], reserve)?.recordable.0;
    if room < bytes {
        let why = format!("{}, no room for {bytes} more bytes", directory.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, why));
    }
    Ok(())
}
