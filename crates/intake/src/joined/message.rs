//! Messages with values of a frame: JSON objects with its number. Pure.

use nilometer_hdf5::{ColumnValue, TEXT_BYTES};
use nilometer_wire::series::{MetadataField, MetadataValue};
use serde_json::Value;

/// Maximum length of a message in bytes.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// The key with the number of the frame.
const FRAME: &str = "frame";

/// The value of a name in a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SaidValue {
    Value(ColumnValue),
    /// `null`: the value is unknown.
    Nothing,
    /// A type that a column can't hold.
    Other,
}

/// A valid message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JoinedMessage {
    pub(super) frame: u64,
    /// By name, without that of the frame.
    pub(super) values: Vec<(String, SaidValue)>,
}

impl JoinedMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MESSAGE_MAX {
            return Err(format!("a message of {} B; at most {MESSAGE_MAX} are taken", bytes.len()));
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Value::Object(mut object) = value else { return Err("no JSON object".into()) };
        let frame = object.remove(FRAME).ok_or("no `frame`: the number of the frame, from 0")?;
        let Some(frame) = frame.as_u64() else {
            let shown: String = frame.to_string().chars().take(40).collect();
            return Err(format!("`frame` is {shown}, and no number of a frame"));
        };
        let values = object.into_iter().map(|(name, value)| (name, said(&value))).collect();
        Ok(JoinedMessage { frame, values })
    }
}

fn said(value: &Value) -> SaidValue {
    match value {
        Value::Null => SaidValue::Nothing,
        Value::Bool(is) => SaidValue::Value(ColumnValue::Whole((*is).into())),
        Value::String(text) => SaidValue::Value(text_of(text)),
        Value::Number(number) => SaidValue::Value(match number.as_i64() {
            Some(number) => ColumnValue::Whole(number),
            None => ColumnValue::Fraction(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::Array(_) | Value::Object(_) => SaidValue::Other,
    }
}

/// Makes a text value. A text may be as long as a message, so it is cut to twice the size of a column.
fn text_of(text: &str) -> ColumnValue {
    ColumnValue::from(&text[..text.floor_char_boundary(2 * TEXT_BYTES)])
}

/// The numbers and texts with names in the user data of an image. User data is a map, or a text that is a
/// JSON object. Other user data is ignored.
pub fn values_of_user_data(fields: &[MetadataField]) -> Vec<(String, ColumnValue)> {
    let Some(field) = fields.iter().find(|field| field.name == "user_data") else { return Vec::new() };
    match &field.value {
        MetadataValue::Map(fields) => {
            let value = |field: &MetadataField| Some((field.name.clone(), value_of(&field.value)?));
            fields.iter().filter_map(value).collect()
        }
        MetadataValue::Text(text) if text.len() <= MESSAGE_MAX => {
            let Ok(Value::Object(object)) = serde_json::from_str(text) else { return Vec::new() };
            let value = |(name, value): (String, Value)| match said(&value) {
                SaidValue::Value(value) => Some((name, value)),
                SaidValue::Nothing | SaidValue::Other => None,
            };
            object.into_iter().filter_map(value).collect()
        }
        _ => Vec::new(),
    }
}

fn value_of(value: &MetadataValue) -> Option<ColumnValue> {
    match value {
        MetadataValue::Bool(is) => Some(ColumnValue::Whole((*is).into())),
        MetadataValue::Integer(number) => {
            Some(i64::try_from(*number).map_or(ColumnValue::Fraction(*number as f64), ColumnValue::Whole))
        }
        MetadataValue::Float(number) => Some(ColumnValue::Fraction(*number)),
        MetadataValue::Text(text) => Some(text_of(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nilometer_fuzz::fuzz;

    use super::*;

    #[test]
    fn a_message_is_numbers_and_texts_of_a_frame() {
        let parsed = JoinedMessage::parse(
            br#" {"frame": 12, "Angle": 1.5, "Shutter": true, "n": null, "t": "x", "l": [1]} "#,
        );
        let message = parsed.expect("valid");
        let value =
            |name: &str| message.values.iter().find(|(known, _)| known == name).expect("there").1.clone();
        assert_eq!(message.frame, 12);
        assert_eq!(value("Angle"), SaidValue::Value(1.5.into()));
        assert_eq!(value("Shutter"), SaidValue::Value(1.into()));
        assert_eq!((value("n"), value("l")), (SaidValue::Nothing, SaidValue::Other));
        assert_eq!(value("t"), SaidValue::Value("x".into()));
        for (wrong, why) in [
            ("", "EOF"),
            ("[1]", "no JSON object"),
            ("{\"Angle\": 1}", "no `frame`"),
            ("{\"frame\": -1}", "`frame` is -1"),
            ("{\"frame\": \"12\"}", "`frame` is \"12\""),
            ("{\"frame\": 1.5}", "`frame` is 1.5"),
        ] {
            let fault = JoinedMessage::parse(wrong.as_bytes()).expect_err(wrong);
            assert!(fault.contains(why), "{wrong}: {fault}");
        }
    }

    #[test]
    fn what_a_program_says_with_an_image_is_taken_as_far_as_it_is_numbers_and_texts() {
        let said = |value: MetadataValue| values_of_user_data(&[MetadataField::new("user_data", value)]);
        let map = MetadataValue::Map(vec![
            MetadataField::new("angle", MetadataValue::Float(1.5)),
            MetadataField::new("step", MetadataValue::Integer(7)),
            MetadataField::new("name", MetadataValue::Text("lysozyme".into())),
            MetadataField::new("more", MetadataValue::Map(Vec::new())),
        ]);
        let name = ("name".into(), "lysozyme".into());
        assert_eq!(said(map), [("angle".into(), 1.5.into()), ("step".into(), 7.into()), name]);
        let text = MetadataValue::Text("{\"angle\": 2, \"name\": \"x\"}".into());
        assert_eq!(said(text), [("angle".into(), 2.into()), ("name".into(), "x".into())]);
        assert_eq!(said(MetadataValue::Text("a sample".into())), []);
        assert_eq!(said(MetadataValue::Null), []);
    }

    #[test]
    fn any_bytes_are_a_message_or_refused() {
        let corpus = vec![br#"{"frame": 12, "Angle": 1.5}"#.to_vec(), b"{\"frame\": 1}\n".to_vec()];
        fuzz("joined message", corpus, |input| {
            if let Err(fault) = JoinedMessage::parse(input) {
                assert!(!fault.is_empty());
            }
        });
    }
}
