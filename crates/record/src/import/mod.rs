//! Imports results of other programs and of publications as a record like any other. It reads and checks all of
//! them before it writes anything.
//!
//! The content of a file determines its kind: JSON of fio, text, CSV or JSON of IOR, text of mdtest, CSV or
//! JSON of elbencho, the summary of IO500, or a table in tidy CSV. A job's log may hold several of them
//! ([`sections`]), and a directory of IO500 is one import ([`directory`]). docs/import.md lists the figures
//! taken from each.

mod agreement;
mod bandwidth;
mod dates;
mod directory;
mod elbencho;
mod fio;
mod fio_document;
mod fio_latency;
mod fio_runs;
mod gathered;
mod given_twice;
mod io500;
mod ior;
mod ior_json;
mod ior_test;
mod json_fault;
mod mdtest;
mod mdtest_table;
mod sections;
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
use nilometer_model::Moment;
use sections::{Kind, Section, Sections, divide};

/// Choices about the results to take and their names.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Name of the target, which replaces the names in files.
    pub target: Option<String>,
    /// Title of the record. By default it names the sources.
    pub title: Option<String>,
    /// Treats rows of a tidy CSV as one cell even if their parameters differ, because two sites described them
    /// differently.
    pub any_parameters: bool,
    /// Treats a standard error in a tidy CSV as an error over runs, so that its row counts as several repeats.
    /// By default it is over parts of one run, which do not show how much runs differ.
    pub errors_of_runs: bool,
    /// The date of results without one, such as rows of a table without a `date` column.
    pub date: Option<Moment>,
    /// The day whose results to take; `None` takes all. With a record for each day a table becomes a history.
    pub day: Option<Moment>,
}

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file can't be read.
    #[error("{path}: can't read it: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A line is invalid for its kind of file.
    #[error("{path}:{line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// The error in the line.
        why: String,
    },
    /// The file is of another kind, or has no results.
    #[error("{path}: {why}")]
    Whole {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        why: String,
    },
}

/// A parser's error about a line. The caller adds the file.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// The line's number from 1, or `None` if the error is about the whole file.
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

    /// The same fault in a text that has more lines above.
    fn below(self, lines: u64) -> Self {
        Fault { line: self.line.map(|line| line + lines), ..self }
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
    let mut given = Vec::new();
    for path in paths {
        let before = gathered.count() as u64 + gathered.given_again();
        let left_before = gathered.left_out().clone();
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        gathered.begin_file(given.contains(&whole));
        given.push(whole);
        if path.is_dir() {
            directory::take(path, &mut gathered)?;
        } else {
            take_file(path, &mut gathered)?;
        }
        if gathered.is_full() {
            let most = gathered::SAMPLES_MAX;
            return Err(Fault::whole(format!("more than {most} samples: split it")).in_file(path));
        }
        if gathered.count() as u64 + gathered.given_again() == before {
            let why = format!("it has no usable result{}", gathered.left_out_words(&left_before));
            return Err(Fault::whole(why).in_file(path));
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
    let text = utf8(begin).map_err(|fault| fault.in_file(path))?;
    parse(&text, gathered).map_err(|fault| fault.in_file(path))
}

/// The whole text of a small file.
fn text_of(path: &Path) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|source| ImportError::Unreadable { path: path.into(), source })?;
    utf8(bytes).map_err(|fault| fault.in_file(path))
}

fn utf8(bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count() as u64;
        Fault::at(line, NOT_TEXT)
    })
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

/// The kinds of files that import reads, for an error about another kind.
const KINDS: &str = "none of these: JSON of fio (--output-format=json), output of IOR (text, CSV or JSON), of mdtest, CSV or \
                     JSON of elbencho (--csvfile, --jsonfile), a summary of IO500 (result_summary.txt, result.txt), a tidy CSV \
                     (source,table,system,test,params,metric,value,...,unit,...)";

/// Takes the results of every program whose output is in the text.
fn parse(text: &str, gathered: &mut Gathered) -> Result<(), Fault> {
    let Sections { sections, others } = divide(text);
    if sections.is_empty() {
        return Err(none_of_these(&others));
    }
    // The documents of one run of fio may follow each other, and only the last of them is its result.
    let documents: Vec<&Section<'_>> = sections.iter().filter(|section| section.kind == Kind::Fio).collect();
    fio::parse(&documents, gathered)?;
    for section in &sections {
        parse_section(section, gathered).map_err(|fault| fault.below(section.lines_above))?;
    }
    for (program, count) in others {
        gathered.leave_out_many(format!("results of {program}, which import does not read"), count);
    }
    Ok(())
}

fn parse_section(section: &Section<'_>, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    match section.kind {
        Kind::Fio => Ok(()),
        Kind::Ior => ior::parse_text(section.text, gathered),
        Kind::IorCsv => ior::parse_csv(section.text, gathered),
        Kind::IorJson => ior_json::parse(section.text, gathered),
        Kind::Mdtest => mdtest::parse(section.text, gathered),
        Kind::Elbencho => elbencho::parse(section.text, gathered),
        Kind::ElbenchoJson => elbencho::parse_json(section.text, gathered),
        Kind::Io500 => io500::parse(section.text, gathered),
    }
}

fn none_of_these(others: &[(&'static str, u64)]) -> Fault {
    match others.first() {
        Some((program, _)) => Fault::whole(format!("results of {program}: {KINDS}")),
        None => Fault::whole(KINDS),
    }
}
