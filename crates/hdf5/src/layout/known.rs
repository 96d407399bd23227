//! What is known of frames beside their pixels, by the names that layouts call it: an `NDAttribute` in areaDetector.

use crate::{
    ImageTimeColumn, NdArrayColumn, PlacedColumn, SERIES_DATE,
    nexus::{RecorderColumn, RecordingTotals},
    tree::{ColumnElement, FrameColumn, NumberType, TreeAttribute, TreeValue},
};

/// Something that is known of frames beside their pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameAttribute {
    /// By which layouts name it; the [`FrameColumn::key`] too.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// The kind of its source, as areaDetector names kinds: `NDAttrSourceDriver`.
    pub source_type: String,
    /// Its source.
    pub source: String,
    /// What it says.
    pub supply: AttributeSupply,
}

/// What an attribute of frames says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeSupply {
    /// A value for each frame.
    EachFrame {
        /// The type of the values.
        element: ColumnElement,
        /// The value of a frame of which nothing is known: [`FrameColumn::fill`].
        fill: Vec<u8>,
    },
    /// One value for all frames, which is known when the file is made.
    Once(TreeValue),
    /// One value that is known behind the last frame.
    AtEnd,
}

impl FrameAttribute {
    /// A value for each frame, from a stream of the user's.
    pub fn stream(name: &str, element: impl Into<ColumnElement>, fill: &[u8]) -> Self {
        let supply = AttributeSupply::EachFrame { element: element.into(), fill: fill.into() };
        FrameAttribute {
            name: name.into(),
            description: String::new(),
            source_type: "NDAttrSourceParam".into(),
            source: "stream".into(),
            supply,
        }
    }

    /// A value for each frame, from a stream of the user's, of this type: not a number, -1, or an empty text where none came.
    pub fn joined(name: &str, element: impl Into<ColumnElement>) -> Self {
        let element = element.into();
        match element {
            ColumnElement::INT => Self::stream(name, element, &(-1_i64).to_le_bytes()),
            ColumnElement::Text(_) => Self::stream(name, element, &[]),
            ColumnElement::Number(_) => Self::stream(name, NumberType::Float64, &f64::NAN.to_le_bytes()),
        }
    }

    /// One value for all frames, that the user stated.
    pub fn stated(name: &str, value: TreeValue) -> Self {
        FrameAttribute {
            source: "stated".into(),
            supply: AttributeSupply::Once(value),
            ..Self::stream(name, NumberType::Uint8, &[])
        }
    }

    /// Those that areaDetector has of every frame: number and time, see [`NdArrayColumn`].
    pub fn of_every_frame() -> Vec<Self> {
        let columns = NdArrayColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "Driver")).collect()
    }

    /// What the recorder says of every frame: [`RecorderColumn`], by its keys.
    pub fn of_the_recorder() -> Vec<Self> {
        let columns = RecorderColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "nilometer")).collect()
    }

    /// Where each frame stands, if there are several datasets of frames: [`PlacedColumn`], by its keys.
    pub fn of_places() -> Vec<Self> {
        let columns = PlacedColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "nilometer")).collect()
    }

    /// What the stream of a detector says of every frame: [`ImageTimeColumn`], by its keys.
    pub fn of_a_detector() -> Vec<Self> {
        let columns = ImageTimeColumn::ALL.into_iter();
        let times = columns.map(|column| Self::of_driver(&column.column(), column.description(), "detector"));
        let begun = Self::at_end(SERIES_DATE, "when the series began, as the detector says", "detector");
        times.chain([begun]).collect()
    }

    /// What is known behind the last frame: [`RecordingTotals`].
    pub fn of_the_end() -> Vec<Self> {
        let names = RecordingTotals::NAMES.into_iter();
        names.map(|(name, description)| Self::at_end(name, description, "nilometer")).collect()
    }

    /// One value that is known behind the last frame.
    fn at_end(name: &str, description: &str, source: &str) -> Self {
        FrameAttribute {
            name: name.into(),
            description: description.into(),
            source_type: "NDAttrSourceDriver".into(),
            source: source.into(),
            supply: AttributeSupply::AtEnd,
        }
    }

    fn of_driver(column: &FrameColumn, description: &str, source: &str) -> Self {
        FrameAttribute {
            description: description.into(),
            source_type: "NDAttrSourceDriver".into(),
            source: source.into(),
            ..Self::stream(&column.key, column.element, &column.fill)
        }
    }

    /// What areaDetector says beside a dataset of it.
    pub fn said(&self) -> Vec<TreeAttribute> {
        let said = [
            ("NDAttrName", &self.name),
            ("NDAttrDescription", &self.description),
            ("NDAttrSourceType", &self.source_type),
            ("NDAttrSource", &self.source),
        ];
        let said = said.into_iter().filter(|(_, text)| !text.is_empty());
        said.map(|(name, text)| TreeAttribute::new(name, text.as_str())).collect()
    }
}
