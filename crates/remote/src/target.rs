//! Directories on a server as targets: the directory of a run, of a recording, or one that is only read.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use nilometer_model::{
    Capability, FileSystemSpace, StripeLayout, TargetAddress, TargetDescription, TargetUrl,
};
use nilometer_storage::{
    Engine, EngineError, Errno, PATIENCE, Target, TargetError,
    engine::Options,
    in_time,
    target::{KeptDirectory, run_name},
};

use crate::{
    files::{Place, TargetFiles},
    run::{self, RunKept},
    system::{RemoteSystem, files_at},
};

/// Turns an `Errno` into the error of an action on a place.
pub(crate) fn failed(place: &TargetUrl, action: &'static str) -> impl FnOnce(Errno) -> TargetError {
    let place = place.to_string();
    move |errno| TargetError::Io { path: place.into(), action, source: errno.into() }
}

/// Turns the failure to make an engine into the error that the server can't be reached.
pub(crate) fn unreached(place: &TargetUrl) -> impl FnOnce(EngineError) -> TargetError {
    let place = place.to_string();
    move |error| TargetError::Client { place, action: "use", why: error.to_string() }
}

/// Turns the reason why a run's directory remains into an error.
pub(crate) fn kept(place: &TargetUrl, why: RunKept) -> TargetError {
    let path: PathBuf = place.to_string().into();
    match why {
        RunKept::InUse(process) => TargetError::InUse { path, process: Some(process) },
        RunKept::NotOurs(why) => TargetError::NotOurs { path, why },
        RunKept::Left(why) => TargetError::Kept { path, why },
    }
}

/// The run's own directory below the place under test. Dropping the target removes it.
#[derive(Debug)]
pub(crate) struct RemoteTarget {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    url: TargetUrl,
    name: String,
    is_there: Mutex<bool>,
}

impl RemoteTarget {
    /// Makes the run's directory at the described place. `id` distinguishes it from directories of other runs.
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

/// Returns the URL of a target, or an error if it has none.
pub(crate) fn url_of(description: &TargetDescription) -> Result<TargetUrl, TargetError> {
    let is_none = || TargetError::NotADirectory { path: description.address.to_string().into() };
    description.address.url().cloned().ok_or_else(is_none)
}

/// Asks for free space, and gives up on a server that hangs.
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

/// Spreads new files in a directory, and returns their layout.
fn laid_out(
    system: &dyn RemoteSystem,
    place: &TargetUrl,
    asked: &StripeLayout,
) -> Result<Option<StripeLayout>, TargetError> {
    let failed = |why| TargetError::Client { place: place.to_string(), action: "lay out files on", why };
    system.lay_out(&place.path, asked).map_err(failed)
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
        laid_out(self.system.as_ref(), &self.place(), asked)
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
        // Callers that need the outcome call `remove`. `nilometer clean` removes any directory that remains.
        drop(self.remove());
    }
}

/// Makes a directory, and fails if it exists.
fn make_new(files: &TargetFiles, url: &TargetUrl, name: &str) -> Result<(), TargetError> {
    let action = "make the directory";
    match files.stat(Place::root(name)) {
        Ok(_) => Err(failed(url, action)(Errno::EEXIST)),
        Err(Errno::ENOENT) => files.make_dir(Place::root(name)).map_err(failed(url, action)),
        // The directory may exist and hold somebody's files.
        Err(errno) => Err(failed(url, action)(errno)),
    }
}

/// A lock file next to a directory that is being made, for servers that would make the same directory twice.
/// They never make a file twice, so of two recorders that begin at the same moment only one gets the name.
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
                // On a full server the file may exist, but be empty. If this fails too, the first error says
                // why.
                files.unlink(Place::root(&name)).ok();
                Err(failed(&above.join(&name), "make")(errno))
            }
        }
    }

    fn give_back(self) {
        // If the file remains, the next recorder that wants the name reports it.
        self.files.unlink(Place::root(&self.name)).ok();
    }
}

/// A new directory for files that stay: a recording belongs to the user.
#[derive(Debug)]
pub(crate) struct RemoteDirectory {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    above: TargetUrl,
    name: String,
    path: PathBuf,
}

impl RemoteDirectory {
    /// Makes the directory of this name at the described place. It must not exist.
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
            // A server that can't rename files makes the whole file at once.
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

    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        laid_out(self.system.as_ref(), &self.url(), asked)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Err(self.stays())
    }
}

/// An existing directory that is only read.
#[derive(Debug)]
pub(crate) struct ReadDirectory {
    description: TargetDescription,
    system: Arc<dyn RemoteSystem>,
    url: TargetUrl,
}

impl ReadDirectory {
    /// Describes a directory without checking that it exists. Its readers find that out.
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
