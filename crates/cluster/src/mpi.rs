//! MPI: messages, and beside them files, both through an adapter that is compiled by the `mpicc` of each site.

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

/// Room for what MPI says of itself.
const LIBRARY_TEXT: c_int = 256;
/// The one kind of message that there is.
const TAG: c_int = 1;

/// A message that is on its way.
struct Sending {
    request: *mut c_void,
    /// Read by MPI until it has left.
    _bytes: Vec<u8>,
}

/// The messages of this process by MPI. MPI ends with it, when all processes have come to their ends.
pub struct MpiMessages {
    adapter: Arc<Adapter>,
    rank: u32,
    size: u32,
    library: String,
    files: Arc<MpiFiles>,
    /// See [`RankMessages::part`].
    is_apart: bool,
    sending: VecDeque<Sending>,
}

// SAFETY: the pointers are MPI's names of messages, which any thread may use that is the only one at its time: it was started
// with MPI_THREAD_SERIALIZED.
unsafe impl std::marker::Send for MpiMessages {}

impl MpiMessages {
    /// Joins the other processes; a launcher has started so many.
    ///
    /// # Errors
    /// If there is no adapter, or MPI does not begin.
    pub fn start(started: u32) -> Result<Self, MpiError> {
        let FoundAdapter { adapter, path } = Adapter::found()?;
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
        // SAFETY: the bytes are kept until they have left.
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
        let _turn = self.adapter.turn();
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
        // A file system hangs, or did: to end in order takes all processes, and a call of each.
        if self.is_apart || self.adapter.is_busy() {
            return;
        }
        let _turn = self.adapter.turn();
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
