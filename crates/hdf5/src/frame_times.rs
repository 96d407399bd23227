//! Columns of a frame's number and times: those that areaDetector has for every frame, and those in a detector's
//! stream.

use std::time::Duration;

use crate::{
    ColumnValue,
    tree::{
        ColumnElement, DatasetContent, FrameChoice, FrameColumn, FrameValue, NumberType, TreeAttribute,
        TreeDataset, TreeGroup, TreeNode, TreeValue, WriteTime,
    },
};

/// A value that areaDetector (`NDArray`) keeps for every frame: its number and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NdArrayColumn {
    /// The frame's number, from 0.
    UniqueId,
    /// Its time in seconds since 1990-01-01 00:00 UTC, as EPICS counts.
    TimeStamp,
    /// The whole seconds of that time.
    EpicsSeconds,
    /// Its nanoseconds.
    EpicsNanoseconds,
}

/// Time from 1970 to 1990, the epoch of EPICS (`POSIX_TIME_AT_EPICS_EPOCH`).
const EPICS_EPOCH: Duration = Duration::from_hours(7305 * 24);

impl NdArrayColumn {
    /// All variants.
    pub const ALL: [NdArrayColumn; 4] = [
        NdArrayColumn::UniqueId,
        NdArrayColumn::TimeStamp,
        NdArrayColumn::EpicsSeconds,
        NdArrayColumn::EpicsNanoseconds,
    ];

    /// The name in areaDetector, which is the [`FrameColumn::key`] too.
    pub const fn key(self) -> &'static str {
        match self {
            NdArrayColumn::UniqueId => "NDArrayUniqueId",
            NdArrayColumn::TimeStamp => "NDArrayTimeStamp",
            NdArrayColumn::EpicsSeconds => "NDArrayEpicsTSSec",
            NdArrayColumn::EpicsNanoseconds => "NDArrayEpicsTSnSec",
        }
    }

    /// A description for readers of the file.
    pub const fn description(self) -> &'static str {
        match self {
            NdArrayColumn::UniqueId => "the frame's number",
            NdArrayColumn::TimeStamp => "the frame's time in EPICS: seconds since 1990",
            NdArrayColumn::EpicsSeconds => "the whole seconds of that time",
            NdArrayColumn::EpicsNanoseconds => "the nanoseconds of that time",
        }
    }

    /// The column, with areaDetector's type; only the number may be larger here.
    pub fn column(self) -> FrameColumn {
        let (element, fill) = match self {
            NdArrayColumn::UniqueId => (NumberType::Int64, (-1_i64).to_le_bytes().to_vec()),
            NdArrayColumn::TimeStamp => (NumberType::Float64, f64::NAN.to_le_bytes().to_vec()),
            _ => (NumberType::Uint32, vec![0; 4]),
        };
        FrameColumn { key: self.key().into(), element: element.into(), fill }
    }

    /// The value of a frame with this number and this time since 1970-01-01 00:00 UTC.
    pub fn number(self, frame: u64, since_1970: Duration) -> ColumnValue {
        let time = since_1970.saturating_sub(EPICS_EPOCH);
        match self {
            NdArrayColumn::UniqueId => frame.cast_signed().into(),
            NdArrayColumn::TimeStamp => time.as_secs_f64().into(),
            NdArrayColumn::EpicsSeconds => time.as_secs().cast_signed().into(),
            NdArrayColumn::EpicsNanoseconds => i64::from(time.subsec_nanos()).into(),
        }
    }
}

/// The time of an image, from the detector's stream: fields of `NXdetector`, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageTimeColumn {
    /// Start of the image, since the start of the series.
    Start,
    /// End of the image, since the start of the series.
    Stop,
    /// Exposure time.
    Real,
}

impl ImageTimeColumn {
    /// All variants.
    pub const ALL: [ImageTimeColumn; 3] =
        [ImageTimeColumn::Start, ImageTimeColumn::Stop, ImageTimeColumn::Real];

    /// The name in `NXdetector` and in the DECTRIS stream, which is the [`FrameColumn::key`] too.
    pub const fn key(self) -> &'static str {
        match self {
            ImageTimeColumn::Start => "start_time",
            ImageTimeColumn::Stop => "stop_time",
            ImageTimeColumn::Real => "real_time",
        }
    }

    /// A description for readers of the file.
    pub const fn description(self) -> &'static str {
        match self {
            ImageTimeColumn::Start => {
                "when the image began, from the beginning of the series, as the detector says"
            }
            ImageTimeColumn::Stop => {
                "when the image ended, from the beginning of the series, as the detector says"
            }
            ImageTimeColumn::Real => "how long the image was exposed, as the detector says",
        }
    }

    /// The column's type and fill value.
    pub fn column(self) -> FrameColumn {
        FrameColumn {
            key: self.key().into(),
            element: ColumnElement::FLOAT,
            fill: f64::NAN.to_le_bytes().to_vec(),
        }
    }

    fn dataset(self) -> TreeDataset {
        // Validators complain about other attributes, which NeXus does not define for these fields.
        let mut dataset = TreeDataset::of(DatasetContent::Column(self.column())).attribute("units", "s");
        if self != ImageTimeColumn::Real {
            let wanted = FrameValue { key: SERIES_DATE.into(), of: FrameChoice::First };
            let value = TreeValue::AtEnd(wanted);
            dataset.attributes.push(TreeAttribute { name: "start".into(), value, when: WriteTime::Closing });
        }
        dataset
    }
}

/// The name in layouts of the start of the series, according to the detector. Image times count from it.
pub const SERIES_DATE: &str = "series_date";

/// The detector's path in the trees of [`crate::nexus`].
const DETECTOR: &str = "/entry/instrument/detector";

impl TreeGroup {
    /// Adds a column to the detector for each image time in its stream.
    pub fn put_image_times(&mut self) {
        for time in ImageTimeColumn::ALL {
            self.put(&format!("{DETECTOR}/{}", time.key()), TreeNode::Dataset(time.dataset()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_epics() {
        // 2026-11-25T10:00:00.5Z.
        let time = Duration::from_millis(1_795_600_800_500);
        let numbers = NdArrayColumn::ALL.map(|column| column.number(7, time));
        let seconds = 1_795_600_800 - 631_152_000;
        assert_eq!(
            numbers,
            [7.into(), (f64::from(seconds) + 0.5).into(), i64::from(seconds).into(), 500_000_000.into()]
        );
        for column in NdArrayColumn::ALL.map(NdArrayColumn::column) {
            assert_eq!(column.fill.len(), column.element.bytes(), "{column:?}");
        }
    }
}
