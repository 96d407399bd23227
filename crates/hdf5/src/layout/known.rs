//! Values that belong to frames beside their pixels, with their names in layouts: an `NDAttribute` in
//! areaDetector.

use crate::{
    ImageTimeColumn, NdArrayColumn, PlacedColumn, SERIES_DATE,
    nexus::{RecorderColumn, RecordingTotals},
    tree::{ColumnElement, FrameColumn, NumberType, TreeAttribute, TreeValue},
};

/// A value that belongs to frames beside their pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameAttribute {
    /// Its name in layouts; the [`FrameColumn::key`] too.
    pub name: String,
    /// A description for readers of the file.
    pub description: String,
    /// The kind of its source, as areaDetector names kinds: `NDAttrSourceDriver`.
    pub source_type: String,
    /// Its source.
    pub source: String,
    /// The kind and time of its values.
    pub supply: AttributeSupply,
}

/// The kind of values that an attribute of frames has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeSupply {
    /// A value for each frame.
    EachFrame {
        /// The type of the values.
        element: ColumnElement,
        /// The value of a frame without a known value, as in [`FrameColumn::fill`].
        fill: Vec<u8>,
    },
    /// One value for all frames, available when the file is made.
    Once(TreeValue),
    /// One value, available after the last frame.
    AtEnd,
}

impl FrameAttribute {
    /// An attribute with a value for each frame, from a stream of the user's.
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

    /// An attribute with a value of this type for each frame, from a stream of the user's. Frames without a value
    /// get NaN, -1, or an empty text.
    pub fn joined(name: &str, element: impl Into<ColumnElement>) -> Self {
        let element = element.into();
        match element {
            ColumnElement::INT => Self::stream(name, element, &(-1_i64).to_le_bytes()),
            ColumnElement::Text(_) => Self::stream(name, element, &[]),
            ColumnElement::Number(_) => Self::stream(name, NumberType::Float64, &f64::NAN.to_le_bytes()),
        }
    }

    /// An attribute with one value for all frames, stated by the user.
    pub fn stated(name: &str, value: TreeValue) -> Self {
        FrameAttribute {
            source: "stated".into(),
            supply: AttributeSupply::Once(value),
            ..Self::stream(name, NumberType::Uint8, &[])
        }
    }

    /// The attributes that areaDetector has for every frame: number and time, from [`NdArrayColumn`].
    pub fn of_every_frame() -> Vec<Self> {
        let columns = NdArrayColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "Driver")).collect()
    }

    /// The recorder's notes about every frame: [`RecorderColumn`], by its keys.
    pub fn of_the_recorder() -> Vec<Self> {
        let columns = RecorderColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "nilometer")).collect()
    }

    /// The position of each frame, if there are several datasets of frames: [`PlacedColumn`], by its keys.
    pub fn of_places() -> Vec<Self> {
        let columns = PlacedColumn::ALL.into_iter();
        columns.map(|column| Self::of_driver(&column.column(), column.description(), "nilometer")).collect()
    }

    /// The values in a detector's stream for every frame: [`ImageTimeColumn`], by its keys.
    pub fn of_a_detector() -> Vec<Self> {
        let columns = ImageTimeColumn::ALL.into_iter();
        let times = columns.map(|column| Self::of_driver(&column.column(), column.description(), "detector"));
        let begun = Self::at_end(SERIES_DATE, "when the series began, as the detector says", "detector");
        times.chain([begun]).collect()
    }

    /// The values available after the last frame: [`RecordingTotals`].
    pub fn of_the_end() -> Vec<Self> {
        let names = RecordingTotals::NAMES.into_iter();
        names.map(|(name, description)| Self::at_end(name, description, "nilometer")).collect()
    }

    /// An attribute with one value that is available after the last frame.
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

    /// The attributes that areaDetector adds to a dataset of this attribute.
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
