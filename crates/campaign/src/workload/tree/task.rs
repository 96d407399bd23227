//! The task of a worker in each phase of `tree`: whose tree, whose items, and which operation.

use nilometer_model::Phase;
use nilometer_plan::{Directories, Items, Shift, TreeCell};
use nilometer_storage::{OpKind, Open};

use super::super::{WorkerPlace, name::Name};

/// One worker's part of a phase.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// The name of the tree's first directory.
    pub(super) root: Name,
    /// The effect of the phase on the tree. It decides when the first directory is made or removed.
    pub(super) around: Around,
    /// The number of levels that are entered below the first directory; `None` if not even the first is.
    pub(super) levels: Option<u32>,
    /// The number of children of each directory that is entered, except on the lowest level.
    pub(super) branching: u32,
    /// The number of items in each directory that is entered.
    pub(super) items: u32,
    /// The name of the first item of each.
    pub(super) first: Name,
    /// The name of the first child of each directory.
    pub(super) first_child: Name,
    /// The operations on an item.
    pub(super) item: Item,
}

/// The effect of a phase on the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Directories are made: all children of a directory exist before one of them is entered.
    Made,
    /// Items are worked on, in any order.
    Kept,
    /// Directories are removed: once they go, no child of their parent is entered any more.
    Removed,
}

/// The operations on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// One operation on its name.
    Named(OpKind),
    /// Open it in this way, move this number of bytes, and close it.
    File(Open, u32),
    /// Rename it to its other name.
    Renamed,
}

/// The letters of a tree's directory.
const DIRECTORY: &str = "n_t";
/// The position in a name of the letter that tells the kind of the item.
pub(super) const LETTER: usize = 2;
/// The letter of a file that was renamed.
pub(super) const RENAMED: u8 = b'r';

impl Task {
    /// The part of a worker in the phase.
    pub(super) fn of(cell: &TreeCell, phase: Phase, place: WorkerPlace) -> Self {
        let part = match phase {
            Phase::MakeTree => Self::around(cell, place, Around::Made, OpKind::MakeDir),
            Phase::RemoveTree => Self::around(cell, place, Around::Removed, OpKind::RemoveDir),
            _ => Self::items(cell, phase, place),
        };
        part.unwrap_or_else(|| Self::nothing(place))
    }

    /// The task of a worker that has nothing to do.
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

    /// The task in a phase that makes or removes directories. The lowest directories are items of their
    /// parents: they are made or removed, but not entered.
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
        // All items on the next node are foreign to this one. After two shifts of two nodes a worker would be
        // back at its own.
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

/// The letters of the tree that all workers share.
const SHARED: &str = "n_tree";

/// The letter of a phase's items, the operations on them, and the number of shifts to the worker that made
/// them. The rename (of directories) takes the items of the stat phase, like that of mdtest.
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
