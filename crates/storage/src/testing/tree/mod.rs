//! A tree of files in memory that answers like a local Linux file system, down to the error numbers. The
//! simulated and the memory target use it; a property test compares it with a real directory.
//!
//! With a [`Journal`] the tree also knows which of its state would survive a power loss.

mod content;
mod journal;
mod names;
mod slots;

pub(crate) use journal::Journal;
pub(crate) use slots::Slots;

use std::collections::BTreeMap;

use nilometer_model::Seed;

use crate::{listing::Stat, operation::Errno};
use content::Content;

/// The number of a file or directory. It is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(u64);

/// The run's own directory.
const TOP: Id = Id(0);
/// The largest file of ext4 with blocks of 4 KiB.
const SIZE_MAX: u64 = u32::MAX as u64 * 4096;
const EFBIG: Errno = Errno(libc::EFBIG);

type Name = Box<[u8]>;
type Names = BTreeMap<Name, Id>;

/// The present files, safe or not.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: BTreeMap<Id, Node>,
    next: u64,
    used: u64,
    capacity: u64,
    journal: Option<Journal>,
    hollow: bool,
}

#[derive(Debug, Clone)]
struct Node {
    body: Body,
    linked: bool,
    opens: u32,
}

#[derive(Debug, Clone)]
enum Body {
    File(File),
    Directory(Directory),
}

#[derive(Debug, Clone, Default)]
struct File {
    content: Content,
    reserved: u64,
}

#[derive(Debug, Clone)]
struct Directory {
    names: Names,
    parent: Id,
}

impl File {
    fn space(&self) -> u64 {
        self.content.stored().max(self.reserved)
    }

    /// Returns the space after such a write.
    fn space_with(&self, offset: u64, length: usize, hollow: bool) -> u64 {
        let stored = self.content.stored();
        let written =
            if hollow { offset + length as u64 } else { stored + self.content.growth(offset, length) };
        self.space().max(written)
    }

    /// Extends the file like a write up to `end`, without its data.
    fn lengthen(&mut self, end: u64) {
        self.content.truncate(self.content.size().max(end));
        self.reserved = self.reserved.max(end);
    }
}

impl Tree {
    /// Creates an empty tree for `capacity` bytes of data, with a journal if it may lose power.
    pub(crate) fn new(capacity: u64, journal: Option<Journal>) -> Self {
        let top = Body::Directory(Directory { names: Names::new(), parent: TOP });
        let nodes = BTreeMap::from([(TOP, Node { body: top, linked: true, opens: 1 })]);
        Tree { nodes, next: 1, used: 0, capacity, journal, hollow: false }
    }

    /// Creates an empty tree that keeps the sizes of files, not their data, which read as zeros.
    pub(crate) fn hollow(capacity: u64) -> Self {
        Tree { hollow: true, ..Tree::new(capacity, None) }
    }

