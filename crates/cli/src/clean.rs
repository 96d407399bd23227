//! `nilometer clean`: removes what a killed run left, and nothing else.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use nilometer_storage::target;

use crate::{Blame, Failure, Outcome};

/// Removes what killed runs left at a path, and nothing else
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Directories that were evaluated, or run directories themselves
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Clean {
    pub(crate) fn execute(&self) -> Outcome {
        let (mut removed, mut left) = (0, 0);
        for path in &self.paths {
            let cleaned = target::clean(path).input()?;
            for path in &cleaned.removed {
                println!("removed {}", path.display());
            }
            for error in &cleaned.left {
                eprintln!("nilometer: {error}");
            }
            removed += cleaned.removed.len();
            left += cleaned.left.len();
        }
        match (removed, left) {
            (0, 0) => println!("nothing to clean"),
            (_, 0) => {}
            _ => return Err(Failure::Run(anyhow!("left {left} that could not be proved to be ours"))),
        }
        Ok(())
    }
}
