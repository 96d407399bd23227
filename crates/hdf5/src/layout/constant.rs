//! Constant values in a layout.

use crate::tree::{NumberArray, NumberType, TreeValue};

/// The type of a constant in XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstantType {
    Int,
    Float,
    Text,
}

/// Parses a constant in XML: text, a number, or numbers with commas between them. The numbers become 32-bit
/// integers or 64-bit floats, as in areaDetector.
pub(super) fn constant(kind: ConstantType, text: &str) -> Result<TreeValue, String> {
    match kind {
        ConstantType::Text => Ok(TreeValue::Text(text.into())),
        ConstantType::Int => {
            let numbers = numbers::<i32>(text, "whole numbers from -2147483648 to 2147483647")?;
            Ok(alone(int_row(&numbers)))
        }
        ConstantType::Float => {
            let numbers = numbers::<f64>(text, "numbers as `0.5` or `1e-3`")?;
            Ok(alone(NumberArray::floats(&numbers)))
        }
    }
}

/// A row of numbers.
pub(super) fn int_row(numbers: &[i32]) -> NumberArray {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    NumberArray { element: NumberType::Int32, shape: vec![numbers.len() as u64], bytes }
}

/// Turns a row of one number into a single number.
pub(super) fn alone(mut array: NumberArray) -> TreeValue {
    if array.shape == [1] {
        array.shape.clear();
    }
    TreeValue::Numbers(array)
}

/// Parses numbers with commas or blanks between them; one more comma at the end is accepted.
fn numbers<T: std::str::FromStr>(text: &str, valid: &str) -> Result<Vec<T>, String> {
    let list = text.trim().strip_suffix(',').unwrap_or(text.trim());
    let parts = list.split(',').flat_map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        if words.is_empty() { vec![""] } else { words }
    });
    let number = |part: &str| {
        part.parse().map_err(|_| format!("`{part}` is no value here; valid are {valid}, with commas"))
    };
    parts.map(number).collect()
}
