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
pub(crate) struct Fields {
    pub(crate) message: &'static str,
    pub(crate) fields: Vec<MetadataField>,
}

impl Fields {
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
        match self.needed(name)? {
            MetadataValue::Text(text) => Ok(text),
            _ => Err(SeriesError::field(name, "a text is wanted")),
        }
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, SeriesError> {
        match self.take(name) {
            None | Some(MetadataValue::Null) => Ok(None),
            Some(MetadataValue::Text(text)) => Ok(Some(text)),
            Some(_) => Err(SeriesError::field(name, "a text is wanted")),
        }
    }

    /// The type of pixels that a field names.
    pub(crate) fn element(&mut self, name: &str) -> Result<ElementType, SeriesError> {
        let said = self.text(name)?;
        element_of(name, &said)
    }

    /// The series that a message is of. Version 1 calls its number `series`, version 2 `series_id`.
    pub(crate) fn series(&mut self, number: &str) -> Result<SeriesName, SeriesError> {
        let number = self.unsigned(number)?;
        let unique = self.optional_text("series_unique_id")?.unwrap_or_default();
        Ok(SeriesName { number, unique })
    }

    /// A time as numerator and denominator, if there is one.
    pub(crate) fn ratio(&mut self, name: &str) -> Result<Option<TimeRatio>, SeriesError> {
        let parts = match self.take(name) {
            None | Some(MetadataValue::Null) => return Ok(None),
            Some(MetadataValue::List(parts)) => parts,
            Some(_) => Vec::new(),
        };
        let [numerator, denominator] = &parts[..] else {
            return Err(SeriesError::field(name, "[numerator, denominator] is wanted"));
        };
        let ratio =
            TimeRatio { numerator: unsigned(name, numerator)?, denominator: unsigned(name, denominator)? };
        if ratio.denominator == 0 {
            return Err(SeriesError::field(name, "a denominator of 0"));
        }
        Ok(Some(ratio))
    }
}

/// The type of pixels of this name.
fn element_of(field: &str, said: &str) -> Result<ElementType, SeriesError> {
    let names = ElementType::ALL.map(ElementType::name).join(", ");
    let shown: String = said.chars().take(20).collect();
    let unknown = || SeriesError::field(field, format!("{shown:?} is none of {names}"));
    ElementType::of_name(said).ok_or_else(unknown)
}

fn unsigned(name: &str, value: &MetadataValue) -> Result<u64, SeriesError> {
    let number = match value {
        MetadataValue::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| SeriesError::field(name, "a whole number from 0 is wanted"))
}
