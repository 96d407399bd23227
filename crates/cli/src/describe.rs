//! `nilometer describe`: what is mounted at a path, and what it can do.

use std::path::{Path, PathBuf};

use clap::Args;
use nilometer_model::{Nanos, TargetDescription};
use nilometer_storage::target::{probe, probe_in_child};

use crate::{Blame, Outcome, tell};

/// Says what is mounted at a path: file system, options, device, fullness, whether `O_DIRECT` is real
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Directories to describe
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print JSON, one object a path
    #[arg(long)]
    json: bool,
}

/// How long a file system may take to answer, or to make a directory.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(30_000);

impl Describe {
    pub(crate) fn execute(&self) -> Outcome {
        for (index, path) in self.paths.iter().enumerate() {
            if self.json {
                let description = probe(path).input()?;
                tell::result_line(serde_json::to_string(&description).run()?);
                continue;
            }
            let description = described(path).input()?;
            tell::result_line(format_args!("{}{description}", if index > 0 { "\n" } else { "" }));
        }
        Ok(())
    }
}

/// The file that this process runs, also when another one has its name by now.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Asks through a child process, because a hung file system never answers.
pub(crate) fn described(path: &Path) -> anyhow::Result<TargetDescription> {
    Ok(probe_in_child(Path::new(THIS_PROGRAM), path, PATIENCE)?)
}
