//! Quantities for programs: what is written as a text with its unit in files and records becomes a number, and its unit a part
//! of its key.

use nilometer_model::{ByteRate, Bytes, Frequency, Nanos};
use serde_json::{Map, Value as Json};

use nilometer_analysis::Value;

/// The same document, with `"size": "4096 B"` as `"size_bytes": 4096`: bytes, `_bytes_per_second`, seconds as `_s`, `_hertz`.
/// Texts that are no quantities stay; one that only looks like a quantity in that form does not, so this is for descriptions of
/// targets and not for texts of users.
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

/// A quantity in the one form in which quantities are written: a number, a space, the base unit.
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

/// A parameter's value, without the unit that its key says.
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
