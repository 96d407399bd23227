//! `nilometer census`: a directory tree in numbers, without a name.

use std::{
    path::PathBuf,
    sync::atomic::Ordering,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use nilometer_report::{census_json, census_markdown, census_text};
use nilometer_storage::census::{HoleLook, census};

use crate::{Blame, Outcome, report::layout, signals::stop_on_signal, tell};

/// Count a directory tree: sizes, ages, depths, entries and owners, without a name
///
/// It opens no file, follows no symbolic link and enters no other file system. Its output has counts only, so
/// that you can hand it on. If it could not read a part of the tree, the exit code is 1.
#[derive(Debug, Args)]
pub(crate) struct CensusCommand {
    /// The first directory
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Open files without blocks, and ask the file system for holes: a file with holes is not on tape. On some
    /// file systems the question itself brings files back from tape
    #[arg(long)]
    holes: bool,
    /// Print the counts in this form
    #[arg(long, value_enum, default_value_t = CensusFormat::Text, value_name = "FORM")]
    format: CensusFormat,
}

/// The form of a census.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CensusFormat {
    /// A text for the terminal
    Text,
    /// Tables for a page in Markdown
    Markdown,
    /// One JSON object
    Json,
}

impl CensusCommand {
    pub(crate) fn execute(&self) -> Outcome {
        let stop = stop_on_signal().run()?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
        let holes = if self.holes { HoleLook::Opened } else { HoleLook::Never };
        let counted = census(&self.directory, now, holes, &stop);
        let counted = counted.with_context(|| self.directory.display().to_string()).input()?;
        if stop.load(Ordering::Relaxed) {
            return Err(anyhow!("it was interrupted: most of the tree may be missing")).run();
        }
        match self.format {
            CensusFormat::Text => tell::result_unchanged(census_text(&counted, layout())),
            CensusFormat::Markdown => tell::result_to_copy(census_markdown(&counted)),
            CensusFormat::Json => tell::json_result(format_args!("{}\n", census_json(&counted))),
        }
        if counted.is_partial() {
            return Err(anyhow!("a part of the tree could not be read: the counts are lower bounds")).run();
        }
        Ok(())
    }
}
