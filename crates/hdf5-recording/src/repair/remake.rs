//! Rebuilds the metadata of a file behind its content; the superblock that leads to them is written last.
//!
//! ```text
//! before   superblock  structure, index (torn)  frames  more of the index  frames |
//!              +--------------^                                                   |
//! then     superblock  structure, index (torn)  frames  more of the index  frames | structure, index    synced
//!              +--------------^                                                   |
//! after    superblock                           frames                     frames | structure, index    synced
//!              +------------------------------------------------------------------------^
//! ```
//!
//! Until the new superblock is written, the whole file is unchanged. The superblock is 48 bytes in one sector,
//! and readers verify its checksum. After a kill or a loss of power, the file is therefore either the old or the
//! new one.

use std::{fs::File, io, os::unix::fs::FileExt};

use nilometer_hdf5::{
    FileWrite, Hdf5Error, Hdf5File, Hdf5FileOptions, PlacedColumn, SUPERBLOCK, StoredChunk,
    nexus::{AngleColumn, RecorderColumn, RecordingTotals, ending},
    tree::{FramesShape, TreeGroup},
};
use nilometer_model::TILES_MAX;
use nilometer_recording::journal::DatasetPlace;

use crate::{frame_columns::BLANK_ANGLES_MAX, kept_values::KeptValues};

use super::{
    agreement::{Expected, LINE_MAX, NOT_WHOLE},
    known::{FrameBytes, KnownFrame, chunks_of},
};

/// Errors of rebuilding metadata.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemakeError {
    /// The journal describes impossible content.
    #[error("the journal describes an impossible file: {0}")]
    Contents(String),
    /// An error of HDF5.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// An error of the storage.
    #[error("{0}")]
    Storage(#[from] io::Error),
}

/// Frames that are inserted into the index between two flushes.
const AT_ONCE: usize = 4096;
/// Metadata begin at a page.
const PAGE: u64 = 4096;

/// Rebuilds the metadata of a file for all frames that are not lost. Returns a line for each value that only the
/// old file had and that is now lost. If it fails, the file stays as it was.
pub(super) fn remake(
    file: &File,
    tree: &TreeGroup,
    expected: Expected<'_>,
) -> Result<Vec<String>, RemakeError> {
    let (kept, lost) = KeptValues::of(file, tree, expected.file.places);
    make(file, tree, expected, kept)?;
    Ok(lost)
}

/// Makes the metadata of a file behind its frames, with these values that no journal has. If it fails, the file
/// stays as it was.
pub(super) fn make(
    file: &File,
    tree: &TreeGroup,
    expected: Expected<'_>,
    kept: KeptValues,
) -> Result<(), RemakeError> {
    let length = file.metadata()?.len();
    let mut writing = Writing { file, superblock: None, kept };
    // Places of frames beyond the end of the file stay empty, so that nobody takes metadata for frames.
    let begin = expected.file.end(length).next_multiple_of(PAGE);
    let remade = writing.all(tree, expected, begin).and_then(|()| {
        file.sync_data()?;
        Ok(())
    });
    if let Err(error) = remade {
        // The bytes behind the old end are useless.
        drop(file.set_len(length));
        return Err(error);
    }
    let superblock =
        writing.superblock.ok_or_else(|| RemakeError::Contents("it has no superblock".into()))?;
    file.write_all_at(&superblock, 0)?;
    file.sync_data()?;
    Ok(())
}

/// The new parts of a file.
struct Writing<'a> {
    file: &'a File,
    /// Written last.
    superblock: Option<Vec<u8>>,
    /// Values that no journal has.
    kept: KeptValues,
}

impl Writing<'_> {
    /// Writes everything except the superblock, behind `begin`.
    fn all(&mut self, tree: &TreeGroup, expected: Expected<'_>, begin: u64) -> Result<(), RemakeError> {
        let frames_of_image = tree.frames_of_image();
        let first_image = Some(expected.file.first / frames_of_image + 1);
        let apart = expected.file.is_apart();
        let options = Hdf5FileOptions { watched: false, begin, apart, first_image };
        let mut made = Hdf5File::create("file", tree, options)?;
        let frame_size = expected.recording.head().frame_size;
        let datasets = made.datasets().count();
        if datasets == 0 {
            return Err(RemakeError::Contents("it has no frames".into()));
        }
        made.datasets().try_for_each(|shape| check_shape(shape, frame_size))?;
        expected.file.check_datasets(datasets).map_err(RemakeError::Contents)?;
        let columns = MadeColumns::of(&made);
        let there: Vec<_> = expected.file.frames.values().filter(|frame| is_there(frame)).collect();
        let mut totals = RecordingTotals::default();
        for some in there.chunks(AT_ONCE) {
            for frame in some {
                insert(self.file, &mut made, &columns, expected, frame)?;
                if let Some(in_file) = expected.file.in_file(frame.number) {
                    self.kept.is_number(in_file, frame.number);
                }
                let missing = expected.missing(frame.number);
                let not_whole = expected.flag(frame) == NOT_WHOLE;
                totals.missing += missing;
                totals.whole += u64::from(!not_whole);
                totals.incomplete += u64::from(not_whole);
            }
            made.flush()?;
            self.carry_out(|| made.next_write())?;
        }
        let places = expected.file.places;
        totals.last_image = Some((expected.file.first + places) / frames_of_image);
        totals.blank = places.saturating_sub(there.len() as u64);
        let last = there.iter().filter_map(|frame| expected.file.in_file(frame.number)).max();
        let turned = last.map_or(0, |last| last + 1).max(BLANK_ANGLES_MAX).min(places);
        columns.turn(&mut made, expected.file.first, turned);
        self.kept.put(&mut made, 0..places);
        let mut end = ending(tree, &totals, &|wanted| self.kept.at_end(wanted));
        end.unite(self.kept.at_end_others(places, tree));
        let mut closed = made.close(places, &end)?;
        self.carry_out(|| closed.next_write())
    }

    fn carry_out(&mut self, mut next: impl FnMut() -> Option<FileWrite>) -> Result<(), RemakeError> {
        while let Some(FileWrite { offset, bytes }) = next() {
            if offset < SUPERBLOCK {
                self.superblock = Some(bytes);
            } else {
                self.file.write_all_at(&bytes, offset)?;
            }
        }
        Ok(())
    }
}

