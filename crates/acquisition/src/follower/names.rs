//! The name of a frame's file, while the recorder may rename a chunk and give its name to another.

/// The file that the follower opens or reads. If it may be renamed, the follower opens it first and reads the
/// journal afterwards. If the journal then has no new records, no other chunk had the name.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Its possible names, the most likely first.
    candidates: Vec<String>,
    /// Number of these tried in vain.
    tried: usize,
    /// The name under which the follower opened it.
    opened_as: Option<String>,
    /// True if the open file may be another chunk.
    doubt: bool,
    /// True if the open file is another chunk.
    stale: bool,
}

impl Names {
    /// Updates the possible names from the present state of the journals.
    pub(super) fn update(&mut self, names: Vec<String>) {
        if self.candidates != names {
            self.candidates = names;
            self.tried = 0;
        }
    }

    /// Returns the next name to try.
    pub(super) fn next(&self) -> Option<&String> {
        self.candidates.get(self.tried)
    }

    /// Records the result of opening the file under the name tried. If the file may be renamed, the journal
    /// must confirm the name. Otherwise it has only one name, which the follower tries anew for each of its
    /// frames.
    pub(super) fn opened(&mut self, there: bool, may_be_renamed: bool) {
        self.doubt = may_be_renamed;
        if there {
            self.opened_as = self.next().cloned();
        } else if may_be_renamed {
            self.tried += 1;
        }
    }

    /// Returns true if the follower must read the journal.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt
    }

    /// Returns true if another chunk than intended is open.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Records that the journal has no new records. Returns true if a file is open, or if there is another name
    /// to try.
    pub(super) fn make_sure(&mut self, is_open: bool) -> bool {
        self.doubt = false;
        if is_open {
            self.stale = self.next() != self.opened_as.as_ref();
            return true;
        }
        let more = self.next().is_some();
        self.tried = if more { self.tried } else { 0 };
        more
    }

    /// Records that the file was closed.
    pub(super) fn closed(&mut self) {
        self.stale = false;
        self.tried = 0;
    }
}
