//! Compares the index of a file with the journal: readers of HDF5 must find every frame that the journal has.

use std::{collections::BTreeSet, fs::File, os::unix::fs::FileExt};

use nilometer_hdf5::{
    ChunkPlace, ColumnValue, Hdf5Error, PlacedColumn, ReadDataset, ReadFile, SUPERBLOCK,
    nexus::{FRAMES_PATH, RECORDER_PATH, RecorderColumn},
    tree::{DatasetContent, FramesShape, TreeGroup, TreeNode, WriteTime},
};
use nilometer_model::TILES_MAX;
use nilometer_recording::{journal::DatasetPlace, reader::Recording};

use super::{
    held::path_of,
    known::{FileFrames, FrameBytes, KnownFrame, chunks_of},
};

/// Values of the flag, as in [`RecorderColumn::Flag`].
pub(super) const WHOLE: i64 = 0;
const ABSENT: i64 = 1;
pub(super) const NOT_WHOLE: i64 = 2;

/// Numbers of a column, at the most: nobody would wait for the end of a recording with more frames.
const COLUMN_MAX: u64 = 1 << 28;

/// The content that an index is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) recording: &'a Recording,
    pub(super) file: &'a FileFrames,
    /// The rest of the content, if the journal has it.
    pub(super) tree: Option<&'a TreeGroup>,
    /// True if the machine went down: frames that only the file has may then contain anything.
    pub(super) nothing_else: bool,
}

