//! Describes the content of a file beside its frames: groups, datasets, attributes, links. The description is
//! pure data; [`crate::Hdf5File`] creates the objects. It is also stored as text (serde) beside a file, so that
//! the file can be made again.

use serde::{Deserialize, Serialize};

use std::ops::Range;

pub use crate::{
    column::{ColumnElement, FrameColumn},
    number_array::{NumberArray, NumberType},
    rearranged::{MovedPart, RearrangedFrames, TurnedRows},
    tree_value::{FrameChoice, FrameValue, TreeValue},
};

/// The time when something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum WriteTime {
    /// Before the first frame.
    #[default]
    Opening,
    /// After the last frame; it is not there while the file grows.
    Closing,
}

/// A named value of a group or dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeAttribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: TreeValue,
    /// The time when it is written.
    pub when: WriteTime,
}

impl TreeAttribute {
    /// An attribute that is there from the start.
    pub fn new(name: &str, value: impl Into<TreeValue>) -> Self {
        TreeAttribute { name: name.into(), value: value.into(), when: WriteTime::Opening }
    }
}

/// A group and its members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeGroup {
    /// Its attributes.
    pub attributes: Vec<TreeAttribute>,
    /// Its members by name, in this order.
    pub members: Vec<(String, TreeNode)>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeNode {
    /// A group.
    Group(TreeGroup),
    /// A dataset.
    Dataset(TreeDataset),
    /// Another name for the object at this path of the file. The object is created first, wherever it is in the tree.
    HardLink(String),
    /// A link to this path, whether or not an object is there.
    SoftLink(String),
    /// An object of another file.
    ExternalLink {
        /// The file, relative to the directory of this one.
        file: String,
        /// The object's path there.
        path: String,
    },
}

/// A dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeDataset {
    /// Its attributes.
    pub attributes: Vec<TreeAttribute>,
    /// Its content.
    pub content: DatasetContent,
}

/// The content of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DatasetContent {
    /// A value.
    Value(TreeValue, WriteTime),
    /// The frames.
    Frames(FramesShape),
    /// A value for each frame.
    Column(FrameColumn),
    /// Parts of other files, shown as one dataset.
    Virtual(VirtualDataset),
    /// Frames of another dataset, with their parts in other places.
    Rearranged(RearrangedFrames),
}

