//! The arguments that all `show` commands of the catalogues share.

use clap::Args;

/// The name of a file, and the form in which to print it.
#[derive(Debug, Args)]
pub(crate) struct ShownFile {
    /// A name of the catalogue, or the path of a .toml file
    pub(crate) name: String,
    /// Print its file unchanged, to start your own from
    #[arg(long)]
    pub(crate) toml: bool,
}
