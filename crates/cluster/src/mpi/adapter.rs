//! The adapter to MPI, which is compiled by the `mpicc` of each site and loaded here: the ABI of MPI is another with each
//! implementation, and the program is the same for all of them.

use std::{
    env,
    ffi::{c_char, c_int, c_longlong, c_void},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    thread,
    time::Duration,
};

use libloading::{
    Library,
    os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW},
};

/// The adapter, for `mpicc`.
pub const ADAPTER_SOURCE: &str = include_str!("../../adapter/nilometer_mpi.c");

/// What the adapter must say of itself.
const VERSION: c_int = 2;
/// Names the adapter, where it is in no usual place.
const NAMED: &str = "NILOMETER_MPI";
const FILE: &str = "libnilometer_mpi.so";

/// Why processes can't speak by MPI.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// There is none.
    #[error(
        "there is no adapter for MPI at {places}: make it by the mpicc of the MPI that starts this program, with `nilometer \
         generate mpi | mpicc -O2 -shared -fPIC -x c - -o {first}`, or build all with `make build MPI=1`"
    )]
    NoAdapter {
        /// Where was looked.
        places: String,
        /// Where to put one.
        first: String,
    },
    /// It can't be loaded.
    #[error("{path}: it can't be loaded: {why}")]
    NotLoaded {
        /// The adapter.
        path: PathBuf,
        /// As the loader says it.
        why: String,
    },
    /// It is of another program.
    #[error(
        "{path}: it is an adapter of version {version}, and this program wants {VERSION}: make it anew, with `nilometer generate mpi`"
    )]
    OtherVersion {
        /// The adapter.
        path: PathBuf,
        /// Its version.
        version: c_int,
    },
    /// MPI does not begin.
    #[error("{path}: MPI can't be started: {why}")]
    NotStarted {
        /// The adapter.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The launcher started more, or fewer, than MPI knows.
    #[error(
        "the launcher started {started} processes, and MPI knows of {known} ({library}): the adapter {path} is of another MPI \
         than the launcher: make it by the mpicc that belongs to it"
    )]
    OtherLauncher {
        /// As the launcher says.
        started: u32,
        /// As MPI says.
        known: u32,
        /// What MPI it is.
        library: String,
        /// The adapter.
        path: PathBuf,
    },
}

/// Where an adapter is looked for, the first that is there counts; one that is named counts alone.
fn places() -> Vec<PathBuf> {
    // A program with rights that its user has not takes no code from that user.
    if let Some(named) = env::var_os(NAMED).filter(|_| !is_privileged()) {
        return vec![named.into()];
    }
    let program = env::current_exe().unwrap_or_default();
    let Some(beside) = program.parent().filter(|beside| beside.is_absolute()) else { return Vec::new() };
    vec![beside.join(FILE), beside.join("../lib/nilometer").join(FILE)]
}

/// The kernel gave this program rights that its user has not.
fn is_privileged() -> bool {
    // SAFETY: it reads what the kernel told this process at its start.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) };
    secure != 0
}

/// The adapter, if there is one.
pub fn adapter_path() -> Option<PathBuf> {
    // The loader looks for a name without a directory elsewhere.
    places().into_iter().filter(|path| path.is_file()).find_map(|path| path.canonicalize().ok())
}

type Version = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_char, c_int) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, c_int, c_int, *mut *mut c_void) -> c_int;
type Sent = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
type Look = unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut c_int) -> c_int;
type Take = unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int;
type Group = unsafe extern "C" fn(*const c_int, c_int, *mut *mut c_void) -> c_int;
type OpenFile = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    c_int,
    *const *const c_char,
    c_int,
    *mut *mut c_void,
) -> c_int;
type WriteFile =
    unsafe extern "C" fn(*mut c_void, c_longlong, *const c_void, c_int, c_int, *mut c_int) -> c_int;
type ReadFile = unsafe extern "C" fn(*mut c_void, c_longlong, *mut c_void, c_int, c_int, *mut c_int) -> c_int;
type OfFile = unsafe extern "C" fn(*mut c_void) -> c_int;
type Preferred = unsafe extern "C" fn(*mut c_char, c_int) -> c_int;
type Hints = unsafe extern "C" fn(*mut c_void, *mut c_char, c_int) -> c_int;

