//! The option `--mode` of commands that read recordings of other programs: it names frames that no header describes.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use nilometer_model::packets::VlbiMode;
use nilometer_recording::foreign::is_hdf5_file;

use crate::{lone_file, stored_at::StoredAt};

/// The frames of a file or capture, in the words of the user.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ForeignMode {
    /// Read frames of this mode from a file or a capture of another program, such as CODIF_8000-512-16-2
    /// [default: its headers tell it]
    #[arg(long, value_name = "MODE")]
    mode: Option<VlbiMode>,
}

impl ForeignMode {
    /// The only path of the command line, if it is an HDF5 file. No file with a mode is one.
    pub(crate) fn lone_file<'a>(&self, paths: &'a [PathBuf]) -> Option<&'a Path> {
        if self.mode.is_some() { None } else { lone_file::named_file(paths) }
    }

    /// Refuses a file that is no recording. The message has the advice `instead`.
    pub(crate) fn refuse_unknown_files(&self, paths: &[PathBuf], instead: &str) -> anyhow::Result<()> {
        match self.mode {
            Some(_) => lone_file::refuse_parts(paths),
            None => lone_file::refuse_unknown_files(paths, instead),
        }
    }

    /// The recordings at these paths.
    ///
    /// # Errors
    /// A mode of something that has its own, or a path that nobody can open.
    pub(crate) fn stored_at(&self, paths: &[PathBuf]) -> anyhow::Result<StoredAt> {
        let stored = StoredAt::named(paths)?;
        let Some(mode) = self.mode else { return Ok(stored) };
        if !stored.are_files() {
            bail!(
                "--mode {mode}: only a file of frames or a capture takes a mode: a recording with a journal states its \
                 format, so leave it out"
            );
        }
        if let Some(path) = paths.iter().find(|path| is_hdf5_file(path)) {
            bail!("--mode {mode}: {}: an HDF5 file states its format: leave it out", path.display());
        }
        Ok(stored.with_mode(mode))
    }
}
