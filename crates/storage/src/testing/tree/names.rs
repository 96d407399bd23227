//! Names in the tree: look-up, creation, removal and rename, with the kernel's order of errors (fs/namei.c).

use super::{Body, Directory, File, Id, Name, Names, Node, Tree, journal::Rename};
use crate::operation::Errno;

const NAME_MAX: usize = 255;
const EBUSY: Errno = Errno(libc::EBUSY);
const ENAMETOOLONG: Errno = Errno(libc::ENAMETOOLONG);

/// The kind of node a name is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
}

/// A name, and its present or future directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryEntry<'a> {
    pub(super) dir: Id,
    pub(super) name: &'a [u8],
}

impl Tree {
    /// Returns the node of a name; `.` is the directory itself.
    pub(super) fn find(&self, dir: Id, name: &[u8]) -> Result<Id, Errno> {
        let names = self.names(dir)?;
        match name {
            b"." => Ok(dir),
            _ if name.len() > NAME_MAX && self.node(dir).linked => Err(ENAMETOOLONG),
            _ => names.get(name).copied().ok_or(Errno::ENOENT),
        }
    }

    /// Returns the names in a directory.
    pub(super) fn names(&self, dir: Id) -> Result<&Names, Errno> {
        match &self.node(dir).body {
            Body::Directory(directory) => Ok(&directory.names),
            Body::File(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Makes a new, empty file or directory.
    pub(super) fn make(&mut self, dir: Id, name: &[u8], kind: Kind) -> Result<Id, Errno> {
        match self.find(dir, name) {
            Ok(_) => return Err(Errno::EEXIST),
            Err(Errno::ENOENT) if self.node(dir).linked => {}
            Err(errno) => return Err(errno),
        }
        let id = Id(self.next);
        self.next += 1;
        let body = match kind {
            Kind::File => Body::File(File::default()),
            Kind::Directory => Body::Directory(Directory { names: Names::new(), parent: dir }),
        };
        self.nodes.insert(id, Node { body, linked: true, opens: 0 });
        self.names_mut(dir).insert(name.into(), id);
        if let Some(journal) = &mut self.journal {
            journal.made(id, kind == Kind::Directory, (dir, name.into()));
        }
        Ok(id)
    }

    /// Removes the name of a file.
    pub(super) fn unlink(&mut self, dir: Id, name: &[u8]) -> Result<u32, Errno> {
        let id = self.find(dir, name)?;
        if self.is_directory(id) {
            return Err(Errno::EISDIR);
        }
        self.remove(dir, name, id);
        Ok(0)
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&mut self, dir: Id, name: &[u8]) -> Result<u32, Errno> {
        let id = self.find(dir, name)?;
        if name == b"." {
            return Err(Errno::EINVAL);
        }
        if !self.names(id)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.remove(dir, name, id);
        Ok(0)
    }

    /// Removes all names below a directory.
    pub(super) fn clear_directory(&mut self, dir: Id) {
        for (name, id) in self.names_mut(dir).clone() {
            if self.is_directory(id) {
                self.clear_directory(id);
            }
            self.remove(dir, &name, id);
        }
    }

    /// Gives a node another name, replacing the node that had it.
    pub(super) fn rename(&mut self, from: DirectoryEntry<'_>, to: DirectoryEntry<'_>) -> Result<u32, Errno> {
        let (node, replaced) = self.check_rename(from, to)?;
        if replaced == Some(node) {
            return Ok(0);
        }
        let name = self.take_name(from.dir, from.name);
        if let Some(old) = replaced {
            self.take_name(to.dir, to.name);
            self.node_mut(old).linked = false;
        }
        self.names_mut(to.dir).insert(to.name.into(), node);
        if let Body::Directory(directory) = &mut self.node_mut(node).body {
            directory.parent = to.dir;
        }
        if let Some(journal) = &mut self.journal {
            let change =
                Rename { node, from: Some((from.dir, name)), to: Some((to.dir, to.name.into())), replaced };
            journal.renamed(change);
        }
        if let Some(old) = replaced {
            self.drop_if_gone(old);
        }
        Ok(0)
    }

    fn check_rename(
        &self,
        from: DirectoryEntry<'_>,
        to: DirectoryEntry<'_>,
    ) -> Result<(Id, Option<Id>), Errno> {
        self.names(from.dir)?;
        self.names(to.dir)?;
        if from.name == b"." || to.name == b"." {
            return Err(EBUSY);
        }
        let node = self.find(from.dir, from.name)?;
        let replaced = match self.find(to.dir, to.name) {
            Ok(old) => Some(old),
            Err(Errno::ENOENT) if self.node(to.dir).linked => None,
            Err(errno) => return Err(errno),
        };
        if self.is_within(to.dir, node) {
            return Err(Errno::EINVAL);
        }
        match replaced {
            None => {}
            Some(old) if old == node => {}
            Some(old) if from.dir != to.dir && self.is_within(from.dir, old) => return Err(Errno::ENOTEMPTY),
            Some(old) => match (self.is_directory(node), self.is_directory(old)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) if !self.names(old)?.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => {}
            },
        }
        Ok((node, replaced))
    }

    /// Returns true if a directory is `above` or somewhere below it.
    fn is_within(&self, mut dir: Id, above: Id) -> bool {
        loop {
            if dir == above {
                return true;
            }
            match &self.node(dir).body {
                Body::Directory(directory) if directory.parent != dir && self.node(dir).linked => {
                    dir = directory.parent;
                }
                _ => return false,
            }
        }
    }

    fn remove(&mut self, dir: Id, name: &[u8], id: Id) {
        let name = self.take_name(dir, name);
        self.node_mut(id).linked = false;
        if let Some(journal) = &mut self.journal {
            journal.renamed(Rename { node: id, from: Some((dir, name)), to: None, replaced: None });
        }
        self.drop_if_gone(id);
    }

    fn names_mut(&mut self, dir: Id) -> &mut Names {
        match &mut self.node_mut(dir).body {
            Body::Directory(directory) => &mut directory.names,
            Body::File(_) => unreachable!("a change looks up names in directories only"),
        }
    }

    fn take_name(&mut self, dir: Id, name: &[u8]) -> Name {
        self.names_mut(dir).remove_entry(name).expect("the name was just found").0
    }
}
