//! `nilometer clean`: removes what a killed run left, frees what a killed recording had reserved, and nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use nilometer_acquisition::free_reserved;
use nilometer_model::{Bytes, TargetAddress};
use nilometer_recording::reader::with_below;
use nilometer_remote::clean;
use nilometer_storage::TargetError;

use crate::{Blame, Failure, Outcome, tell};

/// Removes what killed runs left at a path, frees the space that killed recordings there had reserved behind their ends, and
/// nothing else: recordings stay
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Directories or URLs that were evaluated or recorded to, or run directories and recordings themselves
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Clean {
    pub(crate) fn execute(&self) -> Outcome {
        let (mut removed, mut left, mut in_use, mut freed) = (0, 0, 0, 0);
        for path in &self.paths {
            let address = TargetAddress::of_named(path).input()?;
            let cleaned = clean(&address).input()?;
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
            // On a server nothing is reserved.
            freed += if address.url().is_some() { 0 } else { free(path).run()? };
        }
        match (removed + freed, left - in_use) {
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

/// Frees what recordings at a path had reserved: of how many files.
fn free(path: &Path) -> anyhow::Result<usize> {
    let mut count = 0;
    // What was just removed is not there any more.
    for directory in with_below(&[path.to_path_buf()]).unwrap_or_default() {
        let freed = free_reserved(&directory);
        for (file, bytes) in
            freed.with_context(|| format!("can't free what {} had reserved", directory.display()))?
        {
            tell::result_line(format_args!(
                "freed {} behind the end of {}",
                Bytes(bytes),
                tell::visible(&file.display().to_string())
            ));
            count += 1;
        }
    }
    Ok(count)
}
