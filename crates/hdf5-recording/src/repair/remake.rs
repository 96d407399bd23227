//! The metadata of a file made anew, behind all that is in it: a superblock that leads to them is written last.
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
//! Until the superblock is there, all of the file is what it was. It is 48 bytes in one sector, and readers know it by its
//! checksum: whoever is killed, or loses the power, leaves what was there or what is now.

use std::{fs::File, io, os::unix::fs::FileExt};

use nilometer_hdf5::{
    FileWrite, Hdf5Error, Hdf5File, Hdf5FileOptions, PlacedColumn, SUPERBLOCK, StoredChunk,
    nexus::{RecorderColumn, RecordingTotals, ending},
    tree::{FramesShape, TreeGroup},
};
use nilometer_model::TILES_MAX;
use nilometer_recording::journal::DatasetPlace;

use crate::kept_values::KeptValues;

use super::{
    agreement::{Expected, LINE_MAX, NOT_WHOLE},
    known::{FrameBytes, KnownFrame, chunks_of},
};

/// Why the metadata of a file can't be made anew.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemakeError {
    /// The journal says what can't be.
    #[error("the journal says of it what can't be: {0}")]
    Contents(String),
    /// Of HDF5.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// Of the storage.
    #[error("{0}")]
    Storage(#[from] io::Error),
}

/// Frames that are put into the index at once.
const AT_ONCE: usize = 4096;
/// Metadata begin at a page.
const PAGE: u64 = 4096;

/// Makes the metadata of a file anew, of all its frames that are not lost; and what of them was in the file alone and is not in it
/// any more, a line each. If that can't be done, the file is what it was.
pub(super) fn remake(
    file: &File,
    tree: &TreeGroup,
    expected: Expected<'_>,
) -> Result<Vec<String>, RemakeError> {
    let length = file.metadata()?.len();
    let (kept, lost) = KeptValues::of(file, tree, expected.file.places);
    let mut writing = Writing { file, superblock: None, kept };
    // Places of frames that the file is too short for stay empty: nobody is to take metadata for them.
    let begin = expected.file.end(length).next_multiple_of(PAGE);
    let remade = writing.all(tree, expected, begin).and_then(|()| {
        file.sync_data()?;
        Ok(())
    });
    if let Err(error) = remade {
        // What is behind is of no use to anybody.
        drop(file.set_len(length));
        return Err(error);
    }
    let superblock =
        writing.superblock.ok_or_else(|| RemakeError::Contents("it has no superblock".into()))?;
    file.write_all_at(&superblock, 0)?;
    file.sync_data()?;
    Ok(lost)
}

/// What is written of a file.
struct Writing<'a> {
    file: &'a File,
    /// To be written last.
    superblock: Option<Vec<u8>>,
    /// Numbers that no journal has.
    kept: KeptValues,
}

impl Writing<'_> {
    /// All but the superblock, behind so many bytes.
    fn all(&mut self, tree: &TreeGroup, expected: Expected<'_>, begin: u64) -> Result<(), RemakeError> {
        let options = Hdf5FileOptions { watched: false, begin, apart: expected.file.is_apart() };
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
        totals.blank = places.saturating_sub(there.len() as u64);
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

/// Columns of a file of which the journal knows what they say.
struct MadeColumns {
    recorder: Vec<(usize, RecorderColumn)>,
    places: Vec<(usize, PlacedColumn)>,
}

impl MadeColumns {
    fn of(made: &Hdf5File) -> Self {
        let keys: Vec<_> = made.columns().map(|column| column.key.as_str()).collect();
        let at = |key: &str| keys.iter().position(|known| *known == key);
        let recorder = RecorderColumn::ALL.into_iter();
        let places = PlacedColumn::ALL.into_iter();
        MadeColumns {
            recorder: recorder.filter_map(|column| Some((at(column.key())?, column))).collect(),
            places: places.filter_map(|column| Some((at(column.key())?, column))).collect(),
        }
    }
}

fn is_there(frame: &KnownFrame) -> bool {
    !matches!(frame.bytes, FrameBytes::Lost(_))
}

/// Puts a frame into the index, and what the journal knows of it into the columns: when it arrived, was compressed and became
/// durable is not known any more.
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

/// Whether a description that somebody else may have written is one of frames of so many bytes, and can be counted with.
pub(crate) fn is_of_frames(shape: &FramesShape, frame_size: u64) -> bool {
    let bytes = shape.element.bytes() as u64;
    let size = shape.frame.iter().try_fold(bytes, |size, dimension| size.checked_mul(*dimension));
    // Nobody who keeps a journal puts several into a chunk.
    size == Some(frame_size) && shape.stack == 1 && shape.is_sound(LINE_MAX, TILES_MAX)
}

/// A journal may be anybody's: what counts with the dimensions of a frame relies on them.
fn check_shape(shape: &FramesShape, frame_size: u64) -> Result<(), RemakeError> {
    if is_of_frames(shape, frame_size) {
        return Ok(());
    }
    let what = format!("frames of {:?}, where they have {frame_size} B", shape.frame);
    Err(RemakeError::Contents(what))
}
