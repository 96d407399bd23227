//! What the recorder itself says in a file: of each frame what became of it and when, and at the end how many of what.

use crate::{
    KnownAtEnd,
    tree::{
        DatasetContent, FrameColumn, NumberArray, NumberType, TreeDataset, TreeGroup, TreeNode, TreeValue,
        WriteTime,
    },
};

/// What the recorder says of each frame, as a dataset in [`super::RECORDER_PATH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecorderColumn {
    /// What became of it: 0 it is whole, 1 it never came or found no room, 2 it is there and not whole.
    Flag,
    /// How much of it never came: packets, or bytes where frames do not come in packets.
    Missing,
    /// When it was due, in ns since the start of the recording.
    Due,
    /// When all of it was there.
    Arrived,
    /// When it was compressed.
    Encoded,
    /// When it was known to survive the loss of power.
    Durable,
}

impl RecorderColumn {
    /// All there are.
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

    /// What is said of each frame.
    pub fn column(self) -> FrameColumn {
        let (element, fill) = match self {
            RecorderColumn::Flag => (NumberType::Uint8, vec![1]),
            RecorderColumn::Missing => (NumberType::Uint32, vec![0; 4]),
            _ => (NumberType::Int64, (-1_i64).to_le_bytes().to_vec()),
        };
        FrameColumn { key: self.key().into(), element: element.into(), fill }
    }

    /// Journals have it of frames that were recorded before.
    pub const fn is_of_journals(self) -> bool {
        matches!(self, RecorderColumn::Flag | RecorderColumn::Missing | RecorderColumn::Due)
    }

    /// What it is, in words.
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
                "when the frame was known to survive the loss of power, since the start of the recording; -1: not known"
            }
        }
    }

    /// As a dataset that says itself what its numbers mean.
    pub fn dataset(self) -> TreeDataset {
        let dataset = TreeDataset::of(DatasetContent::Column(self.column()))
            .attribute("description", self.description());
        match self {
            // As conventions of climate data have it, whose readers show the meanings.
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

/// What is known behind the last frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordingTotals {
    /// When the last frame came: RFC 3339 in UTC. None if it was not observed: NXmx wants none then.
    pub end_time: Option<String>,
    /// Frames that are whole.
    pub whole: u64,
    /// Frames that are there and not whole.
    pub incomplete: u64,
    /// Frames that never came, or came and found no room.
    pub blank: u64,
    /// Packets, or bytes, that never came of frames that did.
    pub missing: u64,
}

impl RecordingTotals {
    /// By which layouts name them, and what they are.
    pub const NAMES: [(&str, &str); 5] = [
        ("frames_whole", "frames that are whole"),
        ("frames_incomplete", "frames that are there and not whole"),
        ("frames_blank", "frames that never came, or came and found no room"),
        ("missing_total", "packets, or bytes, that never came of frames that did"),
        ("end_time", "when the last frame came"),
    ];

    /// The value of this name, if there is one.
    pub fn value(&self, name: &str) -> Option<TreeValue> {
        let count = match name {
            "frames_whole" => self.whole,
            "frames_incomplete" => self.incomplete,
            "frames_blank" => self.blank,
            "missing_total" => self.missing,
            "end_time" => return self.end_time.as_deref().map(TreeValue::from),
            _ => return None,
        };
        Some(NumberArray::uint(count).into())
    }
}

/// What is written behind the last frame of a file with this tree: what the tree has to say then, of what is known, and the
/// end and the totals, if it is one of [`super::nxmx`] or [`super::nexus_plain`].
pub fn ending(tree: &TreeGroup, totals: &RecordingTotals, known: KnownAtEnd<'_>) -> TreeGroup {
    let mut end = tree.at_end(&|wanted| totals.value(&wanted.key).or_else(|| known(wanted)));
    let flag = format!("{}/{}", super::RECORDER_PATH, RecorderColumn::Flag.key());
    if tree.find(&flag) == Some(&TreeNode::Dataset(RecorderColumn::Flag.dataset())) {
        end.unite(closing(totals));
    }
    end
}

/// The recorder's group before the first frame.
pub(super) fn recorder_group(
    frames: Option<u64>,
    not_stated: Vec<String>,
    assumed: Vec<String>,
) -> TreeGroup {
    let mut group = TreeGroup::nexus("NXcollection")
        .attribute("description", "what became of each frame, as the recorder saw it");
    if let Some(frames) = frames {
        group = group.value("frames_expected", NumberArray::uint(frames));
    }
    let notes = [
        ("not_stated", not_stated, "values that a definition demands and that nobody stated to the recorder"),
        ("assumed", assumed, "what a definition demands and the recorder took to be so"),
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

/// What is added behind the last frame to a file that [`super::nxmx`] or [`super::nexus_plain`] described: the end and the
/// totals, at [`WriteTime::Closing`], in the groups that are there.
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
