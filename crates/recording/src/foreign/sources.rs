//! Finds recordings without a journal among paths that the user names, by the content of files and by the names
//! of chunks.
//!
//! The user names files, or directories with chunks or Mark 6 files, or directories above those of chunks. Where
//! a journal describes the chunks, they are no source.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{
    capture, chunks, foreign_file::source_file, mark6, plain_file, recognition::recognized, wish::ForeignWish,
};
use crate::{
    reader::{OpenError, Recording},
    recording_file,
    recording_storage::StoredFile,
};

/// A recording without a journal, before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignSource {
    /// A file of frames.
    File(PathBuf),
    /// Captured packets.
    Capture(PathBuf),
    /// Chunks of one name, in the order of their numbers.
    Chunks {
        /// The name in front of the numbers.
        name: String,
        /// Number and path of each.
        chunks: Vec<(u32, PathBuf)>,
    },
    /// Mark 6 files of one name.
    Mark6 {
        /// The name of all files.
        name: String,
        /// A file on each disk.
        files: Vec<PathBuf>,
    },
}

impl ForeignSource {
    /// Opens the recording: reads the headers that say where its blocks are. They say the format too, unless the
    /// user names it.
    ///
    /// # Errors
    /// If a file can't be read, or has no frames or packets of a known format or of those that the user names.
    pub fn open_as(&self, wish: &ForeignWish) -> Result<Recording, OpenError> {
        let Some(option) = wish.option() else { return self.open() };
        let foreign = |path: &Path, why: String| OpenError::Foreign { path: path.to_owned(), why };
        match (self, wish) {
            (ForeignSource::File(path), ForeignWish { mode: Some(mode), port: None }) => {
                let opened = plain_file::open_as(path, &stem(path), mode).map_err(at(path))?;
                opened.map_err(|why| foreign(path, why))
            }
            (ForeignSource::File(path), ForeignWish { port, .. }) => {
                let port = port.unwrap_or_default();
                Err(foreign(
                    path,
                    format!("--port {port}: only packets in a capture have a port: leave it out"),
                ))
            }
            (ForeignSource::Capture(path), _) => {
                let opened = capture::open(path, &stem(path), wish).map_err(at(path))?;
                opened.map_err(|why| foreign(path, why))
            }
            (ForeignSource::Chunks { .. } | ForeignSource::Mark6 { .. }, _) => {
                Err(foreign(&self.first_file(), format!("{option}: {HAVE_THEIR_FORMAT}")))
            }
        }
    }

    /// Opens the recording, whose headers say its format.
    ///
    /// # Errors
    /// If a file can't be read, or has no frames or packets of a known format.
    pub fn open(&self) -> Result<Recording, OpenError> {
        let unknown = |path: &Path| OpenError::Foreign { path: path.to_owned(), why: UNKNOWN.into() };
        match self {
            ForeignSource::File(path) => {
                plain_file::open(path, &stem(path)).map_err(at(path))?.ok_or_else(|| unknown(path))
            }
            ForeignSource::Capture(path) => {
                let opened = capture::open(path, &stem(path), &ForeignWish::default()).map_err(at(path))?;
                opened.map_err(|why| OpenError::Foreign { path: path.clone(), why })
            }
            ForeignSource::Chunks { name, chunks } => {
                chunks::open(name, chunks).map_err(at(&self.first_file()))
            }
            ForeignSource::Mark6 { name, files } => {
                mark6::open(&stem(Path::new(name)), files).map_err(at(&self.first_file()))
            }
        }
    }

    /// The first of its files.
    pub fn first_file(&self) -> PathBuf {
        match self {
            ForeignSource::File(path) | ForeignSource::Capture(path) => path.clone(),
            ForeignSource::Chunks { chunks, .. } => {
                chunks.first().map_or_else(PathBuf::new, |(_, path)| path.clone())
            }
            ForeignSource::Mark6 { files, .. } => files.first().cloned().unwrap_or_default(),
        }
    }
}

