//! Values that name the dataset for a frame, if a file has several of them, and counts of their effect.

use nilometer_hdf5::{ColumnValue, layout::FrameDatasets};
use nilometer_recording::Ranges;
use serde::Serialize;

use super::{JoinedValues, names::RANGES_MAX};

/// The dataset that a value names for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedDataset {
    /// This one, by its number.
    One(usize),
    /// A dataset that does not exist.
    Unknown,
    /// No value has arrived.
    Nothing,
}

/// Counts of frames in each dataset, and of frames that went into the default one for lack of a valid value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DatasetTally {
    /// Frames of each dataset.
    pub datasets: Vec<DatasetFrames>,
    /// The name of the values that give the dataset of a frame, if there is one.
    pub destination: Option<String>,
    /// Frames in the default dataset without a value.
    pub unnamed: u64,
    /// Frames in the default dataset whose value names no dataset.
    pub unknown: u64,
    /// Frames in the default dataset whose value arrived after they were written.
    pub late: u64,
}

/// Frames of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DatasetFrames {
    /// Its path.
    pub path: String,
    /// Number of its frames.
    pub frames: u64,
}

impl DatasetTally {
    /// Describes the counts in one line.
    pub fn line(&self) -> String {
        let datasets = self.datasets.iter().map(|of| format!("{} in {}", of.frames, of.path));
        let datasets = datasets.collect::<Vec<_>>().join(", ");
        let why = [
            (self.unnamed, "without a value"),
            (self.unknown, "with the path of no dataset"),
            (self.late, "with a value that came too late"),
        ];
        let why: Vec<_> = why
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        match &self.destination {
            Some(name) if !why.is_empty() => {
                format!("{datasets}; in the default for want of `{name}`: {}", why.join(", "))
            }
            _ => datasets,
        }
    }
}

/// The state of destinations.
#[derive(Debug)]
pub(super) struct DestinationState {
    datasets: FrameDatasets,
    /// The place of the name whose values give the dataset.
    pub(super) name: Option<usize>,
    /// Frames that went into the default dataset because they had no value.
    unnamed: Ranges,
    pub(super) tally: DatasetTally,
}

impl DestinationState {
    pub(super) fn new(datasets: FrameDatasets, name: Option<usize>) -> Self {
        let of = |path: &String| DatasetFrames { path: path.clone(), frames: 0 };
        let tally = DatasetTally {
            datasets: datasets.paths.iter().map(of).collect(),
            destination: datasets.destination.clone(),
            ..DatasetTally::default()
        };
        DestinationState { datasets, name, unnamed: Ranges::default(), tally }
    }

    /// Records the first value of a name for a frame.
    pub(super) fn came(&mut self, name: usize, frame: u64) {
        if self.name == Some(name) && self.unnamed.contains(frame) {
            self.tally.unnamed -= 1;
            self.tally.late += 1;
        }
    }

    pub(super) fn named(&self, said: &ColumnValue) -> NamedDataset {
        match said {
            ColumnValue::Text(path) => {
                self.datasets.named(path).map_or(NamedDataset::Unknown, NamedDataset::One)
            }
            _ => NamedDataset::Unknown,
        }
    }

    fn count(&mut self, frame: u64, dataset: usize, said: NamedDataset) {
        if let Some(of) = self.tally.datasets.get_mut(dataset) {
            of.frames += 1;
        }
        match said {
            NamedDataset::One(_) => {}
            NamedDataset::Unknown => self.tally.unknown += 1,
            NamedDataset::Nothing => {
                self.tally.unnamed += 1;
                if self.unnamed.pieces() < RANGES_MAX {
                    self.unnamed.add(frame);
                }
            }
        }
    }
}

impl JoinedValues {
    /// The dataset for a frame, according to its value if that has arrived. The value stays for
    /// [`JoinedValues::take`].
    pub fn named_dataset(&self, frame: u64) -> NamedDataset {
        self.lock().named_dataset(frame)
    }

    /// Counts a frame in a dataset, and the choice by its value.
    pub fn count_placed(&self, frame: u64, dataset: usize, said: NamedDataset) {
        if let Some(destination) = &mut self.lock().destination {
            destination.count(frame, dataset, said);
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_hdf5::tree::ColumnElement;

    use super::*;
    use crate::joined::JoinPlan;

    fn values() -> JoinedValues {
        let values = JoinedValues::default();
        let datasets = FrameDatasets {
            paths: vec!["/a/data".into(), "/a/dark".into()],
            default: 0,
            destination: Some("Kind".into()),
        };
        values.begin(JoinPlan {
            columns: vec![("Kind".into(), ColumnElement::TEXT)],
            channels: 1,
            datasets: Some(datasets),
            ..JoinPlan::default()
        });
        values
    }

    fn put(values: &JoinedValues, text: &str) {
        values.put_message(text.as_bytes());
    }

    #[test]
    fn a_dataset_is_named_by_its_path_and_by_nothing_else() {
        let values = values();
        for (said, named) in [
            (r#""/a/dark""#, NamedDataset::One(1)),
            (r#""a/data""#, NamedDataset::One(0)),
            (r#""/a/grey""#, NamedDataset::Unknown),
            (r#""dark""#, NamedDataset::Unknown),
            ("1", NamedDataset::Unknown),
            ("null", NamedDataset::Nothing),
        ] {
            let values = self::values();
            put(&values, &format!(r#"{{"frame": 3, "Kind": {said}}}"#));
            assert_eq!(values.named_dataset(3), named, "{said}");
        }
        put(&values, r#"{"frame": 3, "Kind": "/a/dark"}"#);
        put(&values, r#"{"frame": 3, "Kind": "/a/data"}"#);
        assert_eq!(values.named_dataset(3), NamedDataset::One(0), "the later of two");
        assert_eq!(values.take(3).len(), 1, "it is a value as any other");
    }

    #[test]
    fn what_goes_into_the_default_is_counted_by_why() {
        let values = values();
        values.count_placed(0, 1, NamedDataset::One(1));
        values.count_placed(1, 0, NamedDataset::Unknown);
        values.count_placed(2, 0, NamedDataset::Nothing);
        values.count_placed(3, 0, NamedDataset::Nothing);
        for _ in 0..2 {
            put(&values, r#"{"frame": 3, "Kind": "/a/dark"}"#);
        }
        let tally = values.tally().datasets.expect("there are several");
        assert_eq!((tally.unnamed, tally.unknown, tally.late), (1, 1, 1));
        assert_eq!(
            tally.line(),
            "3 in /a/data, 1 in /a/dark; in the default for want of `Kind`: 1 without a value, 1 with the path of no dataset, \
             1 with a value that came too late"
        );
    }
}
