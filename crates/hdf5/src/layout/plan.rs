//! A layout with what the recorder has for it: from [`Hdf5Layout`] to a tree.

use super::{
    AttributeTime, AttributeValue, Hdf5Layout, LayoutAttribute, LayoutDataset, LayoutGroup, LayoutMember,
    LayoutSource,
    check::{LinkEnd, link_end},
};
use crate::{
    nexus::RecorderColumn,
    tree::{
        DatasetContent, FrameColumn, FramesShape, NumberType, TreeAttribute, TreeDataset, TreeGroup,
        TreeNode, TreeValue, WriteTime,
    },
};

/// What the recorder has for a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutContents {
    /// The frames: each dataset with the source `detector` is one of these.
    pub frames: FramesShape,
    /// What it knows of frames beside their pixels: those of [`FrameAttribute::of_every_frame`] and
    /// [`FrameAttribute::of_the_recorder`], and streams of the user's that are joined by frame number.
    pub attributes: Vec<FrameAttribute>,
}

/// Something that is known of frames beside their pixels: an `NDAttribute` in areaDetector.
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
    /// A number for each frame.
    EachFrame {
        /// The type of the numbers.
        element: NumberType,
        /// The number of a frame of which nothing is known, little-endian.
        fill: Vec<u8>,
    },
    /// One value for all frames, as far as it is known when the file is made, or closed.
    Once(TreeValue),
}

impl FrameAttribute {
    /// A number for each frame, from a stream of the user's.
    pub fn stream(name: &str, element: NumberType, fill: &[u8]) -> Self {
        let supply = AttributeSupply::EachFrame { element, fill: fill.into() };
        FrameAttribute {
            name: name.into(),
            description: String::new(),
            source_type: "NDAttrSourceParam".into(),
            source: "stream".into(),
            supply,
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

    /// Those that areaDetector has of every frame: number, time in seconds, and the time's seconds and nanoseconds of EPICS,
    /// which count from 1990.
    pub fn of_every_frame() -> Vec<Self> {
        vec![
            Self::of_driver(
                "NDArrayUniqueId",
                "the frame's number",
                NumberType::Int32,
                &(-1_i32).to_le_bytes(),
            ),
            Self::of_driver(
                "NDArrayTimeStamp",
                "the frame's time in seconds",
                NumberType::Float64,
                &f64::NAN.to_le_bytes(),
            ),
            Self::of_driver(
                "NDArrayEpicsTSSec",
                "the frame's time in EPICS: seconds since 1990",
                NumberType::Uint32,
                &[0; 4],
            ),
            Self::of_driver(
                "NDArrayEpicsTSnSec",
                "the nanoseconds of that time",
                NumberType::Uint32,
                &[0; 4],
            ),
        ]
    }

    fn of_driver(name: &str, description: &str, element: NumberType, fill: &[u8]) -> Self {
        FrameAttribute {
            description: description.into(),
            source_type: "NDAttrSourceDriver".into(),
            source: "Driver".into(),
            ..Self::stream(name, element, fill)
        }
    }

    /// What the recorder says of every frame: [`RecorderColumn`], by its keys.
    pub fn of_the_recorder() -> Vec<Self> {
        RecorderColumn::ALL.into_iter().map(Self::of_column).collect()
    }

    fn of_column(column: RecorderColumn) -> Self {
        let FrameColumn { key, element, fill } = column.column();
        FrameAttribute {
            source: "nilometer".into(),
            ..Self::of_driver(&key, column.description(), element, &fill)
        }
    }
}

/// A layout as it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedLayout {
    /// The file's root.
    pub tree: TreeGroup,
    /// The paths of the datasets of frames, in the order of the tree.
    pub frames: Vec<String>,
    /// Which of them frames go to that name none.
    pub default_frames: usize,
    /// The attribute of a frame that names its dataset.
    pub destination: Option<String>,
    /// What of the layout is not made, and why.
    pub left_out: Vec<String>,
}

impl PlannedLayout {
    /// Which dataset a frame goes to that names one by its path.
    pub fn frames_named(&self, path: &str) -> Option<usize> {
        let path = path.trim_matches('/');
        self.frames.iter().position(|there| there.trim_matches('/') == path)
    }
}

impl Hdf5Layout {
    /// What is made of it.
    pub fn tree(&self, contents: &LayoutContents) -> PlannedLayout {
        let mut planning =
            Planning { layout: self, contents, frames: Vec::new(), default: None, left_out: Vec::new() };
        let mut tree = planning.group(&self.root, "");
        planning.without_place(&mut tree);
        planning.links(&self.root, "", &mut tree);
        PlannedLayout {
            tree,
            frames: planning.frames,
            default_frames: planning.default.unwrap_or(0),
            destination: self.destination.clone(),
            left_out: planning.left_out,
        }
    }
}

struct Planning<'a> {
    layout: &'a Hdf5Layout,
    contents: &'a LayoutContents,
    frames: Vec<String>,
    default: Option<usize>,
    left_out: Vec<String>,
}

