//! Metadata of messages: nested values as sent, and access to required fields.

use super::{ArrayData, ElementType, SeriesError, SeriesName, TimeRatio};
use crate::cbor::DataPlace;

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// Null.
    Null,
    /// A Boolean.
    Bool(bool),
    /// An integer of 65 bits, with its sign.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A text, or a date in the format of RFC 3339.
    Text(String),
    /// Bytes of unknown meaning.
    Bytes(DataPlace),
    /// A list.
    List(Vec<MetadataValue>),
    /// A map.
    Map(Vec<MetadataField>),
    /// An array of numbers.
    Array(ArrayData),
}

/// A value and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataField {
    /// The name. An integer key becomes its digits.
    pub name: String,
    /// The value.
    pub value: MetadataValue,
}

impl MetadataField {
    /// Creates a named value.
    pub fn new(name: &str, value: MetadataValue) -> Self {
        MetadataField { name: name.to_owned(), value }
    }
}

/// The fields of a message. Decoding takes the known ones out.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "a message has fields")]
pub(crate) struct Fields {
    pub(crate) message: &'static str,
    pub(crate) fields: Vec<MetadataField>,
    /// Optional fields with an invalid value.
    pub(crate) unread: Vec<SeriesError>,
}

impl Fields {
    /// Wraps the fields of a message. Errors call the message by this name.
    pub(crate) fn new(message: &'static str, fields: Vec<MetadataField>) -> Self {
        Fields { message, fields, unread: Vec::new() }
    }

    /// Takes out the first field with this name.
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

    /// Takes out an optional field. `None` if it is missing, null, or invalid; in the last case its error joins
    /// `unread`.
    pub(crate) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, &MetadataValue) -> Result<T, SeriesError>,
    ) -> Option<T> {
        let value = self.take(name).filter(|value| *value != MetadataValue::Null)?;
        read(name, &value).map_err(|fault| self.unread.push(fault)).ok()
    }

    /// Takes out a field that names a type of pixels.
    pub(crate) fn element(&mut self, name: &str) -> Result<ElementType, SeriesError> {
        element(name, &self.needed(name)?)
    }

    /// Takes out the name of the message's series. Version 1 calls its number `series`, version 2 `series_id`.
    /// A message with a unique name needs no number.
    pub(crate) fn series(&mut self, number: &str) -> Result<SeriesName, SeriesError> {
        let unique = self.optional("series_unique_id", word).unwrap_or_default();
        if unique.is_empty() {
            return Ok(SeriesName { number: self.unsigned(number)?, unique });
        }
        let number = self.optional(number, unsigned).unwrap_or(0);
        Ok(SeriesName { number, unique })
    }
}

/// Reads a time as numerator and denominator.
pub(crate) fn ratio(name: &str, value: &MetadataValue) -> Result<TimeRatio, SeriesError> {
    let parts = match value {
        MetadataValue::List(parts) => &parts[..],
        _ => &[],
    };
    let [numerator, denominator] = parts else {
        return Err(SeriesError::field(name, "must be [numerator, denominator]"));
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
        _ => Err(SeriesError::field(name, "must be a text")),
    }
}

/// Reads a text, or the digits of an integer.
fn word(name: &str, value: &MetadataValue) -> Result<String, SeriesError> {
    match value {
        MetadataValue::Integer(number) => Ok(number.to_string()),
        value => text(name, value),
    }
}

/// Reads the name of a type of pixels.
pub(crate) fn element(name: &str, value: &MetadataValue) -> Result<ElementType, SeriesError> {
    let said = text(name, value)?;
    let names = ElementType::ALL.map(ElementType::name).join(", ");
    let shown: String = said.chars().take(20).collect();
    let unknown = || SeriesError::field(name, format!("{shown:?} is none of {names}"));
    ElementType::of_name(&said).ok_or_else(unknown)
}

/// Below this limit floats represent integers exactly.
const WHOLE_FLOATS: f64 = (1_u64 << 53) as f64;

/// Reads an unsigned integer, also if written as a float or as text.
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
    number.ok_or_else(|| SeriesError::field(name, "must be a whole number from 0"))
}

/// Reads an integer above 0.
pub(crate) fn positive(name: &str, value: &MetadataValue) -> Result<u64, SeriesError> {
    match unsigned(name, value)? {
        0 => Err(SeriesError::field(name, "must be a number above 0")),
        number => Ok(number),
    }
}
