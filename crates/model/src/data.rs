//! The content of an instrument's frames: the `data` of its file, as a word or as a table.
//!
//! ```toml
//! data = "files:/data/2026-07/*.cbf"
//! ```
//!
//! ```toml
//! [data]
//! kind = "diffraction"
//! compressibility = 19.0
//! ```

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// The content of frames.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Data {
    /// The recipe for the frames, or the path of the user's files.
    pub kind: DataKind,
    /// The quantity that makes frames less compressible: photons a pixel for diffraction, electrons a pixel
    /// for tomography, counts of noise for liquid argon. `None` means the usual one.
    pub intensity: Option<f64>,
    /// How many times smaller bitshuffle with LZ4 makes the frames. The generator searches an `intensity`
    /// that meets this within 10 %.
    pub compressibility: Option<f64>,
    /// Number of frames that differ in more than their stamp, 1 to 4096; they repeat in a cycle. `None` means as
    /// many as suit their size.
    pub distinct: Option<u64>,
}

/// How frames are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum DataKind {
    /// Random bytes.
    Incompressible,
    /// X-rays scattered by a crystal: background, rings, spots, gaps, bad pixels.
    Diffraction,
    /// Light through a sample, with shot noise.
    Tomography,
    /// Waveforms of wires in liquid argon.
    LiquidArgon,
    /// Noise of a radio telescope in two bits a sample.
    Vlbi,
    /// The user's own files: a path whose last part may contain `*`. Each is a CBF file, or the raw bytes of
    /// a frame.
    Files(String),
}

const FILES: &str = "files:";
const NAMES: [(&str, DataKind); 5] = [
    ("incompressible", DataKind::Incompressible),
    ("diffraction", DataKind::Diffraction),
    ("tomography", DataKind::Tomography),
    ("liquid_argon", DataKind::LiquidArgon),
    ("vlbi", DataKind::Vlbi),
];
/// The most distinct frames of a campaign.
const DISTINCT_MAX: u64 = 4096;

impl DataKind {
    /// The intensity if the user gives none; `None` for kinds without an intensity.
    pub const fn usual_intensity(&self) -> Option<f64> {
        match self {
            DataKind::Diffraction => Some(0.5),
            DataKind::Tomography => Some(8000.0),
            DataKind::LiquidArgon => Some(3.0),
            DataKind::Incompressible | DataKind::Vlbi | DataKind::Files(_) => None,
        }
    }
}

impl fmt::Display for DataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataKind::Files(path) => write!(f, "{FILES}{path}"),
            kind => {
                let name = NAMES.iter().find(|(_, named)| named == kind).map(|(name, _)| *name);
                f.write_str(name.expect("every other kind has a name"))
            }
        }
    }
}

impl From<DataKind> for String {
    fn from(kind: DataKind) -> Self {
        kind.to_string()
    }
}

impl std::str::FromStr for DataKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(FILES) {
            Some("") => return Err("write a path behind `files:`, such as \"files:/data/*.cbf\"".into()),
            Some(path) => return Ok(DataKind::Files(path.into())),
            None => {}
        }
        let known = NAMES.into_iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| kind).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            format!("no data `{text}`: write one of {names}, or `files:PATH`")
        })
    }
}

impl<'de> Deserialize<'de> for DataKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl From<DataKind> for Data {
    fn from(kind: DataKind) -> Self {
        Data { kind, intensity: None, compressibility: None, distinct: None }
    }
}

/// The table form of `data`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: DataKind,
    intensity: Option<f64>,
    compressibility: Option<f64>,
    distinct: Option<u64>,
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrTable)
    }
}

struct WordOrTable;

impl<'de> Visitor<'de> for WordOrTable {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a kind of data, such as \"diffraction\", or a table with `kind`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Data, E> {
        text.parse::<DataKind>().map(Data::from).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Data, A::Error> {
        let Table { kind, intensity, compressibility, distinct } =
            Table::deserialize(MapAccessDeserializer::new(map))?;
        let data = Data { kind, intensity, compressibility, distinct };
        data.check().map(|()| data).map_err(de::Error::custom)
    }
}

impl Data {
    /// Requests frames that bitshuffle with LZ4 makes `factor` times smaller, in place of an intensity.
    pub fn set_compressibility(&mut self, factor: f64) -> Result<(), String> {
        let changed = Data { intensity: None, compressibility: Some(factor), ..self.clone() };
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Refuses values that make no sense; the message says how to correct it.
    fn check(&self) -> Result<(), String> {
        let Data { kind, intensity, compressibility, distinct } = self;
        if intensity.is_some() && compressibility.is_some() {
            return Err("intensity and compressibility: one follows from the other, write one of them".into());
        }
        if intensity.is_some() && kind.usual_intensity().is_none() {
            return Err(format!("intensity: {kind} has none, leave it out"));
        }
        if compressibility.is_some() && matches!(kind, DataKind::Files(_)) {
            return Err("compressibility: files are as they are, leave it out".into());
        }
        let positive = |value: &Option<f64>| value.is_none_or(|value| value.is_finite() && value > 0.0);
        if !positive(intensity) || !positive(compressibility) {
            return Err("intensity and compressibility: write a number above 0".into());
        }
        match distinct {
            Some(frames) if !(1..=DISTINCT_MAX).contains(frames) => {
                Err(format!("distinct = {frames}: write 1 to {DISTINCT_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        data: Data,
    }

    fn read(text: &str) -> Result<Data, String> {
        toml::from_str::<File>(text).map(|file| file.data).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_or_a_table() {
        assert_eq!(read("data = \"vlbi\""), Ok(DataKind::Vlbi.into()));
        let files = DataKind::Files("a b/*.cbf".into());
        assert_eq!(read("data = \"files:a b/*.cbf\""), Ok(files.clone().into()));
        assert_eq!(files.to_string(), "files:a b/*.cbf");
        let wished = Data { compressibility: Some(19.0), ..DataKind::Diffraction.into() };
        assert_eq!(read("[data]\nkind = \"diffraction\"\ncompressibility = 19.0"), Ok(wished.clone()));
        // A record can be read again.
        let written = serde_json::to_string(&wished).expect("it can be written");
        assert_eq!(serde_json::from_str::<Data>(&written).expect("and read"), wished);
    }

    #[test]
    fn nonsense_is_refused_where_it_stands() {
        for (text, part) in [
            ("data = \"difraction\"", "no data `difraction`: write one of `incompressible`, `diffraction`"),
            ("data = \"files:\"", "write a path"),
            ("data = 3", "such as \"diffraction\""),
            ("[data]\nkind = \"vlbi\"\nintensity = 3.0", "vlbi has none"),
            ("[data]\nkind = \"files:*\"\ncompressibility = 3.0", "as they are"),
            ("[data]\nkind = \"diffraction\"\nintensity = -1.0", "above 0"),
            ("[data]\nkind = \"diffraction\"\nintensity = 1.0\ncompressibility = 2.0", "one of them"),
            ("[data]\nkind = \"diffraction\"\ndistinct = 0", "1 to 4096"),
            ("[data]\nkind = \"diffraction\"\ncompresibility = 2.0", "`compressibility`"),
            ("[data]\ncompressibility = 2.0", "`kind`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(part) && error.contains("line "), "{error}");
        }
    }
}
