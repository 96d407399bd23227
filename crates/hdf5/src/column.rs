//! Columns: datasets with one value per frame, the types of these values, and their bytes in the file.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    number_array::{NumberArray, NumberType},
    tree_value::TreeValue,
};

/// Bytes of a text in a column: as many as areaDetector has for one (`MAX_ATTRIBUTE_STRING_SIZE`).
pub const TEXT_BYTES: usize = 256;

/// A dataset with one value per frame, as long as the dataset of frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameColumn {
    /// The key by which you set its values.
    pub key: String,
    /// The type of its values.
    pub element: ColumnElement,
    /// The value of a frame without a known value, as its bytes in the file. Empty for texts, which means an
    /// empty text.
    pub fill: Vec<u8>,
}

impl FrameColumn {
    /// Returns all bytes of the value of a frame without a known value.
    pub fn unknown(&self) -> Vec<u8> {
        let mut fill = self.fill.clone();
        if self.element.is_text() {
            fill.resize(TEXT_BYTES, 0);
        }
        fill
    }
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnElement {
    /// Numbers.
    Number(NumberType),
    /// Texts.
    Text(ColumnText),
}

/// The layout of a text in a column. All texts have the same size, so that a late one can be written in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnText {
    /// UTF-8 of at most [`TEXT_BYTES`], padded with zeroes.
    Utf8Of256,
}

impl From<NumberType> for ColumnElement {
    fn from(number: NumberType) -> Self {
        ColumnElement::Number(number)
    }
}

impl ColumnElement {
    /// Texts.
    pub const TEXT: ColumnElement = ColumnElement::Text(ColumnText::Utf8Of256);
    /// The type of numbers if nothing else is given.
    pub const FLOAT: ColumnElement = ColumnElement::Number(NumberType::Float64);
    /// Whole numbers.
    pub const INT: ColumnElement = ColumnElement::Number(NumberType::Int64);

    /// Bytes of one value.
    pub const fn bytes(self) -> usize {
        match self {
            ColumnElement::Number(number) => number.bytes(),
            ColumnElement::Text(ColumnText::Utf8Of256) => TEXT_BYTES,
        }
    }

    /// Returns true if the values are texts.
    pub const fn is_text(self) -> bool {
        matches!(self, ColumnElement::Text(_))
    }
}

/// The value of one frame in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValue {
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Fraction(f64),
    /// A text, cut to the size of a column's text.
    Text(Arc<str>),
    /// An unknown value; the column holds its fill value there.
    Unknown,
}

impl From<i64> for ColumnValue {
    fn from(number: i64) -> Self {
        ColumnValue::Whole(number)
    }
}

impl From<f64> for ColumnValue {
    fn from(number: f64) -> Self {
        ColumnValue::Fraction(number)
    }
}

impl From<&str> for ColumnValue {
    fn from(text: &str) -> Self {
        ColumnValue::Text(text.into())
    }
}

