//! Combines a layout with the recorder's values: from [`Hdf5Layout`] to a tree.

use super::{
    AttributeSupply, AttributeTime, AttributeValue, FrameAttribute, Hdf5Layout, LayoutAttribute,
    LayoutDataset, LayoutGroup, LayoutMember, LayoutSource,
    check::{LinkEnd, link_end},
};
use crate::tree::{
    DatasetContent, FrameChoice, FrameColumn, FrameValue, FramesShape, TreeAttribute, TreeDataset, TreeGroup,
    TreeNode, TreeValue, WriteTime,
};

/// The recorder's values for a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutContents {
    /// The frames: each dataset with the source `detector` is one of these.
    pub frames: FramesShape,
    /// The values beside pixels: those of [`FrameAttribute::of_every_frame`] and
    /// [`FrameAttribute::of_the_recorder`], and streams of the user's that are joined by frame number.
    pub attributes: Vec<FrameAttribute>,
}

/// The tree of a layout.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedLayout {
    /// The file's root.
    pub tree: TreeGroup,
    /// The datasets of frames.
    pub frames: FrameDatasets,
    /// The parts of the layout that are not created, each with the reason.
    pub left_out: Vec<String>,
}

/// The datasets of frames of a file, and the rule that selects one for each frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameDatasets {
    /// Their paths, in the order of the tree.
    pub paths: Vec<String>,
    /// Index of the dataset for frames that name none.
    pub default: usize,
    /// The attribute of a frame that names its dataset.
    pub destination: Option<String>,
}

impl FrameDatasets {
    /// The index of the dataset with this path, for a frame that names it.
    pub fn named(&self, path: &str) -> Option<usize> {
        let path = path.trim_matches('/');
        self.paths.iter().position(|there| there.trim_matches('/') == path)
    }
}

impl Hdf5Layout {
    /// Plans the file with these contents.
    pub fn tree(&self, contents: &LayoutContents) -> PlannedLayout {
        let mut planning =
            Planning { layout: self, contents, frames: Vec::new(), default: None, left_out: Vec::new() };
        let mut tree = planning.group(&self.root, "");
        planning.without_place(&mut tree);
        planning.links(&self.root, "", &mut tree);
        PlannedLayout {
            tree,
            frames: FrameDatasets {
                default: planning.default.or_else(|| first_by_name(&planning.frames)).unwrap_or(0),
                paths: planning.frames,
                destination: self.destination.as_ref().map(|destination| destination.name.clone()),
            },
            left_out: planning.left_out,
        }
    }
}

/// The default dataset if the layout marks none, as in areaDetector: the first by its path.
pub(super) fn first_by_name(paths: &[String]) -> Option<usize> {
    let first = paths.iter().enumerate().min_by_key(|(_, path)| path.as_str());
    first.map(|(at, _)| at)
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
            let known = match &attribute.value {
                AttributeValue::Constant(value) => Some((value.clone(), WriteTime::Opening)),
                AttributeValue::Attribute { name, when } => self.known(name).map(|known| once(known, *when)),
            };
            match known {
                Some((value, when)) => {
                    made.push(TreeAttribute { name: attribute.name.clone(), value, when });
                }
                None => self
                    .leave_out(&format!("{path}@{}", attribute.name), "its `ndattribute` has no known value"),
            }
        }
        made
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
            LayoutSource::Attribute { name, when, .. } => {
                let Some(made) = self.known(name).map(|known| supplied(known, *when)) else {
                    let why = format!("`{name}` has no known value");
                    self.leave_out(path, &why);
                    return None;
                };
                made
            }
            LayoutSource::Unset => {
                self.leave_out(path, "the layout gives it no source");
                return None;
            }
        };
        made.attributes.splice(0..0, self.attributes(&dataset.attributes, path));
        Some(made)
    }

    /// Adds datasets for attributes that no dataset of the layout uses, in the group that takes them.
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
            if is_free {
                tree.put(&path, TreeNode::Dataset(supplied(attribute, AttributeTime::EachFrame)));
            }
        }
    }

    /// Adds links directly to their objects, so that the order of their creation does not matter.
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

/// One value of an attribute, and the time when it is written: a value taken from a frame comes at the end.
fn once(attribute: &FrameAttribute, when: WriteTime) -> (TreeValue, WriteTime) {
    let of = match when {
        WriteTime::Opening => FrameChoice::First,
        WriteTime::Closing => FrameChoice::Last,
    };
    match &attribute.supply {
        AttributeSupply::Once(value) => (value.clone(), when),
        AttributeSupply::EachFrame { .. } | AttributeSupply::AtEnd => {
            (TreeValue::AtEnd(FrameValue { key: attribute.name.clone(), of }), WriteTime::Closing)
        }
    }
}

/// A dataset of an attribute's values, with the attributes that areaDetector adds.
fn supplied(attribute: &FrameAttribute, when: AttributeTime) -> TreeDataset {
    let content = match (&attribute.supply, when) {
        (AttributeSupply::EachFrame { element, fill }, AttributeTime::EachFrame) => {
            let column = FrameColumn { key: attribute.name.clone(), element: *element, fill: fill.clone() };
            DatasetContent::Column(column)
        }
        (_, AttributeTime::Once(when)) => {
            let (value, when) = once(attribute, when);
            DatasetContent::Value(value, when)
        }
        (_, AttributeTime::EachFrame) => {
            let (value, when) = once(attribute, WriteTime::Opening);
            DatasetContent::Value(value, when)
        }
    };
    TreeDataset { attributes: attribute.said(), content }
}

/// The path of the first group that takes attributes.
pub(super) fn taking_group(group: &LayoutGroup, path: &str) -> Option<String> {
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
