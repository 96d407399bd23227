//! Columns with the position of each frame of the recording, for a file with several datasets of frames.

use crate::{
    ColumnValue,
    tree::{DatasetContent, FrameColumn, NumberType, TreeAttribute, TreeGroup, TreeNode, TreeValue},
};

/// A number that locates a frame: its dataset, or its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacedColumn {
    /// The dataset, by its index among the datasets of frames.
    Dataset,
    /// The frame's index in that dataset, from 0.
    Index,
}

impl PlacedColumn {
    /// All variants.
    pub const ALL: [PlacedColumn; 2] = [PlacedColumn::Dataset, PlacedColumn::Index];

    /// Its name in layouts, which is the [`FrameColumn::key`] too.
    pub const fn key(self) -> &'static str {
        match self {
            PlacedColumn::Dataset => "frame_dataset",
            PlacedColumn::Index => "frame_index",
        }
    }

    /// A description for readers of the file.
    pub const fn description(self) -> &'static str {
        match self {
            PlacedColumn::Dataset => {
                "which dataset has the frame: its number in the attribute `datasets`; -1: it is in none"
            }
            PlacedColumn::Index => "which frame of that dataset it is, from 0; -1: it is in none",
        }
    }

    /// The column's type and fill value.
    pub fn column(self) -> FrameColumn {
        let (element, fill) = match self {
            PlacedColumn::Dataset => (NumberType::Int16, (-1_i16).to_le_bytes().to_vec()),
            PlacedColumn::Index => (NumberType::Int64, (-1_i64).to_le_bytes().to_vec()),
        };
        FrameColumn { key: self.key().into(), element: element.into(), fill }
    }

    /// The value of a frame at this position.
    pub fn number(self, dataset: u32, index: u64) -> ColumnValue {
        match self {
            PlacedColumn::Dataset => i64::from(dataset).into(),
            PlacedColumn::Index => index.cast_signed().into(),
        }
    }
}

/// Attribute of the dataset column that lists the datasets by number.
const DATASETS: &str = "datasets";

impl TreeGroup {
    /// Adds the paths of the datasets of frames to the dataset column, if there is one.
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
