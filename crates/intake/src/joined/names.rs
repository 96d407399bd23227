//! Names of values that are joined to frames, and which names nobody but the recorder and the detector has.

use nilometer_hdf5::{
    ColumnValue, ImageTimeColumn, NdArrayColumn, PlacedColumn, SERIES_DATE, nexus::RecorderColumn,
    tree::ColumnElement,
};
use nilometer_recording::Ranges;

/// A text takes the room of so many numbers.
pub(super) const TEXT_ROOM: usize = 3;

/// A name of values.
#[derive(Debug)]
pub(super) struct JoinedName {
    pub(super) name: String,
    /// The type of its column, or of its first value.
    pub(super) element: ColumnElement,
    /// The files have a column for it.
    pub(super) has_column: bool,
    /// Messages bring it, and not the images.
    pub(super) awaited: bool,
    /// It is none of the user's: the detector says it of each image.
    pub(super) of_detector: bool,
    /// Frames that it came of, as long as these are few ranges.
    pub(super) came: Ranges,
}

/// A value of a frame, by the place of its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedValue {
    /// The place of its name.
    pub name: usize,
    /// What it is.
    pub said: ColumnValue,
}

impl NamedValue {
    /// What it takes of [`super::WAITING_MAX`].
    pub(super) fn room(&self) -> usize {
        if matches!(self.said, ColumnValue::Text(_)) { TEXT_ROOM } else { 1 }
    }
}

/// The place of a column among the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedColumn {
    /// The key of the column in the file.
    pub key: String,
    /// The place of its name.
    pub name: usize,
}

/// What the recorder or the detector says of frames.
pub(super) fn is_reserved(name: &str) -> bool {
    RecorderColumn::ALL.into_iter().any(|column| column.key() == name)
        || NdArrayColumn::ALL.into_iter().any(|column| column.key() == name)
        || PlacedColumn::ALL.into_iter().any(|column| column.key() == name)
        || ImageTimeColumn::ALL.into_iter().any(|column| column.key() == name)
        || name == SERIES_DATE
}
