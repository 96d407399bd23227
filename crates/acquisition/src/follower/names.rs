//! Under which name the file of a chunk is, while the recorder may rename it and give its name to another.

use std::collections::BTreeMap;

use crate::journal::Entry;

/// The chunks of a lane, and the one that is opened or being read. A file is opened first and made sure of then: a journal
/// in which nothing is new after that says that no other chunk had the name.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By chunk: the numbers that its name may have, the last two that were noted.
    noted: BTreeMap<u64, Vec<Option<u32>>>,
    /// How many names of the file were tried in vain.
    tried: usize,
    /// The number in the name under which it was opened.
    opened_as: Option<u32>,
    /// What is open may be another chunk.
    doubt: bool,
    /// It is another.
    stale: bool,
}

impl Names {
    /// What is new in the journal.
    pub(super) fn note(&mut self, entry: Entry) {
        if let Entry::Chunk { file, number } = entry {
            let names = self.noted.entry(file).or_default();
            names.drain(..names.len().saturating_sub(1));
            names.push(number);
            self.tried = 0;
        }
    }

    /// The number in the name to be tried next.
    pub(super) fn number(&self, file: u64) -> Option<u32> {
        self.noted.get(&file)?.iter().rev().nth(self.tried).copied().flatten()
    }

    /// A file was opened under the name that was tried, or is not there. Whether that is to be made sure of.
    pub(super) fn opened(&mut self, file: u64, there: bool) -> bool {
        self.doubt = self.noted.contains_key(&file);
        if there {
            self.opened_as = self.number(file);
        } else {
            self.tried += 1;
        }
        self.doubt
    }

    /// The journal is to be looked at.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt
    }

    /// Another chunk than was meant is open.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// The journal has nothing new. Whether a file is open, or another name is to be tried.
    pub(super) fn make_sure(&mut self, file: u64, is_open: bool) -> bool {
        self.doubt = false;
        if is_open {
            self.stale = self.number(file) != self.opened_as;
            return true;
        }
        let more = self.noted.get(&file).is_some_and(|names| self.tried < names.len());
        self.tried = if more { self.tried } else { 0 };
        more
    }

    /// Nothing is open any more.
    pub(super) fn closed(&mut self) {
        (self.stale, self.tried) = (false, 0);
    }
}
