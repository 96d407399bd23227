//! The options of commands whose result is a document: its format, and a page.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::page_file;

/// The format of a result, and its page.
#[derive(Debug, Args)]
pub(crate) struct DocumentOptions {
    /// Print in this format
    #[arg(long, value_enum, default_value_t = DocumentFormat::Text, conflicts_with = "json")]
    format: DocumentFormat,
    /// The same as --format json
    #[arg(long)]
    json: bool,
    /// Write a page, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Lines for a terminal
    Text,
    /// Text for an issue or a document
    Markdown,
    /// JSON for programs
    Json,
}

impl DocumentOptions {
    /// The format, by either option.
    pub(crate) const fn format(&self) -> DocumentFormat {
        if self.json { DocumentFormat::Json } else { self.format }
    }

    /// The file of the page, if the user wants one.
    pub(crate) fn html(&self) -> Option<&Path> {
        self.html.as_deref()
    }

    /// Refuses a page that would replace another file.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        page_file::check_option(self.html())
    }
}
