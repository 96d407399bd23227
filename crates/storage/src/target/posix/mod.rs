//! A directory on any mounted file system.

mod cache;
mod clean;
mod directory;
mod engine_trial;
mod features;
mod joined;
mod layers;
mod mounts;
mod probe;
mod recognise;
mod run_directory;
mod stripe;
mod systems;
mod tool;
mod traffic;

pub use clean::{Cleaned, Holder, clean, in_use};
pub use directory::Directory;
pub(crate) use mounts::{Mount, mount_table};
pub use probe::{describe_in_child, probe};
pub use run_directory::{OURS, SharedRun, name as run_name, well_named as is_run_name};

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use nilometer_model::{
    BlockLayer, Bytes, Coldness, DeviceTraffic, FileSystemSpace, StripeControl, StripeLayout,
    TargetDescription,
};
use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::retry_on_intr,
};

use super::{Target, TargetError};
use crate::engine::{self, Engine, EngineError, Options, Reach};
use run_directory::RunDirectory;
use stripe::{kept_beside, layout, restore_layout, set_layout};

/// Returns the block device of this name, with all devices below it; `None` if it does not exist.
pub(crate) fn block_device(name: &str) -> Option<BlockLayer> {
    layers::device_of_name(Path::new("/sys"), name)
}

/// The run's own directory below the path under test. Dropping the target removes it.
#[derive(Debug)]
pub struct Posix {
    description: TargetDescription,
    run: RunDirectory,
    source: Option<Source>,
    /// The layout before the first change.
    default_layout: OnceLock<StripeLayout>,
}

/// The target that copies come from.
#[derive(Debug)]
struct Source {
    target: Arc<dyn Target>,
    directory: OwnedFd,
}

impl Posix {
    /// Makes the run's directory at the described path. `id` tells it from those of other runs.
    pub fn create(description: TargetDescription, id: u64) -> Result<Self, TargetError> {
        let run = RunDirectory::create(directory_of(&description)?, id)?;
        Ok(Posix { description, run, source: None, default_layout: OnceLock::new() })
    }

    /// Works in the run's directory that another process of the campaign made at the described path. Dropping
    /// this target leaves the directory in place, and only its maker clears it.
    pub fn join(description: TargetDescription, shared: &SharedRun) -> Result<Self, TargetError> {
        let run = RunDirectory::join(directory_of(&description)?, shared)?;
        Ok(Posix { description, run, source: None, default_layout: OnceLock::new() })
    }

    /// The same for a run that another process made for this one alone: this process may clear it.
    #[must_use]
    pub fn for_itself(self) -> Self {
        Posix { run: self.run.for_itself(), ..self }
    }

    /// Lets engines also read the files in the run directory of `source`, by [`crate::SOURCE`]. Clearing or
    /// removing this target also clears or removes `source`.
    pub fn with_source(self, source: Posix) -> Result<Self, TargetError> {
        let io = |source_error| TargetError::Io {
            path: source.directory().into(),
            action: "open",
            source: source_error,
        };
        let directory = source.run.descriptor().map_err(io)?;
        Ok(Posix { source: Some(Source { target: Arc::new(source), directory }), ..self })
    }

    /// The path at which [`Posix::create`] makes the run's directory.
    pub fn run_directory(path: &Path, id: u64) -> PathBuf {
        path.join(run_directory::name(id))
    }

    /// The run's directory.
    pub fn directory(&self) -> &Path {
        self.run.path()
    }

    fn layout_of_new_file(&self, control: StripeControl) -> Result<StripeLayout, TargetError> {
        layout_of_new_file(control, self.run.root(), self.run.path())
    }
}

impl Target for Posix {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let setup = |source| EngineError::Setup {
            engine: options.kind.name(),
            what: "open the run's directory",
            source,
        };
        let source = self.source.as_ref().map(|source| source.directory.try_clone()).transpose();
        let root = self.run.descriptor().map_err(setup)?;
        engine::on_directory(Reach { root, source: source.map_err(setup)? }, options)
    }

    fn directory(&self) -> Option<&Path> {
        Some(self.run.path())
    }

    fn source(&self) -> Option<&Arc<dyn Target>> {
        self.source.as_ref().map(|source| &source.target)
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        space(directory_of(&self.description)?)
    }

    fn share(&self) -> Result<Option<SharedRun>, TargetError> {
        self.run.share().map(Some)
    }

    fn chill(&self, name: &str) -> Result<Coldness, TargetError> {
        chilled(self.run.root(), self.run.path(), name, &self.description)
    }

    fn drop_caches(&self) -> Result<bool, TargetError> {
        if self.description.is_memory() {
            return Ok(false);
        }
        cache::drop_all(self.run.root()).map_err(TargetError::io(self.run.path(), "drop the caches of"))
    }

    fn traffic(&self) -> Option<DeviceTraffic> {
        device_traffic(&self.description)
    }

    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        let Some(control) = self.description.striping else { return Ok(None) };
        let asked = control.choosable(asked);
        let unchanged = self.default_layout.get().is_none();
        if unchanged && asked == StripeLayout::default() {
            return Ok(None);
        }
        if unchanged {
            // If two calls race, only the first value stays; both read the same.
            let before = layout_in_force(control, self.run.root(), self.run.path())?;
            self.default_layout.set(before).ok();
        }
        if asked == StripeLayout::default()
            && restore_layout(control, directory_of(&self.description)?, self.run.path())?
        {
            return self.layout_of_new_file(control).map(Some);
        }
        let before = control.choosable(self.default_layout.get().unwrap_or(&StripeLayout::default()));
        let before = kept_beside(control, &asked, before);
        set_layout(control, self.run.path(), &asked.or(before))?;
        self.layout_of_new_file(control).map(Some)
    }

    fn clear(&self) -> Result<(), TargetError> {
        let sources = self.source.as_ref().map_or(Ok(()), |source| source.target.clear());
        self.run.clear().and(sources)
    }

    fn clear_copies(&self) -> Result<(), TargetError> {
        self.run.clear()
    }

    fn remove(&self) -> Result<(), TargetError> {
        let sources = self.source.as_ref().map_or(Ok(()), |source| source.target.remove());
        self.run.remove().and(sources)
    }
}

