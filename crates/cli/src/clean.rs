//! `nilometer clean`: removes what a killed run left, and nothing else.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nilometer_storage::target::{self, TargetError};

use crate::{Blame, Failure, Outcome, tell};

/// Removes what killed runs left at a path, and nothing else
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Directories that were evaluated, or run directories themselves
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Clean {
    pub(crate) fn execute(&self) -> Outcome {
        let (mut removed, mut left, mut in_use) = (0, 0, 0);
        for path in &self.paths {
            let cleaned = target::clean(path).input()?;
            for path in &cleaned.removed {
                tell::result_line(format_args!("removed {}", path.display()));
            }
            for error in &cleaned.left {
                tell::note(format_args!("nilometer: {error}"));
            }
            removed += cleaned.removed.len();
            let held = |error: &&TargetError| matches!(error, TargetError::InUse { .. });
            in_use += cleaned.left.iter().filter(held).count();
            left += cleaned.left.len();
        }
        match (removed, left - in_use) {
            (0, 0) if in_use == 0 => tell::result_line("nothing to clean"),
            (_, 0) if in_use == 0 => {}
            (_, 0) => {
                return Err(Failure::Run(anyhow!(
                    "left {in_use} in use: clean it when the campaign is over"
                )));
            }
            (_, left) => {
                return Err(Failure::Run(anyhow!("left {left} that could not be proved to be ours")));
            }
        }
        Ok(())
    }
}
