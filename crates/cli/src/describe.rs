//! `nilometer describe`: describes the storage that is mounted at a path, and its abilities.

use std::path::Path;

use clap::Args;
use nilometer_model::{FileSystemKind, TargetAddress, TargetDescription, check_expected_count};
use nilometer_remote::{describe, describe_in_child};
use nilometer_report::{described_html, described_markdown, described_text, units_in_keys};
use nilometer_storage::TargetError;

use crate::{
    Blame, Outcome,
    document_options::{DocumentFormat, DocumentOptions},
    page_file,
    report::line_layout,
    target_argument::target_argument,
    tell,
};

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
    #[command(flatten)]
    document: DocumentOptions,
    /// Print the form that processes of this program exchange
    #[arg(long, hide = true)]
    exchange: bool,
}

impl Describe {
    pub(crate) fn execute(&self) -> Outcome {
        check_expected_count(self.expect.len(), self.targets.len()).input()?;
        if self.exchange {
            return self.tell_exchanged();
        }
        self.document.check().input()?;
        let mut all = Vec::new();
        for (index, address) in self.targets.iter().enumerate() {
            let description = describe_in_child(address).input()?;
            if let Some(expected) = self.expect.get(index).or(self.expect.first()) {
                description.expect_kind(*expected).input()?;
            }
            self.tell(&description, index)?;
            all.push(description);
        }
        if self.document.format() == DocumentFormat::Markdown {
            tell::result_to_copy(described_markdown(&all));
        }
        page_file::write_option(self.document.html(), || described_html(&all)).run()
    }

    /// Prints a description at once: the storage of the next one may hang.
    fn tell(&self, description: &TargetDescription, index: usize) -> Outcome {
        match self.document.format() {
            DocumentFormat::Json => {
                let value = units_in_keys(serde_json::to_value(description).run()?);
                tell::json_result(format_args!("{value}\n"));
            }
            DocumentFormat::Text => {
                tell::result_unchanged(described_text(description, index == 0, line_layout()));
            }
            // `execute` prints all descriptions together.
            DocumentFormat::Markdown => {}
        }
        Ok(())
    }

    fn tell_exchanged(&self) -> Outcome {
        for address in &self.targets {
            let description = describe(address).input()?;
            tell::json_result(format_args!("{}\n", serde_json::to_string(&description).run()?));
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
