//! What is shown of a file of the catalogue: what all `show` commands take alike.

use clap::Args;

/// Which one, and whether as it is written.
#[derive(Debug, Args)]
pub(crate) struct ShownFile {
    /// A name of the catalogue, or the path of a .toml file
    pub(crate) name: String,
    /// Print its file as it is written, to begin one of your own with
    #[arg(long)]
    pub(crate) toml: bool,
}
