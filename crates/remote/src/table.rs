//! The open files of an engine by slot, and directories as the paths that they are for a server: which names may be asked
//! for, and what an answer changes.

use std::ffi::CString;

use nilometer_storage::{
    Errno, OpKind, Open, Operation, ROOT, Slot,
    engine::plain,
    listing::{self, Stat},
};

use crate::client::{NamedEntry, Reply, Request};

/// What is in each slot; slot 0 is the run's directory.
#[derive(Debug)]
pub(crate) struct SlotTable<F> {
    slots: Vec<SlotContent<F>>,
}

/// What is in a slot.
#[derive(Debug)]
enum SlotContent<F> {
    Empty,
    File(RemoteFile<F>),
    Directory(RemoteListing),
}

/// An open file, and what it was opened for.
#[derive(Debug)]
struct RemoteFile<F> {
    file: F,
    open: Open,
}

/// A directory, of which all names come at once and are given out bit by bit.
#[derive(Debug)]
struct RemoteListing {
    path: String,
    entries: Option<Vec<NamedEntry>>,
    given: usize,
}

/// The longest name, as file systems have it.
const NAME_MAX: usize = 255;

/// What an operation comes to before a server is asked.
#[derive(Debug)]
pub(crate) enum Begun<'a, F> {
    /// It is known already.
    Known(Result<u32, Errno>),
    /// The server is asked.
    Asked(Request<'a, F>),
}

impl<F> SlotTable<F> {
    /// `slots` at least 1. The root's path is absolute, without a slash at its end.
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

    /// The open file in a slot; a directory is this error.
    fn file(&self, slot: Slot, of_directory: Errno) -> Result<&RemoteFile<F>, Errno> {
        match self.at(slot)? {
            SlotContent::File(file) => Ok(file),
            _ => Err(of_directory),
        }
    }

    /// The path of a name in the directory that is in a slot.
    fn path(&self, dir: Slot, name: &[u8]) -> Result<CString, Errno> {
        let SlotContent::Directory(directory) = self.at(dir)? else { return Err(Errno::ENOTDIR) };
        below(&directory.path, name)
    }

    /// What an operation is for the server.
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
            // No server reserves space: to reserve none makes no sense anywhere.
            OpKind::Allocate => {
                self.file(file, Errno::EBADF)?;
                Err(if offset == 0 { Errno::EINVAL } else { Errno::EOPNOTSUPP })
            }
            _ => match self.at(file)? {
                SlotContent::File(opened) => asked(Request::Sync(&opened.file)),
                // No protocol has it: names are as durable as the server makes them.
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

    /// What an answer comes to, and what it changes.
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

    /// The next names; 0 at the end.
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

/// The path of a name; the directory itself if it is `.`.
fn below(directory: &str, name: &[u8]) -> Result<CString, Errno> {
    let name = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
    let path = if name == "." { directory.to_owned() } else { format!("{directory}/{name}") };
    CString::new(if path.is_empty() { "/".to_owned() } else { path }).map_err(|_| Errno::EINVAL)
}

/// The operation's name, if it names an entry of the directory itself.
fn checked(operation: &Operation) -> Result<&[u8], Errno> {
    let end = operation.length as usize;
    let ended = operation.buffer.get(end) == Some(&0);
    let name = operation.buffer.get(..end).filter(|name| ended && plain(name) && !name.contains(&0));
    let name = name.ok_or(Errno::EINVAL)?;
    if name.len() > NAME_MAX { Err(Errno(libc::ENAMETOOLONG)) } else { Ok(name) }
}
