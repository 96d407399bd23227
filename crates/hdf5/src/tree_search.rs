//! Finds objects in a tree by kind, and selects the parts that are written after the last frame.

use std::cell::RefCell;

use crate::tree::{
    DatasetContent, FrameColumn, FrameValue, FramesShape, NumberArray, TreeAttribute, TreeDataset, TreeGroup,
    TreeNode, TreeValue, WriteTime,
};

/// Returns a value that is only available after the last frame, or `None` if there is none.
pub type KnownAtEnd<'a> = &'a dyn Fn(&FrameValue) -> Option<TreeValue>;

impl TreeGroup {
    /// The datasets of frames, each with its path, in the order of the tree.
    pub fn frames(&self) -> Vec<(String, &FramesShape)> {
        let mut found = Vec::new();
        self.each_dataset("", &mut |path, dataset| {
            if let DatasetContent::Frames(shape) = &dataset.content {
                found.push((path, shape));
            }
        });
        found
    }

    /// The dataset in which readers see the frames at `path`, with the dimensions of a frame there. It is a
    /// dataset that rearranges these frames, if the tree has one.
    pub fn shown_frames(&self, path: &str) -> Option<(String, Vec<u64>)> {
        let mut shown = None;
        self.each_dataset("", &mut |at, dataset| match &dataset.content {
            DatasetContent::Rearranged(frames) if frames.source == path => {
                shown = Some((at, frames.image.clone()));
            }
            DatasetContent::Frames(shape) if shown.is_none() && at == path => {
                shown = Some((at, shape.frame.clone()));
            }
            _ => {}
        });
        shown
    }

    /// Frames of an image: 1, or the number of channels, which are the dimension before those of a frame.
    pub fn frames_of_image(&self) -> u64 {
        let scan = self.frames().into_iter().next().map(|(_, shape)| shape.scan.iter().product::<u64>());
        scan.unwrap_or(1).max(1)
    }

    /// The columns, each with its path, in the order of the tree.
    pub fn columns(&self) -> Vec<(String, &FrameColumn)> {
        let mut found = Vec::new();
        self.each_dataset("", &mut |path, dataset| {
            if let DatasetContent::Column(column) = &dataset.content {
                found.push((path, column));
            }
        });
        found
    }

    /// The datasets that are arrays of numbers, each with its path, in the order of the tree.
    pub fn arrays(&self) -> Vec<(String, &NumberArray)> {
        let mut found = Vec::new();
        self.each_dataset("", &mut |path, dataset| {
            if let DatasetContent::Value(TreeValue::Numbers(array), _) = &dataset.content {
                found.push((path, array));
            }
        });
        found
    }

    /// Removes the object at a path, and all hard links to it.
    pub fn remove(&mut self, path: &str) {
        self.remove_below("", path);
    }

    fn remove_below(&mut self, here: &str, path: &str) {
        self.members.retain_mut(|(name, node)| {
            let at = format!("{here}/{name}");
            match node {
                TreeNode::Group(group) => group.remove_below(&at, path),
                TreeNode::HardLink(to) if to == path => return false,
                _ => {}
            }
            at != path
        });
    }

    /// The paths of all its groups, itself first.
    pub fn group_paths(&self) -> Vec<String> {
        let mut paths = vec!["/".to_owned()];
        for (name, node) in &self.members {
            if let TreeNode::Group(group) = node {
                let below = group.group_paths();
                paths.extend(below.iter().map(|path| format!("/{name}{}", path.trim_end_matches('/'))));
            }
        }
        paths
    }

    /// The attributes of datasets that get their value after the last frame, each with its dataset's path.
    pub fn attributes_at_end(&self) -> Vec<(String, &TreeAttribute)> {
        let mut found = Vec::new();
        self.each_dataset("", &mut |path, dataset| {
            let wanting = dataset.attributes.iter().filter(|of| matches!(of.value, TreeValue::AtEnd(_)));
            found.extend(wanting.map(|attribute| (path.clone(), attribute)));
        });
        found
    }

    fn each_dataset<'a>(&'a self, path: &str, visit: &mut dyn FnMut(String, &'a TreeDataset)) {
        for (name, node) in &self.members {
            let path = format!("{path}/{name}");
            match node {
                TreeNode::Group(group) => group.each_dataset(&path, visit),
                TreeNode::Dataset(dataset) => visit(path, dataset),
                TreeNode::HardLink(_) | TreeNode::SoftLink(_) | TreeNode::ExternalLink { .. } => {}
            }
        }
    }

    /// The part of the tree that is written after the last frame, with the values from `known`. Values that it
    /// does not return are left out.
    #[must_use]
    pub fn at_end(&self, known: KnownAtEnd<'_>) -> TreeGroup {
        let mut made = TreeGroup { attributes: late(&self.attributes, known), members: Vec::new() };
        for (name, node) in &self.members {
            let node = match node {
                TreeNode::Group(group) => {
                    Some(group.at_end(known)).filter(|group| !group.is_empty()).map(TreeNode::Group)
                }
                TreeNode::Dataset(dataset) => dataset.at_end(known).map(TreeNode::Dataset),
                TreeNode::HardLink(_) | TreeNode::SoftLink(_) | TreeNode::ExternalLink { .. } => None,
            };
            made.members.extend(node.map(|node| (name.clone(), node)));
        }
        made
    }

