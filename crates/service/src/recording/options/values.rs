//! Values of options: parsers for the command line, and readers for TOML and JSON.

use std::{ffi::OsStr, fmt::Display, path::PathBuf, str::FromStr};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use nilometer_model::{Format, FrameCompression};
use nilometer_recording::Missing;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

pub(super) fn missing() -> impl TypedValueParser<Value = Missing> {
    PossibleValuesParser::new(Missing::ALL.map(Missing::name)).try_map(|name| name.parse::<Missing>())
}

/// The formats in which frames from a network can be stored.
const FORMATS: [Format; 2] = [Format::Raw, Format::Hdf5];

pub(super) fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(FORMATS.map(Format::name))
        .map(|name| FORMATS.into_iter().find(|format| format.name() == name).unwrap_or_default())
}

/// A format that a recorder writes. Simulations also write CBF.
pub(super) fn recorded_format<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Format>, D::Error> {
    let format = Option::<Format>::deserialize(deserializer)?;
    let other = format.filter(|format| !FORMATS.contains(format));
    other.map_or(Ok(format), |other| {
        let [one, two] = FORMATS.map(Format::name);
        Err(de::Error::custom(format!("a recorder writes no {}: write {one:?} or {two:?}", other.name())))
    })
}

/// The parser of frame compression, for every command that takes it. It lists the built-in methods, and also
/// accepts filters of plug-ins.
pub fn compression_parser() -> impl TypedValueParser<Value = FrameCompression> {
    CompressionParser
}

#[derive(Debug, Clone, Copy)]
struct CompressionParser;

impl TypedValueParser for CompressionParser {
    type Value = FrameCompression;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<FrameCompression, clap::Error> {
        let by_text = |text: &str| text.parse::<FrameCompression>();
        TypedValueParser::parse_ref(&by_text, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let built_in = FrameCompression::ALL.into_iter().map(|known| PossibleValue::new(known.name()));
        let plugins = PossibleValue::new("filter:NUMBER,VALUES").help("A plug-in of HDF5 by its number");
        Some(Box::new(built_in.chain([plugins])))
    }
}

/// A value from its text, as on the command line.
pub(super) fn written<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
}

/// A text, or a list of texts.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub(super) enum OneOrManyTexts {
    One(String),
    Many(Vec<String>),
}

/// A value from its text, or a list of such values.
pub(super) fn one_or_many_texts<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts = match OneOrManyTexts::deserialize(deserializer)? {
        OneOrManyTexts::One(text) => vec![text],
        OneOrManyTexts::Many(texts) => texts,
    };
    texts.into_iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}

/// A directory, or a list of them.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a directory, or a list of directories")]
    enum OneOrMany {
        One(PathBuf),
        Many(Vec<PathBuf>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(path) => vec![path],
        OneOrMany::Many(paths) => paths,
    })
}
