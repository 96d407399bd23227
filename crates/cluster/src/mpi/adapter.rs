//! The adapter to MPI. Implementations of MPI have different ABIs, but the program is the same everywhere. Each
//! site therefore compiles the adapter with its `mpicc`, and the program loads it.

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

/// The adapter's source for `mpicc`.
pub const ADAPTER_SOURCE: &str = include_str!("../../adapter/nilometer_mpi.c");

/// The version that the adapter must report.
const VERSION: c_int = 2;
/// Variable with the path of an adapter outside the usual places.
const NAMED: &str = "NILOMETER_MPI";
const FILE: &str = "libnilometer_mpi.so";

/// The reason why processes can't use MPI.
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// There is no adapter.
    #[error(
        "there is no adapter for MPI at {places}: build it with the mpicc of the MPI that starts this \
         program: `nilometer generate mpi | mpicc -O2 -shared -fPIC -x c - -o {first}`, or build all with \
         `make build MPI=1`"
    )]
    NoAdapter {
        /// The places searched.
        places: String,
        /// The recommended place for an adapter.
        first: String,
    },
    /// The adapter can't be loaded.
    #[error("{path}: it can't be loaded: {why}")]
    NotLoaded {
        /// The adapter.
        path: PathBuf,
        /// The loader's message.
        why: String,
    },
    /// The adapter belongs to another version of the program.
    #[error(
        "{path}: an adapter of version {version}, but this program needs {VERSION}: build it again, with \
         `nilometer generate mpi`"
    )]
    OtherVersion {
        /// The adapter.
        path: PathBuf,
        /// Its version.
        version: c_int,
    },
    /// MPI fails to start.
    #[error("{path}: MPI can't be started: {why}")]
    NotStarted {
        /// The adapter.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The launcher and MPI disagree about the number of processes.
    #[error(
        "the launcher started {started} processes, but MPI knows {known} ({library}): {path} is the adapter of \
         another MPI: build it with the mpicc of the launcher's MPI"
    )]
    OtherLauncher {
        /// Number from the launcher.
        started: u32,
        /// Number from MPI.
        known: u32,
        /// MPI's description of itself.
        library: String,
        /// The adapter.
        path: PathBuf,
    },
}

/// Returns the places to search for an adapter, in order. A path in the environment is the only place.
fn places() -> Vec<PathBuf> {
    // A program with more rights than its user must not load that user's code.
    if let Some(named) = env::var_os(NAMED).filter(|_| !is_privileged()) {
        return vec![named.into()];
    }
    let program = env::current_exe().unwrap_or_default();
    let Some(beside) = program.parent().filter(|beside| beside.is_absolute()) else { return Vec::new() };
    vec![beside.join(FILE), beside.join("../lib/nilometer").join(FILE)]
}

/// Returns true if this program has rights that its user lacks.
fn is_privileged() -> bool {
    // SAFETY: it reads a value that the kernel passed to this process at its start.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) };
    secure != 0
}

/// Returns the path of the adapter, if there is one.
pub fn adapter_path() -> Option<PathBuf> {
    // The loader would search elsewhere for a name without a directory.
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
    /// Held during each call, so that only one thread calls at a time.
    turn: Mutex<()>,
    /// The library of the functions above. It stays loaded until the process ends, because MPI has its own
    /// threads and handlers.
    _library: std::mem::ManuallyDrop<Library>,
}

impl Adapter {
    /// Waits for this thread's turn to call MPI.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a thread's call does not return within a second. No other thread may call then.
    pub(crate) fn is_busy(&self) -> bool {
        let is_taken = || matches!(self.turn.try_lock(), Err(TryLockError::WouldBlock));
        let stays_taken = || {
            thread::sleep(Duration::from_millis(10));
            is_taken()
        };
        is_taken() && (0..100).all(|_| stays_taken())
    }

    /// Loads the adapter from the first place that has one.
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
        // SAFETY: loading runs the library's initializers. The user made or named this library. MPI's plug-ins
        // look up MPI's symbols globally.
        let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(not_loaded)?;
        let library = Library::from(library);
        // SAFETY: the declarations match the adapter's source of this version, which is checked first.
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

/// An adapter and its path.
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
