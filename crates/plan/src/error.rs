//! The reason why a plan can't be read, with its place.

use nilometer_model::TomlError;

/// A plan that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No valid TOML, or not of this shape; the source shows line, word and choices.
    #[error("{file}: {}{source}", hint(source))]
    Written {
        /// The file as the user named it.
        file: String,
        /// The error, with its line and the valid names.
        source: TomlError,
    },
    /// A parameter that makes no sense.
    #[error("{file}:{line}: stage `{stage}`: {why}")]
    Parameter {
        /// The file as the user named it.
        file: String,
        /// The line of the stage's name.
        line: usize,
        /// The stage's name.
        stage: String,
        /// The error, with the valid values.
        why: String,
    },
    /// A value at the head of the plan that makes no sense.
    #[error("{file}: {why}")]
    Head {
        /// The file as the user named it.
        file: String,
        /// The error, with the valid values.
        why: String,
    },
    /// Criteria that make no sense.
    #[error("{file}{}: accept: {why}", line.map(|line| format!(":{line}")).unwrap_or_default())]
    Accept {
        /// The file as the user named it.
        file: String,
        /// The line that the error is in, if it is in one.
        line: Option<usize>,
        /// The error, with the valid values.
        why: String,
    },
    /// The plan measures nothing.
    #[error(
        "{file}: the plan has no stage: add a [[stage]] with a name and a workload, an ingest or a network"
    )]
    Empty {
        /// The file as the user named it.
        file: String,
    },
}

/// The list of needed keys, if one is missing: serde names the first one only.
fn hint(source: &TomlError) -> &'static str {
    if source.misses_key() {
        "a key is missing (`nilometer plan keys` shows all that a table needs): "
    } else {
        ""
    }
}
