//! The open files of one engine on a tree, and every operation on them. It is the counterpart of the kernel
//! engines' table of descriptors, with the same answers.

use std::{collections::BTreeMap, ops::Bound};

use super::{
    Id, Name, TOP, Tree,
    names::{DirectoryEntry, Kind},
};
use crate::{
    listing,
    operation::{Errno, OpKind, Open, Operation, SOURCE, Slot},
};

/// The directory that stands for [`SOURCE`] if it exists: a tree has no other tree beside it.
const IN_PLACE_OF_SOURCE: &[u8] = b"n_source";

/// Open files by slot; slot 0 is the run's directory.
#[derive(Debug)]
pub(crate) struct Slots {
    table: Vec<Option<Opened>>,
    /// The alignment of offsets and lengths with `O_DIRECT`.
    alignment: u64,
    /// If files are objects: files that are written but not stored yet, by directory and name.
    unput: Option<BTreeMap<Slot, (Id, Name)>>,
}

#[derive(Debug)]
struct Opened {
    node: Id,
    reads: bool,
    writes: bool,
    direct: bool,
    listed: Listed,
}

/// The progress of a listing.
#[derive(Debug, Default)]
struct Listed {
    dots: usize,
    last: Option<Name>,
}

impl Opened {
    fn new(node: Id, open: Open) -> Self {
        Opened {
            node,
            reads: open.reads(),
            writes: open.writes(),
            direct: open.is_direct(),
            listed: Listed::default(),
        }
    }
}

impl Slots {
    /// Creates the slots. `count` is at least 1; `alignment` is that of `O_DIRECT`.
    pub(crate) fn new(count: u32, alignment: u32) -> Self {
        let mut table: Vec<_> = (0..count.max(1)).map(|_| None).collect();
        table[0] = Some(Opened::new(TOP, Open::READ));
        Slots { table, alignment: u64::from(alignment), unput: None }
    }

    /// Runs the operation. A sync covers changes up to `moment`.
    pub(crate) fn execute(
        &mut self,
        tree: &mut Tree,
        operation: &mut Operation,
        moment: u64,
    ) -> Result<u32, Errno> {
        let dir = self.at(operation.dir).ok().map(|opened| opened.node);
        let result = self.execute_any(tree, operation, moment);
        if result.is_ok() {
            self.note_object(operation, dir);
        }
        result
    }

    fn execute_any(&mut self, tree: &mut Tree, operation: &mut Operation, moment: u64) -> Result<u32, Errno> {
        let Operation { kind, file, offset, .. } = *operation;
        let length = operation.length as usize;
        match kind {
            OpKind::Read => {
                let node = self.for_data(file, offset, length, false)?;
                tree.read(node, offset, &mut operation.buffer[..length])
            }
            OpKind::Write => {
                let node = self.for_data(file, offset, length, true)?;
                tree.write(node, offset, &operation.buffer[..length])
            }
            OpKind::Sync | OpKind::SyncData => {
                tree.sync(self.at(file)?.node, moment);
                Ok(0)
            }
            OpKind::Truncate if self.at(file)?.writes => tree.truncate(self.at(file)?.node, offset),
            OpKind::Truncate => Err(Errno::EINVAL),
            OpKind::Allocate => self.allocate(tree, file, offset),
            OpKind::Close => self.close(tree, file),
            OpKind::List => self.list(tree, operation),
            OpKind::Nop => Ok(0),
            _ => self.execute_named(tree, operation),
        }
    }

    /// Returns the slots for storage whose files are objects: [`Slots::close_all`] removes new files that
    /// were not stored yet.
    #[must_use]
    pub(crate) fn of_objects(self) -> Self {
        Slots { unput: Some(BTreeMap::new()), ..self }
    }

    /// Updates the list of files not stored yet, after a successful operation.
    fn note_object(&mut self, operation: &Operation, dir: Option<Id>) {
        let Some(unput) = &mut self.unput else { return };
        match operation.kind {
            OpKind::Open(open) if open.creates() && !open.grows() => {
                let dir = dir.expect("a file is opened in a directory");
                unput.insert(operation.file, (dir, operation.name().into()));
            }
            OpKind::Sync | OpKind::SyncData | OpKind::Close => {
                unput.remove(&operation.file);
            }
            _ => {}
        }
    }

    /// Closes everything except the run's directory.
    pub(crate) fn close_all(&mut self, tree: &mut Tree) {
        for (dir, name) in self.unput.iter_mut().flat_map(std::mem::take).map(|(_, place)| place) {
            tree.unlink(dir, &name).unwrap_or_default();
        }
        for opened in self.table.drain(1..).flatten() {
            tree.closed(opened.node);
        }
    }

