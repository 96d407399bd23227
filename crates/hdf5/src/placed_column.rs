//! Where a frame stands, in a file with several datasets of frames: columns with a number for each frame of the recording.

use crate::{
    ColumnValue,
    tree::{DatasetContent, FrameColumn, NumberType, TreeAttribute, TreeGroup, TreeNode, TreeValue},
};

/// Which dataset has a frame, and which of its frames it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacedColumn {
    /// The dataset, by its number among those of frames.
    Dataset,
    /// The frame's place in it, from 0.
    Index,
}

impl PlacedColumn {
    /// All there are.
    pub const ALL: [PlacedColumn; 2] = [PlacedColumn::Dataset, PlacedColumn::Index];

    /// By which layouts name it, which is the [`FrameColumn::key`] too.
    pub const fn key(self) -> &'static str {
        match self {
            PlacedColumn::Dataset => "frame_dataset",
            PlacedColumn::Index => "frame_index",
        }
    }

    /// What it is, in words.
    pub const fn description(self) -> &'static str {
        match self {
            PlacedColumn::Dataset => {
                "which dataset has the frame: its number in the attribute `datasets`; -1: it is in none"
            }
            PlacedColumn::Index => "which frame of that dataset it is, from 0; -1: it is in none",
        }
    }

    /// What is said of each frame.
    pub fn column(self) -> FrameColumn {
        let (element, fill) = match self {
            PlacedColumn::Dataset => (NumberType::Int16, (-1_i16).to_le_bytes().to_vec()),
            PlacedColumn::Index => (NumberType::Int64, (-1_i64).to_le_bytes().to_vec()),
        };
        FrameColumn { key: self.key().into(), element: element.into(), fill }
    }

    /// Of a frame that stands there.
    pub fn number(self, dataset: u32, index: u64) -> ColumnValue {
        match self {
            PlacedColumn::Dataset => i64::from(dataset).into(),
            PlacedColumn::Index => index.cast_signed().into(),
        }
    }
}

/// By which attribute the column of datasets says what its numbers stand for.
const DATASETS: &str = "datasets";

impl TreeGroup {
    /// The column of datasets, if there is one, says which these are.
    pub fn name_datasets(&mut self, paths: &[String]) {
        for (_, node) in &mut self.members {
            match node {
                TreeNode::Group(group) => group.name_datasets(paths),
                TreeNode::Dataset(dataset) => {
                    let is_column = |content: &DatasetContent| matches!(content, DatasetContent::Column(column) if column.key == PlacedColumn::Dataset.key());
                    if is_column(&dataset.content) {
                        let paths = TreeValue::Texts(paths.to_vec());
                        dataset.attributes.push(TreeAttribute::new(DATASETS, paths));
                    }
                }
                TreeNode::HardLink(_) | TreeNode::SoftLink(_) | TreeNode::ExternalLink { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TreeDataset;

    #[test]
    fn the_column_of_datasets_says_what_its_numbers_are() {
        let mut tree = TreeGroup::default();
        for column in PlacedColumn::ALL {
            let made = column.column();
            assert_eq!(made.fill.len(), made.element.bytes(), "{column:?}");
            let dataset = TreeDataset::of(DatasetContent::Column(made));
            tree.put(&format!("/frames/{}", column.key()), TreeNode::Dataset(dataset));
        }
        tree.name_datasets(&["/a/b".into(), "/c".into()]);
        let attributes = |path: &str| match tree.find(path) {
            Some(TreeNode::Dataset(dataset)) => dataset.attributes.clone(),
            other => panic!("{other:?}"),
        };
        let paths = TreeValue::Texts(vec!["/a/b".into(), "/c".into()]);
        assert_eq!(attributes("/frames/frame_dataset"), [TreeAttribute::new("datasets", paths)]);
        assert_eq!(attributes("/frames/frame_index"), []);
    }
}
