//! The options `--mode` and `--port` of commands that read recordings of other programs. They name frames that no
//! header describes, and the packets of a capture.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use nilometer_model::packets::VlbiMode;
use nilometer_recording::foreign::{ForeignWish, is_hdf5_file};

use crate::{lone_file, stored_at::StoredAt};

/// The frames of a file or capture, in the words of the user.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ForeignMode {
    /// Read frames of this mode from a file or a capture of another program, such as CODIF_8000-512-16-2
    /// [default: its headers tell it]
    #[arg(long, value_name = "MODE")]
    mode: Option<VlbiMode>,
    /// Read only packets to this UDP port from a capture of another program [default: all
    /// ports]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// The advice for a file whose frames nothing shows.
const NAME_FRAMES: &str =
    "name frames of VDIF, Mark5B or CODIF by their mode, as in --mode VDIF_8000-4096-16-2";

impl ForeignMode {
    /// The only path of the command line, if it is an HDF5 file. No file with a mode is one.
    pub(crate) fn lone_file<'a>(&self, paths: &'a [PathBuf]) -> Option<&'a Path> {
        if self.wish().option().is_some() { None } else { lone_file::named_file(paths) }
    }

    /// Refuses a file that is no recording. The message has the advice `instead`.
    pub(crate) fn refuse_unknown_files(&self, paths: &[PathBuf], instead: &str) -> anyhow::Result<()> {
        match self.wish().option() {
            Some(_) => lone_file::refuse_parts(paths),
            None => lone_file::refuse_unknown_files(paths, &format!("{instead}; {NAME_FRAMES}")),
        }
    }

    /// The recordings at these paths.
    ///
    /// # Errors
    /// A mode of something that has its own, or a path that nobody can open.
    pub(crate) fn stored_at(&self, paths: &[PathBuf]) -> anyhow::Result<StoredAt> {
        let stored = StoredAt::named(paths)?;
        let wish = self.wish();
        let Some(option) = wish.option() else { return Ok(stored) };
        if !stored.are_files() {
            bail!(
                "{option}: only a file of frames or a capture takes it: a recording with a journal states its format, so leave \
                 it out"
            );
        }
        if let Some(path) = paths.iter().find(|path| is_hdf5_file(path)) {
            bail!("{option}: {}: an HDF5 file states its format: leave it out", path.display());
        }
        Ok(stored.with_wish(wish))
    }

    fn wish(&self) -> ForeignWish {
        let ForeignMode { mode, port } = *self;
        ForeignWish { mode, port }
    }
}