/// The reason why nobody names the mode of chunks and Mark 6 files.
const HAVE_THEIR_FORMAT: &str =
    "only a file of frames or a capture takes it: leave it out for chunks and for Mark 6";
/// The reason why a file is no recording.
const UNKNOWN: &str = "no format that Nilometer knows: neither VDIF, Mark5B, Mark 6, pcap nor pcapng. Name such a file, or the \
     directories of a recording; name frames of CODIF by their mode, as in --mode CODIF_8000-512-16-2";

fn at(path: &Path) -> impl FnOnce(io::Error) -> OpenError + '_ {
    |source| OpenError::Directory { path: path.to_owned(), source }
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns true if a file is a recording without a journal by itself, or a part of one.
pub fn is_foreign_file(path: &Path) -> bool {
    path.is_file() && path.canonicalize().and_then(|path| kind_of(&path)).is_ok_and(|kind| kind.is_some())
}

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileContent {
    Frames,
    Mark6,
    Capture,
}

/// Looks at the beginning of a file.
fn kind_of(path: &Path) -> io::Result<Option<FileContent>> {
    let opened = source_file(path)?.opened;
    let mut magic = [0; 4];
    super::shape::read_up_to(&*opened.file, &mut magic, 0)?;
    if magic == mark6::MAGIC {
        return Ok(Some(FileContent::Mark6));
    }
    if capture::is_magic(magic) {
        return Ok(Some(FileContent::Capture));
    }
    if is_hdf5(&*opened.file)? {
        return Ok(None);
    }
    Ok(recognized(&*opened.file)?.map(|_| FileContent::Frames))
}

/// Returns true for an HDF5 file.
pub fn is_hdf5_file(path: &Path) -> bool {
    path.is_file() && source_file(path).and_then(|source| is_hdf5(&*source.opened.file)).unwrap_or(false)
}

/// The signature of an HDF5 file. A file may have other bytes in front of it: 512, 1024, 2048 and so on (HDF5 File
/// Format Specification 3.0, section II.A).
const HDF5: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// Limit on the bytes in front of the signature.
const HDF5_USER_BLOCK_MAX: u64 = 1 << 20;

