//! The name of a recording that a series states. Control programs put it into `user_data` in version 2. In
//! version 1 they put it into the appendix of the header. The filewriter of DECTRIS and odin expect it there.

use std::path::PathBuf;

use nilometer_model::TargetAddress;
use nilometer_remote::is_taken;
use nilometer_wire::series::{MetadataField, MetadataValue, SeriesStart};

use crate::error::ServiceError;

/// The fields of a start message that users fill.
const USERS: [&str; 2] = ["user_data", "header_appendix"];
/// The keys under which control programs give a name, in order of preference.
const KEYS: [&str; 10] = [
    "recording_name",
    "name",
    "file_name",
    "filename",
    "file_prefix",
    "prefix",
    "acquisition_id",
    "acquisitionID",
    "acqID",
    "acqid",
];
/// The most letters of a name, so that suffixes have room.
const LETTERS_MAX: usize = 120;
/// The limit to the number of recordings with one name.
const SAME_MAX: u32 = 100_000;

/// The name in the stream, made fit for a directory. `None` if there is none.
pub(super) fn stated_name(start: &SeriesStart) -> Option<String> {
    let fields = USERS.iter().filter_map(|name| start.fields.iter().find(|field| field.name == *name));
    fields.filter_map(|field| name_in(&field.value)).find_map(|name| plain_name(&name))
}

/// The name in a user's value: a text itself, or a text under one of the known keys. A text in JSON is parsed.
fn name_in(value: &MetadataValue) -> Option<String> {
    match value {
        MetadataValue::Map(fields) => KEYS.iter().find_map(|key| of_key(fields, key)),
        MetadataValue::Text(text) => match serde_json::from_str(text) {
            Ok(serde_json::Value::Object(keys)) => {
                let text = |key: &&str| keys.get(*key).and_then(|value| value.as_str());
                KEYS.iter().find_map(text).map(Into::into)
            }
            Ok(serde_json::Value::String(text)) => Some(text),
            Ok(serde_json::Value::Null | serde_json::Value::Array(_)) => None,
            _ => Some(text.clone()),
        },
        _ => None,
    }
}

fn of_key(fields: &[MetadataField], key: &str) -> Option<String> {
    let field = fields.iter().find(|field| field.name == key)?;
    match &field.value {
        MetadataValue::Text(text) => Some(text.clone()),
        MetadataValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Turns a text into a directory name. Letters, digits and a few signs stay; everything else becomes an
/// underscore. The name cannot lead out of the directory. `None` if nothing is left.
fn plain_name(text: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '+' | '=');
    let plain = |letter: char| if is_plain(letter) { letter } else { '_' };
    let name: String = text.trim().trim_end_matches(".h5").chars().take(LETTERS_MAX).map(plain).collect();
    let name = name.trim_start_matches('.');
    let name = shortened(name, LETTERS_MAX);
    name.chars().any(char::is_alphanumeric).then(|| name.to_owned())
}

/// The beginning of a text, at most `bytes` long.
fn shortened(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// This name, or one with a number appended, that no directory has yet.
pub(super) fn unique_name(to: &[PathBuf], name: &str) -> Result<String, ServiceError> {
    for number in 1..SAME_MAX {
        let tried = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        let mut taken = false;
        for to in to {
            let address = TargetAddress::of_named(to).map_err(ServiceError::asked_wrongly)?;
            taken |= is_taken(&address, &tried).map_err(ServiceError::failed)?;
        }
        if !taken {
            return Ok(tried);
        }
    }
    Err(ServiceError::Failed(format!("{name} exists {SAME_MAX} times: choose another name")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_wire::series::{ElementType, SeriesName};

    fn start(name: &str, value: MetadataValue) -> SeriesStart {
        SeriesStart {
            series: SeriesName::default(),
            images: 1,
            shape: vec![1, 1],
            element: ElementType::Uint8,
            channels: vec!["a".into()],
            fields: vec![
                MetadataField::new("count_time", MetadataValue::Null),
                MetadataField::new(name, value),
            ],
        }
    }

    #[test]
    fn a_name_is_found_where_control_programs_put_it() {
        let text = |text: &str| MetadataValue::Text(text.into());
        let map = |key: &str, value| MetadataValue::Map(vec![MetadataField::new(key, value)]);
        for (field, value, name) in [
            ("user_data", text("lysozyme 3"), Some("lysozyme_3")),
            ("user_data", text("{\"name\": \"scan-5\", \"x\": 1}"), Some("scan-5")),
            ("user_data", map("acqID", text("cm-7.h5")), Some("cm-7")),
            ("header_appendix", map("acquisition_id", MetadataValue::Integer(12)), Some("12")),
            ("header_appendix", text("\"quoted\""), Some("quoted")),
            ("user_data", text("[1, 2]"), None),
            ("user_data", map("temperature", text("100 K")), None),
            ("user_data", MetadataValue::Float(1.0), None),
            ("sample", text("no name"), None),
        ] {
            assert_eq!(stated_name(&start(field, value)).as_deref(), name, "{field}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for (text, name) in [
            ("../../etc/passwd", Some("_.._etc_passwd")),
            ("/etc/x", Some("_etc_x")),
            ("..", None),
            ("", None),
            ("a\u{1b}[31m\nb\0", Some("a__31m_b_")),
            (".hidden", Some("hidden")),
            ("___", None),
        ] {
            assert_eq!(plain_name(text).as_deref(), name, "{text:?}");
        }
        let long = plain_name(&"ü".repeat(500)).expect("a name");
        assert!(long.len() <= LETTERS_MAX && long.starts_with("üü"), "{}", long.len());
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let to = [directory.path().to_owned()];
        for expected in ["scan", "scan-2", "scan-3"] {
            let name = unique_name(&to, "scan").expect("the directory is there");
            assert_eq!(name, expected);
            std::fs::create_dir(directory.path().join(name)).expect("space");
        }
    }
}
