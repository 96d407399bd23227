//! Messages and files through MPI. Both use an adapter that each site compiles with its own `mpicc`.

mod adapter;
mod files;
mod output;

pub use adapter::{ADAPTER_SOURCE, MpiError, adapter_path};
pub use files::{MpiFiles, MpiIoSetup};
pub use output::let_go_of_output;

use std::{
    collections::VecDeque,
    ffi::{CStr, c_char, c_int, c_void},
    fmt, ptr,
    sync::Arc,
};

use adapter::{Adapter, FoundAdapter};

use crate::RankMessages;

/// Size of the buffer for MPI's description of itself.
const LIBRARY_TEXT: c_int = 256;
/// The only message tag.
const TAG: c_int = 1;

/// A message that is being sent.
struct Sending {
    request: *mut c_void,
    /// MPI reads these bytes until the message has left.
    _bytes: Vec<u8>,
}

/// This process's messages through MPI. Dropping it ends MPI once all processes have reached their ends.
pub struct MpiMessages {
    adapter: Arc<Adapter>,
    rank: u32,
    size: u32,
    library: String,
    files: Arc<MpiFiles>,
    /// True after [`RankMessages::part`].
    is_apart: bool,
    sending: VecDeque<Sending>,
}

// SAFETY: the pointers are MPI's handles of messages. Any thread may use them if no other does at the same
// time, because the adapter requests MPI_THREAD_SERIALIZED.
unsafe impl std::marker::Send for MpiMessages {}

impl MpiMessages {
    /// Joins the other processes. `started` is the number of processes that the launcher started.
    ///
    /// # Errors
    /// Returns an error if there is no adapter, or MPI fails to start.
    pub fn start(started: u32) -> Result<Self, MpiError> {
        let FoundAdapter { adapter, path } = Adapter::found()?;
        let mut rank = 0;
        let mut size = 0;
        let mut text: [c_char; LIBRARY_TEXT as usize] = [0; LIBRARY_TEXT as usize];
        // SAFETY: MPI fills two numbers and a text of this length.
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
            // SAFETY: MPI has started, and no call follows.
            unsafe { (adapter.end)() };
            return Err(MpiError::OtherLauncher { started, known, library, path });
        }
        let rank = u32::try_from(rank).unwrap_or(0);
        let adapter = Arc::new(adapter);
        let files = Arc::new(MpiFiles::new(adapter.clone(), library.clone()));
        Ok(MpiMessages {
            adapter,
            rank,
            size: known,
            library,
            files,
            is_apart: false,
            sending: VecDeque::new(),
        })
    }

    /// Returns MPI's description of itself.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Checks a call of MPI. By default, which Nilometer keeps, MPI ends all processes when a call fails.
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

    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        Ok(self.files.clone())
    }

    fn part(&mut self) {
        self.is_apart = true;
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) {
        let mut request = ptr::null_mut();
        let count = c_int::try_from(bytes.len()).expect("no rank has 2 GiB to say");
        let _turn = self.adapter.turn();
        // SAFETY: `sending` keeps the bytes until they have left.
        let code = unsafe {
            (self.adapter.send)(bytes.as_ptr().cast(), count, to.cast_signed(), TAG, &raw mut request)
        };
        Self::worked(code, "send");
        self.sending.push_back(Sending { request, _bytes: bytes });
    }

    fn has_sent(&mut self) -> bool {
        let _turn = self.adapter.turn();
        while let Some(first) = self.sending.front() {
            let mut done = 0;
            // SAFETY: the request is not done yet.
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
        let _turn = self.adapter.turn();
        // SAFETY: MPI fills two numbers.
        let code = unsafe { (self.adapter.look)(from.cast_signed(), TAG, &raw mut there, &raw mut count) };
        Self::worked(code, "look for messages");
        if there == 0 {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the buffer has the message's length.
        let code = unsafe { (self.adapter.take)(bytes.as_mut_ptr().cast(), count, from.cast_signed(), TAG) };
        Self::worked(code, "receive");
        Some(bytes)
    }
}

impl Drop for MpiMessages {
    fn drop(&mut self) {
        // A file system hangs or has hung. An orderly end needs every process, and a call by each.
        if self.is_apart || self.adapter.is_busy() {
            return;
        }
        let _turn = self.adapter.turn();
        // SAFETY: every message has left, or no process needs it any more; no call follows.
        unsafe {
            if std::thread::panicking() {
                // The other processes wait for this one, and not every launcher ends them.
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
