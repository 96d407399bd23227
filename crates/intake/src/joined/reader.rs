//! Reads values that arrive separately from the frames, on its own thread. They come from a ZeroMQ socket, or
//! line by line from a growing file or a pipe.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    net::IpAddr,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Clock};
use rustix::fs::OFlags;

use super::{JoinRefusal, JoinedValues, message::MESSAGE_MAX};
use crate::transport::{
    Allowed,
    zeromq::{
        MessageLimits, MessageRoom, PullSocket, RefusedPeers, RoomAnswer, RoomRequest, ZmqEndpoint,
        ZmqMessage,
    },
};

/// A source of values.
#[derive(Debug)]
pub enum MetadataSource {
    /// Messages from senders of either kind (PUSH and PUB).
    Messages(Box<PullSocket>),
    /// Lines of a file or pipe.
    Lines(File),
}

/// Once all frames have arrived, the reader waits for missing values as long as one arrives within this time.
const QUIET: Nanos = Nanos::from_millis(5_000);
/// Maximum time to wait until existing lines in files are read.
const CATCH_UP: Nanos = Nanos::from_millis(1_000);
/// Maximum time between looks for more lines or a stop.
const LOOK: Nanos = Nanos::from_millis(20);

/// Messages are short, and long strings in them are kept with the rest.
const LIMITS: MessageLimits =
    MessageLimits { bytes: MESSAGE_MAX as u64, parts: 64, memory: 16 * MESSAGE_MAX as u64 };

impl MetadataSource {
    /// Returns true if this text names an address at which it listens.
    pub fn waits_at(text: &str) -> bool {
        text.starts_with("tcp://*:")
    }

    /// Opens a source: `tcp://HOST:PORT` to connect to, `tcp://*:PORT` to listen at, or the path of a file.
    ///
    /// It takes incoming connections from allowed senders. If the user named none, it takes those from the
    /// address that sends the first good message.
    ///
    /// # Errors
    /// If the address is invalid, if it can't listen there, or if the file can't be read.
    pub fn open(text: &str, allowed: &Allowed) -> io::Result<Self> {
        if text.starts_with("tcp://") {
            let waits = MetadataSource::waits_at(text);
            let endpoint = if waits { ZmqEndpoint::bind(text)? } else { ZmqEndpoint::connect(text)? };
            let socket = PullSocket::open_to_publishers(&[endpoint], LIMITS)?;
            return Ok(MetadataSource::Messages(Box::new(socket.allowing(allowed.clone()))));
        }
        if text.contains("://") {
            let why = format!("{text}: write tcp://HOST:PORT, tcp://*:PORT, or the path of a file");
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{text}: {error}"));
        // A pipe may have no writer yet.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let kind = Path::new(text).metadata().map_err(named)?.file_type();
        if !kind.is_file() && !kind.is_fifo() {
            return Err(named(io::Error::other("it is neither a file nor a pipe")));
        }
        let file = File::options().read(true).custom_flags(flags).open(text).map_err(named)?;
        Ok(MetadataSource::Lines(file))
    }

    fn run(self, values: &JoinedValues, progress: &ReaderProgress, clock: Clock) {
        match self {
            MetadataSource::Messages(socket) => messages(*socket, values, progress, clock),
            MetadataSource::Lines(file) => Lines::new(file).run(values, progress),
        }
    }
}

/// State shared by a reading thread and its owner.
#[derive(Debug, Default)]
struct ReaderProgress {
    stop: AtomicBool,
    /// It has read all lines that existed at the beginning.
    caught_up: AtomicBool,
}

impl ReaderProgress {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The threads that read sources.
#[derive(Debug)]
pub struct MetadataReader {
    clock: Clock,
    progress: Vec<Arc<ReaderProgress>>,
    values: Arc<JoinedValues>,
}

impl MetadataReader {
    /// Begins to read all these sources.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn start(sources: Vec<MetadataSource>, values: &Arc<JoinedValues>) -> io::Result<Self> {
        let clock = Clock::start();
        let mut progress = Vec::new();
        for source in sources {
            let told = Arc::new(ReaderProgress::default());
            let values = values.clone();
            let mine = told.clone();
            thread::Builder::new()
                .name("metadata".into())
                .spawn(move || source.run(&values, &mine, clock))?;
            progress.push(told);
        }
        Ok(MetadataReader { clock, progress, values: values.clone() })
    }

    /// Waits until the initial lines of the files are read, for a second at most: after that it has their
    /// names.
    pub fn catch_up(&self) {
        let begun = self.clock.now();
        let is_behind = |told: &Arc<ReaderProgress>| !told.caught_up.load(Ordering::Relaxed);
        while self.progress.iter().any(is_behind) && self.clock.now().since(begun) < CATCH_UP {
            thread::sleep(Nanos::from_millis(1).duration());
        }
    }

