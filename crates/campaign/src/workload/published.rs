//! `visibility`: files that one process publishes, and the search for them by another. Each file is written and
//! read by one operation. Its bytes follow from a seed, so that the reader knows the right ones.

use std::collections::BTreeMap;

use nilometer_model::{FilesSeen, Nanos, Seed};
use nilometer_storage::{
    Buffer, Completion, Errno, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload,
};

const FILE: Slot = Slot(1);

/// A published file: its name, the way it is opened for writing, and the seed of its contents.
#[derive(Debug, Clone)]
pub struct PublishedFile {
    /// Its name in the run's directory.
    pub name: String,
    /// A new file, or one that is overwritten.
    pub open: Open,
    /// The seed of its contents.
    pub content: Seed,
}

/// Writes files, one after the other, each closed before the next is made.
#[derive(Debug)]
pub struct Publish {
    files: Vec<PublishedFile>,
    length: u32,
    buffer: Option<Buffer>,
    next: OpKind,
    /// The number of files that are closed.
    done: usize,
    closed: Option<Nanos>,
    failed: Option<Errno>,
}

impl Publish {
    /// Publishes files of `length` bytes each. The buffer must hold one of them, or a name.
    pub fn new(files: Vec<PublishedFile>, length: u32, buffer: Buffer) -> Self {
        let next = files.first().map_or(OpKind::Nop, |file| OpKind::Open(file.open));
        Publish { files, length, buffer: Some(buffer), next, done: 0, closed: None, failed: None }
    }

    /// The time at which the last one was closed, or the reason why none was. The errno of a short write is 0.
    ///
    /// # Errors
    /// The first operation that failed.
    pub fn closed(&self) -> Result<Nanos, Errno> {
        match (self.failed, self.closed) {
            (Some(errno), _) => Err(errno),
            (None, closed) => Ok(closed.unwrap_or_default()),
        }
    }
}

impl Workload for Publish {
    fn next(&mut self, now: Nanos) -> Step {
        let Some(file) = self.files.get(self.done).filter(|_| self.failed.is_none()) else {
            return Step::Done;
        };
        let Some(mut buffer) = self.buffer.take() else { return Step::Wait(Wait::ForOne) };
        let operation = match self.next {
            OpKind::Write => {
                file.content.stream().fill(&mut buffer[..self.length as usize]);
                Operation::write(FILE, 0, self.length, buffer)
            }
            OpKind::Open(_) => Operation::named(self.next, ROOT, FILE, file.name.as_bytes(), buffer),
            kind => Operation::on(kind, FILE, buffer),
        };
        Step::Issue(operation, now)
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { operation, result, finished, .. } = completion;
        self.buffer = Some(operation.buffer);
        match (operation.kind, result) {
            (_, Err(errno)) => self.failed = Some(errno),
            (OpKind::Open(_), Ok(_)) => self.next = OpKind::Write,
            (OpKind::Write, Ok(length)) if length == self.length => self.next = OpKind::Close,
            (OpKind::Write, Ok(_)) => self.failed = Some(Errno(0)),
            (_, Ok(_)) => {
                self.done += 1;
                self.closed = Some(finished);
                self.next = self.files.get(self.done).map_or(OpKind::Nop, |file| OpKind::Open(file.open));
            }
        }
    }
}

/// The latest time at which the file was missing, short or stale, by the time of the open; and the time at
/// which it was right.
#[derive(Debug, Clone, Copy, Default)]
struct Sight {
    missing: Option<Nanos>,
    short: Option<Nanos>,
    stale: Option<Nanos>,
    /// True if the file was there.
    found: bool,
    /// The time at which it was read whole and right.
    right: Option<Nanos>,
}

/// Looks for files until each was read whole and right.
///
/// With two files it first looks for the second, which was made after the first was closed. Once the second is
/// there, it looks at the first without delay; the first must then be whole and right.
#[derive(Debug)]
pub struct LookFor {
    files: Vec<PublishedFile>,
    sights: Vec<Sight>,
    length: u32,
    interval: Nanos,
    patience: Nanos,
    give_up: Option<Nanos>,
    /// The file to look at. The next two fields have the time of the open and the next operation.
    at: usize,
    opened: Nanos,
    next: OpKind,
    /// The next look is not issued before this time.
    due: Nanos,
    buffer: Option<Buffer>,
    out_of_order: bool,
    first_is_checked: bool,
    errors: BTreeMap<i32, u64>,
}

/// The observations of a process about some files.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// The counts.
    pub seen: FilesSeen,
    /// For each file that was seen, the time since the close of the last one.
    pub after: Vec<Nanos>,
    /// Operations that failed, by error number, except because the file is not there.
    pub errors: BTreeMap<i32, u64>,
}

