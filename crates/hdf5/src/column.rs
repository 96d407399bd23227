//! Numbers of columns: what stands there for each frame, and how.

use crate::tree::{FrameColumn, NumberType};

/// What a column says of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnNumber {
    /// A whole number.
    Whole(i64),
    /// Any other.
    Fraction(f64),
    /// Nothing is known: what the column is filled with.
    Unknown,
}

impl From<i64> for ColumnNumber {
    fn from(number: i64) -> Self {
        ColumnNumber::Whole(number)
    }
}

impl From<f64> for ColumnNumber {
    fn from(number: f64) -> Self {
        ColumnNumber::Fraction(number)
    }
}

impl ColumnNumber {
    /// As it stands in a column, little-endian. What has no place in the column's type has only its lowest bytes there.
    pub fn bytes(self, column: &FrameColumn) -> Vec<u8> {
        match self {
            ColumnNumber::Unknown => column.fill.clone(),
            ColumnNumber::Whole(number) => of_whole(column.element, number),
            ColumnNumber::Fraction(number) => match column.element {
                NumberType::Float32 => (number as f32).to_le_bytes().to_vec(),
                NumberType::Float64 => number.to_le_bytes().to_vec(),
                element => of_whole(element, number as i64),
            },
        }
    }
}

fn of_whole(element: NumberType, number: i64) -> Vec<u8> {
    match element {
        NumberType::Float32 => (number as f32).to_le_bytes().to_vec(),
        NumberType::Float64 => (number as f64).to_le_bytes().to_vec(),
        element => number.to_le_bytes()[..element.bytes()].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_a_column_as_its_type_says() {
        let column =
            |element: NumberType| FrameColumn { key: "k".into(), element, fill: vec![0xee; element.bytes()] };
        for element in NumberType::ALL {
            let bytes = |number: ColumnNumber| number.bytes(&column(element));
            assert_eq!(bytes(ColumnNumber::Unknown), vec![0xee; element.bytes()], "{element:?}");
            assert_eq!(bytes(7.into()).len(), element.bytes(), "{element:?}");
            assert_eq!(bytes(7.into()), bytes(7.0.into()), "{element:?}");
        }
        let float = column(NumberType::Float64);
        assert_eq!(ColumnNumber::from(0.25).bytes(&float), 0.25_f64.to_le_bytes());
        assert_eq!(ColumnNumber::from(-1).bytes(&column(NumberType::Int32)), [0xff; 4]);
    }
}
