//! Values of a file beside its frames: numbers, texts, and values that are only available after the last frame.

use serde::{Deserialize, Serialize};

use crate::number_array::NumberArray;

/// The value of an attribute or a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeValue {
    /// A text: ASCII of fixed length, or UTF-8 of variable length if it is long or not ASCII.
    Text(String),
    /// A row of such texts.
    Texts(Vec<String>),
    /// A row of texts of a fixed size, as in a column.
    ColumnTexts(Vec<String>),
    /// Numbers.
    Numbers(NumberArray),
    /// Yes or no: an enumeration of 8-bit numbers, FALSE and TRUE, as h5py stores it.
    Truth(bool),
    /// A value that is only available after the last frame: it is written at
    /// [`crate::tree::WriteTime::Closing`], if it exists then.
    AtEnd(FrameValue),
}

/// Names a value that is only available after the last frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameValue {
    /// The key of a column, or a name of [`crate::nexus::RecordingTotals`].
    pub key: String,
    /// The frame that it belongs to.
    pub of: FrameChoice,
}

/// A choice among the frames of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameChoice {
    /// The first frame in the file.
    First,
    /// The last frame in the file.
    Last,
}

impl From<&str> for TreeValue {
    fn from(text: &str) -> Self {
        TreeValue::Text(text.into())
    }
}

impl From<bool> for TreeValue {
    fn from(truth: bool) -> Self {
        TreeValue::Truth(truth)
    }
}

impl From<NumberArray> for TreeValue {
    fn from(numbers: NumberArray) -> Self {
        TreeValue::Numbers(numbers)
    }
}