impl<'a> Planning<'a> {
    fn known(&self, name: &str) -> Option<&'a FrameAttribute> {
        self.contents.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn leave_out(&mut self, path: &str, why: &str) {
        self.left_out.push(format!("{path}: {why}"));
    }

    fn group(&mut self, group: &LayoutGroup, path: &str) -> TreeGroup {
        let mut made =
            TreeGroup { attributes: self.attributes(&group.attributes, path), members: Vec::new() };
        for member in &group.members {
            let path = format!("{path}/{}", member.name());
            match member {
                LayoutMember::Group(group) => {
                    made.members.push((group.name.clone(), TreeNode::Group(self.group(group, &path))));
                }
                LayoutMember::Dataset(dataset) => {
                    if let Some(node) = self.dataset(dataset, &path) {
                        made.members.push((dataset.name.clone(), TreeNode::Dataset(node)));
                    }
                }
                LayoutMember::HardLink(_) => {}
            }
        }
        made
    }

    fn attributes(&mut self, attributes: &[LayoutAttribute], path: &str) -> Vec<TreeAttribute> {
        let mut made = Vec::new();
        for attribute in attributes {
            let (value, when) = match &attribute.value {
                AttributeValue::Constant(value) => (Some(value), WriteTime::Opening),
                AttributeValue::Attribute { name, when } => (self.once(name), *when),
            };
            match value {
                Some(value) => {
                    made.push(TreeAttribute { name: attribute.name.clone(), value: value.clone(), when });
                }
                None => self.leave_out(
                    &format!("{path}@{}", attribute.name),
                    "nothing says one value of its `ndattribute`",
                ),
            }
        }
        made
    }

