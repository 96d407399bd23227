//! The open files of an engine by slot. Directories are kept as the paths that the server knows. The table
//! checks names before a request and applies the server's answers.

use std::ffi::CString;

use nilometer_storage::{
    Errno, OpKind, Open, Operation, ROOT, Slot,
    engine::plain,
    listing::{self, Stat},
};

use crate::client::{NamedEntry, Reply, Request};

/// The content of each slot. Slot 0 is the run's directory.
#[derive(Debug)]
pub(crate) struct SlotTable<F> {
    slots: Vec<SlotContent<F>>,
}

/// The content of a slot.
#[derive(Debug)]
enum SlotContent<F> {
    Empty,
    File(RemoteFile<F>),
    Directory(RemoteListing),
}

/// An open file, and the mode in which it was opened.
#[derive(Debug)]
struct RemoteFile<F> {
    file: F,
    open: Open,
}

/// A directory. The server sends all names at once, and the table returns them in pieces.
#[derive(Debug)]
struct RemoteListing {
    path: String,
    entries: Option<Vec<NamedEntry>>,
    given: usize,
}

/// The longest name, the limit of most file systems.
const NAME_MAX: usize = 255;

/// The first step of an operation.
#[derive(Debug)]
pub(crate) enum Begun<'a, F> {
    /// The result is available without the server.
    Known(Result<u32, Errno>),
    /// The request for the server.
    Asked(Request<'a, F>),
}

impl<F> SlotTable<F> {
    /// Makes a table with at least one slot. The root's path is absolute, without a slash at its end.
    pub(crate) fn new(root: String, slots: u32) -> Self {
        let mut table: Vec<_> = (0..slots.max(1)).map(|_| SlotContent::Empty).collect();
        table[0] = SlotContent::Directory(RemoteListing::new(root));
        SlotTable { slots: table }
    }

    fn at(&self, slot: Slot) -> Result<&SlotContent<F>, Errno> {
        match self.slots.get(slot.0 as usize) {
            None | Some(SlotContent::Empty) => Err(Errno::EBADF),
            Some(content) => Ok(content),
        }
    }

    /// Returns the open file in a slot. For a directory it returns the error `of_directory`.
    fn file(&self, slot: Slot, of_directory: Errno) -> Result<&RemoteFile<F>, Errno> {
        match self.at(slot)? {
            SlotContent::File(file) => Ok(file),
            _ => Err(of_directory),
        }
    }

    /// Returns the path of a name in the directory that a slot holds.
    fn path(&self, dir: Slot, name: &[u8]) -> Result<CString, Errno> {
        let SlotContent::Directory(directory) = self.at(dir)? else { return Err(Errno::ENOTDIR) };
        below(&directory.path, name)
    }