    /// The values that the tree needs after the last frame.
    pub fn wanted_at_end(&self) -> Vec<FrameValue> {
        let wanted = RefCell::new(Vec::new());
        let note = |value: &FrameValue| {
            wanted.borrow_mut().push(value.clone());
            None
        };
        drop(self.at_end(&note));
        wanted.into_inner()
    }

    fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.members.is_empty()
    }

    /// Merges another tree into this one, group by group. If two other objects have the same name, the first
    /// stays.
    pub fn unite(&mut self, other: TreeGroup) {
        self.attributes.extend(other.attributes);
        for (name, node) in other.members {
            let there = self.members.iter_mut().find(|(member, _)| *member == name);
            match (there, node) {
                (Some((_, TreeNode::Group(there))), TreeNode::Group(group)) => there.unite(group),
                (Some(_), _) => {}
                (None, node) => self.members.push((name, node)),
            }
        }
    }
}

impl TreeDataset {
    fn at_end(&self, known: KnownAtEnd<'_>) -> Option<Self> {
        let mut attributes = late(&self.attributes, known);
        let content = match &self.content {
            DatasetContent::Value(value, WriteTime::Closing) => {
                attributes.splice(0..0, self.early());
                DatasetContent::Value(settled(value, known)?, WriteTime::Closing)
            }
            content if !attributes.is_empty() => content.clone(),
            _ => return None,
        };
        Some(TreeDataset { attributes, content })
    }

    fn early(&self) -> impl Iterator<Item = TreeAttribute> {
        self.attributes.iter().filter(|attribute| attribute.when == WriteTime::Opening).cloned()
    }
}

fn late(attributes: &[TreeAttribute], known: KnownAtEnd<'_>) -> Vec<TreeAttribute> {
    let late = attributes.iter().filter(|attribute| attribute.when == WriteTime::Closing);
    let settle = |attribute: &TreeAttribute| {
        settled(&attribute.value, known).map(|value| TreeAttribute { value, ..attribute.clone() })
    };
    late.filter_map(settle).collect()
}

fn settled(value: &TreeValue, known: KnownAtEnd<'_>) -> Option<TreeValue> {
    match value {
        TreeValue::AtEnd(wanted) => known(wanted),
        value => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{NumberArray, NumberType};

    fn tree() -> TreeGroup {
        let wanted = |key: &str, of| TreeValue::AtEnd(FrameValue { key: key.into(), of });
        let late = |name: &str, value| TreeAttribute { name: name.into(), value, when: WriteTime::Closing };
        let column =
            FrameColumn { key: "angle".into(), element: NumberType::Float64.into(), fill: vec![0; 8] };
        let mut angle = TreeDataset::of(DatasetContent::Column(column)).attribute("units", "deg");
        angle.attributes.push(late("first", wanted("angle", crate::tree::FrameChoice::First)));
        let last = DatasetContent::Value(wanted("angle", crate::tree::FrameChoice::Last), WriteTime::Closing);
        let unknown =
            DatasetContent::Value(wanted("nobody", crate::tree::FrameChoice::Last), WriteTime::Closing);
        let group = TreeGroup::nexus("NXcollection")
            .with("angle", TreeNode::Dataset(angle))
            .with("last", TreeNode::Dataset(TreeDataset::of(last).attribute("units", "deg")))
            .with("unknown", TreeNode::Dataset(TreeDataset::of(unknown)));
        TreeGroup::default().group("scan", group).group("other", TreeGroup::nexus("NXcollection"))
    }

    #[test]
    fn what_is_written_at_the_end_is_what_is_known_then() {
        let tree = tree();
        assert_eq!(tree.columns()[0].0, "/scan/angle");
        assert!(tree.frames().is_empty());
        let known =
            |wanted: &FrameValue| (wanted.key == "angle").then(|| TreeValue::from(NumberArray::float(1.5)));
        let end = tree.at_end(&known);
        assert_eq!(end.members.len(), 1, "{end:?}");
        let dataset = |path: &str| match end.find(path) {
            Some(TreeNode::Dataset(dataset)) => Some(dataset.clone()),
            _ => None,
        };
        let last = dataset("/scan/last").expect("it is known");
        assert_eq!(last.attributes.len(), 1, "all of it is made then: {last:?}");
        let angle = dataset("/scan/angle").expect("it has an attribute more");
        assert_eq!((angle.attributes.len(), angle.attributes[0].name.as_str()), (1, "first"), "{angle:?}");
        assert_eq!(dataset("/scan/unknown"), None);
        assert!(tree.at_end(&|_| None).is_empty());
    }

    #[test]
    fn groups_become_one_and_what_is_there_stays() {
        let mut one = TreeGroup::default().group("scan", TreeGroup::default().value("a", "one"));
        one.unite(
            TreeGroup::default().group("scan", TreeGroup::default().value("a", "two").value("b", "two")),
        );
        let text = |path: &str| match one.find(path) {
            Some(TreeNode::Dataset(dataset)) => dataset.content.clone(),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(text("/scan/a"), DatasetContent::Value("one".into(), WriteTime::Opening));
        assert_eq!(text("/scan/b"), DatasetContent::Value("two".into(), WriteTime::Opening));
    }
}
