//! Results of other programs and of publications, as a record like any other: they are read whole and checked before anything
//! is written.
//!
//! A file says by its contents what it is: JSON of fio, text, CSV or JSON of IOR, text of mdtest, CSV of elbencho, or a table in
//! tidy CSV. docs/import.md says what is taken of each.

mod bandwidth;
mod elbencho;
mod fio;
mod gathered;
mod ior;
mod mdtest;
mod stand_in;
mod table;
#[cfg(test)]
mod tests;
mod tidy;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use gathered::Gathered;
pub use gathered::ImportedResults;

/// What of files is taken, and what it is called.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// What was measured, instead of what files say.
    pub target: Option<String>,
    /// The title of the record, instead of where the results come from.
    pub title: Option<String>,
    /// Rows of a tidy CSV are of one cell whatever their parameters are: two sites wrote them in other words.
    pub any_parameters: bool,
    /// A standard error of a tidy CSV is over runs, so that its row stands for as many repeats; it is over parts of one run
    /// otherwise, which say nothing of how runs differ.
    pub errors_of_runs: bool,
}

/// Results that can't be taken.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file that can't be read.
    #[error("{path}: can't read it: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A line that is not what such a file has.
    #[error("{path}:{line}: {why}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A file of another kind, or with nothing in it.
    #[error("{path}: {why}")]
    Whole {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What a parser says of a line; the file is added outside.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// From 1; none where the fault is of the whole file.
    line: Option<u64>,
    why: String,
}

impl Fault {
    fn at(line: u64, why: impl Into<String>) -> Self {
        Fault { line: Some(line), why: why.into() }
    }

    fn whole(why: impl Into<String>) -> Self {
        Fault { line: None, why: why.into() }
    }

    fn in_file(self, path: &Path) -> ImportError {
        let Fault { line, why } = self;
        let path = path.to_owned();
        match line {
            Some(line) => ImportError::Line { path, line, why },
            None => ImportError::Whole { path, why },
        }
    }
}

/// Larger files are not results of a person's benchmarks.
const BYTES_MAX: u64 = 1 << 30;

/// All results of these files, as one record would hold them.
pub fn import(paths: &[PathBuf], options: &ImportOptions) -> Result<ImportedResults, ImportError> {
    let mut gathered = Gathered::new(options);
    for path in paths {
        let before = gathered.count();
        take_file(path, &mut gathered)?;
        if gathered.is_full() {
            let most = gathered::SAMPLES_MAX;
            return Err(Fault::whole(format!("more than {most} samples: split it")).in_file(path));
        }
        if gathered.count() == before {
            return Err(Fault::whole("it has no result that can be taken").in_file(path));
        }
    }
    Ok(gathered.finish(paths))
}

/// Bytes at the beginning of a file in which the header of a table must stand.
const HEADER_MOST: u64 = 64 << 10;

/// The fault of a file, or of a row, that is not text.
const NOT_TEXT: &str = "not UTF-8 text";

/// Takes the results of one file. It reads a tidy CSV row by row, and files of other kinds whole: they are small.
fn take_file(path: &Path, gathered: &mut Gathered<'_>) -> Result<(), ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: path.into(), source };
    let mut file = open(path)?.take(BYTES_MAX);
    let mut begin = Vec::new();
    file.by_ref().take(HEADER_MOST).read_to_end(&mut begin).map_err(unreadable)?;
    if tidy::is_header(&String::from_utf8_lossy(first_line(&begin))) {
        return tidy::parse(begin.as_slice().chain(file), gathered).map_err(|fault| fault.in_file(path));
    }
    file.read_to_end(&mut begin).map_err(unreadable)?;
    let text = String::from_utf8(begin).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count() as u64;
        Fault::at(line, NOT_TEXT).in_file(path)
    })?;
    parse(&text, gathered).map_err(|fault| fault.in_file(path))
}

/// A file whose results may be taken.
fn open(path: &Path) -> Result<File, ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Fault::whole("not a regular file").in_file(path));
    }
    if metadata.len() > BYTES_MAX {
        return Err(Fault::whole("larger than 1 GiB: split it").in_file(path));
    }
    Ok(file)
}

/// The first line that is not empty.
fn first_line(begin: &[u8]) -> &[u8] {
    let mut lines = begin.split(|byte| *byte == b'\n');
    lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default()
}

/// What the choice is, for a file that is none of it.
const KINDS: &str = "none of these: JSON of fio (--output-format=json), output of IOR (text, CSV or JSON), of mdtest, CSV of \
                     elbencho (--csvfile), a tidy CSV (source,table,system,test,params,metric,value,...,unit,...)";

fn parse(text: &str, gathered: &mut Gathered) -> Result<(), Fault> {
    let has = |part: &str| text.contains(part);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if elbencho::is_header(first) {
        return elbencho::parse(text, gathered);
    }
    if ior::is_csv(first) {
        return ior::parse_csv(text, gathered);
    }
    if has("\"fio version\"") {
        return fio::parse(text, gathered);
    }
    if ior::is_json(text) {
        return ior::parse_json(text, gathered);
    }
    if has("IOR-") && has("MPI Coordinated Test of Parallel I/O") {
        return ior::parse_text(text, gathered);
    }
    if has("mdtest-") && has("was launched with") {
        return mdtest::parse(text, gathered);
    }
    Err(Fault::whole(KINDS))
}