    /// Begins an operation: returns the request for the server, or the result if no request is needed.
    pub(crate) fn begin(&mut self, operation: &mut Operation) -> Begun<'_, F> {
        match self.asked(operation) {
            Ok(begun) => begun,
            Err(errno) => Begun::Known(Err(errno)),
        }
    }

    fn asked(&mut self, operation: &mut Operation) -> Result<Begun<'_, F>, Errno> {
        let Operation { kind, file, .. } = *operation;
        match kind {
            OpKind::Nop => Ok(Begun::Known(Ok(0))),
            OpKind::List => self.list(file, &mut operation.buffer),
            OpKind::Close => self.close(file),
            OpKind::Read
            | OpKind::Write
            | OpKind::Sync
            | OpKind::SyncData
            | OpKind::Truncate
            | OpKind::Allocate => self.on_file(operation),
            _ => self.named(operation).map(Begun::Asked),
        }
    }

    fn on_file(&self, operation: &Operation) -> Result<Begun<'_, F>, Errno> {
        let Operation { kind, file, offset, .. } = *operation;
        let asked = |request| Ok(Begun::Asked(request));
        match kind {
            OpKind::Read => {
                let opened = self.file(file, Errno::EISDIR)?;
                if opened.open.reads() { asked(Request::Read(&opened.file)) } else { Err(Errno::EBADF) }
            }
            OpKind::Write => {
                let opened = self.file(file, Errno::EBADF)?;
                let end = offset.checked_add(operation.length.into());
                match end.filter(|end| i64::try_from(*end).is_ok()) {
                    _ if !opened.open.writes() => Err(Errno::EBADF),
                    None => Err(Errno::EINVAL),
                    Some(_) if operation.length == 0 => Ok(Begun::Known(Ok(0))),
                    Some(_) => asked(Request::Write(&opened.file)),
                }
            }
            OpKind::Truncate => {
                let opened = self.file(file, Errno::EINVAL)?;
                if opened.open.writes() { asked(Request::Truncate(&opened.file)) } else { Err(Errno::EINVAL) }
            }
            // No server can reserve space, and reserving none is invalid everywhere.
            OpKind::Allocate => {
                self.file(file, Errno::EBADF)?;
                Err(if offset == 0 { Errno::EINVAL } else { Errno::EOPNOTSUPP })
            }
            _ => match self.at(file)? {
                SlotContent::File(opened) => asked(Request::Sync(&opened.file)),
                // No protocol can sync a directory: names are as durable as the server makes them.
                _ => Ok(Begun::Known(Ok(0))),
            },
        }
    }

    fn named(&self, operation: &Operation) -> Result<Request<'_, F>, Errno> {
        let Operation { kind, file, dir, .. } = *operation;
        let path = self.path(dir, checked(operation)?)?;
        match kind {
            OpKind::Open(_) | OpKind::OpenDir if file == ROOT || file.0 as usize >= self.slots.len() => {
                Err(Errno::EBADF)
            }
            OpKind::Open(open) if open.is_direct() => Err(Errno::EINVAL),
            OpKind::Open(open) => Ok(Request::Open(path, open)),
            OpKind::OpenDir | OpKind::Stat => Ok(Request::Look(path)),
            OpKind::Unlink => Ok(Request::Unlink(path)),
            OpKind::RemoveDir => Ok(Request::RemoveDir(path)),
            OpKind::MakeDir => Ok(Request::MakeDir(path)),
            OpKind::Rename => {
                let second = operation.second_name();
                if !plain(second) {
                    return Err(Errno::EINVAL);
                }
                Ok(Request::Rename(path, self.path(file, second)?))
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn close(&mut self, slot: Slot) -> Result<Begun<'_, F>, Errno> {
        let place = self.slots.get_mut(slot.0 as usize).filter(|_| slot != ROOT).ok_or(Errno::EBADF)?;
        match std::mem::replace(place, SlotContent::Empty) {
            SlotContent::Empty => Err(Errno::EBADF),
            SlotContent::Directory(_) => Ok(Begun::Known(Ok(0))),
            SlotContent::File(opened) => Ok(Begun::Asked(Request::Close(opened.file))),
        }
    }

    fn list(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Begun<'_, F>, Errno> {
        self.at(slot)?;
        let SlotContent::Directory(listing) = &mut self.slots[slot.0 as usize] else {
            return Err(Errno::ENOTDIR);
        };
        if listing.entries.is_none() {
            let path = CString::new(listing.path.as_str()).map_err(|_| Errno::EINVAL)?;
            return Ok(Begun::Asked(Request::List(path)));
        }
        Ok(Begun::Known(listing.give(buffer)))
    }

    /// Applies an answer to the table, and returns the operation's result.
    pub(crate) fn settle(&mut self, operation: &mut Operation, reply: Reply<F>) -> Result<u32, Errno> {
        let slot = operation.file;
        match (operation.kind, reply) {
            (OpKind::Open(open), Reply::Opened(file)) => {
                self.slots[slot.0 as usize] = SlotContent::File(RemoteFile { file, open });
                Ok(0)
            }
            (OpKind::OpenDir, Reply::Entry(stat)) => {
                let path = self.path(operation.dir, checked(operation)?)?;
                if !stat.directory {
                    return Err(Errno::ENOTDIR);
                }
                let path = path.into_string().map_err(|_| Errno::EINVAL)?;
                self.slots[slot.0 as usize] = SlotContent::Directory(RemoteListing::new(path));
                Ok(0)
            }
            (OpKind::Stat, Reply::Entry(stat)) => {
                stat.put(&mut operation.buffer);
                Ok(Stat::BYTES as u32)
            }
            (OpKind::List, Reply::Entries(entries)) => {
                let SlotContent::Directory(listing) = &mut self.slots[slot.0 as usize] else {
                    return Err(Errno::EBADF);
                };
                listing.entries.get_or_insert(entries);
                listing.give(&mut operation.buffer)
            }
            (_, Reply::Done(bytes)) => Ok(bytes),
            _ => Err(Errno::EIO),
        }
    }
}

impl RemoteListing {
    fn new(path: String) -> Self {
        RemoteListing { path, entries: None, given: 0 }
    }

    /// Writes the next names into the buffer and returns their bytes, or 0 at the end.
    fn give(&mut self, buffer: &mut [u8]) -> Result<u32, Errno> {
        let left = &self.entries.as_deref().unwrap_or_default()[self.given..];
        let mut end = 0;
        let mut count = 0;
        for (name, kind) in left {
            let Some(next) = listing::append(buffer, end, name, *kind) else { break };
            end = next;
            count += 1;
        }
        self.given += count;
        if count == 0 && !left.is_empty() { Err(Errno::EINVAL) } else { Ok(end as u32) }
    }
}

/// Returns the path of a name, or of the directory itself if the name is `.`.
fn below(directory: &str, name: &[u8]) -> Result<CString, Errno> {
    let name = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
    let path = if name == "." { directory.to_owned() } else { format!("{directory}/{name}") };
    CString::new(if path.is_empty() { "/".to_owned() } else { path }).map_err(|_| Errno::EINVAL)
}

/// Returns the operation's name if it names an entry of the directory itself.
fn checked(operation: &Operation) -> Result<&[u8], Errno> {
    let end = operation.length as usize;
    let ended = operation.buffer.get(end) == Some(&0);
    let name = operation.buffer.get(..end).filter(|name| ended && plain(name) && !name.contains(&0));
    let name = name.ok_or(Errno::EINVAL)?;
    if name.len() > NAME_MAX { Err(Errno(libc::ENAMETOOLONG)) } else { Ok(name) }
}
