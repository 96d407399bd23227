//! The reason why a plan can't be read, with its place.

/// A plan that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No valid TOML, or not of this shape; the source shows line, word and choices.
    #[error("{file}: {}", with_hint(source))]
    Written {
        /// The file as the user named it.
        file: String,
        /// The error, with its line and the valid names.
        source: Box<toml::de::Error>,
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

/// The error with its place. If a key is missing, it names the list of needed keys: serde stops at the first one.
fn with_hint(source: &toml::de::Error) -> String {
    let text = source.to_string();
    let text = text.trim_end();
    if source.message().starts_with("missing field") {
        format!("{text}\n`nilometer plan keys` shows all keys that the table needs")
    } else {
        text.to_owned()
    }
}