impl Expected<'_> {
    /// Packets missing from a frame, cut to the type of the column.
    pub(super) fn missing(&self, number: u64) -> u64 {
        let gaps = self.recording.index.gaps.get(&number).into_iter().flatten();
        gaps.map(|gap| gap.count).fold(0, u64::saturating_add) & u64::from(u32::MAX)
    }

    /// The expected flag of a frame.
    pub(super) fn flag(&self, frame: &KnownFrame) -> i64 {
        let whole = self.missing(frame.number) == 0 && frame.bytes != FrameBytes::Unproved;
        if whole { WHOLE } else { NOT_WHOLE }
    }

    /// Checks that the file agrees with the journal.
    ///
    /// # Errors
    /// The first difference, in words.
    pub(super) fn check(&self, file: &File) -> Result<(), String> {
        let unreadable = |error: Hdf5Error| format!("it can't be read: {error}");
        let read = ReadFile::open(&path_of(file)).map_err(unreadable)?;
        let frames = self.file.frames.values();
        if self.nothing_else
            && frames.clone().all(|frame| frame.bytes != FrameBytes::Unread)
            && !self.is_remade(file)
        {
            return Err("nothing of it was durable when the machine went down".into());
        }
        if let Some(tree) = self.tree {
            is_there(&read, "", tree).map_err(unreadable)?;
        }
        self.check_columns(&read)?;
        self.check_frames(&read, file)
    }

    /// Returns true if the file was repaired: its objects then lie behind its frames, otherwise in front of them.
    /// (HDF5 File Format Specification 3.0, II.A, superblock version 3: the address of the root group's header at
    /// byte 36.)
    fn is_remade(&self, file: &File) -> bool {
        let mut superblock = [0; SUPERBLOCK as usize];
        let read = file.read_exact_at(&mut superblock, 0);
        let root = superblock[36..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        read.is_ok() && root > self.file.begin()
    }

    /// Numbers of frames that an earlier repair did not find: the file marks them as absent. Nobody can have
    /// restored them, so the bytes in their places are not theirs.
    pub(super) fn not_found_before(&self, file: &File) -> Vec<u64> {
        if !self.is_remade(file) {
            return Vec::new();
        }
        let Some(path) = self.path_of(RecorderColumn::Flag.key()) else { return Vec::new() };
        let flags = ReadFile::open(&path_of(file)).and_then(|read| read.dataset(&path)?.numbers());
        let Ok(flags) = flags else { return Vec::new() };
        let is_absent = |number: &u64| {
            let in_file = self.file.in_file(*number).and_then(|in_file| usize::try_from(in_file).ok());
            in_file.and_then(|in_file| flags.get(in_file)) == Some(&ABSENT)
        };
        self.file.frames.keys().copied().filter(is_absent).collect()
    }

    fn check_frames(&self, read: &ReadFile, file: &File) -> Result<(), String> {
        let frames = all_frames_of(self.tree);
        let data = frames.iter().map(|frames| read.dataset(&frames.path));
        let data = data.collect::<Result<Vec<_>, _>>().map_err(unreadable_index)?;
        let places = data.iter().zip(&frames).map(|(data, frames)| FramePlaces::of(data, frames.shape));
        let places: Option<Vec<_>> = places.collect();
        let places = places.ok_or("its frames have other dimensions")?;
        self.file.check_datasets(places.len())?;
        for frame in self.file.frames.values() {
            let number = frame.number;
            let Some(in_file) = self.file.in_file(number) else { continue };
            let DatasetPlace { dataset, index } = frame.in_dataset(in_file);
            let places = &places[dataset as usize];
            if matches!(frame.bytes, FrameBytes::Lost(_)) {
                if places.has_any(index)? {
                    return Err(format!("it has frame {number}, which is lost"));
                }
                continue;
            }
            let extent = frame.place.extent;
            let unreadable = |error| format!("can't read the place of frame {number} in it: {error}");
            for chunk in chunks_of(file, &extent, index).map_err(unreadable)? {
                let found = places.chunk(index, chunk.tile)?;
                let found = found.ok_or_else(|| format!("its index lacks frame {number}"))?;
                // A dataset without filters has no record of a skipped filter.
                let decoded = !chunk.unfiltered && found.unfiltered != 0;
                if (found.offset, found.bytes) != (chunk.offset, chunk.bytes.into()) || decoded {
                    return Err(format!("its index has frame {number} in another place"));
                }
            }
        }
        if self.nothing_else { self.check_nothing_else(&places) } else { Ok(()) }
    }

    /// Checks that the file has no frame that the journal does not have.
    fn check_nothing_else(&self, places: &[FramePlaces<'_>]) -> Result<(), String> {
        let there = self.file.frames.values().filter(|frame| !matches!(frame.bytes, FrameBytes::Lost(_)));
        let known: BTreeSet<DatasetPlace> =
            there.filter_map(|frame| Some(frame.in_dataset(self.file.in_file(frame.number)?))).collect();
        for (dataset, places) in (0..).zip(places) {
            let unknown =
                (0..places.length).filter(|index| !known.contains(&DatasetPlace { dataset, index: *index }));
            for index in unknown {
                if places.has_any(index)? {
                    let which = if self.file.is_apart() {
                        format!("frame {index} of dataset {dataset}")
                    } else {
                        format!("frame {}", self.file.first + index)
                    };
                    return Err(format!(
                        "it has {which}, which was not acknowledged when the machine went down"
                    ));
                }
            }
        }
        Ok(())
    }

    fn knows(&self, in_file: u64) -> bool {
        let known = self.file.frames.get(&(self.file.first + in_file));
        known.is_some_and(|frame| !matches!(frame.bytes, FrameBytes::Lost(_)))
    }

    /// The path of a column of the recorder; a layout may omit it.
    fn path_of(&self, key: &str) -> Option<String> {
        let Some(tree) = self.tree else { return Some(format!("{RECORDER_PATH}/{key}")) };
        let columns = tree.columns();
        columns.into_iter().find(|(_, column)| column.key == key).map(|(path, _)| path)
    }

    /// Checks that the recorder's columns can be read, and agree with the journal.
    fn check_columns(&self, read: &ReadFile) -> Result<(), String> {
        self.check_places(read)?;
        for column in RecorderColumn::ALL {
            let key = column.key();
            let Some(numbers) = self.column(read, key)? else { continue };
            for frame in self.file.frames.values() {
                let in_file = self.file.in_file(frame.number).unwrap_or(u64::MAX);
                let said = numbers.get(usize::try_from(in_file).unwrap_or(usize::MAX)).copied();
                if !self.is_right(column, frame, said) {
                    return Err(format!("`{key}` says {said:?} of frame {}", frame.number));
                }
            }
            let may_be = |in_file: u64, said: i64| said == ABSENT || self.knows(in_file);
            let foreign = (0..).zip(&numbers).find(|(in_file, said)| !may_be(*in_file, **said));
            if let (RecorderColumn::Flag, true, Some((in_file, _))) = (column, self.nothing_else, foreign) {
                return Err(format!("it says that frame {} is there", self.file.first + in_file));
            }
        }
        Ok(())
    }

    /// The numbers of a column, if the file has it.
    fn column(&self, read: &ReadFile, key: &str) -> Result<Option<Vec<i64>>, String> {
        let unreadable = |error: Hdf5Error| format!("`{key}` can't be read: {error}");
        let Some(path) = self.path_of(key) else { return Ok(None) };
        let dataset = read.dataset(&path).map_err(unreadable)?;
        let length = dataset.dimensions().first().copied().unwrap_or(0);
        if length > COLUMN_MAX {
            return Err(format!("`{key}` has {length} numbers"));
        }
        dataset.numbers().map(Some).map_err(unreadable)
    }

    /// Checks that the columns with positions of frames agree with the journal.
    fn check_places(&self, read: &ReadFile) -> Result<(), String> {
        for column in PlacedColumn::ALL.into_iter().filter(|_| self.file.is_apart()) {
            let key = column.key();
            let Some(numbers) = self.column(read, key)? else { continue };
            for frame in self.file.frames.values() {
                let (Some(in_file), false) =
                    (self.file.in_file(frame.number), matches!(frame.bytes, FrameBytes::Lost(_)))
                else {
                    continue;
                };
                let DatasetPlace { dataset, index } = frame.in_dataset(in_file);
                let said = usize::try_from(in_file).ok().and_then(|in_file| numbers.get(in_file));
                if said.copied().map(ColumnValue::from) != Some(column.number(dataset, index)) {
                    return Err(format!("`{key}` says {said:?} of frame {}", frame.number));
                }
            }
        }
        Ok(())
    }

    fn is_right(&self, column: RecorderColumn, frame: &KnownFrame, said: Option<i64>) -> bool {
        let lost = matches!(frame.bytes, FrameBytes::Lost(_));
        match (column, said) {
            (RecorderColumn::Flag, said) if lost => said.is_none_or(|said| said == ABSENT),
            (_, _) if lost => true,
            (RecorderColumn::Flag, Some(NOT_WHOLE)) if frame.bytes == FrameBytes::Unread => true,
            (RecorderColumn::Flag, said) => said == Some(self.flag(frame)),
            (RecorderColumn::Missing, said) => said == Some(self.missing(frame.number).cast_signed()),
            (RecorderColumn::Due, said) => said == Some(frame.due.cast_signed()),
            (RecorderColumn::Arrived | RecorderColumn::Encoded | RecorderColumn::Durable, _) => true,
        }
    }
}

/// A dataset of frames in a tree.
pub(super) struct FramesPlace<'a> {
    pub(super) path: String,
    pub(super) shape: Option<&'a FramesShape>,
}

