//! What messages say beside pixels: values within values, as they were sent, and how those are asked for that must be there.

use super::{ArrayData, ElementType, SeriesError, SeriesName, TimeRatio};
use crate::cbor::DataPlace;

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number, of 65 bits with its sign.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A text, or a date as RFC 3339 has it.
    Text(String),
    /// Bytes of no known meaning.
    Bytes(DataPlace),
    /// Values.
    List(Vec<MetadataValue>),
    /// Values with names.
    Map(Vec<MetadataField>),
    /// Numbers of one type.
    Array(ArrayData),
}

/// A value and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataField {
    /// Its name; an integer that is a name is one in digits.
    pub name: String,
    /// Its value.
    pub value: MetadataValue,
}

impl MetadataField {
    /// A named value.
    pub fn new(name: &str, value: MetadataValue) -> Self {
        MetadataField { name: name.to_owned(), value }
    }
}

/// The fields of a message, from which what is known is taken out.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "a message has fields")]
pub(crate) struct Fields {
    pub(crate) message: &'static str,
    pub(crate) fields: Vec<MetadataField>,
    /// Fields that have a value that they can't have, and that the message is of use without.
    pub(crate) unread: Vec<SeriesError>,
}

impl Fields {
    /// The fields of a message that errors call by this name.
    pub(crate) fn new(message: &'static str, fields: Vec<MetadataField>) -> Self {
        Fields { message, fields, unread: Vec::new() }
    }

    /// Takes out the first field of this name.
    pub(crate) fn take(&mut self, name: &str) -> Option<MetadataValue> {
        let at = self.fields.iter().position(|field| field.name == name)?;
        Some(self.fields.remove(at).value)
    }

    pub(crate) fn needed(&mut self, name: &str) -> Result<MetadataValue, SeriesError> {
        let missing = || SeriesError::Missing { message: self.message, field: name.to_owned() };
        let at = self.fields.iter().position(|field| field.name == name).ok_or_else(missing)?;
        Ok(self.fields.remove(at).value)
    }

    pub(crate) fn unsigned(&mut self, name: &str) -> Result<u64, SeriesError> {
        unsigned(name, &self.needed(name)?)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, SeriesError> {
        text(name, &self.needed(name)?)
    }

    /// Takes out a field that the message is of use without. None if it is missing or null, or has a value that it can't have:
    /// the field then joins `unread`.
    pub(crate) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, &MetadataValue) -> Result<T, SeriesError>,
    ) -> Option<T> {
        let value = self.take(name).filter(|value| *value != MetadataValue::Null)?;
        read(name, &value).map_err(|fault| self.unread.push(fault)).ok()
    }

    /// The type of pixels that a field names.
    pub(crate) fn element(&mut self, name: &str) -> Result<ElementType, SeriesError> {
        element(name, &self.needed(name)?)
    }

    /// The series that a message is of. Version 1 calls its number `series`, version 2 `series_id`. A message with a unique name
    /// needs no number.
    pub(crate) fn series(&mut self, number: &str) -> Result<SeriesName, SeriesError> {
        let unique = self.optional("series_unique_id", word).unwrap_or_default();
        if unique.is_empty() {
            return Ok(SeriesName { number: self.unsigned(number)?, unique });
        }
        let number = self.optional(number, unsigned).unwrap_or(0);
        Ok(SeriesName { number, unique })
    }
}

/// A time as numerator and denominator.
pub(crate) fn ratio(name: &str, value: &MetadataValue) -> Result<TimeRatio, SeriesError> {
    let parts = match value {
        MetadataValue::List(parts) => &parts[..],
        _ => &[],
    };
    let [numerator, denominator] = parts else {
        return Err(SeriesError::field(name, "[numerator, denominator] is wanted"));
    };
    let ratio =
        TimeRatio { numerator: unsigned(name, numerator)?, denominator: unsigned(name, denominator)? };
    if ratio.denominator == 0 {
        return Err(SeriesError::field(name, "a denominator of 0"));
    }
    Ok(ratio)
}

pub(crate) fn text(name: &str, value: &MetadataValue) -> Result<String, SeriesError> {
    match value {
        MetadataValue::Text(text) => Ok(text.clone()),
        _ => Err(SeriesError::field(name, "a text is wanted")),
    }
}

/// A text, or a whole number as one.
fn word(name: &str, value: &MetadataValue) -> Result<String, SeriesError> {
    match value {
        MetadataValue::Integer(number) => Ok(number.to_string()),
        value => text(name, value),
    }
}

/// The type of pixels that a value names.
pub(crate) fn element(name: &str, value: &MetadataValue) -> Result<ElementType, SeriesError> {
    let said = text(name, value)?;
    let names = ElementType::ALL.map(ElementType::name).join(", ");
    let shown: String = said.chars().take(20).collect();
    let unknown = || SeriesError::field(name, format!("{shown:?} is none of {names}"));
    ElementType::of_name(&said).ok_or_else(unknown)
}

/// Floats hold whole numbers below this exactly.
const WHOLE_FLOATS: f64 = (1_u64 << 53) as f64;

/// A whole number from 0, also if it is written as a float or in digits.
pub(crate) fn unsigned(name: &str, value: &MetadataValue) -> Result<u64, SeriesError> {
    let number = match value {
        MetadataValue::Integer(number) => u64::try_from(*number).ok(),
        MetadataValue::Float(number) if (0.0..WHOLE_FLOATS).contains(number) && number.fract() == 0.0 => {
            #[expect(clippy::cast_sign_loss, reason = "it is in that range")]
            let whole = *number as u64;
            Some(whole)
        }
        MetadataValue::Text(digits) => digits.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| SeriesError::field(name, "a whole number from 0 is wanted"))
}

/// The same, and above 0.
pub(crate) fn positive(name: &str, value: &MetadataValue) -> Result<u64, SeriesError> {
    match unsigned(name, value)? {
        0 => Err(SeriesError::field(name, "a number above 0 is wanted")),
        number => Ok(number),
    }
}
