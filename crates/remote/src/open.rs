//! The one place that makes a target from its address. It describes targets, opens them for a run or a
//! recording, and finds and cleans them after a kill.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_model::{
    RunHandle, TargetAddress, TargetDescription, TargetUrl, UrlScheme, published_features,
};
use nilometer_storage::{
    Errno, PATIENCE, Target, TargetError, in_time,
    target::{
        self, Cleaned, Directory, Holder, KeptDirectory, NullTarget, Posix, SharedRun, is_run_name, run_id,
        run_name,
    },
};

use crate::{
    files::{CLEANED_WITHIN, Place},
    run::{self, RunKept},
    system::{RemoteSystem, files_at},
    target::{ReadDirectory, RemoteDirectory, RemoteTarget, failed, kept, unreached, url_of},
};

#[cfg(not(feature = "xrootd"))]
const NO_XROOTD: &str =
    "this program was built without the client of XRootD: `make build REMOTE=1` makes one that has it";
#[cfg(not(feature = "nfs"))]
const NO_NFS: &str =
    "this program was built without the client of NFS: `make build REMOTE=1` makes one that has it";
#[cfg(not(feature = "s3"))]
const NO_S3: &str =
    "this program was built without the client of S3: `make build REMOTE=1` makes one that has it";
#[cfg(not(feature = "hdfs"))]
const NO_HDFS: &str =
    "this program was built without the client of HDFS: `make build REMOTE=1` makes one that has it";

/// The server of a URL. Sends no request.
fn system_of(url: &TargetUrl) -> Result<Arc<dyn RemoteSystem>, TargetError> {
    match url.scheme {
        #[cfg(feature = "xrootd")]
        UrlScheme::XRootD | UrlScheme::XRootDEncrypted => Ok(Arc::new(crate::xrootd::XRootD::of(url))),
        #[cfg(not(feature = "xrootd"))]
        UrlScheme::XRootD | UrlScheme::XRootDEncrypted => {
            Err(TargetError::NotBuilt { place: url.to_string(), why: NO_XROOTD })
        }
        #[cfg(feature = "nfs")]
        UrlScheme::Nfs => crate::nfs::Nfs::of(url).map(|nfs| Arc::new(nfs) as Arc<dyn RemoteSystem>),
        #[cfg(not(feature = "nfs"))]
        UrlScheme::Nfs => Err(TargetError::NotBuilt { place: url.to_string(), why: NO_NFS }),
        #[cfg(feature = "s3")]
        UrlScheme::S3 => crate::s3::S3::of(url).map(|s3| Arc::new(s3) as Arc<dyn RemoteSystem>),
        #[cfg(not(feature = "s3"))]
        UrlScheme::S3 => Err(TargetError::NotBuilt { place: url.to_string(), why: NO_S3 }),
        #[cfg(feature = "hdfs")]
        UrlScheme::Hdfs => crate::hdfs::Hdfs::of(url).map(|hdfs| Arc::new(hdfs) as Arc<dyn RemoteSystem>),
        #[cfg(not(feature = "hdfs"))]
        UrlScheme::Hdfs => Err(TargetError::NotBuilt { place: url.to_string(), why: NO_HDFS }),
    }
}

/// Describes the storage at an address, and its abilities. Storage that hangs never answers: a campaign calls
/// [`describe_in_child`].
pub fn describe(address: &TargetAddress) -> Result<TargetDescription, TargetError> {
    match address {
        TargetAddress::Directory(path) => target::probe(path),
        TargetAddress::Null => Ok(NullTarget::new().description().clone()),
        TargetAddress::Url(url) => describe_url(url),
        TargetAddress::Joined(members) => joined(members, describe),
    }
}

/// Several targets as one.
fn joined(
    members: &[TargetAddress],
    describe: fn(&TargetAddress) -> Result<TargetDescription, TargetError>,
) -> Result<TargetDescription, TargetError> {
    let members = members.iter().map(describe).collect::<Result<Vec<_>, _>>()?;
    Ok(TargetDescription::joined(&members))
}

/// Describes the storage at a URL, and tries to write there.
fn describe_url(url: &TargetUrl) -> Result<TargetDescription, TargetError> {
    let system = system_of(url)?;
    let unknown = |why| TargetError::Client { place: url.to_string(), action: "reach", why };
    let mut description = system.description(url).map_err(unknown)?;
    let files = files_at(system.as_ref(), &url.path).map_err(unreached(url))?;
    match files.stat(Place::root(".")) {
        Ok(stat) if stat.directory => {}
        Ok(_) => return Err(TargetError::NotADirectory { path: url.to_string().into() }),
        Err(errno) => return Err(failed(url, "look at")(errno)),
    }
    description.profile.features = published_features(description.profile.kind);
    if !description.writable {
        return Ok(description);
    }
    let name = run_name(run_id().0);
    let tried = files.make_dir(Place::root(&name)).and_then(|()| files.remove_dir(Place::root(&name)));
    // A full target counts as writable: the check of the plan reports the missing space.
    description.writable = matches!(tried, Ok(()) | Err(Errno::ENOSPC | Errno::EDQUOT));
    if let Err(errno) = tried {
        description.facts.push((TargetDescription::UNWRITABLE.into(), format!("refused: {errno}")));
    }
    Ok(description)
}

