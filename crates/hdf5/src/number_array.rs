//! Arrays of numbers in a file, and their form as text.
//!
//! A text has the bytes of a short array one by one. A long array with few changes, such as a mask of pixels, becomes
//! runs instead: the length of each run, and its number. For example, a row of gaps of 16-bit pixels:
//!
//! ```text
//! numbers  0 0 0 1 1 0 0 0     runs  [[3,0],[2,1],[3,0]]
//! ```

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
#[serde(into = "ArrayText", try_from = "ArrayText")]
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

/// An array as text.
#[derive(Clone, Serialize, Deserialize)]
struct ArrayText {
    element: NumberType,
    shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<u8>,
    /// The length of each run, and the bytes of its number as one whole number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<[u64; 2]>,
}

/// Longer arrays become runs, if that makes them shorter.
const BYTES_MAX: usize = 4096;
/// The least number of bytes for each run. The text of a run takes as much room as that of about ten bytes.
const BYTES_OF_RUN: usize = 10;
/// The largest array that runs may stand for: a mask of a hundred million pixels.
const RUNS_MAX: u64 = 400 << 20;

impl From<NumberArray> for ArrayText {
    fn from(array: NumberArray) -> Self {
        let runs = runs_of(&array).unwrap_or_default();
        let NumberArray { element, shape, bytes } = array;
        ArrayText { element, shape, bytes: if runs.is_empty() { bytes } else { Vec::new() }, runs }
    }
}

impl TryFrom<ArrayText> for NumberArray {
    type Error = &'static str;

    fn try_from(text: ArrayText) -> Result<Self, &'static str> {
        let ArrayText { element, shape, bytes, runs } = text;
        let bytes = if runs.is_empty() { bytes } else { bytes_of(&runs, element, &shape)? };
        Ok(NumberArray { element, shape, bytes })
    }
}

/// The runs of a long array. `None` if the array is short, or has too many.
fn runs_of(array: &NumberArray) -> Option<Vec<[u64; 2]>> {
    if array.bytes.len() <= BYTES_MAX || !array.is_whole() {
        return None;
    }
    let most = array.bytes.len() / BYTES_OF_RUN;
    let mut runs: Vec<[u64; 2]> = Vec::new();
    for number in array.bytes.chunks_exact(array.element.bytes()).map(whole_number) {
        if let Some([count, last]) = runs.last_mut()
            && *last == number
        {
            *count += 1;
        } else if runs.len() == most {
            return None;
        } else {
            runs.push([1, number]);
        }
    }
    Some(runs)
}

/// The bytes of a number as a whole number, little-endian.
fn whole_number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The bytes that runs stand for, which must fill the shape.
fn bytes_of(runs: &[[u64; 2]], element: NumberType, shape: &[u64]) -> Result<Vec<u8>, &'static str> {
    let size = element.bytes();
    let whole = shape.iter().try_fold(size as u64, |all, side| all.checked_mul(*side));
    let whole = whole.filter(|bytes| *bytes <= RUNS_MAX).ok_or("an array larger than any that has runs")?;
    let mut bytes = Vec::new();
    for [count, number] in runs {
        let more = count.checked_mul(size as u64).ok_or("a run that is too long")?;
        if more > whole - bytes.len() as u64 {
            return Err("runs that are longer than their array");
        }
        for _ in 0..*count {
            bytes.extend_from_slice(&number.to_le_bytes()[..size]);
        }
    }
    if bytes.len() as u64 == whole { Ok(bytes) } else { Err("runs that are shorter than their array") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(pixels: u64, faults: &[usize]) -> NumberArray {
        let mut bytes = vec![0; 4 * pixels as usize];
        for pixel in faults {
            bytes[4 * pixel..][..4].copy_from_slice(&0x8000_0001_u32.to_le_bytes());
        }
        NumberArray { element: NumberType::Uint32, shape: vec![pixels], bytes }
    }

    fn text_of(array: &NumberArray) -> String {
        toml::to_string(array).expect("it is text")
    }

    #[test]
    fn a_long_array_with_few_changes_becomes_runs() {
        let array = mask(5000, &[7, 8, 4999]);
        let text = text_of(&array);
        assert!(text.contains("runs = [[7, 0], [2, 2147483649], [4990, 0], [1, 2147483649]]"), "{text}");
        assert_eq!(toml::from_str::<NumberArray>(&text), Ok(array));
    }

    #[test]
    fn other_arrays_stay_as_bytes() {
        let noise: Vec<_> =
            (0..5000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let noise = NumberArray { element: NumberType::Uint32, shape: vec![5000], bytes: noise };
        for array in [mask(10, &[3]), noise, NumberArray::float(1.5)] {
            let text = text_of(&array);
            assert!(text.contains("bytes = [") && !text.contains("runs"), "{text}");
            assert_eq!(toml::from_str::<NumberArray>(&text), Ok(array));
        }
    }

    #[test]
    fn runs_that_do_not_fill_their_array_are_refused() {
        for (shape, runs) in [
            ("[8]", "[[7, 0]]"),
            ("[8]", "[[9, 0]]"),
            ("[8]", "[[9223372036854775807, 0]]"),
            ("[1000000, 1000000]", "[[1, 0]]"),
            ("[9223372036854775807, 4]", "[[1, 0]]"),
        ] {
            let text = format!("element = \"Uint32\"\nshape = {shape}\nruns = {runs}\n");
            assert!(toml::from_str::<NumberArray>(&text).is_err(), "{text}");
        }
    }
}
