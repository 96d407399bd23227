//! The files of a recording, with the blocks that the journals have in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{CopyError, stretches::BlockInFile};
use crate::{journal::RECORD, reader::Recording};

/// A file to copy.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) lane: usize,
    /// Its blocks in the order of their offsets.
    pub(super) blocks: Vec<BlockInFile>,
    /// The number of bytes to copy, or `None` for all.
    pub(super) length: Option<u64>,
    /// False for a file beside the frames, which other lanes may have too.
    is_own: bool,
}

/// Lists the files of a recording: those with frames, then others, then the journals.
pub(super) fn source_files(recording: &Recording) -> Result<Vec<SourceFile>, CopyError> {
    let mut files: Vec<SourceFile> = Vec::new();
    for ((lane, _), (path, mut blocks)) in files_of_frames(recording)? {
        blocks.sort_by_key(|block| block.extent.offset);
        files.push(SourceFile { name: name_of(&path), path, lane, blocks, length: None, is_own: true });
    }
    let mut known: BTreeSet<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    for lane in 0..recording.index.heads.len() {
        let paths = files_beside(recording, lane)?;
        for path in paths.into_iter().filter(|path| known.insert(path.clone())) {
            let name = name_of(&path);
            files.push(SourceFile { name, path, lane, blocks: Vec::new(), length: None, is_own: false });
        }
    }
    for lane in 0..recording.index.heads.len() {
        let path = recording.journal(lane);
        // Later records are of frames that this list of files does not have.
        let length = Some(recording.index.records(lane) * RECORD as u64);
        files.push(SourceFile { name: name_of(&path), path, lane, blocks: Vec::new(), length, is_own: true });
    }
    Ok(files)
}

/// The path of each file with frames, and its blocks, by lane and number.
type FilesOfFrames = BTreeMap<(usize, u64), (PathBuf, Vec<BlockInFile>)>;

fn files_of_frames(recording: &Recording) -> Result<FilesOfFrames, CopyError> {
    let index = &recording.index;
    let mut records = recording.checksums();
    let mut files = FilesOfFrames::new();
    for number in index.frames.numbers(0..u64::MAX) {
        for place in index.places(number) {
            let checksum = records.of(number, place);
            let failed = |source| CopyError::Storage { path: recording.journal(place.lane), source };
            let block = BlockInFile { number, extent: place.extent, checksum: checksum.map_err(failed)? };
            let path = || (recording.path(place), Vec::new());
            files.entry(index.file_of(place)).or_insert_with(path).1.push(block);
        }
    }
    Ok(files)
}

/// The files beside the frames of a lane, such as the summary or an HDF5 file that links to others.
fn files_beside(recording: &Recording, lane: usize) -> Result<Vec<PathBuf>, CopyError> {
    let directory = recording.directory(lane);
    let name = recording.name();
    let mut paths = Vec::new();
    let is_taken = |other: &str, kind: FileType| kind.is_file() && is_beside(name, other);
    let mut take = |other: &str, kind: FileType| {
        paths.extend(is_taken(other, kind).then(|| directory.join(other)));
    };
    let listed = recording.storage().each_name(directory, &mut take);
    listed.map_err(|source| CopyError::Storage { path: directory.to_owned(), source })?;
    Ok(paths)
}

/// Returns true for a file of the recording `name` other than a journal.
fn is_beside(name: &str, file: &str) -> bool {
    let rest = file.strip_prefix(name).filter(|rest| rest.starts_with(['.', '_']));
    rest.is_some_and(|rest| !rest.ends_with(".journal"))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns an error if two files would get the same name in one of `directories` directories.
pub(super) fn check_names(files: &[SourceFile], directories: usize) -> Result<(), CopyError> {
    let mut names = BTreeSet::new();
    for file in files.iter().filter(|file| file.is_own) {
        if !names.insert((file.lane % directories.max(1), &file.name)) {
            return Err(CopyError::SameName { name: file.name.clone() });
        }
    }
    Ok(())
}
