//! Directories on a server as targets: that of a run, that of a recording, and one that is only read.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use nilometer_model::{
    Capability, EngineKind, FileSystemSpace, StripeLayout, TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{
    Clock, Engine, EngineError, Errno, PATIENCE, Target, TargetError,
    engine::Options,
    in_time,
    target::{KeptDirectory, run_name},
};

use crate::{
    files::{Place, SLOTS, TargetFiles},
    run::{self, RunKept},
};

/// A server that keeps files: it makes engines on directories there. Paths are as those of URLs are.
pub trait RemoteSystem: std::fmt::Debug + Send + Sync {
    /// An engine for the calling thread on a directory, whatever engine the options name: the client's library knows how.
    fn engine(&self, path: &str, options: &Options) -> Result<Box<dyn Engine>, EngineError>;

    /// Free space at a path, now; in words why that is not known.
    fn space(&self, path: &str) -> Result<FileSystemSpace, String>;

    /// What the server is and what it can do, without a try: in words why it can't be reached.
    fn description(&self, url: &TargetUrl) -> Result<TargetDescription, String>;

    /// Files that are made from now on by its engines are laid out so, and how that comes out, as read back from one that is made
    /// at a path: see [`Target::lay_out`]. In words why it can't be.
    fn lay_out(&self, path: &str, asked: &StripeLayout) -> Result<Option<StripeLayout>, String> {
        let _ = (path, asked);
        Ok(None)
    }

    /// Throws away what was begun in a directory and is in no listing, where a server has such things: in words why it stays.
    fn forget_unfinished(&self, path: &str) -> Result<(), String> {
        let _ = path;
        Ok(())
    }
}

/// Files in a directory, one operation after the other.
pub(crate) fn files_at(system: &dyn RemoteSystem, path: &str) -> Result<TargetFiles, EngineError> {
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() };
    system.engine(path, &options).map(TargetFiles::new)
}

/// Something that did not work on a place, as an error.
pub(crate) fn failed(place: &TargetUrl, action: &'static str) -> impl FnOnce(Errno) -> TargetError {
    let place = place.to_string();
    move |errno| TargetError::Io { path: place.into(), action, source: errno.into() }
}

/// An engine that can't be made is a server that is not reached.
pub(crate) fn unreached(place: &TargetUrl) -> impl FnOnce(EngineError) -> TargetError {
    let place = place.to_string();
    move |error| TargetError::Client { place, action: "use", why: error.to_string() }
}

/// Why a run's directory stays, as an error.
pub(crate) fn kept(place: &TargetUrl, why: RunKept) -> TargetError {
    let path: PathBuf = place.to_string().into();
    match why {
        RunKept::InUse(process) => TargetError::InUse { path, process: Some(process) },
        RunKept::NotOurs(why) => TargetError::NotOurs { path, why },
        RunKept::Left(why) => TargetError::Kept { path, why },
    }
}

/// A directory of our own below the place under test. It is removed when the target is dropped.
#[derive(Debug)]
pub(crate) struct RemoteTarget {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    url: TargetUrl,
    name: String,
    is_there: Mutex<bool>,
}

impl RemoteTarget {
    /// Makes the run's directory at the described place. `id` tells it from those of other runs.
    pub(crate) fn create(
        system: Arc<dyn RemoteSystem>,
        description: TargetDescription,
        id: u64,
    ) -> Result<Self, TargetError> {
        let url = url_of(&description)?;
        let name = run_name(id);
        let above = files_at(system.as_ref(), &url.path).map_err(unreached(&url))?;
        run::make(&above, &name).map_err(failed(&url.join(&name), "make the directory"))?;
        Ok(RemoteTarget { description, system, url, name, is_there: Mutex::new(true) })
    }

    fn place(&self) -> TargetUrl {
        self.url.join(&self.name)
    }
}

/// The URL of a target that has one.
pub(crate) fn url_of(description: &TargetDescription) -> Result<TargetUrl, TargetError> {
    let is_none = || TargetError::NotADirectory { path: description.address.to_string().into() };
    description.address.url().cloned().ok_or_else(is_none)
}

/// A server that hangs is given up.
fn space_of(system: &Arc<dyn RemoteSystem>, url: &TargetUrl) -> Result<FileSystemSpace, TargetError> {
    let action = "ask for the free space of";
    let place = url.to_string();
    let system = system.clone();
    let path = url.path.clone();
    in_time(PATIENCE, place.clone().into(), move || system.space(&path))?.map_err(|why| TargetError::Client {
        place,
        action,
        why,
    })
}

impl Target for RemoteTarget {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        self.system.engine(&self.place().path, options)
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        space_of(&self.system, &self.url)
    }

    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        let place = self.place();
        let failed = |why| TargetError::Client { place: place.to_string(), action: "lay out files on", why };
        self.system.lay_out(&place.path, asked).map_err(failed)
    }

    fn clear(&self) -> Result<(), TargetError> {
        let place = self.place();
        run::clear(self.system.as_ref(), &place.path).map_err(|why| kept(&place, why))
    }

    fn remove(&self) -> Result<(), TargetError> {
        let mut is_there = self.is_there.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_there {
            return Ok(());
        }
        run::remove(self.system.as_ref(), &self.url.path, &self.name)
            .map_err(|why| kept(&self.place(), why))?;
        *is_there = false;
        Ok(())
    }
}

impl Drop for RemoteTarget {
    fn drop(&mut self) {
        // Whoever needs to know calls `remove`; what is left here is left to `nilometer clean`.
        drop(self.remove());
    }
}

