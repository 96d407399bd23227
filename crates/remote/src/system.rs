//! A server that keeps files, as all code above its client sees it.

use nilometer_model::{EngineKind, FileSystemSpace, StripeLayout, TargetDescription, TargetUrl};
use nilometer_storage::{Clock, Engine, EngineError, engine::Options};

use crate::files::{SLOTS, TargetFiles};

/// A server that keeps files. It makes engines on directories there; paths have the form of paths in URLs.
pub trait RemoteSystem: std::fmt::Debug + Send + Sync {
    /// Makes an engine on a directory for the calling thread. It ignores the kind of engine in the options,
    /// because only the client's library can reach the server.
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError>;

    /// Returns the free space at a path, or the reason why the server does not report it.
    fn space(&self, path: &str) -> Result<FileSystemSpace, String>;

    /// Describes the server and its capabilities without trying them, or says why it can't be reached.
    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String>;

    /// Sets the layout of files that the server's engines make from now on. Returns the layout read back from a
    /// file made at `path`, or the reason for a failure; see [`nilometer_storage::Target::lay_out`].
    fn lay_out(&self, path: &str, asked: &StripeLayout) -> Result<Option<StripeLayout>, String> {
        let _ = (path, asked);
        Ok(None)
    }

    /// Discards unfinished items in a directory that no listing shows, if the server has such items. The error
    /// says why one remains.
    fn forget_unfinished(&self, path: &str) -> Result<(), String> {
        let _ = path;
        Ok(())
    }
}

/// Opens the files in a directory, for one operation at a time.
pub(crate) fn files_at(system: &dyn RemoteSystem, path: &str) -> Result<TargetFiles, EngineError> {
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() };
    system.engine(path, &options).map(TargetFiles::new)
}
