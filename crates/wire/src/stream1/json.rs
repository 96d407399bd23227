//! Reads JSON parts as detectors and their control programs write them. Python writes NaN and Infinity, which
//! JSON lacks, and user texts are not always UTF-8. Neither must lose the pixels of the message.

use serde_json::Value;

use super::JSON_MAX;
use crate::{
    cbor::MessageBytes,
    series::{Fields, MetadataField, MetadataValue, SeriesError},
};

/// Reads a part as an object.
pub(super) fn json(
    parts: &[MessageBytes<'_>],
    number: usize,
    message: &'static str,
) -> Result<Fields, SeriesError> {
    let missing = || SeriesError::Missing { message, field: format!("part {number}") };
    let part = parts.get(number).filter(|part| part.cuts.is_empty()).ok_or_else(missing)?;
    let wrong = |fault: String| SeriesError::Json { part: number, fault };
    if part.bytes.len() > JSON_MAX {
        return Err(wrong(format!("more than {JSON_MAX} B of JSON")));
    }
    match value_of(part.bytes).map_err(|error| wrong(error.to_string()))? {
        MetadataValue::Map(fields) => Ok(Fields::new(message, fields)),
        _ => Err(wrong("it must be an object".to_owned())),
    }
}

/// Reads a value. NaN and infinities become null.
pub(super) fn value_of(bytes: &[u8]) -> Result<MetadataValue, serde_json::Error> {
    let strict = serde_json::from_slice(bytes);
    let read = strict.or_else(|error| serde_json::from_str(&without_nan(bytes)).map_err(|_| error));
    read.map(metadata)
}

/// Reads the first of several consecutive objects, if it is complete.
pub(super) fn first_object(bytes: &[u8]) -> Option<MetadataValue> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    values.next()?.ok().map(metadata)
}

/// Returns the text with null for NaN, Infinity and -Infinity outside of its strings.
fn without_nan(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut rest = &*text;
    let mut in_string = false;
    while let Some(letter) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| rest.starts_with(word));
        if let Some(word) = word.filter(|_| !in_string) {
            plain.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        in_string ^= letter == '"';
        let escaped = in_string && letter == '\\';
        let taken: usize = rest.chars().take(1 + usize::from(escaped)).map(char::len_utf8).sum();
        plain.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    plain
}

fn metadata(value: Value) -> MetadataValue {
    match value {
        Value::Null => MetadataValue::Null,
        Value::Bool(value) => MetadataValue::Bool(value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => MetadataValue::Integer(number.into()),
            (_, Some(number)) => MetadataValue::Integer(number.into()),
            _ => MetadataValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => MetadataValue::Text(text),
        Value::Array(values) => MetadataValue::List(values.into_iter().map(metadata).collect()),
        Value::Object(fields) => {
            let field = |(name, value)| MetadataField { name, value: metadata(value) };
            MetadataValue::Map(fields.into_iter().map(field).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_does_not_have_are_null() {
        for (written, read) in [
            ("{\"a\": NaN, \"b\": [1, -Infinity, Infinity]}", "{\"a\": null, \"b\": [1, null, null]}"),
            ("{\"a \\\" NaN\": \"NaN\", \"b\": NaN}", "{\"a \\\" NaN\": \"NaN\", \"b\": null}"),
            ("{\"\\\\\": NaN}", "{\"\\\\\": null}"),
        ] {
            assert_eq!(without_nan(written.as_bytes()), read);
            assert!(value_of(written.as_bytes()).is_ok(), "{written}");
        }
        let garbled = value_of(b"{\"name\": \"\xff\"}").expect("a text that is no UTF-8");
        assert_eq!(
            garbled,
            MetadataValue::Map(vec![MetadataField::new("name", MetadataValue::Text("\u{fffd}".into()))])
        );
        assert!(value_of(b"{\"a\": Nan}").is_err());
    }
}
