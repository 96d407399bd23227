//! The content of files beside their frames, as text for a journal, which has a limit. If the text would be longer, it
//! leaves out the largest arrays and names them, so that the journal has everything else.

use nilometer_hdf5::{
    nexus::RECORDER_PATH,
    tree::{TreeDataset, TreeGroup, TreeNode, TreeValue},
};
use nilometer_recording::journal::CONTENTS_MAX;

/// The name of the list of arrays that the journal lacks, in the recorder's own group. Only files made from the
/// journal have it.
const NOT_IN_JOURNAL: &str = "not_in_journal";

/// Returns a tree as text for a journal.
pub(crate) fn journal_text(tree: &TreeGroup) -> String {
    let text = text_of(tree);
    if text.len() <= CONTENTS_MAX {
        return text;
    }
    let mut rest = tree.clone();
    let mut left_out = Vec::new();
    let mut text = text;
    while text.len() > CONTENTS_MAX
        && let Some(path) = largest_array(&rest)
    {
        rest.remove(&path);
        left_out.push(path);
        let names = TreeDataset::value(TreeValue::Texts(left_out.clone()));
        rest.put(&format!("{RECORDER_PATH}/{NOT_IN_JOURNAL}"), TreeNode::Dataset(names));
        text = text_of(&rest);
    }
    text
}

fn text_of(tree: &TreeGroup) -> String {
    serde_json::to_string(tree).unwrap_or_default()
}

/// Returns the path of the array with the longest text, if there is an array.
fn largest_array(tree: &TreeGroup) -> Option<String> {
    let length = |array| serde_json::to_string(array).map_or(0, |text| text.len());
    let arrays = tree.arrays().into_iter().map(|(path, array)| (length(array), path));
    arrays.max().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use nilometer_hdf5::tree::{NumberArray, NumberType};

    use super::*;

    fn array(pixels: u64, number: impl Fn(u64) -> u32) -> TreeValue {
        let bytes = (0..pixels).flat_map(|pixel| number(pixel).to_le_bytes()).collect();
        NumberArray { element: NumberType::Uint32, shape: vec![pixels], bytes }.into()
    }

    fn noise(pixels: u64) -> TreeValue {
        array(pixels, |pixel| (pixel as u32).wrapping_mul(2_654_435_761))
    }

    #[test]
    fn a_mask_of_four_million_pixels_with_many_faults_fits() {
        let mask = array(4_471_016, |pixel| u32::from(pixel % 1000 == 7));
        let tree = TreeGroup::nexus("NXentry").value("mask", mask);
        let read: TreeGroup = serde_json::from_str(&journal_text(&tree)).expect("a tree");
        assert_eq!(read, tree);
    }

    #[test]
    fn the_largest_arrays_are_left_out_with_their_links_and_named() {
        let link = TreeNode::HardLink("/entry/flat".into());
        let entry = TreeGroup::nexus("NXentry").value("flat", noise(400_000)).value("few", noise(100));
        let tree = TreeGroup::nexus("NXroot").group("entry", entry).with("link", link);
        let text = journal_text(&tree);
        assert!(text.len() <= CONTENTS_MAX);
        let read: TreeGroup = serde_json::from_str(&text).expect("a tree");
        assert!(read.find("/entry/few").is_some() && read.find("/entry/flat").is_none());
        assert!(read.find("/link").is_none());
        let Some(TreeNode::Dataset(named)) = read.find(&format!("{RECORDER_PATH}/{NOT_IN_JOURNAL}")) else {
            panic!("{text}")
        };
        assert_eq!(*named, TreeDataset::value(TreeValue::Texts(vec!["/entry/flat".into()])));
    }
}