    fn execute_named(&mut self, tree: &mut Tree, operation: &mut Operation) -> Result<u32, Errno> {
        if operation.dir == SOURCE {
            return self.open_source(tree, operation);
        }
        let dir = self.at(operation.dir)?.node;
        check_name(operation)?;
        let name = operation.name();
        match operation.kind {
            OpKind::Open(open) => self.open(tree, dir, operation, open),
            OpKind::OpenDir => {
                self.check_free(operation.file)?;
                let node = tree.find(dir, name)?;
                if !tree.is_directory(node) {
                    return Err(Errno::ENOTDIR);
                }
                self.put(tree, operation.file, Opened::new(node, Open::READ));
                Ok(0)
            }
            OpKind::Stat => {
                tree.stat(tree.find(dir, name)?).put(&mut operation.buffer);
                Ok(listing::Stat::BYTES as u32)
            }
            OpKind::Unlink => tree.unlink(dir, name),
            OpKind::RemoveDir => tree.remove_directory(dir, name),
            OpKind::MakeDir => tree.make(dir, name, Kind::Directory).map(|_| 0),
            OpKind::Rename => {
                let second = operation.second_name();
                if !crate::engine::plain(second) {
                    return Err(Errno::EINVAL);
                }
                let to = DirectoryEntry { dir: self.at(operation.file)?.node, name: second };
                tree.rename(DirectoryEntry { dir, name }, to)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// Opens a file of the directory that copies come from: for reading, nothing else is allowed there.
    fn open_source(&mut self, tree: &mut Tree, operation: &Operation) -> Result<u32, Errno> {
        let source = tree.find(TOP, IN_PLACE_OF_SOURCE).map_err(|_| Errno::EBADF)?;
        check_name(operation)?;
        match operation.kind {
            OpKind::Open(open) if !open.writes() => self.open(tree, source, operation, open),
            _ => Err(Errno::EROFS),
        }
    }

    fn open(&mut self, tree: &mut Tree, dir: Id, operation: &Operation, open: Open) -> Result<u32, Errno> {
        self.check_free(operation.file)?;
        let name = operation.name();
        let node = match tree.find(dir, name) {
            _ if open.must_be_new() => tree.make(dir, name, Kind::File)?,
            Err(Errno::ENOENT) if open.creates() => tree.make(dir, name, Kind::File)?,
            found => found?,
        };
        match tree.is_directory(node) {
            true if open.writes() => Err(Errno::EISDIR),
            true if open.is_direct() => Err(Errno::EINVAL),
            _ => {
                self.put(tree, operation.file, Opened::new(node, open));
                Ok(0)
            }
        }
    }

    fn at(&self, slot: Slot) -> Result<&Opened, Errno> {
        self.table.get(slot.0 as usize).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    fn for_data(&self, slot: Slot, offset: u64, length: usize, writes: bool) -> Result<Id, Errno> {
        let opened = self.at(slot)?;
        i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        if !(if writes { opened.writes } else { opened.reads }) {
            return Err(Errno::EBADF);
        }
        if opened.direct && !(offset | length as u64).is_multiple_of(self.alignment) {
            return Err(Errno::EINVAL);
        }
        Ok(opened.node)
    }

    fn allocate(&mut self, tree: &mut Tree, slot: Slot, size: u64) -> Result<u32, Errno> {
        let opened = self.at(slot)?;
        if size == 0 || i64::try_from(size).is_err() {
            return Err(Errno::EINVAL);
        }
        if opened.writes { tree.allocate(opened.node, size) } else { Err(Errno::EBADF) }
    }

    fn check_free(&self, slot: Slot) -> Result<(), Errno> {
        if slot.0 > 0 && self.table.len() > slot.0 as usize { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// Fills a slot and closes the file that was in it.
    fn put(&mut self, tree: &mut Tree, slot: Slot, opened: Opened) {
        tree.opened(opened.node);
        if let Some(before) = self.table[slot.0 as usize].replace(opened) {
            tree.closed(before.node);
        }
    }

    fn close(&mut self, tree: &mut Tree, slot: Slot) -> Result<u32, Errno> {
        self.check_free(slot)?;
        let opened = self.table[slot.0 as usize].take().ok_or(Errno::EBADF)?;
        tree.closed(opened.node);
        Ok(0)
    }

    fn list(&mut self, tree: &Tree, operation: &mut Operation) -> Result<u32, Errno> {
        let place = self.table.get_mut(operation.file.0 as usize);
        let opened = place.and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        let names = tree.names(opened.node)?;
        if !tree.node(opened.node).linked {
            return Err(Errno::ENOENT);
        }
        let (mut end, listed) = (0, &mut opened.listed);
        while let Some((name, node)) = listed.next(names, opened.node) {
            let kind = if tree.is_directory(node) { listing::DIRECTORY } else { listing::FILE };
            match listing::append(&mut operation.buffer, end, name, kind) {
                Some(further) => end = further,
                None if end == 0 => return Err(Errno::EINVAL),
                None => break,
            }
            listed.passed(name);
        }
        Ok(end as u32)
    }
}

impl Listed {
    fn next<'a>(&self, names: &'a super::Names, itself: Id) -> Option<(&'a [u8], Id)> {
        if let Some(&dots) = [&b"."[..], b".."].get(self.dots) {
            return Some((dots, itself));
        }
        let after = self.last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        names.range::<[u8], _>((after, Bound::Unbounded)).next().map(|(name, &node)| (&**name, node))
    }

    fn passed(&mut self, name: &[u8]) {
        match self.dots {
            0 | 1 => self.dots += 1,
            _ => self.last = Some(name.into()),
        }
    }
}

/// Checks that a name is an entry of the directory itself and ends with a NUL.
fn check_name(operation: &Operation) -> Result<(), Errno> {
    let name = operation.buffer.get(..=operation.length as usize).and_then(|name| name.strip_suffix(b"\0"));
    match name {
        Some(name) if crate::engine::plain(name) && !name.contains(&0) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