    fn once(&self, name: &str) -> Option<&'a TreeValue> {
        match &self.known(name)?.supply {
            AttributeSupply::Once(value) => Some(value),
            AttributeSupply::EachFrame { .. } => None,
        }
    }

    fn dataset(&mut self, dataset: &LayoutDataset, path: &str) -> Option<TreeDataset> {
        let mut made = match &dataset.source {
            LayoutSource::Detector { default } => {
                if *default && self.default.is_none() {
                    self.default = Some(self.frames.len());
                }
                self.frames.push(path.into());
                TreeDataset::of(DatasetContent::Frames(self.contents.frames.clone()))
            }
            LayoutSource::Constant(value) => TreeDataset::value(value.clone()),
            LayoutSource::Attribute { name, when } => {
                let Some(made) = self.known(name).and_then(|known| supplied(known, *when)) else {
                    let why = format!("nothing says what `{name}` is, of the frames that it is wanted of");
                    self.leave_out(path, &why);
                    return None;
                };
                made
            }
            LayoutSource::Unset => {
                self.leave_out(path, "the layout does not say what is in it");
                return None;
            }
        };
        made.attributes.splice(0..0, self.attributes(&dataset.attributes, path));
        Some(made)
    }

    /// Attributes that no dataset of the layout is of become datasets where the layout wants them.
    fn without_place(&mut self, tree: &mut TreeGroup) {
        let path = match taking_group(&self.layout.root, "") {
            Some(path) => path,
            None if self.layout.root_takes_attributes => String::new(),
            None => return,
        };
        for attribute in &self.contents.attributes {
            let path = format!("{path}/{}", attribute.name);
            let is_free =
                tree.find(&path).is_none() && !attribute.name.contains('/') && !attribute.name.is_empty();
            let is_free = is_free && !has_dataset_of(&self.layout.root, &attribute.name);
            let dataset = supplied(attribute, AttributeTime::EachFrame).filter(|_| is_free);
            if let Some(dataset) = dataset {
                tree.put(&path, TreeNode::Dataset(dataset));
            }
        }
    }

    /// Straight to the objects, so that it does not matter in which order links are made.
    fn links(&mut self, group: &LayoutGroup, path: &str, tree: &mut TreeGroup) {
        for member in &group.members {
            let path = format!("{path}/{}", member.name());
            match member {
                LayoutMember::Group(group) => self.links(group, &path, tree),
                LayoutMember::HardLink(link) => {
                    let target = match link_end(self.layout, &link.target) {
                        LinkEnd::Object(target) | LinkEnd::Perhaps(target) => target,
                        LinkEnd::Missing { .. } => String::new(),
                    };
                    if tree.find(&path).is_some() {
                        self.leave_out(&path, "an attribute has this name already");
                    } else if tree.find(&target).is_some() {
                        tree.put(&path, TreeNode::HardLink(target));
                    } else {
                        self.leave_out(&path, &format!("there is no {}", link.target));
                    }
                }
                LayoutMember::Dataset(_) => {}
            }
        }
    }
}

/// A dataset of what an attribute says, with what areaDetector says beside it.
fn supplied(attribute: &FrameAttribute, when: AttributeTime) -> Option<TreeDataset> {
    let content = match (&attribute.supply, when) {
        (AttributeSupply::EachFrame { element, fill }, AttributeTime::EachFrame) => {
            let column = FrameColumn { key: attribute.name.clone(), element: *element, fill: fill.clone() };
            DatasetContent::Column(column)
        }
        (AttributeSupply::Once(value), AttributeTime::Once(when)) => {
            DatasetContent::Value(value.clone(), when)
        }
        (AttributeSupply::Once(value), AttributeTime::EachFrame) => {
            DatasetContent::Value(value.clone(), WriteTime::Opening)
        }
        (AttributeSupply::EachFrame { .. }, AttributeTime::Once(_)) => return None,
    };
    let said = [
        ("NDAttrName", &attribute.name),
        ("NDAttrDescription", &attribute.description),
        ("NDAttrSourceType", &attribute.source_type),
        ("NDAttrSource", &attribute.source),
    ];
    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
    let attributes = said.map(|(name, text)| TreeAttribute::new(name, text.as_str())).collect();
    Some(TreeDataset { attributes, content })
}

/// The path of the first group that attributes go to.
fn taking_group(group: &LayoutGroup, path: &str) -> Option<String> {
    if group.takes_attributes {
        return Some(path.into());
    }
    group.members.iter().find_map(|member| match member {
        LayoutMember::Group(below) => taking_group(below, &format!("{path}/{}", below.name)),
        _ => None,
    })
}

fn has_dataset_of(group: &LayoutGroup, attribute: &str) -> bool {
    group.members.iter().any(|member| match member {
        LayoutMember::Group(group) => has_dataset_of(group, attribute),
        LayoutMember::Dataset(dataset) => {
            matches!(&dataset.source, LayoutSource::Attribute { name, .. } if name == attribute)
        }
        LayoutMember::HardLink(_) => false,
    })
}
