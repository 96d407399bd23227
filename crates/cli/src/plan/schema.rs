//! The JSON schema of a plan (draft 2020-12), for editors that check TOML by one.

use nilometer_plan::{PlanKey, ValueKind};
use serde_json::{Map, Value, json};

/// The schema of a whole plan.
pub(super) fn schema() -> Value {
    let mut schema = object(&PlanKey::all());
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A plan of nilometer");
    schema
}

/// A table with these keys and no others.
fn object(keys: &[PlanKey]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let needed: Vec<&str> = keys.iter().filter(|key| key.is_needed).map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    })
}

fn property(key: &PlanKey) -> Value {
    let one = of_kind(&key.kind);
    let mut schema = if key.may_be_list {
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    } else {
        one
    };
    let default = key.default.as_ref().map_or_else(String::new, |default| format!(" Default: {default}."));
    schema["description"] = json!(format!("{}{default}", key.about.join(" ")));
    schema
}

fn of_kind(kind: &ValueKind) -> Value {
    match kind {
        ValueKind::Whole => json!({ "type": "integer", "minimum": 0 }),
        ValueKind::Number => json!({ "type": "number" }),
        ValueKind::Boolean => json!({ "type": "boolean" }),
        ValueKind::Text(_) => json!({ "type": "string" }),
        // A plug-in of HDF5 has a number in its name.
        ValueKind::Words(words) if words.iter().any(|word| word.contains(':')) => json!({ "type": "string" }),
        ValueKind::Words(words) => json!({ "enum": words }),
        ValueKind::WholeOrWords(words) => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "enum": words }] })
        }
        ValueKind::WordsOrTable(words, _) => json!({ "anyOf": [{ "enum": words }, { "type": "object" }] }),
        ValueKind::List(each) => json!({ "type": "array", "items": of_kind(each) }),
        ValueKind::Inline(_) => json!({ "type": "object" }),
        ValueKind::Table(keys) => object(keys),
        ValueKind::Tables(keys) => json!({ "type": "array", "items": object(keys) }),
        ValueKind::Named(keys) => json!({ "type": "object", "additionalProperties": object(keys) }),
        ValueKind::OneOf(tables) => one_of(tables),
    }
}

/// A table with one of these tables in it.
fn one_of(tables: &[(&'static str, String, Vec<PlanKey>)]) -> Value {
    let each = tables.iter().map(|(name, about, keys)| {
        let mut table = object(keys);
        table["description"] = json!(about);
        ((*name).to_owned(), table)
    });
    let properties: Map<String, Value> = each.collect();
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    })
}