fn is_hdf5(file: &dyn StoredFile) -> io::Result<bool> {
    let mut at = 0;
    while at <= HDF5_USER_BLOCK_MAX {
        let mut signature = [0; HDF5.len()];
        super::shape::read_up_to(file, &mut signature, at)?;
        if signature == HDF5 {
            return Ok(true);
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
    Ok(false)
}

/// Finds the recordings without a journal in files and directories, sorted by kind and name.
///
/// # Errors
/// A named file is unknown or can't be read.
pub fn foreign_sources(paths: &[PathBuf]) -> Result<Vec<ForeignSource>, OpenError> {
    let mut found = FoundFiles::default();
    let mut seen = BTreeSet::new();
    for path in paths.iter().filter(|path| seen.insert(*path)) {
        if path.is_file() {
            found.take_file(path)?;
        } else {
            // A lost disk has no files to show.
            drop(found.take_directory(path));
        }
    }
    Ok(found.sources())
}

/// Files found so far.
#[derive(Debug, Default)]
struct FoundFiles {
    alone: Vec<ForeignSource>,
    chunks: BTreeMap<String, Vec<(u32, PathBuf)>>,
    mark6: BTreeMap<String, Vec<PathBuf>>,
}

impl FoundFiles {
    /// Takes a file that the user named. Its name may be a link.
    fn take_file(&mut self, named: &Path) -> Result<(), OpenError> {
        let path = &named.canonicalize().map_err(at(named))?;
        if let Some((name, number)) = chunk_of(path) {
            self.chunks.entry(name.to_owned()).or_default().push((number, path.clone()));
            return Ok(());
        }
        match kind_of(path).map_err(at(named))? {
            Some(FileContent::Mark6) => {
                self.mark6.entry(file_name(path)).or_default().push(path.clone());
            }
            Some(FileContent::Capture) => self.alone.push(ForeignSource::Capture(path.clone())),
            Some(FileContent::Frames) | None => self.alone.push(ForeignSource::File(path.clone())),
        }
        Ok(())
    }

    /// Takes the chunks and the Mark 6 files in a directory, and the chunks in those below it.
    fn take_directory(&mut self, directory: &Path) -> io::Result<()> {
        let DirectoryNames { journals, files, directories } = DirectoryNames::of(directory)?;
        for path in files {
            if let Some((name, number)) = chunk_of(&path) {
                if !journals.contains(name) {
                    self.chunks.entry(name.to_owned()).or_default().push((number, path));
                }
            } else if journals.is_empty() && is_mark6(&path) {
                self.mark6.entry(file_name(&path)).or_default().push(path);
            }
        }
        for below in directories {
            let Ok(DirectoryNames { journals, files, .. }) = DirectoryNames::of(&below) else { continue };
            for path in files {
                // Chunks of other names do not belong to the recording of the directory's name.
                let found =
                    chunk_of(&path).filter(|(name, _)| below.ends_with(name) && !journals.contains(*name));
                if let Some((name, number)) = found {
                    self.chunks.entry(name.to_owned()).or_default().push((number, path));
                }
            }
        }
        Ok(())
    }

    fn sources(self) -> Vec<ForeignSource> {
        let FoundFiles { mut alone, chunks, mark6 } = self;
        for (name, mut chunks) in chunks {
            chunks.sort();
            chunks.dedup();
            alone.push(ForeignSource::Chunks { name, chunks });
        }
        alone.extend(mark6.into_iter().map(|(name, files)| ForeignSource::Mark6 { name, files }));
        alone
    }
}

/// Returns true if a file begins as a Mark 6 file.
fn is_mark6(path: &Path) -> bool {
    let read = recording_file::open(path).and_then(|opened| {
        let mut magic = [0; 4];
        super::shape::read_up_to(&opened.file, &mut magic, 0).map(|_| magic)
    });
    read.is_ok_and(|magic| magic == mark6::MAGIC)
}

/// The contents of a directory.
#[derive(Debug, Default)]
struct DirectoryNames {
    /// Names of recordings that have a journal there.
    journals: BTreeSet<String>,
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

impl DirectoryNames {
    fn of(directory: &Path) -> io::Result<Self> {
        let mut listed = DirectoryNames::default();
        recording_file::each_name(directory, |name, kind| {
            let path = directory.join(name);
            let journal = name.strip_suffix(".journal").and_then(|name| name.rsplit_once('.'));
            listed.journals.extend(journal.map(|(name, _)| name.to_owned()));
            let is_here = name == "." || name == "..";
            // Some file systems don't report the type of an entry.
            match kind {
                FileType::Directory if !is_here => listed.directories.push(path),
                FileType::Unknown if !is_here && path.is_dir() => listed.directories.push(path),
                FileType::RegularFile | FileType::Unknown if journal.is_none() => listed.files.push(path),
                _ => {}
            }
        })?;
        listed.files.sort();
        listed.directories.sort();
        Ok(listed)
    }
}

/// Digits of a chunk's number.
const DIGITS: usize = 8;

/// Returns name and number of a chunk, by its file's name.
fn chunk_of(path: &Path) -> Option<(&str, u32)> {
    let (name, digits) = path.file_name()?.to_str()?.rsplit_once('.')?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    // Other names are pieces of a journal, or files of a recorder that counts them in another way.
    if !is_number || name.is_empty() || name.contains('.') {
        return None;
    }
    Some((name, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_known_by_eight_digits() {
        assert_eq!(
            chunk_of(Path::new("/d/exp_st_no0001/exp_st_no0001.00000012")),
            Some(("exp_st_no0001", 12))
        );
        for other in [
            "/d/a.0.journal.00000001",
            "/d/a.0000012",
            "/d/a.000000123",
            "/d/.00000000",
            "/d/a.0000000x",
            "/d/a.+0000001",
            "/",
        ] {
            assert_eq!(chunk_of(Path::new(other)), None, "{other}");
        }
    }
}
