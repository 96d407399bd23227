//! A tree of directories with items in each: the load of an mdtest line.

use nilometer_model::{Bytes, Phase};

/// A tree of directories with items in each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TreeLine {
    pub(super) levels: u32,
    pub(super) branching: u32,
    /// Items in each directory.
    pub(super) items: u32,
    /// `both`, `files` or `directories`.
    pub(super) kind: &'static str,
    /// True if each worker has a tree of its own.
    pub(super) is_unique: bool,
    /// Bytes written into each file.
    pub(super) file_size: Bytes,
    /// Phases work on items that another worker made.
    pub(super) shift: u32,
    /// The phases that the line measures, by their options; all if empty.
    pub(super) phases: Vec<String>,
}

/// A phase in mdtest's words, with the option that selects it alone.
const PHASES: [(&str, &str, Phase); 7] = [
    ("C", "Directory creation", Phase::MakeDirectories),
    ("T", "Directory stat", Phase::StatDirectories),
    ("r", "Directory removal", Phase::RemoveDirectories),
    ("C", "File creation", Phase::CreateFiles),
    ("T", "File stat", Phase::StatFiles),
    ("E", "File read", Phase::ReadFiles),
    ("r", "File removal", Phase::RemoveFiles),
];

/// The most items: more would take hours.
pub(super) const ITEMS_MOST: u32 = 10_000_000;
/// Directories that items are spread over, without the first one.
const SPREAD: u32 = 16;

impl TreeLine {
    /// The number of directories, the first one included.
    pub(super) fn tree_directories(&self) -> u64 {
        (0..=self.levels)
            .map(|level| u64::from(self.branching).saturating_pow(level))
            .fold(0, u64::saturating_add)
    }

    /// The same tree with everything in one directory.
    pub(super) fn flat(&self) -> Self {
        let items = self.tree_directories().saturating_mul(u64::from(self.items));
        let items = u32::try_from(items).unwrap_or(ITEMS_MOST).min(ITEMS_MOST);
        TreeLine { levels: 0, branching: 1, items, ..self.clone() }
    }

    /// The same items in a directory with sixteen below it.
    pub(super) fn spread(&self) -> Self {
        TreeLine { levels: 1, branching: SPREAD, items: (self.items / (SPREAD + 1)).max(1), ..self.clone() }
    }

    /// True if everything is in one directory.
    pub(super) const fn is_flat(&self) -> bool {
        self.levels == 0
    }

    /// True if there are enough items to be spread.
    pub(super) const fn can_spread(&self) -> bool {
        self.items > SPREAD
    }

    /// The figures that the line gives, in the program's words.
    pub(super) fn figures(&self) -> Vec<(&'static str, Phase)> {
        let of_kind = |name: &str| match self.kind {
            "files" => name.starts_with("File"),
            "directories" => name.starts_with("Directory"),
            _ => true,
        };
        let is_asked = |option: &str| self.phases.is_empty() || self.phases.iter().any(|of| of == option);
        let asked = PHASES.iter().filter(|(option, name, _)| of_kind(name) && is_asked(option));
        asked.map(|(_, name, phase)| (*name, *phase)).collect()
    }

    /// The keys of the workload.
    pub(super) fn keys(&self) -> Vec<String> {
        let directories = if self.is_unique { "unique" } else { "shared" };
        let mut keys = vec![
            "[stage.workload.tree]".to_owned(),
            format!("levels = {}", self.levels),
            format!("branching = {}", self.branching),
            format!("items = {}", self.items),
            format!("kind = \"{}\"", self.kind),
            format!("directories = \"{directories}\""),
            format!("file_size = \"{} B\"", self.file_size.0),
        ];
        keys.extend((self.shift > 0).then(|| format!("shift = {}", self.shift)));
        keys
    }
}
