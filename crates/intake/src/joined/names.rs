//! Names and limits of values that are joined to frames, and names reserved for the recorder and the detector.

use nilometer_hdf5::{
    ColumnValue, ImageTimeColumn, NdArrayColumn, PlacedColumn, SERIES_DATE, nexus::RecorderColumn,
    tree::ColumnElement,
};
use nilometer_recording::Ranges;

/// Maximum number of values that wait for their frames. A value takes some 150 bytes for one frame, so these
/// are 150 MB.
pub(super) const WAITING_MAX: usize = 1 << 20;
/// Maximum number of frame ranges remembered for all names, which take some 50 MB.
pub(super) const RANGES_MAX: usize = 1 << 20;
/// Maximum number of names.
pub(super) const NAMES_MAX: usize = 1000;
/// Maximum length of a name in bytes.
pub(super) const NAME_BYTES_MAX: usize = 200;
/// A text takes as much room as this many numbers.
pub(super) const TEXT_ROOM: usize = 3;

/// A name, and the state of its values.
#[derive(Debug)]
pub(super) struct JoinedName {
    pub(super) name: String,
    /// The type of its column, or of its first value.
    pub(super) element: ColumnElement,
    /// True if the files have a column for it.
    pub(super) has_column: bool,
    /// True if messages bring it, and not the images.
    pub(super) awaited: bool,
    /// True if the detector sends it with each image, so that it is not the user's.
    pub(super) of_detector: bool,
    /// Frames that have a value of it, as long as these are few ranges.
    pub(super) came: Ranges,
}

/// A value of a frame with the place of its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedValue {
    /// The place of its name.
    pub name: usize,
    /// The value.
    pub said: ColumnValue,
}

impl NamedValue {
    /// How much it uses of [`WAITING_MAX`].
    pub(super) fn room(&self) -> usize {
        if matches!(self.said, ColumnValue::Text(_)) { TEXT_ROOM } else { 1 }
    }
}

/// A column, and the place of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedColumn {
    /// The key of the column in the file.
    pub key: String,
    /// The place of its name.
    pub name: usize,
}

/// Returns true if the recorder or the detector sets values of this name.
pub(super) fn is_reserved(name: &str) -> bool {
    RecorderColumn::ALL.into_iter().any(|column| column.key() == name)
        || NdArrayColumn::ALL.into_iter().any(|column| column.key() == name)
        || PlacedColumn::ALL.into_iter().any(|column| column.key() == name)
        || ImageTimeColumn::ALL.into_iter().any(|column| column.key() == name)
        || name == SERIES_DATE
}