/// Formats a number, with an exponent if plain digits would not fit into a text.
fn in_digits(number: f64) -> String {
    let is_plain = number == 0.0 || !number.is_finite() || (1e-5..1e16).contains(&number.abs());
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

impl ColumnValue {
    /// The value's bytes in a column, little-endian. A number too large for the column's type keeps only its
    /// lowest bytes; a value of another kind becomes the fill value.
    pub fn bytes(&self, column: &FrameColumn) -> Vec<u8> {
        match (self, column.element) {
            (ColumnValue::Whole(number), ColumnElement::Number(element)) => of_whole(element, *number),
            (ColumnValue::Fraction(number), ColumnElement::Number(element)) => of_fraction(element, *number),
            (ColumnValue::Text(text), ColumnElement::Text(_)) => text_bytes(text).into(),
            _ => column.unknown(),
        }
    }

    /// Converts the value for a column of texts.
    #[must_use]
    pub fn as_text(&self) -> Self {
        match self {
            ColumnValue::Whole(number) => ColumnValue::from(number.to_string().as_str()),
            ColumnValue::Fraction(number) => ColumnValue::from(in_digits(*number).as_str()),
            other => other.clone(),
        }
    }

    /// Returns it as a single value, or `None` if it is unknown.
    pub fn alone(&self) -> Option<TreeValue> {
        match self {
            ColumnValue::Whole(number) => Some(NumberArray::int(*number).into()),
            ColumnValue::Fraction(number) => Some(NumberArray::float(*number).into()),
            ColumnValue::Text(text) => Some(TreeValue::from(&**text)),
            ColumnValue::Unknown => None,
        }
    }
}

/// Cuts a text to the size of a column's text: whole characters, up to the first zero byte, which would end it
/// there.
pub fn fitting_text(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    &text[..text.floor_char_boundary(TEXT_BYTES)]
}

/// Returns a text padded with zeroes.
pub(crate) fn text_bytes(text: &str) -> [u8; TEXT_BYTES] {
    let text = fitting_text(text);
    let mut bytes = [0; TEXT_BYTES];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn of_whole(element: NumberType, number: i64) -> Vec<u8> {
    match element {
        NumberType::Float32 => (number as f32).to_le_bytes().to_vec(),
        NumberType::Float64 => (number as f64).to_le_bytes().to_vec(),
        element => number.to_le_bytes()[..element.bytes()].to_vec(),
    }
}

fn of_fraction(element: NumberType, number: f64) -> Vec<u8> {
    match element {
        NumberType::Float32 => (number as f32).to_le_bytes().to_vec(),
        NumberType::Float64 => number.to_le_bytes().to_vec(),
        element => of_whole(element, number as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(element: impl Into<ColumnElement>, fill: &[u8]) -> FrameColumn {
        FrameColumn { key: "k".into(), element: element.into(), fill: fill.into() }
    }

    #[test]
    fn numbers_stand_in_a_column_as_its_type_says() {
        for element in NumberType::ALL {
            let column = column(element, &vec![0xee; element.bytes()]);
            let bytes = |number: ColumnValue| number.bytes(&column);
            assert_eq!(bytes(ColumnValue::Unknown), vec![0xee; element.bytes()], "{element:?}");
            assert_eq!(bytes("a text".into()), vec![0xee; element.bytes()], "{element:?}");
            assert_eq!(bytes(7.into()).len(), element.bytes(), "{element:?}");
            assert_eq!(bytes(7.into()), bytes(7.0.into()), "{element:?}");
        }
        let float = column(NumberType::Float64, &[0xee; 8]);
        assert_eq!(ColumnValue::from(0.25).bytes(&float), 0.25_f64.to_le_bytes());
        assert_eq!(ColumnValue::from(-1).bytes(&column(NumberType::Int32, &[0; 4])), [0xff; 4]);
    }

    #[test]
    fn texts_stand_in_a_column_with_zeroes_behind_them_and_are_cut_between_characters() {
        let texts = column(ColumnElement::TEXT, &[]);
        let bytes = |text: &str| {
            let bytes = ColumnValue::from(text).bytes(&texts);
            assert_eq!(bytes.len(), TEXT_BYTES, "{text}");
            String::from_utf8(bytes).expect("whole characters").trim_end_matches('\0').to_owned()
        };
        assert_eq!(bytes("Probe ä"), "Probe ä");
        assert_eq!(bytes(&"x".repeat(300)), "x".repeat(256));
        assert_eq!(bytes(&format!("x{}", "ä".repeat(200))), format!("x{}", "ä".repeat(127)));
        assert_eq!(bytes("a\0b"), "a");
        assert_eq!(ColumnValue::Unknown.bytes(&texts), [0; TEXT_BYTES]);
        assert_eq!(ColumnValue::from(5).bytes(&texts), [0; TEXT_BYTES]);
    }
}
