//! Converts quantities for programs. In files and records they are texts with a unit. Here they become numbers,
//! and the unit becomes a part of the key.

use nilometer_model::{ByteRate, Bytes, Frequency, Nanos};
use serde_json::{Map, Value as Json};

use nilometer_analysis::Value;

/// Converts a document: `"size": "4096 B"` becomes `"size_bytes": 4096`. Suffixes are `_bytes`,
/// `_bytes_per_second`, `_s` for seconds and `_hertz`. Other texts stay. A text that happens to have this form
/// is converted too, so use it for descriptions of targets and not for users' texts.
pub fn units_in_keys(document: Json) -> Json {
    match document {
        Json::Object(fields) => {
            Json::Object(fields.into_iter().map(|(key, value)| field(key, value)).collect::<Map<_, _>>())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(units_in_keys).collect()),
        other => other,
    }
}

fn field(key: String, value: Json) -> (String, Json) {
    let Json::String(text) = &value else { return (key, units_in_keys(value)) };
    match quantity(text) {
        Some((unit, number)) => (format!("{key}_{unit}"), number),
        None => (key, value),
    }
}

/// Parses a quantity in its canonical form: a number, a space, the base unit.
fn quantity(text: &str) -> Option<(&'static str, Json)> {
    let (_, unit) = text.rsplit_once(' ')?;
    match unit {
        "B" => Some(("bytes", text.parse::<Bytes>().ok()?.0.into())),
        "B/s" => Some(("bytes_per_second", text.parse::<ByteRate>().ok()?.0.into())),
        "ns" => Some(("s", text.parse::<Nanos>().ok()?.seconds().into())),
        "Hz" => Some(("hertz", text.parse::<Frequency>().ok()?.0.into())),
        _ => None,
    }
}

/// Returns a parameter's value without its unit, which is in the key.
pub(super) fn plain(value: &Value) -> Json {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Size(bytes) => bytes.0.into(),
        Value::Time(time) => time.seconds().into(),
        Value::Rate(rate) => rate.0.into(),
        Value::Word(word) => word.as_str().into(),
    }
}

/// The key of a parameter, with its unit.
pub(super) fn with_unit(name: &str, value: &Value) -> String {
    match value {
        Value::Size(_) => format!("{name}_bytes"),
        Value::Time(_) => format!("{name}_s"),
        Value::Rate(_) => format!("{name}_bytes_per_second"),
        Value::Number(_) | Value::Word(_) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units_move_into_keys_and_texts_stay() {
        let before = json!({ "space": { "free": "4096 B" }, "rates": [{ "most": "5 B/s" }], "wait": "1500000000 ns",
                             "name": "disk B", "count": 3 });
        let after = json!({ "space": { "free_bytes": 4096 }, "rates": [{ "most_bytes_per_second": 5.0 }], "wait_s": 1.5,
                            "name": "disk B", "count": 3 });
        assert_eq!(units_in_keys(before), after);
    }
}