/// Makes a directory that is not there.
fn make_new(files: &TargetFiles, url: &TargetUrl, name: &str) -> Result<(), TargetError> {
    let action = "make the directory";
    match files.stat(Place::root(name)) {
        Ok(_) => Err(failed(url, action)(Errno::EEXIST)),
        Err(Errno::ENOENT) => files.make_dir(Place::root(name)).map_err(failed(url, action)),
        // Whether it is there is not known: what is in it may be somebody's.
        Err(errno) => Err(failed(url, action)(errno)),
    }
}

/// A file beside a directory that is being made, where the server would make one twice: it makes no file twice, so that of two
/// recorders that begin at the same moment one has the name.
struct DirectoryClaim<'a> {
    files: &'a TargetFiles,
    name: String,
}

impl<'a> DirectoryClaim<'a> {
    fn take(files: &'a TargetFiles, above: &TargetUrl, name: &str) -> Result<Self, TargetError> {
        let name = format!(".{name}.claim");
        match files.write_new(Place::root(&name), b"A recorder is making the directory of this name.\n") {
            Ok(()) => Ok(DirectoryClaim { files, name }),
            Err(Errno::EEXIST) => Err(TargetError::Client {
                place: above.join(&name).to_string(),
                action: "make",
                why: "another recorder is making the directory of this name, or was killed while it did: if none runs, \
                      remove this file"
                    .into(),
            }),
            Err(errno) => {
                // On a full server it may be there, empty. If this fails too, the first error says why.
                files.unlink(Place::root(&name)).ok();
                Err(failed(&above.join(&name), "make")(errno))
            }
        }
    }

    fn give_back(self) {
        // What stays is named by whoever wants the name next.
        self.files.unlink(Place::root(&self.name)).ok();
    }
}

/// A new directory for files that stay: what a recording writes is the user's.
#[derive(Debug)]
pub(crate) struct RemoteDirectory {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    above: TargetUrl,
    name: String,
    path: PathBuf,
}

impl RemoteDirectory {
    /// Makes the directory of this name at the described place; it must not exist.
    pub(crate) fn create(
        system: Arc<dyn RemoteSystem>,
        description: TargetDescription,
        name: &str,
    ) -> Result<Self, TargetError> {
        let above = url_of(&description)?;
        let url = above.join(name);
        let files = files_at(system.as_ref(), &above.path).map_err(unreached(&above))?;
        if description.capabilities.has(Capability::StrictNames) {
            make_new(&files, &url, name)?;
        } else {
            let claim = DirectoryClaim::take(&files, &above, name)?;
            let made = make_new(&files, &url, name);
            claim.give_back();
            made?;
        }
        let path = url.to_string().into();
        Ok(RemoteDirectory { description, system, above, name: name.into(), path })
    }

    fn url(&self) -> TargetUrl {
        self.above.join(&self.name)
    }

    fn files(&self, url: &TargetUrl) -> io::Result<TargetFiles> {
        files_at(self.system.as_ref(), &url.path).map_err(io::Error::other)
    }

    fn stays(&self) -> TargetError {
        let why = "a recording stays until its user removes it".into();
        TargetError::Kept { path: self.path.clone(), why }
    }
}

fn as_io(errno: Errno) -> io::Error {
    errno.into()
}

impl KeptDirectory for RemoteDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let files = self.files(&self.url())?;
        if files.stat(Place::root(name)).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let partial = format!(".{name}.{}.partial", std::process::id());
        if !self.description.capabilities.has(Capability::Rename) {
            // What has no other names for a file puts it whole.
            return files.write_new(Place::root(name), bytes).map_err(as_io);
        }
        let written = files.write_new(Place::root(&partial), bytes);
        let named = written.and_then(|()| files.rename(&partial, name));
        named.map_err(|errno| {
            files.unlink(Place::root(&partial)).ok();
            as_io(errno)
        })
    }

    fn remove_unused(&self, names: &[String]) -> Result<(), TargetError> {
        let url = self.url();
        let files = files_at(self.system.as_ref(), &self.above.path).map_err(unreached(&url))?;
        for name in names {
            match files.unlink(Place::within(&self.name, name)) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(errno) => return Err(failed(&url.join(name), "remove")(errno)),
            }
        }
        files.remove_dir(Place::root(&self.name)).map_err(failed(&url, "remove"))
    }
}

impl Target for RemoteDirectory {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        self.system.engine(&self.url().path, options)
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        space_of(&self.system, &self.above)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }
}

/// A directory that is there, for those who only read it.
#[derive(Debug)]
pub(crate) struct ReadDirectory {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    url: TargetUrl,
}

impl ReadDirectory {
    /// What is there is looked at by whoever reads it.
    pub(crate) fn at(system: Arc<dyn RemoteSystem>, url: TargetUrl) -> Result<Self, TargetError> {
        let why = |why| TargetError::Client { place: url.to_string(), action: "reach", why };
        let description = system.description(&url).map_err(why)?;
        let description =
            TargetDescription { address: TargetAddress::Url(url.clone()), writable: false, ..description };
        Ok(ReadDirectory { description, system, url })
    }

    fn stays(&self) -> TargetError {
        TargetError::Kept { path: self.url.to_string().into(), why: "it is only read".into() }
    }
}

impl Target for ReadDirectory {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        self.system.engine(&self.url.path, options)
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        space_of(&self.system, &self.url)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }
}