/// The file that this process runs, even if another file has its name by now.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Calls [`describe`] in a child process, and gives it up after [`PATIENCE`], because storage that hangs
/// never answers. The child runs this process's program, which must answer `describe --exchange -- ADDRESS`
/// as `nilometer` does.
pub fn describe_in_child(address: &TargetAddress) -> Result<TargetDescription, TargetError> {
    let in_child = |path: &Path| target::describe_in_child(Path::new(THIS_PROGRAM), path, PATIENCE);
    match address {
        TargetAddress::Directory(path) => in_child(path),
        TargetAddress::Null => describe(address),
        TargetAddress::Url(url) => {
            // The error about a client that is not built in needs no child.
            system_of(url)?;
            in_child(Path::new(&url.to_string()))
        }
        TargetAddress::Joined(members) => joined(members, describe_in_child),
    }
}

/// The storage that a run copies from, and the number of the run on it.
#[derive(Debug, Clone)]
pub struct CopySource {
    /// The storage that is read.
    pub description: TargetDescription,
    /// The number that distinguishes the run from others there.
    pub run: u64,
}

/// Makes the directories of a run on the described target. Their names contain `run`, its number.
pub fn open(
    description: &TargetDescription,
    run: u64,
    origin: Option<CopySource>,
) -> Result<Arc<dyn Target>, TargetError> {
    match &description.address {
        TargetAddress::Directory(_) => {
            let target = Posix::create(description.clone(), run)?;
            let Some(CopySource { description, run }) = origin else { return Ok(Arc::new(target)) };
            Ok(Arc::new(target.with_source(Posix::create(description, run)?)?))
        }
        // Runs that copy use neither `null:` nor URLs: `null:` keeps no data to read, and a copy needs a
        // local path.
        TargetAddress::Null => Ok(Arc::new(NullTarget::new())),
        TargetAddress::Url(url) => {
            Ok(Arc::new(RemoteTarget::create(system_of(url)?, description.clone(), run)?))
        }
        // A campaign joins the targets that it has opened.
        TargetAddress::Joined(_) => {
            Err(TargetError::NotADirectory { path: description.address.to_string().into() })
        }
    }
}

/// Joins the directory that another process of the campaign made on this described target: see
/// [`Target::share`].
pub fn join(description: TargetDescription, run: Option<&SharedRun>) -> Result<Arc<dyn Target>, TargetError> {
    match (&description.address, run) {
        (TargetAddress::Url(url), _) => Err(TargetError::Client {
            place: url.to_string(),
            action: "join others on",
            why: "several processes measure directories that are mounted only".into(),
        }),
        (_, Some(run)) => Ok(Arc::new(Posix::join(description, run)?)),
        (_, None) => Ok(Arc::new(NullTarget::new())),
    }
}

/// The same with a run of this process's own at the source that it copies from.
///
/// # Errors
/// If one can't be joined, or the other not be made.
pub fn join_with_source(
    description: TargetDescription,
    run: &SharedRun,
    origin: CopySource,
) -> Result<Arc<dyn Target>, TargetError> {
    let source = Posix::create(origin.description, origin.run)?;
    Ok(Arc::new(Posix::join(description, run)?.with_source(source)?))
}

/// Joins a run that another process made for this one alone, in a mounted directory. This process clears it, and the
/// other removes it. `None` stands for a run on a target that keeps nothing.
///
/// # Errors
/// If the run is missing, or is not that of this campaign.
pub fn join_own(
    description: TargetDescription,
    run: Option<&SharedRun>,
) -> Result<Arc<dyn Target>, TargetError> {
    match run {
        Some(run) => Ok(Arc::new(Posix::join(description, run)?.for_itself())),
        None => join(description, None),
    }
}

/// Makes the directory of this name in the described one, for files that stay.
pub fn create_directory(
    description: TargetDescription,
    name: &str,
) -> Result<Arc<dyn KeptDirectory>, TargetError> {
    match description.address.url() {
        Some(url) => {
            let system = system_of(url)?;
            Ok(Arc::new(RemoteDirectory::create(system, description, name)?))
        }
        None => Ok(Arc::new(Directory::create(description, name)?)),
    }
}

/// True if the directory at an address has something of this name.
///
/// # Errors
/// The storage does not answer in time.
pub fn is_taken(address: &TargetAddress, name: &str) -> Result<bool, TargetError> {
    let place: PathBuf = address.to_string().into();
    let name = name.to_owned();
    let TargetAddress::Url(url) = address else {
        let path = place.join(name);
        return in_time(PATIENCE, place, move || path.exists());
    };
    let system = system_of(url)?;
    let url = url.clone();
    let asked = in_time(PATIENCE, place, move || {
        let files = files_at(system.as_ref(), &url.path).map_err(unreached(&url))?;
        match files.stat(Place::root(&name)) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(failed(&url.join(&name), "look for")(errno)),
        }
    });
    asked.flatten()
}

