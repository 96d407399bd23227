//! The numbers of the first and the last image in a file, as attributes of its frames: DECTRIS' file writer has them.
//! The place of the file in its recording gives the first, and its length the last.

use crate::tree::{
    DatasetContent, FrameChoice, FrameValue, TreeAttribute, TreeGroup, TreeNode, TreeValue, WriteTime,
};

/// The number of the first image in a file, from 1, as an attribute of its frames. DECTRIS' file writer puts it there.
pub(crate) const IMAGE_NR_LOW: &str = "image_nr_low";
/// The same of the last image. The length of the closed file gives it.
pub(crate) const IMAGE_NR_HIGH: &str = "image_nr_high";

impl TreeAttribute {
    /// The numbers of the first and the last image in a file.
    pub fn image_numbers() -> [TreeAttribute; 2] {
        let of_file = |name: &str, of| TreeValue::AtEnd(FrameValue { key: name.into(), of });
        let low = of_file(IMAGE_NR_LOW, FrameChoice::First);
        let high = of_file(IMAGE_NR_HIGH, FrameChoice::Last);
        [
            TreeAttribute { name: IMAGE_NR_LOW.into(), value: low, when: WriteTime::Opening },
            TreeAttribute { name: IMAGE_NR_HIGH.into(), value: high, when: WriteTime::Closing },
        ]
    }

    /// Returns true if only the place of a file in its recording gives the value, when the file is made.
    pub(crate) fn is_first_image(&self) -> bool {
        let is_of_file = matches!(&self.value, TreeValue::AtEnd(wanted) if wanted.key == IMAGE_NR_LOW);
        is_of_file && self.when == WriteTime::Opening
    }
}

impl TreeGroup {
    /// Adds the numbers of the first and the last image to the first dataset of frames.
    pub fn number_images(&mut self) -> bool {
        self.members.iter_mut().any(|(_, node)| match node {
            TreeNode::Group(group) => group.number_images(),
            TreeNode::Dataset(dataset) if matches!(dataset.content, DatasetContent::Frames(_)) => {
                dataset.attributes.extend(TreeAttribute::image_numbers());
                true
            }
            _ => false,
        })
    }
}
