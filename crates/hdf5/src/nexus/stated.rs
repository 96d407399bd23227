//! Adds values if they are stated. A missing value is left out, or marked as missing if a definition demands it.

use crate::tree::{NumberArray, TreeDataset, TreeGroup, TreeNode, TreeValue};

/// Replaces a demanded text that nobody stated.
pub const NOT_STATED: &str = "not stated";
/// The end of a chain of links.
pub(super) const NOTHING: &str = ".";

impl TreeGroup {
    /// Adds a dataset, if there is one.
    pub(super) fn stated(self, name: &str, dataset: Option<TreeDataset>) -> Self {
        match dataset {
            Some(dataset) => self.with(name, TreeNode::Dataset(dataset)),
            None => self,
        }
    }

    /// Adds a group, if it has any members.
    pub(super) fn stated_group(self, name: &str, group: TreeGroup) -> Self {
        if group.members.is_empty() { self } else { self.group(name, group) }
    }

    /// Adds a text, if there is one.
    pub(super) fn stated_text(self, name: &str, text: Option<&String>) -> Self {
        self.stated(name, text.map(|text| TreeDataset::value(text.as_str())))
    }

    /// Adds a number with its unit, if there is one.
    pub(super) fn stated_number(self, name: &str, number: Option<f64>, units: &str) -> Self {
        self.stated(name, number.map(|number| measured(number, units)))
    }
}

/// A number with its unit.
pub(super) fn measured(number: f64, units: &str) -> TreeDataset {
    TreeDataset::value(NumberArray::float(number)).attribute("units", units)
}

/// A text that the definition demands.
pub(super) fn demanded_text(text: Option<&String>) -> TreeDataset {
    TreeDataset::value(text.map_or(NOT_STATED, String::as_str))
}

/// A number that the definition demands. NaN if nobody stated it: no program can take that for a measured value.
pub(super) fn demanded_number(number: Option<f64>, units: &str) -> TreeDataset {
    measured(number.unwrap_or(f64::NAN), units)
}

/// The user's own values as a group. A slash in a name makes groups; of two values with the same name the later
/// stays.
pub(super) fn user_values(values: &[(String, TreeValue)]) -> Option<TreeGroup> {
    let mut group = TreeGroup::nexus("NXcollection");
    for (name, value) in values {
        group.put(name, TreeNode::Dataset(TreeDataset::value(value.clone())));
    }
    (!values.is_empty()).then_some(group)
}
