//! `nilometer describe`: what is mounted at a path, and what it can do.

use std::path::Path;

use clap::Args;
use nilometer_model::{Nanos, TargetAddress, TargetDescription};
use nilometer_storage::target::{describe, describe_in_child};

use crate::{Blame, Outcome, tell};

/// Says what is mounted at a path: file system, options, device, fullness, whether `O_DIRECT` is real
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Directories to describe, or `null:`
    #[arg(required = true)]
    targets: Vec<TargetAddress>,
    /// Print JSON, one object a path
    #[arg(long)]
    json: bool,
}

/// How long a file system may take to answer, or to make a directory.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(30_000);

impl Describe {
    pub(crate) fn execute(&self) -> Outcome {
        for (index, address) in self.targets.iter().enumerate() {
            if self.json {
                let description = describe(address).input()?;
                tell::result_line(serde_json::to_string(&description).run()?);
                continue;
            }
            let description = described(address).input()?;
            tell::result_line(format_args!("{}{description}", if index > 0 { "\n" } else { "" }));
        }
        Ok(())
    }
}

/// The file that this process runs, also when another one has its name by now.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Asks through a child process, because a hung file system never answers.
pub(crate) fn described(address: &TargetAddress) -> anyhow::Result<TargetDescription> {
    Ok(describe_in_child(Path::new(THIS_PROGRAM), address, PATIENCE)?)
}

/// What is at a path, and the path without symlinks: recordings and exports go into directories.
pub(crate) fn described_directory(path: &Path) -> anyhow::Result<TargetDescription> {
    described(&path.into())
}

/// Where a target is that was described as a directory.
pub(crate) fn directory_of(description: &TargetDescription) -> &Path {
    description.directory().expect("it was described by its path")
}
