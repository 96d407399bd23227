//! A file of HDF5 without a journal, made by an export or any other program. Its frames are found by its index,
//! read and unpacked, chunk by chunk. Without a journal, there is nothing to compare them with.
//!
//! ```text
//! dataset   +------+------+   a slab: all chunks that have something of the same rows of the first dimension,
//!           |chunk |chunk |   put together, so that its frames are whole and follow each other
//!           +------+------+
//!           |chunk |chunk |
//! ```
//!
//! Chunks that one of our codecs or a plug-in unpacks are read at the position in the index. The library itself
//! reads chunks that only need its own filters (deflate, shuffle, Fletcher's checksum).

mod believable;
mod error;
mod newer;
mod plain_copy;
mod rewritten;
mod slab;
mod stretches;

use std::{
    collections::HashMap,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_hdf5::{
    ChunkPlace, FoundDatasets, Hdf5Error, PlacedChunks, ReadDataset, ReadFile, StoredFilter, StoredShape,
    filter_plugin,
    nexus::{FRAMES_PATH, MODULES_PATH, RECORDER_PATH, RecorderColumn},
};
use nilometer_model::{Bytes, FrameCompression, PluginFilter};
use nilometer_recording::Ranges;
use nilometer_storage::process::available_memory;

pub use error::LoneFileError;
pub use nilometer_hdf5::{BrokenObject, note_reading};
pub use plain_copy::{PlainCopy, checksum_of_copy};
pub use rewritten::{ChunkPlan, RewriteWishes, RewrittenFrames};

use crate::repair::{opened_own, path_of};
use slab::Slab;
use stretches::RowStretch;

/// A dataset of frames in a file without a journal.
#[derive(Debug)]
pub struct LoneFile {
    path: PathBuf,
    file: File,
    /// Length of the file.
    bytes: u64,
    read: ReadFile,
    dataset: ReadDataset,
    name: String,
    others: Vec<String>,
    broken: Vec<BrokenObject>,
    shape: StoredShape,
    unpacking: Unpacking,
    places: HashMap<Vec<u64>, ChunkPlace>,
}

/// The way in which chunks become elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unpacking {
    /// Our codecs or a plug-in unpack them, or they need no unpacking.
    Here(FrameCompression),
    /// The library unpacks them.
    ByLibrary,
}

/// A chunk that can't be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoneDamage {
    /// Its first element in the dataset.
    pub begin: Vec<u64>,
    /// The first frame that it overlaps.
    pub frame: u64,
    /// The reason.
    pub why: String,
}

/// The result of reading a whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoneVerified {
    /// Chunks in the index.
    pub chunks: u64,
    /// Frames with a missing chunk, or marked as absent.
    pub missing: Ranges,
    /// Frames marked as incomplete.
    pub not_whole: Ranges,
    /// Frames with a damaged chunk.
    pub damaged: Ranges,
    /// The first damaged chunks.
    pub damages: Vec<LoneDamage>,
    /// Number of damaged chunks.
    pub damaged_chunks: u64,
    /// Objects of the file that can't be read; their content is unknown.
    pub broken: Vec<BrokenObject>,
}

/// Damaged chunks that are listed, at the most.
const NAMED_MAX: usize = 20;

/// The signature of HDF5 files, at the start or behind a user block (HDF5 File Format Specification, version 3.0,
/// II.A).
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Returns true if a file has the signature. The user block is empty, or its size is 512 B or a larger power of two.
fn is_hdf5(file: &File) -> bool {
    let begins = std::iter::once(0).chain((9..u64::BITS - 1).map(|power| 1 << power));
    let mut found = [0; SIGNATURE.len()];
    begins
        .map_while(|at| file.read_exact_at(&mut found, at).ok().map(|()| found))
        .any(|found| found == SIGNATURE)
}

