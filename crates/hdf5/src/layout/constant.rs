//! Values that stand in a layout.

use crate::tree::{NumberArray, NumberType, TreeValue};

/// What a constant in XML is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstantType {
    Int,
    Float,
    Text,
}

/// A constant as it stands in XML: text, a number, or numbers with commas between them. 32-bit integers and 64-bit floats, as
/// areaDetector writes them.
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

/// A row of one is a number.
pub(super) fn alone(mut array: NumberArray) -> TreeValue {
    if array.shape == [1] {
        array.shape.clear();
    }
    TreeValue::Numbers(array)
}

/// Commas or blanks stand between them; one more comma at the end is taken.
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
