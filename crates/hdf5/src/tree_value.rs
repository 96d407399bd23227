//! Values of a file beside its frames: numbers, texts, and values that are only available after the last frame.

use serde::{Deserialize, Serialize};

/// The type of numbers in a file; all are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names say it")]
pub enum NumberType {
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
}

impl NumberType {
    /// All variants.
    pub const ALL: [NumberType; 10] = [
        NumberType::Uint8,
        NumberType::Uint16,
        NumberType::Uint32,
        NumberType::Uint64,
        NumberType::Int8,
        NumberType::Int16,
        NumberType::Int32,
        NumberType::Int64,
        NumberType::Float32,
        NumberType::Float64,
    ];

    /// Bytes of one number.
    pub const fn bytes(self) -> usize {
        match self {
            NumberType::Uint8 | NumberType::Int8 => 1,
            NumberType::Uint16 | NumberType::Int16 => 2,
            NumberType::Uint32 | NumberType::Int32 | NumberType::Float32 => 4,
            NumberType::Uint64 | NumberType::Int64 | NumberType::Float64 => 8,
        }
    }
}

/// Numbers of one type, in rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberArray {
    /// Their type.
    pub element: NumberType,
    /// The size of each dimension, the slowest first; empty for a single number.
    pub shape: Vec<u64>,
    /// All numbers, little-endian.
    pub bytes: Vec<u8>,
}

impl NumberArray {
    /// A single number.
    pub fn int(number: i64) -> Self {
        NumberArray { element: NumberType::Int64, shape: Vec::new(), bytes: number.to_le_bytes().into() }
    }

    /// A single number.
    pub fn uint(number: u64) -> Self {
        NumberArray { element: NumberType::Uint64, shape: Vec::new(), bytes: number.to_le_bytes().into() }
    }

    /// A single number.
    pub fn float(number: f64) -> Self {
        NumberArray { element: NumberType::Float64, shape: Vec::new(), bytes: number.to_le_bytes().into() }
    }

    /// A row of numbers.
    pub fn floats(numbers: &[f64]) -> Self {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        NumberArray { element: NumberType::Float64, shape: vec![numbers.len() as u64], bytes }
    }

    /// A row of numbers.
    pub fn ints(numbers: &[i64]) -> Self {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        NumberArray { element: NumberType::Int64, shape: vec![numbers.len() as u64], bytes }
    }

    /// Returns true if the number of bytes matches the shape.
    pub fn is_whole(&self) -> bool {
        let count = self.shape.iter().try_fold(1_u64, |all, dimension| all.checked_mul(*dimension));
        let bytes = count.and_then(|count| count.checked_mul(self.element.bytes() as u64));
        bytes == Some(self.bytes.len() as u64)
    }
}

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

impl From<NumberArray> for TreeValue {
    fn from(numbers: NumberArray) -> Self {
        TreeValue::Numbers(numbers)
    }
}