/// The first dataset of frames of a tree. Without a tree, the one of files without a layout of their own.
pub(super) fn frames_of(tree: Option<&TreeGroup>) -> FramesPlace<'_> {
    let found = tree.and_then(|tree| tree.frames().into_iter().next());
    found.map_or_else(
        || FramesPlace { path: FRAMES_PATH.into(), shape: None },
        |(path, shape)| FramesPlace { path, shape: Some(shape) },
    )
}

/// All datasets of frames of a tree, in its order.
fn all_frames_of(tree: Option<&TreeGroup>) -> Vec<FramesPlace<'_>> {
    let several = tree.map(TreeGroup::frames).filter(|frames| frames.len() > 1);
    match several {
        Some(frames) => {
            frames.into_iter().map(|(path, shape)| FramesPlace { path, shape: Some(shape) }).collect()
        }
        None => vec![frames_of(tree)],
    }
}

/// Frames per line of a scan, at the most: more than a recording can have.
pub(super) const LINE_MAX: u64 = 1 << 24;

#[expect(clippy::needless_pass_by_value, reason = "handed over by `map_err`")]
fn unreadable_index(error: Hdf5Error) -> String {
    format!("its index can't be read: {error}")
}

/// The positions of a file's frames, from its index.
struct FramePlaces<'a> {
    data: &'a ReadDataset,
    shape: Option<&'a FramesShape>,
    /// Number of places for frames.
    length: u64,
}

impl<'a> FramePlaces<'a> {
    /// Returns `None` if the dataset does not match its description.
    fn of(data: &'a ReadDataset, shape: Option<&'a FramesShape>) -> Option<Self> {
        let rank = data.dimensions().len();
        let described = |shape: &FramesShape| {
            shape.is_sound(LINE_MAX, TILES_MAX) && 1 + shape.scan.len() + shape.frame.len() == rank
        };
        if rank == 0 || !shape.is_none_or(described) {
            return None;
        }
        let line: u64 = shape.map_or(1, |shape| shape.scan.iter().product());
        let length = data.dimensions().first().copied().unwrap_or(0).saturating_mul(line);
        Some(FramePlaces { data, shape, length })
    }

    fn chunk(&self, in_file: u64, tile: u64) -> Result<Option<ChunkPlace>, String> {
        if in_file >= self.length {
            return Ok(None);
        }
        let rest = self.data.dimensions().len() - 1;
        let first = || std::iter::once(in_file).chain(std::iter::repeat_n(0, rest)).collect();
        let place: Vec<u64> = self.shape.map_or_else(first, |shape| shape.offset(in_file, tile));
        self.data.chunk(&place).map_err(unreadable_index)
    }

    /// Returns true if the file has any chunk of a frame.
    fn has_any(&self, in_file: u64) -> Result<bool, String> {
        for tile in 0..self.shape.map_or(1, FramesShape::tiles) {
            if self.chunk(in_file, tile)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Checks that all datasets exist that were there before the first frame.
fn is_there(read: &ReadFile, path: &str, group: &TreeGroup) -> Result<(), Hdf5Error> {
    for (name, node) in &group.members {
        let path = format!("{path}/{name}");
        match node {
            TreeNode::Group(group) => is_there(read, &path, group)?,
            TreeNode::Dataset(dataset) => match dataset.content {
                DatasetContent::Value(_, WriteTime::Closing) => {}
                _ => drop(read.dataset(&path)?),
            },
            TreeNode::HardLink(_) | TreeNode::SoftLink(_) | TreeNode::ExternalLink { .. } => {}
        }
    }
    Ok(())
}