/// Opens an existing directory on a server for reading only.
pub fn recording_at(url: &TargetUrl) -> Result<Arc<dyn Target>, TargetError> {
    let system = system_of(url)?;
    let of = url.clone();
    let opened =
        in_time(PATIENCE, url.to_string().into(), move || ReadDirectory::at(system, of)).flatten()?;
    Ok(Arc::new(opened))
}

/// The handle by which a later campaign cleans the directory that [`open`] makes. `None` if it makes none.
pub fn run_handle(description: &TargetDescription, run: u64) -> Option<RunHandle> {
    match &description.address {
        TargetAddress::Directory(path) => {
            Some(RunHandle(Posix::run_directory(path, run).display().to_string()))
        }
        TargetAddress::Url(url) => Some(RunHandle(url.join(&run_name(run)).to_string())),
        TargetAddress::Null | TargetAddress::Joined(_) => None,
    }
}

/// True if a run of this handle was on the described target.
pub fn is_run_at(handle: &RunHandle, description: &TargetDescription) -> bool {
    match &description.address {
        TargetAddress::Directory(path) => Path::new(&handle.0).parent() == Some(path),
        TargetAddress::Url(url) => {
            let run: Option<TargetUrl> = handle.0.parse().ok();
            run.as_ref().and_then(TargetUrl::split_last).is_some_and(|(above, _)| above == *url)
        }
        TargetAddress::Null | TargetAddress::Joined(_) => false,
    }
}

/// Removes the remains of a killed run; `None` if nothing is there. Removes the caller's own all or not at
/// all: see [`Cleaned`].
pub fn clean_run(handle: &RunHandle) -> Result<Option<Cleaned>, TargetError> {
    let path = PathBuf::from(&handle.0);
    match TargetAddress::of_named(&path) {
        Ok(address @ TargetAddress::Url(_)) => {
            let cleaned = clean(&address)?;
            let found = !cleaned.removed.is_empty() || !cleaned.left.is_empty();
            Ok(found.then_some(cleaned))
        }
        _ if path.symlink_metadata().is_err() => Ok(None),
        _ => target::clean(&path).map(Some),
    }
}

/// Removes the remains of killed runs at an address, or that run directory itself.
pub fn clean(address: &TargetAddress) -> Result<Cleaned, TargetError> {
    match address {
        TargetAddress::Directory(path) => target::clean(path),
        TargetAddress::Null | TargetAddress::Joined(_) => Ok(Cleaned::default()),
        TargetAddress::Url(url) => {
            let system = system_of(url)?;
            let url = url.clone();
            in_time(CLEANED_WITHIN, url.to_string().into(), move || clean_url(system.as_ref(), &url))
                .flatten()
        }
    }
}

fn clean_url(system: &dyn RemoteSystem, url: &TargetUrl) -> Result<Cleaned, TargetError> {
    let single = url.split_last().filter(|(_, name)| is_run_name(name));
    let above = single.as_ref().map_or_else(|| url.clone(), |(above, _)| above.clone());
    let files = files_at(system, &above.path).map_err(unreached(&above))?;
    let names = match single {
        Some((_, name)) if files.stat(Place::root(name)) == Err(Errno::ENOENT) => Vec::new(),
        Some((_, name)) => vec![name.to_owned()],
        None => run::runs_in(&files).map_err(failed(&above, "list"))?,
    };
    let mut cleaned = Cleaned::default();
    for name in names {
        let free =
            run::holder(&files, &name).and_then(|holder| holder.map_or(Ok(()), |id| Err(RunKept::InUse(id))));
        match free.and_then(|()| run::remove(system, &above.path, &name)) {
            Ok(()) => cleaned.removed.push(above.join(&name).to_string().into()),
            Err(why) => cleaned.left.push(kept(&above.join(&name), why)),
        }
    }
    Ok(cleaned)
}

/// The campaign that runs on the described target, if one does, as far as that can be seen from this machine.
///
/// # Errors
/// The storage does not answer in time, or can't be listed.
pub fn in_use(description: &TargetDescription) -> Result<Option<Holder>, TargetError> {
    let place: PathBuf = description.address.to_string().into();
    match &description.address {
        // The caller checks each member of joined targets alone.
        TargetAddress::Null | TargetAddress::Joined(_) => Ok(None),
        TargetAddress::Directory(path) => {
            let path = path.clone();
            in_time(PATIENCE, place, move || target::in_use(&path)).flatten()
        }
        TargetAddress::Url(_) => {
            let url = url_of(description)?;
            let system = system_of(&url)?;
            in_time(PATIENCE, place, move || held_at(system.as_ref(), &url)).flatten()
        }
    }
}

fn held_at(system: &dyn RemoteSystem, url: &TargetUrl) -> Result<Option<Holder>, TargetError> {
    let files = files_at(system, &url.path).map_err(unreached(url))?;
    for name in run::runs_in(&files).map_err(failed(url, "list"))? {
        if let Ok(Some(process)) = run::holder(&files, &name) {
            let directory = url.join(&name).to_string().into();
            return Ok(Some(Holder { directory, process: Some(process) }));
        }
    }
    Ok(None)
}