/// A dataset of frames. A chunk is a frame, or a part of it that is compressed by itself. It can also be a stack:
/// several frames, or the same part of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesShape {
    /// The type of pixels.
    pub element: NumberType,
    /// Dimensions of a frame, the slowest first.
    pub frame: Vec<u64>,
    /// Dimensions of the scan except the first, whose size follows from the number of frames. Empty for a row of
    /// frames, `[31]` for lines of 31.
    pub scan: Vec<u64>,
    /// The maximum of the first dimension; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_max: Option<u64>,
    /// Dimensions of a chunk within a frame; empty if a chunk is a frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk: Vec<u64>,
    /// Frames per chunk, starting at a multiple of this number. More than 1 only without a scan.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stack: u64,
    /// True if frames were recorded as samples of 12 bits, two in three bytes. The numbers in the file have 16 bits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub packed_12: bool,
    /// The compression of chunks; `None` if they are not compressed.
    pub filter: Option<FrameFilter>,
    /// The pixel value of missing frames, little-endian; `None` means 0.
    pub fill: Option<Vec<u8>>,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_false(is_true: &bool) -> bool {
    !*is_true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_one(number: &u64) -> bool {
    *number == 1
}

/// The largest first dimension: more than a series can have frames.
const FIRST_MAX: u64 = 1 << 32;

impl FramesShape {
    /// Bytes of a frame in the file, before compression.
    pub fn frame_size(&self) -> u64 {
        self.frame.iter().product::<u64>() * self.element.bytes() as u64
    }

    /// Bytes of a frame with this size in the file, as it was recorded.
    pub const fn recorded_size(&self, in_file: u64) -> u64 {
        if self.packed_12 { in_file / 4 * 3 } else { in_file }
    }

    /// Returns true if arithmetic on the shape is safe: a foreign description may contain anything. A line of the
    /// scan has at most `line_max` frames, and a frame at most `tiles_max` chunks.
    pub fn is_sound(&self, line_max: u64, tiles_max: u64) -> bool {
        let product = |sides: &[u64]| sides.iter().try_fold(1_u64, |all, side| all.checked_mul(*side));
        let line = product(&self.scan).is_some_and(|line| (1..=line_max).contains(&line));
        let line = line && self.first_max.is_none_or(|most| (1..=FIRST_MAX).contains(&most));
        let pixels = product(&self.frame).and_then(|pixels| pixels.checked_mul(self.element.bytes() as u64));
        if pixels.is_none_or(|bytes| bytes == 0) {
            return false;
        }
        let cut = self.chunk.len() == self.frame.len()
            && self.frame.iter().zip(&self.chunk).all(|(frame, chunk)| (1..=*frame).contains(chunk))
            && self.tiles() <= tiles_max;
        let stacked = self.stack == 1 || self.stack > 1 && self.scan.is_empty();
        line && stacked && (self.chunk.is_empty() || cut)
    }

    /// Dimensions of a chunk within a frame; those of the frame by default.
    pub fn chunk(&self) -> &[u64] {
        if self.chunk.is_empty() { &self.frame } else { &self.chunk }
    }

    /// Number of chunks per frame.
    pub fn tiles(&self) -> u64 {
        let along = self.frame.iter().zip(self.chunk());
        along.map(|(frame, chunk)| frame.div_ceil(*chunk)).fold(1, u64::saturating_mul)
    }

    /// The first element of the chunk that contains this tile of a frame, one index per dimension. Tiles are
    /// counted along the rows of a frame, from 0.
    pub fn offset(&self, frame: u64, tile: u64) -> Vec<u64> {
        let mut offset = Vec::new();
        self.put_offset(frame, tile, &mut offset);
        offset
    }

    /// Puts the same into an existing vector, so that nothing is allocated for a frame.
    pub(crate) fn put_offset(&self, frame: u64, tile: u64, offset: &mut Vec<u64>) {
        offset.clear();
        offset.resize(self.scan.len() + 1 + self.frame.len(), 0);
        let mut rest = frame;
        for (place, dimension) in offset[1..=self.scan.len()].iter_mut().zip(&self.scan).rev() {
            *place = rest % dimension;
            rest /= dimension;
        }
        offset[0] = rest - rest % self.stack;
        if self.chunk.is_empty() {
            return;
        }
        let mut rest = tile;
        let sides = self.frame.iter().zip(&self.chunk).rev();
        for (place, (frame, chunk)) in offset.iter_mut().rev().zip(sides) {
            let along = frame.div_ceil(*chunk);
            *place = rest % along * chunk;
            rest /= along;
        }
    }

    /// The dataset's dimensions with room for `frames` frames.
    pub fn dimensions(&self, frames: u64) -> Vec<u64> {
        let line = self.scan.iter().product::<u64>().max(1);
        [frames.div_ceil(line)]
            .into_iter()
            .chain(self.scan.iter().copied())
            .chain(self.frame.iter().copied())
            .collect()
    }
}

/// A filter of HDF5 by its registered number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFilter {
    /// Its number.
    pub number: u32,
    /// Its numbers in the file (`cd_values`), as the filter itself would store them.
    pub values: Vec<u32>,
}

/// A dataset that is made of parts of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualDataset {
    /// The type of its elements.
    pub element: ColumnElement,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// The parts that it is made of.
    pub parts: Vec<VirtualPart>,
    /// The value of elements without a part, little-endian; `None` means 0.
    pub fill: Option<Vec<u8>>,
}

/// A run along the first dimension of a dataset in another file, or every n-th element of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualPart {
    /// The file, relative to the directory of this one.
    pub file: String,
    /// The dataset's path there.
    pub dataset: String,
    /// The size of its first dimension.
    pub length: u64,
    /// The first index there.
    pub from: u64,
    /// The first index here.
    pub to: u64,
    /// The number of indices.
    pub count: u64,
    /// Distance from each index to the next, there and here: 1 in a run.
    pub step: u64,
    /// Ranges of the dimensions after the first; dimensions without a range are taken whole.
    pub within: Vec<Range<u64>>,
    /// The range in the second dimension here, if the part fills its own second dimension: modules of a frame, say.
    #[serde(default)]
    pub across: Option<Range<u64>>,
}

