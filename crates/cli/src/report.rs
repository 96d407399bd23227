//! `nilometer report`: the report of a record.

use std::path::PathBuf;

use clap::Args;
use nilometer_analysis::report::terminal;

use crate::{Blame, Outcome};

/// Prints the report of a record
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record that `evaluate` wrote
    record: PathBuf,
}

impl Report {
    pub(crate) fn execute(&self) -> Outcome {
        print!("{}", terminal(&nilometer_record::read(&self.record).input()?));
        Ok(())
    }
}
