//! Writes values that arrive after the file of their frame was closed. The file has places for them, and nothing
//! else in it changes.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_hdf5::{COLUMN_CHUNK, Hdf5Error, ReadDataset, ReadFile, tree::FrameColumn};
use nilometer_model::{Nanos, Storing};
use nilometer_recording::reader::{OpenError, Recording, Trust};
use nilometer_storage::{
    in_time,
    target::{KeptDirectory, TargetError},
};
use rustix::fs::OFlags;

use crate::Hdf5Contents;
use nilometer_intake::joined::{JoinRefusal, JoinedValues, NamedValue};

/// Errors of writing values into closed files.
#[derive(Debug, thiserror::Error)]
pub enum LateValuesError {
    /// The recording can't be read.
    #[error(transparent)]
    Recording(#[from] OpenError),
    /// A file can't be read as HDF5.
    #[error(transparent)]
    Hdf5(#[from] Hdf5Error),
    /// A file can't be written.
    #[error("{path}: {source}")]
    Storage {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The storage took too long.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// A value and its index in a file.
struct PlacedValue {
    in_file: u64,
    frame: u64,
    value: NamedValue,
}

/// Writes the waiting values into the files of a finished recording in these directories. It waits at most
/// `at_most` for storage that hangs. Values without a place are counted.
///
/// # Errors
/// If the recording can't be read, or a file can't be written.
pub fn put_late_values(
    contents: &Hdf5Contents,
    directories: &[Arc<dyn KeptDirectory>],
    at_most: Nanos,
) -> Result<(), LateValuesError> {
    let Some(joined) = contents.joined.clone() else { return Ok(()) };
    let Some(first) = directories.first() else { return Ok(()) };
    let rest = joined.take_rest();
    if rest.is_empty() {
        return Ok(());
    }
    let paths: Vec<_> = directories.iter().map(|directory| directory.path().to_owned()).collect();
    let contents = contents.clone();
    in_time(at_most, first.path().to_owned(), move || -> Result<(), LateValuesError> {
        let recording = Recording::open(&paths, Trust::Acknowledged)?;
        for (path, values) in by_file(&recording, &joined, rest) {
            put_into(&path, &values, &contents, &joined)?;
        }
        Ok(())
    })?
}

/// The values of each file.
fn by_file(
    recording: &Recording,
    joined: &JoinedValues,
    rest: Vec<(u64, NamedValue)>,
) -> BTreeMap<PathBuf, Vec<PlacedValue>> {
    let head = recording.head();
    let mut files: BTreeMap<PathBuf, Vec<PlacedValue>> = BTreeMap::new();
    for (frame, value) in rest {
        let place = recording.index.places(frame).next();
        let name = || joined.name(value.name);
        match place {
            None => joined.refuse(JoinRefusal::UnknownFrame, format!("`{}` of frame {frame}", name())),
            Some(_) if !joined.has_column(value.name) || head.storing == Storing::Files => {
                joined.refuse(JoinRefusal::TooLate, format!("`{}` of frame {frame}", name()));
            }
            Some(place) => {
                let in_parts = head.storing == Storing::Positions;
                let in_file = if in_parts { frame % head.frames_per_file } else { frame };
                files.entry(recording.path(place)).or_default().push(PlacedValue { in_file, frame, value });
            }
        }
    }
    files
}

fn put_into(
    path: &Path,
    values: &[PlacedValue],
    contents: &Hdf5Contents,
    joined: &JoinedValues,
) -> Result<(), LateValuesError> {
    let failed = |source: io::Error| LateValuesError::Storage { path: path.to_owned(), source };
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
    let file = File::options().read(true).write(true).custom_flags(flags).open(path).map_err(failed)?;
    let read = ReadFile::open(path)?;
    let tree = contents.tree.columns();
    let mut columns: BTreeMap<usize, Option<LateColumn<'_>>> = BTreeMap::new();
    for PlacedValue { in_file, frame, value } in values {
        let key = joined.name(value.name);
        let column = match columns.entry(value.name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(LateColumn::find(&read, &tree, &key)?),
        };
        let place = column.as_ref().map(|column| column.place(*in_file)).transpose()?.flatten();
        match (place, column) {
            (Some(offset), Some(LateColumn { column, .. })) => {
                file.write_all_at(&value.said.bytes(column), offset).map_err(failed)?;
                joined.count_joined(std::slice::from_ref(value));
            }
            _ => joined.refuse(JoinRefusal::TooLate, format!("`{key}` of frame {frame}")),
        }
    }
    file.sync_data().map_err(failed)
}

/// A column of a closed file.
struct LateColumn<'a> {
    column: &'a FrameColumn,
    dataset: ReadDataset,
}

impl<'a> LateColumn<'a> {
    /// Finds the column with this key, if the tree has one.
    fn find(
        read: &ReadFile,
        tree: &[(String, &'a FrameColumn)],
        key: &str,
    ) -> Result<Option<Self>, Hdf5Error> {
        let found = tree.iter().find(|(_, column)| column.key == key);
        let found = found.map(|(path, column)| Ok(LateColumn { column, dataset: read.dataset(path)? }));
        found.transpose()
    }

    /// The position of a frame's value, in bytes from the start of the file.
    fn place(&self, in_file: u64) -> Result<Option<u64>, Hdf5Error> {
        if self.dataset.dimensions().first().is_none_or(|length| in_file >= *length) {
            return Ok(None);
        }
        let within = in_file % COLUMN_CHUNK;
        let chunk = self.dataset.chunk(&[in_file - within])?;
        Ok(chunk.map(|chunk| chunk.offset + within * self.column.element.bytes() as u64))
    }
}