impl TreeGroup {
    /// A group of a NeXus class.
    pub fn nexus(class: &str) -> Self {
        TreeGroup { attributes: vec![TreeAttribute::new("NX_class", class)], members: Vec::new() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: impl Into<TreeValue>) -> Self {
        self.attributes.push(TreeAttribute::new(name, value));
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, node: TreeNode) -> Self {
        self.members.push((name.into(), node));
        self
    }

    /// Adds a group.
    #[must_use]
    pub fn group(self, name: &str, group: TreeGroup) -> Self {
        self.with(name, TreeNode::Group(group))
    }

    /// Puts a member at a path below this group, and replaces any object there. Missing groups on the way are created
    /// as NXcollection; they also replace objects that are not groups. Empty parts of the path and dots are ignored.
    pub fn put(&mut self, path: &str, node: TreeNode) {
        let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        let Some(last) = parts.next_back() else { return };
        let group = parts.fold(self, TreeGroup::group_named);
        match group.members.iter_mut().find(|(name, _)| name == last) {
            Some((_, there)) => *there = node,
            None => group.members.push((last.into(), node)),
        }
    }

    fn group_named(&mut self, name: &str) -> &mut TreeGroup {
        let is_one =
            |(member, node): &(String, TreeNode)| member == name && matches!(node, TreeNode::Group(_));
        if !self.members.iter().any(is_one) {
            self.members.retain(|(member, _)| member != name);
            self.members.push((name.into(), TreeNode::Group(TreeGroup::nexus("NXcollection"))));
        }
        let groups = self.members.iter_mut().filter_map(|(member, node)| match node {
            TreeNode::Group(group) if member == name => Some(group),
            _ => None,
        });
        groups.last().expect("it was made if it was not there")
    }

    /// The object at a path below this group.
    pub fn find(&self, path: &str) -> Option<&TreeNode> {
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let (_, node) = self.members.iter().find(|(name, _)| name == first)?;
        match (rest, node) {
            ("", node) => Some(node),
            (rest, TreeNode::Group(group)) => group.find(rest),
            _ => None,
        }
    }

    /// The first dataset of frames.
    pub fn frames_mut(&mut self) -> Option<&mut FramesShape> {
        self.members.iter_mut().find_map(|(_, node)| match node {
            TreeNode::Group(group) => group.frames_mut(),
            TreeNode::Dataset(TreeDataset { content: DatasetContent::Frames(shape), .. }) => Some(shape),
            _ => None,
        })
    }

    /// Makes all datasets of frames equal to the first.
    pub fn make_frames_alike(&mut self) {
        if let Some(shape) = self.frames_mut().cloned() {
            self.each_frames(&mut |other| other.clone_from(&shape));
        }
    }

    fn each_frames(&mut self, change: &mut dyn FnMut(&mut FramesShape)) {
        for (_, node) in &mut self.members {
            match node {
                TreeNode::Group(group) => group.each_frames(change),
                TreeNode::Dataset(TreeDataset { content: DatasetContent::Frames(shape), .. }) => {
                    change(shape);
                }
                _ => {}
            }
        }
    }

    /// Adds a dataset that is there from the start.
    #[must_use]
    pub fn value(self, name: &str, value: impl Into<TreeValue>) -> Self {
        self.with(name, TreeNode::Dataset(TreeDataset::value(value)))
    }
}

impl TreeDataset {
    /// A dataset with a value that is there from the start.
    pub fn value(value: impl Into<TreeValue>) -> Self {
        TreeDataset::of(DatasetContent::Value(value.into(), WriteTime::Opening))
    }

    /// A dataset with this content and no attributes.
    pub fn of(content: DatasetContent) -> Self {
        TreeDataset { attributes: Vec::new(), content }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: impl Into<TreeValue>) -> Self {
        self.attributes.push(TreeAttribute::new(name, value));
        self
    }
}