impl LoneFile {
    /// Opens a file of this user. Takes the dataset with the path `named`, or else the only one that fits.
    ///
    /// # Errors
    /// If no dataset fits, or several do; the error lists the alternatives.
    pub fn open(path: &Path, named: Option<&str>) -> Result<Self, LoneFileError> {
        let file = opened_own(path).map_err(|source| LoneFileError::Storage { path: path.into(), source })?;
        let failed = |source| LoneFileError::Hdf5 { path: path.into(), source };
        let wrong = |why| LoneFileError::Frames { path: path.into(), why };
        if !is_hdf5(&file) {
            let why = "no format that Nilometer knows: it is neither the directory of a recording nor a file of HDF5, VDIF, \
                       Mark5B, Mark 6, pcap or pcapng. Name frames of VDIF, Mark5B or CODIF by their mode, as in --mode \
                       VDIF_8000-4096-16-2";
            return Err(wrong(why.into()));
        }
        let failed = |source| newer::or(failed(source), &file);
        let read = ReadFile::open(&path_of(&file)).map_err(failed)?;
        let FoundDatasets { paths: mut others, mut broken } = read.datasets_of_numbers(RANK_LEAST);
        let name = match named {
            Some(named) => format!("/{}", named.trim_matches('/')),
            None if hides_frames(&broken) || others.is_empty() && !broken.is_empty() => {
                let error = LoneFileError::Broken { path: path.into(), objects: broken, others };
                return Err(newer::or(error, &file));
            }
            None => meant(&read, &others).map_err(wrong)?,
        };
        others.retain(|other| *other != name);
        let dataset = read.own_dataset(&name).map_err(failed)?;
        let shape = dataset.stored().map_err(failed)?;
        if shape.dimensions.len() < RANK_LEAST {
            return Err(wrong(format!("{name} has {} dimension, and no frames", shape.dimensions.len())));
        }
        let bytes =
            file.metadata().map_err(|source| LoneFileError::Storage { path: path.into(), source })?.len();
        check_stored(&shape, bytes).map_err(|why| failed(broken_claim(&name, why)))?;
        let unpacking = unpacking_of(&shape).map_err(|why| wrong(format!("{name}: {why}")))?;
        let mut places = HashMap::new();
        if shape.chunk.is_some() {
            let PlacedChunks { chunks, fault } = dataset.placed_chunks();
            places.extend(chunks.into_iter().map(|chunk| (chunk.begin, chunk.place)));
            broken.extend(fault.map(|why| BrokenObject { path: name.clone(), why: why.to_string() }));
        }
        let path = path.into();
        newer::mark(&mut broken, &file);
        let opened =
            LoneFile { path, file, bytes, read, dataset, name, others, broken, shape, unpacking, places };
        opened.check_memory().map_err(wrong)?;
        Ok(opened)
    }

    /// The path of its dataset.
    pub fn dataset(&self) -> &str {
        &self.name
    }

    /// The paths of other datasets that may have frames.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// The storage of its dataset.
    pub fn shape(&self) -> &StoredShape {
        &self.shape
    }