/// The functions of an adapter, as its source declares them.
pub(crate) struct Adapter {
    pub(crate) start: Start,
    pub(crate) send: Send,
    pub(crate) sent: Sent,
    pub(crate) look: Look,
    pub(crate) take: Take,
    pub(crate) end: unsafe extern "C" fn() -> c_int,
    pub(crate) abort: unsafe extern "C" fn(c_int),
    pub(crate) group: Group,
    pub(crate) ungroup: unsafe extern "C" fn(*mut c_void),
    pub(crate) open: OpenFile,
    pub(crate) write: WriteFile,
    pub(crate) read: ReadFile,
    pub(crate) sync: OfFile,
    pub(crate) preferred: Preferred,
    pub(crate) hints: Hints,
    pub(crate) close: OfFile,
    /// Held for as long as a call lasts: one thread at a time.
    turn: Mutex<()>,
    /// The others are of it. It stays loaded to the end of the process: MPI has threads and handlers of its own.
    _library: std::mem::ManuallyDrop<Library>,
}

impl Adapter {
    /// This thread's turn to call MPI.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is in a call that does not come back within a second, so that no other may call.
    pub(crate) fn is_busy(&self) -> bool {
        let is_taken = || matches!(self.turn.try_lock(), Err(TryLockError::WouldBlock));
        let stays_taken = || {
            thread::sleep(Duration::from_millis(10));
            is_taken()
        };
        is_taken() && (0..100).all(|_| stays_taken())
    }

    /// The one at the first place that has one.
    pub(crate) fn found() -> Result<FoundAdapter, MpiError> {
        let path = adapter_path().ok_or_else(|| {
            let places: Vec<_> = places().iter().map(|place| place.display().to_string()).collect();
            MpiError::NoAdapter {
                first: places.first().cloned().unwrap_or_else(|| FILE.into()),
                places: places.join(" or "),
            }
        })?;
        let adapter = Adapter::load(&path)?;
        Ok(FoundAdapter { adapter, path })
    }

    fn load(path: &Path) -> Result<Self, MpiError> {
        let not_loaded =
            |error: libloading::Error| MpiError::NotLoaded { path: path.to_owned(), why: error.to_string() };
        // SAFETY: loading it runs what it does when it is loaded: it is a library that the user has made or named. MPI's own
        // plug-ins look for MPI's symbols among those that all libraries see.
        let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(not_loaded)?;
        let library = Library::from(library);
        // SAFETY: the declarations are those of the source of the adapter, of the version that is asked for first.
        unsafe {
            let version = library.get::<Version>(b"nilometer_mpi_version\0").map_err(not_loaded)?();
            if version != VERSION {
                return Err(MpiError::OtherVersion { path: path.to_owned(), version });
            }
            Ok(Adapter {
                start: *library.get(b"nilometer_mpi_start\0").map_err(not_loaded)?,
                send: *library.get(b"nilometer_mpi_send\0").map_err(not_loaded)?,
                sent: *library.get(b"nilometer_mpi_sent\0").map_err(not_loaded)?,
                look: *library.get(b"nilometer_mpi_look\0").map_err(not_loaded)?,
                take: *library.get(b"nilometer_mpi_take\0").map_err(not_loaded)?,
                end: *library.get(b"nilometer_mpi_end\0").map_err(not_loaded)?,
                abort: *library.get(b"nilometer_mpi_abort\0").map_err(not_loaded)?,
                group: *library.get(b"nilometer_mpi_group\0").map_err(not_loaded)?,
                ungroup: *library.get(b"nilometer_mpi_ungroup\0").map_err(not_loaded)?,
                open: *library.get(b"nilometer_mpi_open\0").map_err(not_loaded)?,
                write: *library.get(b"nilometer_mpi_write\0").map_err(not_loaded)?,
                read: *library.get(b"nilometer_mpi_read\0").map_err(not_loaded)?,
                sync: *library.get(b"nilometer_mpi_sync\0").map_err(not_loaded)?,
                preferred: *library.get(b"nilometer_mpi_preferred\0").map_err(not_loaded)?,
                hints: *library.get(b"nilometer_mpi_hints\0").map_err(not_loaded)?,
                close: *library.get(b"nilometer_mpi_close\0").map_err(not_loaded)?,
                turn: Mutex::new(()),
                _library: std::mem::ManuallyDrop::new(library),
            })
        }
    }
}

/// An adapter, and where it was.
pub(crate) struct FoundAdapter {
    pub(crate) adapter: Adapter,
    pub(crate) path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_adapter_is_not_loaded() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join(FILE);
        std::fs::write(&path, "no library").expect("space");
        let error = Adapter::load(&path).err().expect("it is none").to_string();
        assert!(error.contains(FILE) && error.contains("can't be loaded"), "{error}");
    }

    #[test]
    fn the_source_says_the_version_that_is_wanted() {
        let says = format!("int nilometer_mpi_version(void) {{ return {VERSION}; }}");
        assert!(ADAPTER_SOURCE.contains(&says));
    }
}