/// Returns the layout of new files in a directory, which may not report a layout it inherits.
fn layout_in_force(
    control: StripeControl,
    root: BorrowedFd<'_>,
    directory: &Path,
) -> Result<StripeLayout, TargetError> {
    match layout(control, directory)? {
        nothing if nothing == StripeLayout::default() => layout_of_new_file(control, root, directory),
        found => Ok(found),
    }
}

/// A file that is made only to read back its layout.
const LAYOUT_FILE: &str = "n_layout";

/// Returns the real layout of a new file, since systems report the requested one for a directory. One byte
/// gives it chunks.
fn layout_of_new_file(
    control: StripeControl,
    root: BorrowedFd<'_>,
    directory: &Path,
) -> Result<StripeLayout, TargetError> {
    let path = directory.join(LAYOUT_FILE);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(root, LAYOUT_FILE, flags, Mode::RUSR | Mode::WUSR);
    let file = retry_on_intr(open).map_err(TargetError::io(&path, "make"))?;
    let written = retry_on_intr(|| rustix::io::pwrite(&file, b"5", 0))
        .and_then(|_| retry_on_intr(|| rustix::fs::fsync(&file)));
    let found = written.map_err(TargetError::io(&path, "write")).and_then(|()| layout(control, &path));
    rustix::fs::unlinkat(root, LAYOUT_FILE, AtFlags::empty()).map_err(TargetError::io(&path, "remove"))?;
    found
}

/// Returns the directory of a target that has one.
fn directory_of(description: &TargetDescription) -> Result<&Path, TargetError> {
    let is_none = || TargetError::NotADirectory { path: description.address.to_string().into() };
    description.directory().ok_or_else(is_none)
}

/// The traffic of the device below.
fn device_traffic(description: &TargetDescription) -> Option<DeviceTraffic> {
    traffic::of_device(Path::new("/sys"), description.device.as_ref()?)
}

/// Returns the size and free space at a path.
fn space(path: &Path) -> Result<FileSystemSpace, TargetError> {
    let stat = rustix::fs::statvfs(path).map_err(TargetError::io(path, "ask for the free space of"))?;
    let counted = counts_inodes(stat.f_files, stat.f_favail);
    Ok(FileSystemSpace {
        size: Bytes(stat.f_blocks * stat.f_frsize),
        free: Bytes(stat.f_bavail * stat.f_frsize),
        // Excludes space that is reserved for the system.
        used: Some(Bytes((stat.f_blocks - stat.f_bfree) * stat.f_frsize)),
        inodes: counted.then_some(stat.f_files),
        free_inodes: counted.then_some(stat.f_favail),
    })
}

/// Returns true if the inode numbers of `statvfs` are counts. btrfs makes inodes as needed and reports 0;
/// ceph-fuse reports -1.
fn counts_inodes(all: u64, free: u64) -> bool {
    all > 0 && i64::try_from(all).is_ok() && free <= all
}

/// Drops the file of this name, in a directory on described storage, from the cache of this machine
/// ([`Target::chill`]).
fn chilled(
    directory: impl AsFd,
    path: &Path,
    name: &str,
    description: &TargetDescription,
) -> Result<Coldness, TargetError> {
    let path = path.join(name);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(&directory, name, flags, Mode::empty());
    let file = retry_on_intr(open).map_err(TargetError::io(&path, "open"))?;
    let resident = cache::drop_pages(&file).map_err(TargetError::io(&path, "drop the cache of"))?;
    Ok(match resident {
        _ if description.has_a_cache_of_its_own() => Coldness::NotProvable,
        0 => Coldness::Proved,
        _ => Coldness::Contradicted,
    })
}
