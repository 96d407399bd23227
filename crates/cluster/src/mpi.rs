//! Messages by MPI, through an adapter that is compiled by the `mpicc` of each site and loaded here: the ABI of MPI is another
//! with each implementation, and the program is the same for all of them.

use std::{
    collections::VecDeque,
    env,
    ffi::{CStr, c_char, c_int, c_void},
    fmt,
    path::{Path, PathBuf},
    ptr,
};

use libloading::{
    Library,
    os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW},
};

use crate::RankMessages;

/// The adapter, for `mpicc`.
pub const ADAPTER_SOURCE: &str = include_str!("../adapter/nilometer_mpi.c");

/// What the adapter must say of itself.
const VERSION: c_int = 1;
/// Names the adapter, where it is in no usual place.
const NAMED: &str = "NILOMETER_MPI";
const FILE: &str = "libnilometer_mpi.so";
/// Room for what MPI says of itself.
const LIBRARY_TEXT: c_int = 256;
/// The one kind of message that there is.
const TAG: c_int = 1;

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

type Start = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_char, c_int) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, c_int, c_int, c_int, *mut *mut c_void) -> c_int;
type Sent = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
type Look = unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut c_int) -> c_int;
type Take = unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int;

/// The functions of an adapter.
struct Adapter {
    start: Start,
    send: Send,
    sent: Sent,
    look: Look,
    take: Take,
    end: unsafe extern "C" fn() -> c_int,
    abort: unsafe extern "C" fn(c_int),
    /// The others are of it. It stays loaded to the end of the process: MPI has threads and handlers of its own.
    _library: std::mem::ManuallyDrop<Library>,
}

/// A message that is on its way.
struct Sending {
    request: *mut c_void,
    /// Read by MPI until it has left.
    _bytes: Vec<u8>,
}

/// The messages of this process by MPI. MPI ends with it, when all processes have come to their ends.
pub struct MpiMessages {
    adapter: Adapter,
    rank: u32,
    size: u32,
    library: String,
    sending: VecDeque<Sending>,
}

// SAFETY: the pointers are MPI's names of messages, which any thread may use that is the only one at its time: it was started
// with MPI_THREAD_SERIALIZED.
unsafe impl std::marker::Send for MpiMessages {}

impl Adapter {
    fn load(path: &Path) -> Result<Self, MpiError> {
        let not_loaded =
            |error: libloading::Error| MpiError::NotLoaded { path: path.to_owned(), why: error.to_string() };
        // SAFETY: loading it runs what it does when it is loaded: it is a library that the user has made or named. MPI's own
        // plug-ins look for MPI's symbols among those that all libraries see.
        let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(not_loaded)?;
        let library = Library::from(library);
        // SAFETY: the declarations are those of the source of the adapter, of the version that is asked for first.
        unsafe {
            let version = library.get::<unsafe extern "C" fn() -> c_int>(b"nilometer_mpi_version\0");
            let version = version.map_err(not_loaded)?();
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
                _library: std::mem::ManuallyDrop::new(library),
            })
        }
    }
}

impl MpiMessages {
    /// Joins the other processes; a launcher has started so many.
    ///
    /// # Errors
    /// If there is no adapter, or MPI does not begin.
    pub fn start(started: u32) -> Result<Self, MpiError> {
        let path = adapter_path().ok_or_else(|| {
            let places: Vec<_> = places().iter().map(|place| place.display().to_string()).collect();
            MpiError::NoAdapter {
                first: places.first().cloned().unwrap_or_else(|| FILE.into()),
                places: places.join(" or "),
            }
        })?;
        let adapter = Adapter::load(&path)?;
        let mut rank = 0;
        let mut size = 0;
        let mut text: [c_char; LIBRARY_TEXT as usize] = [0; LIBRARY_TEXT as usize];
        // SAFETY: numbers and a text of this length to be filled.
        let code = unsafe { (adapter.start)(&raw mut rank, &raw mut size, text.as_mut_ptr(), LIBRARY_TEXT) };
        if code != 0 {
            let why = match code {
                -1 => "it allows no calls from more than one thread (MPI_THREAD_SERIALIZED)".into(),
                code => format!("error {code}"),
            };
            return Err(MpiError::NotStarted { path, why });
        }
        // SAFETY: the adapter ends the text with a zero within its length.
        let library = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        let library = library.lines().next().unwrap_or_default().to_owned();
        let known = u32::try_from(size).unwrap_or(0);
        if known != started {
            // SAFETY: it was started, and nothing is called after.
            unsafe { (adapter.end)() };
            return Err(MpiError::OtherLauncher { started, known, library, path });
        }
        let rank = u32::try_from(rank).unwrap_or(0);
        Ok(MpiMessages { adapter, rank, size: known, library, sending: VecDeque::new() })
    }

    /// What MPI it is, in its own words.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// MPI ends all processes where a call fails, unless it is told otherwise, which it is not.
    fn worked(code: c_int, what: &str) {
        assert!(code == 0, "MPI failed to {what} (error {code}), and has not ended this process");
    }
}

impl RankMessages for MpiMessages {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) {
        let mut request = ptr::null_mut();
        let count = c_int::try_from(bytes.len()).expect("no rank has 2 GiB to say");
        // SAFETY: the bytes are kept until they have left.
        let code = unsafe {
            (self.adapter.send)(bytes.as_ptr().cast(), count, to.cast_signed(), TAG, &raw mut request)
        };
        Self::worked(code, "send");
        self.sending.push_back(Sending { request, _bytes: bytes });
    }

    fn has_sent(&mut self) -> bool {
        while let Some(first) = self.sending.front() {
            let mut done = 0;
            // SAFETY: a request that is not done yet.
            let code = unsafe { (self.adapter.sent)(first.request, &raw mut done) };
            Self::worked(code, "send");
            if done == 0 {
                return false;
            }
            self.sending.pop_front();
        }
        true
    }

    fn receive(&mut self, from: u32) -> Option<Vec<u8>> {
        let mut there = 0;
        let mut count = 0;
        // SAFETY: two numbers to be filled.
        let code = unsafe { (self.adapter.look)(from.cast_signed(), TAG, &raw mut there, &raw mut count) };
        Self::worked(code, "look for messages");
        if there == 0 {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: room for as many bytes as the message has.
        let code = unsafe { (self.adapter.take)(bytes.as_mut_ptr().cast(), count, from.cast_signed(), TAG) };
        Self::worked(code, "receive");
        Some(bytes)
    }
}

impl Drop for MpiMessages {
    fn drop(&mut self) {
        // SAFETY: all that was sent has left, or is of no use to anybody; nothing is called after.
        unsafe {
            if std::thread::panicking() {
                // The others wait for this one: not every launcher ends them.
                (self.adapter.abort)(1);
            } else {
                (self.adapter.end)();
            }
        }
    }
}

impl fmt::Debug for MpiMessages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MpiMessages { rank, size, library, sending, .. } = self;
        write!(formatter, "MpiMessages({rank} of {size}, {library}, {} on their way)", sending.len())
    }
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