    /// Waits for missing values after all frames have arrived. It ends when all are there, when none arrives
    /// for some time, or when `stop` is set.
    pub fn await_rest(&self, frames: u64, stop: &AtomicBool) {
        let mut came = self.values.came_count();
        let mut since = self.clock.now();
        while !self.values.is_complete(frames) && !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            let before = std::mem::replace(&mut came, self.values.came_count());
            if came != before {
                since = now;
            }
            if now.since(since) >= QUIET {
                break;
            }
            thread::sleep(LOOK.duration());
        }
    }
}

/// Stops the threads: no more values are taken.
impl Drop for MetadataReader {
    fn drop(&mut self) {
        self.progress.iter().for_each(|told| told.stop.store(true, Ordering::Relaxed));
    }
}

impl JoinedValues {
    /// Counts more unheard connections of these addresses.
    fn count_not_heard(&self, connections: u64, addresses: &[IpAddr]) {
        self.lock().tally.not_heard.add(connections, addresses);
    }
}

/// Keeps all strings of a message with the message.
struct NoRoomApart;

impl MessageRoom for NoRoomApart {
    fn room(&mut self, _: RoomRequest<'_>) -> RoomAnswer {
        RoomAnswer::Along
    }

    fn give_back(&mut self, _: Buffer) {}
}

fn messages(mut socket: PullSocket, values: &JoinedValues, progress: &ReaderProgress, clock: Clock) {
    // Messages have no initial content.
    progress.caught_up.store(true, Ordering::Relaxed);
    let mut too_large = 0;
    let mut told = RefusedPeers::default();
    while !progress.is_over() {
        match socket.receive(clock.now(), LOOK, &mut NoRoomApart) {
            Ok(Some(message)) => {
                if put_parts(&message, values)
                    && let Some(peer) = message.peer
                {
                    socket.begin_series(peer, usize::MAX);
                }
            }
            Ok(None) => {}
            Err(error) => {
                values.refuse(JoinRefusal::Malformed, error.to_string());
                return;
            }
        }
        let counted = socket.counted();
        let mut not_heard = counted.refused;
        not_heard.add(counted.unheard.connections, &counted.unheard.addresses);
        if not_heard != told {
            values.count_not_heard(not_heard.connections - told.connections, &not_heard.addresses);
            told = not_heard;
        }
        let counted = counted.too_large + counted.no_memory;
        for _ in too_large..counted {
            values.refuse(JoinRefusal::Malformed, format!("a message of more than {MESSAGE_MAX} B"));
        }
        too_large = counted;
    }
}

/// Takes the values of a message. Publishers put a topic in front of them. Returns true if a part was a valid
/// message.
fn put_parts(message: &ZmqMessage, values: &JoinedValues) -> bool {
    let parts = message.parts();
    let is_object = |bytes: &[u8]| bytes.trim_ascii_start().first() == Some(&b'{');
    if let [only] = parts[..] {
        return values.put_message(only.bytes);
    }
    let mut objects = parts.iter().filter(|part| is_object(part.bytes)).peekable();
    if objects.peek().is_none() {
        values.refuse(JoinRefusal::Malformed, "no part of the message is a JSON object".into());
    }
    objects.filter(|part| values.put_message(part.bytes)).count() > 0
}

/// Lines of a growing file.
struct Lines {
    file: File,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// The line is too long: its rest is skipped.
    skipping: bool,
}

impl Lines {
    fn new(file: File) -> Self {
        Lines { file, line: Vec::new(), skipping: false }
    }

    fn run(mut self, values: &JoinedValues, progress: &ReaderProgress) {
        let mut chunk = vec![0; 64 << 10];
        while !progress.is_over() {
            match self.file.read(&mut chunk) {
                Ok(0) => {
                    self.whole_without_end(values);
                    progress.caught_up.store(true, Ordering::Relaxed);
                    thread::sleep(LOOK.duration());
                }
                Ok(came) => {
                    self.came(&chunk[..came], values);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    progress.caught_up.store(true, Ordering::Relaxed);
                    thread::sleep(LOOK.duration());
                }
                Err(error) => {
                    values.refuse(JoinRefusal::Malformed, format!("the rest can't be read: {error}"));
                    return;
                }
            }
        }
    }

    fn came(&mut self, mut bytes: &[u8], values: &JoinedValues) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end], values);
            let line = std::mem::take(&mut self.line);
            if !self.skipping && !line.trim_ascii().is_empty() {
                values.put_message(&line);
            }
            self.skipping = false;
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, values);
    }

    fn extend(&mut self, bytes: &[u8], values: &JoinedValues) {
        if self.skipping {
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MESSAGE_MAX {
            values.refuse(JoinRefusal::Malformed, format!("a line of more than {MESSAGE_MAX} B"));
            self.line = Vec::new();
            self.skipping = true;
        }
    }

    /// Takes the last line of a file without a newline, if it is complete.
    fn whole_without_end(&mut self, values: &JoinedValues) {
        if super::JoinedMessage::parse(&self.line).is_ok() {
            values.put_message(&std::mem::take(&mut self.line));
        }
    }
}