    /// Returns the bytes of the capacity in use.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the number of changes so far: a sync covers those up to the moment when it was issued.
    pub(crate) fn moment(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::moment)
    }

    /// Loses the power: by the seed, unsafe changes survive, are lost or are torn. No file is open any more.
    pub(crate) fn crash(&mut self, seed: Seed) {
        let Some(journal) = self.journal.take() else { return self.close_all() };
        let survivors = journal.lose(seed);
        let directory = |(id, parent, names): (Id, Id, &Names)| {
            (id, Body::Directory(Directory { names: names.clone(), parent }))
        };
        let file =
            |(id, content): (Id, &Content)| (id, Body::File(File { content: content.clone(), reserved: 0 }));
        let bodies = survivors.directories().map(directory).chain(survivors.files().map(file));
        self.nodes =
            bodies.map(|(id, body)| (id, Node { body, linked: true, opens: u32::from(id == TOP) })).collect();
        self.used = self.nodes.values().map(Node::space).sum();
        self.journal = Some(survivors);
    }

    /// Closes everything except the run's directory.
    pub(crate) fn close_all(&mut self) {
        let open: Vec<_> = self.nodes.iter().filter(|(_, node)| node.opens > 0).map(|(&id, _)| id).collect();
        for id in open {
            self.node_mut(id).opens = u32::from(id == TOP);
            self.drop_if_gone(id);
        }
    }

    /// Removes all names, safely. Open files stay.
    pub(crate) fn clear(&mut self) {
        self.clear_directory(TOP);
        self.sync(TOP, self.moment());
    }

    fn node(&self, id: Id) -> &Node {
        self.nodes.get(&id).expect("a node lives as long as a name or a slot leads to it")
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        self.nodes.get_mut(&id).expect("a node lives as long as a name or a slot leads to it")
    }

    fn file(&mut self, id: Id, otherwise: Errno) -> Result<&mut File, Errno> {
        match &mut self.node_mut(id).body {
            Body::File(file) => Ok(file),
            Body::Directory(_) => Err(otherwise),
        }
    }

    fn stat(&self, id: Id) -> Stat {
        match &self.node(id).body {
            Body::File(file) => Stat { size: file.content.size(), directory: false },
            Body::Directory(_) => Stat { size: 4096, directory: true },
        }
    }

    fn is_directory(&self, id: Id) -> bool {
        matches!(self.node(id).body, Body::Directory(_))
    }

    fn read(&mut self, id: Id, offset: u64, into: &mut [u8]) -> Result<u32, Errno> {
        let file = self.file(id, Errno::EISDIR)?;
        Ok(file.content.read(offset, into) as u32)
    }

    fn write(&mut self, id: Id, offset: u64, bytes: &[u8]) -> Result<u32, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        check_size(offset.saturating_add(bytes.len() as u64))?;
        let free = self.capacity - self.used;
        let hollow = self.hollow;
        let file = self.file(id, Errno::EISDIR)?;
        let before = file.space();
        if free != u64::MAX && file.space_with(offset, bytes.len(), hollow) - before > free {
            return Err(Errno::ENOSPC);
        }
        if hollow {
            file.lengthen(offset + bytes.len() as u64);
        } else {
            file.content.write(offset, bytes);
        }
        let grown = file.space() - before;
        self.used += grown;
        if let Some(journal) = &mut self.journal {
            journal.wrote(id, offset, bytes);
        }
        Ok(bytes.len() as u32)
    }

    fn truncate(&mut self, id: Id, size: u64) -> Result<u32, Errno> {
        let file = self.file(id, Errno::EINVAL)?;
        check_size(size)?;
        let before = file.space();
        file.content.truncate(size);
        file.reserved = file.reserved.min(size);
        let after = file.space();
        self.used = self.used + after - before;
        if let Some(journal) = &mut self.journal {
            journal.truncated(id, size);
        }
        Ok(0)
    }

    fn allocate(&mut self, id: Id, size: u64) -> Result<u32, Errno> {
        let free = self.capacity - self.used;
        let file = self.file(id, Errno::EBADF)?;
        check_size(size)?;
        let more = size.saturating_sub(file.space());
        if more > free {
            return Err(Errno::ENOSPC);
        }
        file.reserved = file.reserved.max(size);
        self.used += more;
        Ok(0)
    }

    /// Makes changes in the file or directory safe, up to `moment`.
    fn sync(&mut self, id: Id, moment: u64) {
        let directory = self.is_directory(id);
        match &mut self.journal {
            Some(journal) if directory => journal.sync_directory(id, moment),
            Some(journal) => journal.sync_file(id, moment),
            None => {}
        }
    }

    fn opened(&mut self, id: Id) {
        self.node_mut(id).opens += 1;
    }

    fn closed(&mut self, id: Id) {
        self.node_mut(id).opens -= 1;
        self.drop_if_gone(id);
    }

    /// Frees the space of a node that has neither a name nor an open slot.
    fn drop_if_gone(&mut self, id: Id) {
        let node = self.node(id);
        if node.linked || node.opens > 0 {
            return;
        }
        self.used -= node.space();
        self.nodes.remove(&id);
        if let Some(journal) = &mut self.journal {
            journal.died(id);
        }
    }
}

impl Node {
    fn space(&self) -> u64 {
        match &self.body {
            Body::File(file) => file.space(),
            Body::Directory(_) => 0,
        }
    }
}

fn check_size(end: u64) -> Result<(), Errno> {
    match end {
        0..=SIZE_MAX => Ok(()),
        _ if i64::try_from(end).is_ok() => Err(EFBIG),
        _ => Err(Errno::EINVAL),
    }
}