/// The columns of a file whose values follow from the journal.
struct MadeColumns {
    angles: Vec<(usize, AngleColumn)>,
    recorder: Vec<(usize, RecorderColumn)>,
    places: Vec<(usize, PlacedColumn)>,
}

impl MadeColumns {
    fn of(made: &Hdf5File) -> Self {
        let keys: Vec<_> = made.columns().map(|column| column.key.as_str()).collect();
        let at = |key: &str| keys.iter().position(|known| *known == key);
        let recorder = RecorderColumn::ALL.into_iter();
        let places = PlacedColumn::ALL.into_iter();
        let angles = keys.iter().enumerate().filter_map(|(at, key)| {
            let column = AngleColumn::of_key(key).filter(AngleColumn::differs)?;
            Some((at, column))
        });
        MadeColumns {
            angles: angles.collect(),
            recorder: recorder.filter_map(|column| Some((at(column.key())?, column))).collect(),
            places: places.filter_map(|column| Some((at(column.key())?, column))).collect(),
        }
    }
}

impl MadeColumns {
    /// Sets the angles of all axes in the places of a file whose first frame has the number `first`.
    fn turn(&self, made: &mut Hdf5File, first: u64, places: u64) {
        for (at, column) in &self.angles {
            for place in 0..places {
                made.set(*at, place, column.angle(first + place));
            }
        }
    }
}

fn is_there(frame: &KnownFrame) -> bool {
    !matches!(frame.bytes, FrameBytes::Lost(_))
}

/// Inserts a frame into the index, and its known values into the columns. The times of its arrival, compression
/// and durability are lost.
fn insert(
    file: &File,
    made: &mut Hdf5File,
    columns: &MadeColumns,
    expected: Expected<'_>,
    frame: &KnownFrame,
) -> io::Result<()> {
    let Some(in_file) = expected.file.in_file(frame.number) else { return Ok(()) };
    let DatasetPlace { dataset, index } = frame.in_dataset(in_file);
    for chunk in chunks_of(file, &frame.place.extent, index)? {
        made.insert(StoredChunk { dataset: dataset as usize, ..chunk });
    }
    for (column, kind) in &columns.places {
        made.set(*column, in_file, kind.number(dataset, index));
    }
    for (column, kind) in &columns.recorder {
        let value = match kind {
            RecorderColumn::Flag => expected.flag(frame),
            RecorderColumn::Missing => expected.missing(frame.number).cast_signed(),
            RecorderColumn::Due => frame.due.cast_signed(),
            RecorderColumn::Arrived | RecorderColumn::Encoded | RecorderColumn::Durable => continue,
        };
        made.set(*column, in_file, value);
    }
    Ok(())
}

/// Returns true if a description, which may be foreign, has frames of `frame_size` bytes and is safe to calculate
/// with.
pub(crate) fn is_of_frames(shape: &FramesShape, frame_size: u64) -> bool {
    let bytes = shape.element.bytes() as u64;
    let size = shape.frame.iter().try_fold(bytes, |size, dimension| size.checked_mul(*dimension));
    // No recorder with a journal puts several frames into a chunk.
    size.map(|size| shape.recorded_size(size)) == Some(frame_size)
        && shape.stack == 1
        && shape.is_sound(LINE_MAX, TILES_MAX)
}

/// Checks the shape: the journal may come from any source, and calculations with the dimensions of a frame rely
/// on it.
fn check_shape(shape: &FramesShape, frame_size: u64) -> Result<(), RemakeError> {
    if is_of_frames(shape, frame_size) {
        return Ok(());
    }
    let what = format!("frames of {:?}, where they have {frame_size} B", shape.frame);
    Err(RemakeError::Contents(what))
}
