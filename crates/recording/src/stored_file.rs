//! An open file of a recording, wherever it is stored.

use std::{fs::File, io};

/// An open file of a recording. It stays the same file across renames.
pub trait StoredFile: std::fmt::Debug + Send + Sync {
    /// Reads from an offset in bytes and returns the bytes read, 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the plain file behind it, if any.
    fn into_file(self: Box<Self>) -> Option<File> {
        None
    }

    /// Reads all of `into`, or fails at the end of the file.
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
