//! The recorder's own notes in a file: the fate and times of each frame, and the totals at the end.

use crate::{
    KnownAtEnd,
    image_numbers::IMAGE_NR_HIGH,
    tree::{
        DatasetContent, FrameColumn, NumberArray, NumberType, TreeDataset, TreeGroup, TreeNode, TreeValue,
        WriteTime,
    },
};

/// A note of the recorder about each frame, as a dataset in [`super::RECORDER_PATH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecorderColumn {
    /// The fate of the frame: 0 whole; 1 never received, or no room for it; 2 incomplete.
    Flag,
    /// The missing amount: packets, or bytes if frames do not come in packets.
    Missing,
    /// The time when it was due, in ns since the start of the recording.
    Due,
    /// The time when all of it had arrived.
    Arrived,
    /// The time when it was compressed.
    Encoded,
    /// The time from which on it was certain to survive a loss of power.
    Durable,
}

impl RecorderColumn {
    /// All variants.
    pub const ALL: [RecorderColumn; 6] = [
        RecorderColumn::Flag,
        RecorderColumn::Missing,
        RecorderColumn::Due,
        RecorderColumn::Arrived,
        RecorderColumn::Encoded,
        RecorderColumn::Durable,
    ];

    /// The dataset's name, which is the [`FrameColumn::key`] too.
    pub const fn key(self) -> &'static str {
        match self {
            RecorderColumn::Flag => "flag",
            RecorderColumn::Missing => "missing",
            RecorderColumn::Due => "due",
            RecorderColumn::Arrived => "arrived",
            RecorderColumn::Encoded => "encoded",
            RecorderColumn::Durable => "durable",
        }
    }

    /// The column's type and fill value.
    pub fn column(self) -> FrameColumn {
        let (element, fill) = match self {
            RecorderColumn::Flag => (NumberType::Uint8, vec![1]),
            RecorderColumn::Missing => (NumberType::Uint32, vec![0; 4]),
            _ => (NumberType::Int64, (-1_i64).to_le_bytes().to_vec()),
        };
        FrameColumn { key: self.key().into(), element: element.into(), fill }
    }

    /// Returns true if journals keep this value of frames recorded earlier.
    pub const fn is_of_journals(self) -> bool {
        matches!(self, RecorderColumn::Flag | RecorderColumn::Missing | RecorderColumn::Due)
    }

    /// A description for readers of the file.
    pub fn description(self) -> &'static str {
        match self {
            RecorderColumn::Flag => {
                "0: the frame is whole; 1: it never came or found no room, and is blank; 2: it is there and not whole"
            }
            RecorderColumn::Missing => {
                "how much of the frame never came: packets, or bytes where there are no packets"
            }
            RecorderColumn::Due => "when the frame was due, since the start of the recording; -1: not known",
            RecorderColumn::Arrived => {
                "when all of the frame was there, since the start of the recording; -1: not known"
            }
            RecorderColumn::Encoded => {
                "when the frame was compressed, since the start of the recording; -1: not known, or it was not"
            }
            RecorderColumn::Durable => {
                "when the frame was durable (it survives a loss of power), since the start of the recording; -1: not known"
            }
        }
    }

    /// A dataset whose attributes explain its numbers.
    pub fn dataset(self) -> TreeDataset {
        let dataset = TreeDataset::of(DatasetContent::Column(self.column()))
            .attribute("description", self.description());
        match self {
            // Attributes from the conventions of climate data; programs that read them show the meanings.
            RecorderColumn::Flag => dataset
                .attribute(
                    "flag_values",
                    NumberArray { element: NumberType::Uint8, shape: vec![3], bytes: vec![0, 1, 2] },
                )
                .attribute("flag_meanings", "whole never_came_or_no_room incomplete"),
            RecorderColumn::Missing => dataset,
            _ => dataset.attribute("units", "ns"),
        }
    }
}