    /// Number of frames. A frame is the last two dimensions, or the last one if there are two.
    pub fn frames(&self) -> u64 {
        self.lead().iter().product()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> u64 {
        let sides = &self.shape.dimensions[self.lead().len()..];
        sides.iter().fold(self.shape.element as u64, |bytes, side| bytes.saturating_mul(*side))
    }

    /// Number of chunks in a complete dataset.
    pub fn chunks_due(&self) -> u64 {
        let chunk = self.chunk();
        self.shape.dimensions.iter().zip(&chunk).map(|(side, chunk)| side.div_ceil(*chunk)).product()
    }

    /// Dimensions before those of a frame.
    fn lead(&self) -> &[u64] {
        let rank = self.shape.dimensions.len();
        &self.shape.dimensions[..rank - FRAME_RANK.min(rank - 1)]
    }

    /// The unit of reading: a chunk, or some rows of a dataset without chunks.
    fn chunk(&self) -> Vec<u64> {
        self.shape.chunk.clone().unwrap_or_else(|| {
            let mut block = self.shape.dimensions.clone();
            let element = self.shape.element as u64;
            let row = block[1..].iter().fold(element, |bytes, side| bytes.saturating_mul(*side)).max(1);
            block[0] = (AT_ONCE / row).clamp(1, block[0].max(1));
            block
        })
    }

    /// Bytes of memory for a slab and a chunk; `None` if the number overflows.
    fn slab_bytes(&self) -> Option<u64> {
        let chunk = self.chunk();
        let mut slab = self.shape.dimensions.clone();
        slab[0] = chunk[0];
        let element = self.shape.element as u64;
        let bytes = |sides: &[u64]| sides.iter().try_fold(element, |all, side| all.checked_mul(*side));
        bytes(&self.shape.dimensions)?;
        bytes(&slab)?.checked_add(bytes(&chunk)?)
    }

    /// Bytes of memory needed to put frames together.
    pub fn memory_needed(&self) -> u64 {
        self.slab_bytes().unwrap_or(u64::MAX)
    }

    /// Checks that a slab and a chunk fit into memory.
    fn check_memory(&self) -> Result<(), String> {
        let Some(needed) = self.slab_bytes() else {
            return Err(format!("{} has more than can be counted: {:?}", self.name, self.shape.dimensions));
        };
        match available_memory() {
            Some(Bytes(available)) if needed > available / 2 => Err(format!(
                "{}: its frames are put together of chunks in {} of memory, and {} are available",
                self.name,
                Bytes(needed),
                Bytes(available)
            )),
            _ => Ok(()),
        }
    }

    /// Reads everything that is there. It calls `go_on` with the number of bytes unpacked, and stops when that
    /// returns false. Rows without any chunk cost nothing, however many the file claims.
    ///
    /// # Errors
    /// If it was interrupted.
    pub fn verify(&self, mut go_on: impl FnMut(u64) -> bool) -> Result<LoneVerified, String> {
        let mut verified = self.begun();
        let mut slab = Slab::of(self);
        let mut done = 0;
        for stretch in self.stretches() {
            match stretch {
                RowStretch::Missing(rows) => verified.missing.add_all(self.frames_of(&rows)),
                RowStretch::There(first) => done += slab.read(first, &mut verified).len() as u64,
            }
            if !go_on(done) {
                return Err("interrupted".into());
            }
        }
        self.take_flags(&mut verified);
        Ok(verified)
    }

    /// Passes its frames to `take` in order, some at a time. Missing or damaged parts get the fill value of the
    /// dataset.
    ///
    /// # Errors
    /// The error that `take` returned.
    pub fn each_slab(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<LoneVerified, String> {
        let mut verified = self.begun();
        if self.shape.dimensions.contains(&0) {
            return Ok(verified);
        }
        let mut slab = Slab::of(self);
        let rows = self.shape.dimensions[0];
        for first in (0..rows).step_by(usize::try_from(self.chunk()[0]).unwrap_or(usize::MAX)) {
            take(slab.read(first, &mut verified))?;
        }
        self.take_flags(&mut verified);
        Ok(verified)
    }

    /// The result before anything is read.
    fn begun(&self) -> LoneVerified {
        let chunks = self.places.len() as u64;
        LoneVerified { chunks, broken: self.broken.clone(), ..LoneVerified::default() }
    }

    /// Adds the flags of our recorder, if it made the file.
    fn take_flags(&self, verified: &mut LoneVerified) {
        if ![FRAMES_PATH, MODULES_PATH].contains(&self.name.as_str()) {
            return;
        }
        let path = format!("{RECORDER_PATH}/{}", RecorderColumn::Flag.key());
        let flags = match self.read.own_dataset(&path).and_then(|flags| self.believable_numbers(&flags)) {
            Ok(flags) => flags,
            // Other programs write no such dataset.
            Err(Hdf5Error::Description { .. } | Hdf5Error::Name { .. }) => return,
            Err(error) => return verified.break_object(path, error.to_string()),
        };
        for (frame, flag) in (0..self.frames()).zip(flags) {
            match flag {
                1 => verified.missing.add(frame),
                2 => verified.not_whole.add(frame),
                _ => {}
            }
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl LoneVerified {
    fn damage(&mut self, damage: LoneDamage) {
        self.damaged_chunks += 1;
        if self.damages.len() < NAMED_MAX {
            self.damages.push(damage);
        }
    }

    /// Records an object that can't be read, once.
    fn break_object(&mut self, path: String, why: String) {
        if self.broken.iter().all(|broken| broken.path != path) {
            self.broken.push(BrokenObject { path, why });
        }
    }

    /// Returns true if every frame is there and can be read, and so can all objects of the file.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.damaged.is_empty() && self.broken.is_empty()
    }
}

/// Checks that the stored bytes of a dataset fit into a file of this length.
fn check_stored(shape: &StoredShape, file_bytes: u64) -> Result<(), String> {
    if shape.chunk.as_ref().is_some_and(|chunk| chunk.contains(&0)) {
        return Err("its chunks have no elements".into());
    }
    if shape.chunk.is_none() && shape.stored > file_bytes {
        return Err(format!(
            "it has {} in one piece, and the file has {}",
            Bytes(shape.stored),
            Bytes(file_bytes)
        ));
    }
    Ok(())
}

/// The error for a dataset with an impossible claim.
fn broken_claim(name: &str, why: String) -> Hdf5Error {
    Hdf5Error::Refused { what: format!("read {name}"), why }
}

/// Dimensions of a dataset of frames, at the least.
const RANK_LEAST: usize = 2;
/// Dimensions of a frame, if the dataset has more.
const FRAME_RANK: usize = 2;
/// Bytes read at once from a dataset without chunks.
const AT_ONCE: u64 = 16 << 20;
/// Datasets that are listed, at the most.
const SHOWN: usize = 20;

/// Returns true if an unreadable object may hide the frames at their NeXus path: other frames in their place
/// would be a surprise.
fn hides_frames(broken: &[BrokenObject]) -> bool {
    let leads = |path: &str| {
        FRAMES_PATH
            .strip_prefix(path)
            .is_some_and(|rest| path == "/" || rest.is_empty() || rest.starts_with('/'))
    };
    broken.iter().any(|object| leads(&object.path))
}

/// The dataset if the user names none: at the NeXus path, or the one with the most dimensions.
fn meant(read: &ReadFile, datasets: &[String]) -> Result<String, String> {
    if datasets.iter().any(|path| path == FRAMES_PATH) {
        return Ok(FRAMES_PATH.into());
    }
    let rank = |path: &String| read.own_dataset(path).map_or(0, |dataset| dataset.dimensions().len());
    let most = datasets.iter().map(rank).max().unwrap_or(0);
    let those: Vec<_> = datasets.iter().filter(|path| rank(path) == most).collect();
    match those[..] {
        [only] => Ok(only.clone()),
        [] => {
            Err("no dataset of numbers in it has two dimensions or more, of which all is in this file".into())
        }
        _ => {
            let shown = those.iter().take(SHOWN).map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
            let more = those.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(format!("several datasets may have the frames: add --dataset with one of {shown}{more}"))
        }
    }
}

/// Selects the code that unpacks the chunks of a dataset.
fn unpacking_of(shape: &StoredShape) -> Result<Unpacking, String> {
    if shape.chunk.is_none() {
        return Ok(Unpacking::ByLibrary);
    }
    match &shape.filters[..] {
        [] => Ok(Unpacking::Here(FrameCompression::None)),
        [filter] if !filter.is_in_library() => {
            let bitshuffled = filter.values.get(4).copied();
            Ok(Unpacking::Here(match (filter.number, bitshuffled) {
                (32008, Some(2)) => FrameCompression::Bslz4,
                (32008, Some(3)) => FrameCompression::Bszstd,
                (32004, _) => FrameCompression::Lz4,
                (32015, _) => FrameCompression::Zstd,
                (number, _) => {
                    filter_plugin(number).map_err(|error| error.to_string())?;
                    FrameCompression::Filter(PluginFilter::new(number, &filter.values)?)
                }
            }))
        }
        filters if filters.iter().all(StoredFilter::is_in_library) => Ok(Unpacking::ByLibrary),
        filters => {
            let numbers: Vec<_> = filters.iter().map(|filter| filter.number.to_string()).collect();
            Err(format!(
                "its chunks went through the filters {}, one of which is not here",
                numbers.join(", ")
            ))
        }
    }
}
