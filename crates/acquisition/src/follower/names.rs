//! Under which name the file of a frame is, while the recorder may rename a chunk and give its name to another.

/// The file that is opened or being read. One that may be renamed is opened first and made sure of then: a journal in
/// which nothing is new after that says that no other chunk had the name.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What it may be called by now, as it should be first.
    candidates: Vec<String>,
    /// How many of these were tried in vain.
    tried: usize,
    /// The name under which it was opened.
    opened_as: Option<String>,
    /// What is open may be another chunk.
    doubt: bool,
    /// It is another.
    stale: bool,
}

impl Names {
    /// What the file may be called, by what the journals say now.
    pub(super) fn update(&mut self, names: Vec<String>) {
        if self.candidates != names {
            self.candidates = names;
            self.tried = 0;
        }
    }

    /// The name to be tried next.
    pub(super) fn next(&self) -> Option<&String> {
        self.candidates.get(self.tried)
    }

    /// The file was opened under the name that was tried, or is not there. One that may be renamed is to be made sure of;
    /// another has one name, under which each of its frames is asked for.
    pub(super) fn opened(&mut self, there: bool, may_be_renamed: bool) {
        self.doubt = may_be_renamed;
        if there {
            self.opened_as = self.next().cloned();
        } else if may_be_renamed {
            self.tried += 1;
        }
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

    /// Nothing is open any more.
    pub(super) fn closed(&mut self) {
        self.stale = false;
        self.tried = 0;
    }
}