impl LookFor {
    /// Looks for one file, or for two of which the first was closed before the second is made. A failed look is
    /// repeated after `interval`, for the time `patience` from the first look on.
    pub fn new(
        files: Vec<PublishedFile>,
        length: u32,
        interval: Nanos,
        patience: Nanos,
        buffer: Buffer,
    ) -> Self {
        assert!((1..=2).contains(&files.len()), "a look is for one or two files");
        let last = files.len() - 1;
        LookFor {
            sights: vec![Sight::default(); files.len()],
            files,
            length,
            interval,
            patience,
            give_up: None,
            at: last,
            opened: Nanos(0),
            next: OpKind::Open(Open::READ),
            due: Nanos(0),
            buffer: Some(buffer),
            out_of_order: false,
            first_is_checked: last == 0,
            errors: BTreeMap::new(),
        }
    }

    /// Returns the observations. The last file was closed at `closed` by this process's clock, to within
    /// `uncertainty`. If this process was `told` of the close, all its looks came after it, whatever the clocks
    /// say.
    pub fn looked(&self, closed: Nanos, uncertainty: Nanos, told: bool) -> Looked {
        let late = closed + uncertainty;
        let mut looked = Looked { errors: self.errors.clone(), ..Looked::default() };
        let seen = &mut looked.seen;
        seen.out_of_order = u64::from(self.out_of_order);
        for sight in &self.sights {
            let after = |at: Option<Nanos>| u64::from(at.is_some_and(|opened| told || opened > late));
            seen.files += 1;
            seen.missing += after(sight.missing);
            seen.short += after(sight.short);
            seen.stale += after(sight.stale);
            seen.never += u64::from(sight.right.is_none());
            looked.after.extend(sight.right.map(|right| right.since(closed)));
        }
        seen.longest = looked.after.iter().copied().max().unwrap_or_default();
        looked
    }

    /// The next file to look at; `None` if all were seen.
    fn wanted(&self) -> Option<usize> {
        let last = self.files.len() - 1;
        if self.sights[last].found && !self.first_is_checked {
            return Some(0);
        }
        (0..=last).rev().find(|&file| self.sights[file].right.is_none())
    }

    /// Records a look at a file; `right` is true if it was whole and right.
    fn looked_at(&mut self, right: bool, finished: Nanos) {
        let last = self.files.len() - 1;
        if self.at == 0 && !self.first_is_checked && self.sights[last].found {
            self.first_is_checked = true;
            self.out_of_order = !right;
        }
        // The look at the first file follows the one at the last without delay.
        let at_once = right || !self.first_is_checked && self.sights[last].found;
        self.due = if at_once { finished } else { finished + self.interval };
        self.next = OpKind::Open(Open::READ);
    }

    /// Compares the bytes read with the expected ones.
    fn judge(&mut self, result: Result<u32, Errno>, buffer: &Buffer, finished: Nanos) {
        let length = self.length as usize;
        let sight = &mut self.sights[self.at];
        match result {
            Err(Errno(errno)) => *self.errors.entry(errno).or_default() += 1,
            Ok(read) if (read as usize) < length => sight.short = Some(self.opened),
            Ok(_) => {
                let mut expected = vec![0; length];
                self.files[self.at].content.stream().fill(&mut expected);
                if buffer[..length] == expected[..] {
                    sight.right.get_or_insert(finished);
                } else {
                    sight.stale = Some(self.opened);
                }
            }
        }
    }
}

impl Workload for LookFor {
    fn next(&mut self, now: Nanos) -> Step {
        let give_up = *self.give_up.get_or_insert(now + self.patience);
        if self.buffer.is_none() {
            return Step::Wait(Wait::ForOne);
        }
        if let OpKind::Open(_) = self.next {
            let Some(wanted) = self.wanted().filter(|_| now < give_up) else { return Step::Done };
            if now < self.due {
                return Step::Wait(Wait::Until(self.due.min(give_up)));
            }
            (self.at, self.opened) = (wanted, now);
        }
        let Some(mut buffer) = self.buffer.take() else { return Step::Wait(Wait::ForOne) };
        let operation = match self.next {
            OpKind::Open(_) => {
                Operation::named(self.next, ROOT, FILE, self.files[self.at].name.as_bytes(), buffer)
            }
            OpKind::Read => {
                // Clear the bytes of an earlier look.
                buffer[..self.length as usize].fill(0);
                Operation::read(FILE, 0, self.length, buffer)
            }
            kind => Operation::on(kind, FILE, buffer),
        };
        Step::Issue(operation, now)
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { operation, result, finished, .. } = completion;
        match operation.kind {
            OpKind::Open(_) => match result {
                Ok(_) => {
                    self.sights[self.at].found = true;
                    self.next = OpKind::Read;
                }
                Err(errno) => {
                    if errno != Errno::ENOENT {
                        *self.errors.entry(errno.0).or_default() += 1;
                    }
                    self.sights[self.at].missing = Some(self.opened);
                    self.looked_at(false, finished);
                }
            },
            OpKind::Read => {
                self.judge(result, &operation.buffer, finished);
                self.next = OpKind::Close;
            }
            _ => {
                let right = self.sights[self.at].right.is_some();
                self.looked_at(right, finished);
            }
        }
        self.buffer = Some(operation.buffer);
    }
}
