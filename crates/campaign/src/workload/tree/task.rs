//! What a worker does in each phase of `tree`: in whose tree, with whose items, and which operation it is.

use nilometer_model::Phase;
use nilometer_plan::{Directories, Items, Shift, TreeCell};
use nilometer_storage::{OpKind, Open};

use super::super::{WorkerPlace, name::Name};

/// One worker's part of a phase.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// The first directory of the tree.
    pub(super) root: Name,
    /// What is done with the first directory, and when.
    pub(super) around: Around,
    /// Levels of directories that are entered below the first; none if not even that one is.
    pub(super) levels: Option<u32>,
    /// Directories in each directory that is entered but the lowest.
    pub(super) branching: u32,
    /// Items in each directory that is entered.
    pub(super) items: u32,
    /// The first item of each.
    pub(super) first: Name,
    /// The first of the directories that each directory holds.
    pub(super) first_child: Name,
    /// What is done with an item.
    pub(super) item: Item,
}

/// What a phase is to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Directories are made: a directory's children exist before one of them is entered.
    Made,
    /// Items are worked on, in any order.
    Kept,
    /// Directories are removed: no child of a directory is entered any more when they go.
    Removed,
}

/// What is done with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// One operation on its name.
    Named(OpKind),
    /// It is opened so, so many bytes are moved, and it is closed.
    File(Open, u32),
    /// It gets its other name.
    Renamed,
}

/// A directory of the tree.
const DIRECTORY: &str = "n_t";
/// The letter that tells what an item is stands here in its name.
pub(super) const LETTER: usize = 2;
/// The letter of a file that was renamed.
pub(super) const RENAMED: u8 = b'r';

impl Task {
    /// The part of a worker.
    pub(super) fn of(cell: &TreeCell, phase: Phase, place: WorkerPlace) -> Self {
        let part = match phase {
            Phase::MakeTree => Self::around(cell, place, Around::Made, OpKind::MakeDir),
            Phase::RemoveTree => Self::around(cell, place, Around::Removed, OpKind::RemoveDir),
            _ => Self::items(cell, phase, place),
        };
        part.unwrap_or_else(|| Self::nothing(place))
    }

    /// For a worker that has nothing to do.
    fn nothing(place: WorkerPlace) -> Self {
        Task {
            root: Name::of(&place.shared(SHARED)),
            around: Around::Kept,
            levels: None,
            branching: 0,
            items: 0,
            first: Name::first(DIRECTORY),
            first_child: Name::first(DIRECTORY),
            item: Item::Named(OpKind::Stat),
        }
    }

    /// The lowest directories are items of those above: they are made or removed, but not entered.
    fn around(cell: &TreeCell, place: WorkerPlace, around: Around, kind: OpKind) -> Option<Self> {
        let root = match cell.directories {
            Directories::Unique => Name::of(&place.name()),
            Directories::Shared if place.number() == 0 => Name::of(&place.shared(SHARED)),
            Directories::Shared => return None,
        };
        let levels = cell.entered_levels().checked_sub(1);
        Some(Task {
            root,
            around,
            levels,
            branching: cell.branching,
            items: if levels.is_some() { cell.branching } else { 0 },
            first: Name::first(DIRECTORY),
            first_child: Name::first(DIRECTORY),
            item: Item::Named(kind),
        })
    }

    fn items(cell: &TreeCell, phase: Phase, place: WorkerPlace) -> Option<Self> {
        let (letter, item, shifts) = work(cell, phase)?;
        // On the next node all is foreign to this one; after two of two nodes it would be its own again.
        let shifts = if cell.shift == Shift::Node { shifts.min(1) } else { shifts };
        let maker = place.further(cell.shift, shifts);
        let root = match cell.directories {
            Directories::Unique => Name::of(&place.name_of(place.further(cell.shift, shifts + 1))),
            Directories::Shared => Name::of(&place.shared(SHARED)),
        };
        Some(Task {
            root,
            around: Around::Kept,
            levels: Some(cell.entered_levels()),
            branching: cell.branching,
            items: cell.items,
            first: Name::first(&format!("n_{letter}{maker}_")),
            first_child: Name::first(DIRECTORY),
            item,
        })
    }
}

/// The tree that all workers share.
const SHARED: &str = "n_tree";

/// The letter of a phase's items, what is done with them, and how many shifts further their maker is: as in mdtest,
/// whose rename (of directories) takes the items that were looked at.
fn work(cell: &TreeCell, phase: Phase) -> Option<(char, Item, u32)> {
    let bytes = cell.file_size.0 as u32;
    Some(match phase {
        Phase::MakeDirectories => ('d', Item::Named(OpKind::MakeDir), 0),
        Phase::StatDirectories => ('d', Item::Named(OpKind::Stat), 1),
        Phase::RemoveDirectories => ('d', Item::Named(OpKind::RemoveDir), 3),
        Phase::CreateFiles => ('f', Item::File(Open::CREATE, bytes), 0),
        Phase::StatFiles => ('f', Item::Named(OpKind::Stat), 1),
        Phase::ReadFiles => ('f', Item::File(Open::READ, bytes), 2),
        Phase::RenameFiles => ('f', Item::Renamed, 1),
        Phase::RemoveFiles if cell.kind == Items::Objects => ('f', Item::Named(OpKind::Unlink), 3),
        Phase::RemoveFiles => (char::from(RENAMED), Item::Named(OpKind::Unlink), 3),
        _ => return None,
    })
}
