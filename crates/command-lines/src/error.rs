//! Errors of lines that can't be read.

/// The reason why a line can't be read, or has no counterpart here.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A word of the line, or of a file that it names.
    #[error("`{written}` ({place}): {why}")]
    Word {
        /// The word, with its value.
        written: String,
        /// `word 3`, or `jobs.fio, line 12`.
        place: String,
        /// The error, with the valid choices.
        why: String,
    },
    /// The whole line, or a value whose place the caller adds.
    #[error("{0}")]
    Whole(String),
    /// A file that the line names can't be read.
    #[error("{file}: {source}")]
    File {
        /// The file, and its role.
        file: String,
        /// The kernel's error.
        source: std::io::Error,
    },
}

impl LineError {
    /// An error about the whole line.
    pub(crate) fn whole(why: impl Into<String>) -> Self {
        LineError::Whole(why.into())
    }

    /// An error about a word at its place.
    pub(crate) fn word(written: &str, place: &str, why: impl Into<String>) -> Self {
        LineError::Word { written: written.to_owned(), place: place.to_owned(), why: why.into() }
    }
}