/// The totals of a recording, available after the last frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingTotals {
    /// Arrival of the last frame: RFC 3339 in UTC. `None` if nobody observed it; NXmx then wants no end time.
    pub end_time: Option<String>,
    /// Frames that are whole.
    pub whole: u64,
    /// Frames that are there but incomplete.
    pub incomplete: u64,
    /// Frames that were never received, or had no room.
    pub blank: u64,
    /// Packets, or bytes, missing from frames that were received.
    pub missing: u64,
    /// Number of the last image in the file, from 1. `None` if images have no numbers.
    pub last_image: Option<u64>,
}

impl RecordingTotals {
    /// The names of the totals in layouts, each with a description.
    pub const NAMES: [(&str, &str); 5] = [
        ("frames_whole", "frames that are whole"),
        ("frames_incomplete", "frames that are there and not whole"),
        ("frames_blank", "frames that never came, or came and found no room"),
        ("missing_total", "packets, or bytes, that never came of frames that did"),
        ("end_time", "when the last frame came"),
    ];

    /// The total of this name; `None` if there is none.
    pub fn value(&self, name: &str) -> Option<TreeValue> {
        let count = match name {
            "frames_whole" => self.whole,
            "frames_incomplete" => self.incomplete,
            "frames_blank" => self.blank,
            "missing_total" => self.missing,
            IMAGE_NR_HIGH => self.last_image?,
            "end_time" => return self.end_time.as_deref().map(TreeValue::from),
            _ => return None,
        };
        Some(NumberArray::uint(count).into())
    }
}

/// The part of a tree that is written after the last frame, with the values then available. The trees of
/// [`super::nxmx`] and [`super::nexus_plain`] also get the end and the totals.
pub fn ending(tree: &TreeGroup, totals: &RecordingTotals, known: KnownAtEnd<'_>) -> TreeGroup {
    let mut end = tree.at_end(&|wanted| totals.value(&wanted.key).or_else(|| known(wanted)));
    let flag = format!("{}/{}", super::RECORDER_PATH, RecorderColumn::Flag.key());
    if tree.find(&flag) == Some(&TreeNode::Dataset(RecorderColumn::Flag.dataset())) {
        end.unite(closing(totals));
    }
    end
}

/// The recorder's group, as it is before the first frame.
pub(super) fn recorder_group(
    frames: Option<u64>,
    not_stated: Vec<String>,
    assumed: Vec<String>,
) -> TreeGroup {
    let mut group = TreeGroup::nexus("NXcollection")
        .attribute("description", "the fate of each frame, as the recorder saw it");
    if let Some(frames) = frames {
        group = group.value("frames_expected", NumberArray::uint(frames));
    }
    let notes = [
        ("not_stated", not_stated, "values that a definition demands and that nobody stated to the recorder"),
        ("assumed", assumed, "values that a definition demands and that the recorder assumed"),
    ];
    for (name, texts, description) in notes.into_iter().filter(|(_, texts, _)| !texts.is_empty()) {
        let dataset = TreeDataset::value(TreeValue::Texts(texts)).attribute("description", description);
        group = group.with(name, TreeNode::Dataset(dataset));
    }
    for column in RecorderColumn::ALL {
        group = group.with(column.key(), TreeNode::Dataset(column.dataset()));
    }
    group
}

/// The additions after the last frame to a file of [`super::nxmx`] or [`super::nexus_plain`]. They put the end
/// and the totals into existing groups, at [`WriteTime::Closing`].
pub fn closing(totals: &RecordingTotals) -> TreeGroup {
    let mut recorder = TreeGroup::default();
    let counts = [
        ("frames_whole", totals.whole),
        ("frames_incomplete", totals.incomplete),
        ("frames_blank", totals.blank),
        ("missing_total", totals.missing),
    ];
    for (name, count) in counts {
        recorder = recorder.with(name, at_closing(NumberArray::uint(count)));
    }
    let instrument = TreeGroup::default().group("nilometer", recorder);
    let mut entry = TreeGroup::default();
    if let Some(end) = &totals.end_time {
        entry = entry.with("end_time", at_closing(end.as_str()));
    }
    TreeGroup::default().group("entry", entry.group("instrument", instrument))
}

fn at_closing(value: impl Into<TreeValue>) -> TreeNode {
    TreeNode::Dataset(TreeDataset::of(DatasetContent::Value(value.into(), WriteTime::Closing)))
}
