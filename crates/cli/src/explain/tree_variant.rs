//! The tree of an mdtest line as a workload of ours, and other shapes of the same tree.

use nilometer_command_lines::{ITEMS_MOST, TreeLine};

/// Directories that items are spread over, without the first one.
const SPREAD: u32 = 16;

/// The same tree with everything in one directory.
pub(super) fn flat(tree: TreeLine) -> TreeLine {
    let items = tree.tree_directories().saturating_mul(u64::from(tree.items));
    let items = u32::try_from(items).unwrap_or(ITEMS_MOST).min(ITEMS_MOST);
    TreeLine { levels: 0, branching: 1, items, ..tree }
}

/// The same items in a directory with sixteen below it.
pub(super) fn spread(tree: TreeLine) -> TreeLine {
    TreeLine { levels: 1, branching: SPREAD, items: (tree.items / (SPREAD + 1)).max(1), ..tree }
}

/// True if everything is in one directory.
pub(super) const fn is_flat(tree: &TreeLine) -> bool {
    tree.levels == 0
}

/// True if there are enough items to be spread.
pub(super) const fn can_spread(tree: &TreeLine) -> bool {
    tree.items > SPREAD
}

/// The keys of the workload in a plan.
pub(super) fn keys(tree: &TreeLine) -> Vec<String> {
    let directories = if tree.is_unique { "unique" } else { "shared" };
    let mut keys = vec![
        "[stage.workload.tree]".to_owned(),
        format!("levels = {}", tree.levels),
        format!("branching = {}", tree.branching),
        format!("items = {}", tree.items),
        format!("kind = \"{}\"", tree.kind),
        format!("directories = \"{directories}\""),
        format!("file_size = \"{} B\"", tree.file_size.0),
    ];
    keys.extend((tree.shift > 0).then(|| format!("shift = {}", tree.shift)));
    keys
}
