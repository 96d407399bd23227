//! `nilometer describe`: describes the storage that is mounted at a path, and its abilities.

use std::path::Path;

use clap::Args;
use nilometer_model::{FileSystemKind, TargetAddress, TargetDescription, check_expected_count};
use nilometer_remote::{describe, describe_in_child};
use nilometer_report::units_in_keys;
use nilometer_storage::TargetError;

use crate::{Blame, Outcome, target_argument::target_argument, tell};

/// Describe the storage of a directory: type, servers, devices, layout, options, fullness and abilities
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Directories to describe, URLs (root://, nfs://, s3://, hdfs://), or `null:`
    #[arg(required = true, value_parser = target_argument())]
    targets: Vec<TargetAddress>,
    /// Refuse targets on other file systems. Give one type for all targets, or one for each, in their order:
    /// ext4, nfs, lustre and others; an unknown word lists them
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    expect: Vec<FileSystemKind>,
    /// Print JSON, one object a path
    #[arg(long)]
    json: bool,
    /// Print the form that processes of this program exchange
    #[arg(long, hide = true)]
    exchange: bool,
}

impl Describe {
    pub(crate) fn execute(&self) -> Outcome {
        check_expected_count(self.expect.len(), self.targets.len()).input()?;
        for (index, address) in self.targets.iter().enumerate() {
            if self.exchange {
                let description = describe(address).input()?;
                tell::json_result(format_args!("{}\n", serde_json::to_string(&description).run()?));
                continue;
            }
            let description = describe_in_child(address).input()?;
            if let Some(expected) = self.expect.get(index).or(self.expect.first()) {
                description.expect_kind(*expected).input()?;
            }
            if self.json {
                tell::json_result(format_args!(
                    "{}\n",
                    units_in_keys(serde_json::to_value(&description).run()?)
                ));
                continue;
            }
            // A mount may have any name, even with control characters.
            let text = tell::visible(&description.to_string());
            tell::result_line(format_args!("{}{text}", if index > 0 { "\n" } else { "" }));
        }
        Ok(())
    }
}

/// Describes the place of a recording: a directory or a URL.
pub(crate) fn described_place(path: &Path) -> anyhow::Result<TargetDescription> {
    Ok(describe_in_child(&TargetAddress::of_named(path)?)?)
}

/// Describes a path, without its symlinks: exports go into directories.
pub(crate) fn described_directory(path: &Path) -> Result<TargetDescription, TargetError> {
    describe_in_child(&path.into())
}

/// The path of a target that was described as a directory.
pub(crate) fn directory_of(description: &TargetDescription) -> &Path {
    description.directory().expect("it was described by its path")
}
