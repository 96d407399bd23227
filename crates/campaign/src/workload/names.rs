//! The names of a worker's files. All begin with `n_`; two workers share a name only on purpose.

use std::io::Write;

/// The file that all workers of a cell write together.
pub(super) const SHARED: &str = "n_shared";

/// The names of files that are moved one after the other.
#[derive(Debug, Clone)]
pub struct Names {
    stem: String,
    count: u32,
    /// The latest name returned by `name`; its memory is reused.
    last: Vec<u8>,
}

impl From<&str> for Names {
    /// The name of a single file.
    fn from(name: &str) -> Self {
        Names::new(name.into(), 1)
    }
}

impl Names {
    /// `stem` if there is one file; else `stem_f0`, `stem_f1`, ...
    pub fn new(stem: String, count: u32) -> Self {
        Names { stem, count, last: Vec::new() }
    }

    /// The number of names.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The name of this number.
    pub(super) fn name(&mut self, index: u32) -> &[u8] {
        let Names { stem, count, last } = self;
        last.clear();
        let written = if *count == 1 { write!(last, "{stem}") } else { write!(last, "{stem}_f{index}") };
        written.expect("a vector takes all");
        last
    }

    /// All names.
    pub fn all(mut self) -> impl Iterator<Item = String> {
        (0..self.count).map(move |index| String::from_utf8_lossy(self.name(index)).into_owned())
    }
}
