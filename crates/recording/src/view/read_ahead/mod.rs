//! Reads a recording ahead for a sequential reader: from all disks at once, past the page cache, before the
//! reader asks.
//!
//! ```text
//! reads in order -> window (what comes next) -> pieces -> a few threads for each lane -> bytes
//! ```

mod piece;
mod window;

use std::{
    collections::VecDeque,
    io, iter,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use super::RecordingView;
use piece::{Piece, Pool};
use window::{Sizes, Step, Window};

/// A reader of a recording. Several threads may read for it at once, at nearby offsets.
#[derive(Debug)]
pub struct ReadAhead {
    whole: Arc<RecordingView>,
    sizes: Sizes,
    pool: Arc<Pool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: Window,
    /// Pieces in order of their offsets.
    pieces: VecDeque<Arc<Piece>>,
    lanes: Vec<SyncSender<Arc<Piece>>>,
    /// Turn of the lanes for the next piece that does not lie in a single lane.
    turn: usize,
    /// Share of the memory while it reads ahead.
    share: Option<Share>,
    /// Number of known blocks that can't be read.
    faulted: usize,
    /// Number of known lanes.
    known: usize,
}

/// Reads in flight in each lane, and the bytes of each.
const DEPTH: usize = 2;
const PIECE: u64 = 4 << 20;
/// Limit on the pieces that wait for a lane.
const WAITING: usize = 1024;
/// Least number of bytes read ahead, also for small files.
const LEAST: u64 = 64 << 20;
/// One reader takes at most this part of the memory, and all of the process together at most twice as much.
const PART_OF_MEMORY: u64 = 16;

/// Number of readers that read ahead. They share the memory.
static SHARES: AtomicU64 = AtomicU64::new(0);

/// Counts one such reader.
#[derive(Debug)]
struct Share;

impl Share {
    fn new() -> Self {
        SHARES.fetch_add(1, Ordering::Relaxed);
        Share
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        SHARES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request for bytes, which are on their way if they were read ahead.
#[derive(Debug)]
pub struct Asked {
    range: Range<u64>,
    /// The pieces that cover the range. Empty unless they cover all of it.
    pieces: Vec<Arc<Piece>>,
}

impl Asked {
    /// The requested byte range of the recording.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns true if the bytes are available without waiting for a disk.
    pub fn is_there(&self) -> bool {
        let read = !self.pieces.is_empty() && self.pieces.iter().all(|piece| piece.is_read());
        read || self.range.is_empty()
    }
}

impl ReadAhead {
    /// Creates a reader of this recording. It reads nothing before the first request.
    pub fn new(whole: Arc<RecordingView>) -> Self {
        let most = whole.side_by_side().clamp(LEAST, LEAST.max(memory() / PART_OF_MEMORY));
        ReadAhead::with(whole, Sizes { piece: PIECE, most })
    }

    /// Creates a reader with small pieces that does not read far ahead.
    #[cfg(test)]
    pub(crate) fn small(whole: Arc<RecordingView>) -> Self {
        ReadAhead::with(whole, Sizes { piece: 8192, most: 40_000 })
    }

    fn with(whole: Arc<RecordingView>, sizes: Sizes) -> Self {
        let state = State {
            window: Window::new(sizes),
            pieces: VecDeque::new(),
            lanes: Vec::new(),
            turn: 0,
            share: None,
            faulted: 0,
            known: whole.lanes(),
        };
        ReadAhead { whole, sizes, pool: Arc::new(Pool::new(sizes.piece)), state: Mutex::new(state) }
    }

    /// The recording.
    pub fn whole(&self) -> &RecordingView {
        &self.whole
    }

    /// Reads like [`RecordingView::read_at`].
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let mut scratch = Vec::new();
        self.give(offset, into.len(), &mut scratch, |bytes| {
            into[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        })
    }

    /// Passes bytes from `offset` on to `to`, fewer than `length` only at the end. Passes them in place if one
    /// piece holds them all, otherwise in `scratch`.
    pub fn give<T>(
        &self,
        offset: u64,
        length: usize,
        scratch: &mut Vec<u8>,
        to: impl FnOnce(&[u8]) -> T,
    ) -> T {
        self.give_asked(&self.ask(offset, length), scratch, to)
    }

    /// Requests bytes from `offset` on, fewer at the end, without waiting.
    pub fn ask(&self, offset: u64, length: usize) -> Asked {
        let total = self.whole.length();
        let length = (length as u64).min(total.saturating_sub(offset));
        Asked { range: offset..offset + length, pieces: self.pieces(offset, length, total) }
    }

    /// Passes the requested bytes to `to`, like [`ReadAhead::give`].
    pub fn give_asked<T>(&self, asked: &Asked, scratch: &mut Vec<u8>, to: impl FnOnce(&[u8]) -> T) -> T {
        let Asked { range: Range { start, end }, pieces } = asked;
        let part = |piece: &Arc<Piece>| {
            let range = &piece.range;
            ((*start).max(range.start) - range.start) as usize..((*end).min(range.end) - range.start) as usize
        };
        if let [piece] = &pieces[..]
            && let Some(bytes) = piece.bytes()
        {
            return to(&bytes[part(piece)]);
        }
        scratch.clear();
        let read = pieces.iter().try_for_each(|piece| {
            scratch.extend_from_slice(&piece.bytes()?[part(piece)]);
            Some(())
        });
        if pieces.is_empty() || read.is_none() {
            scratch.clear();
            scratch.resize((end - start) as usize, 0);
            self.whole.read_at(*start, scratch);
        }
        to(scratch)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pieces that cover all these bytes, or none, and starts reading the bytes after them.
    fn pieces(&self, offset: u64, length: u64, total: u64) -> Vec<Arc<Piece>> {
        let state = &mut *self.lock();
        state.window.limit(self.sizes.most.min(share_of_memory()));
        match state.window.read(offset, length, total) {
            Step::Jump => {
                state.pieces.clear();
                state.share = None;
                self.pool.clear();
            }
            Step::On(None) => {}
            Step::On(Some(range)) => {
                let runs = self.whole.runs(range, self.sizes.piece).into_iter();
                let pieces = runs.map(|(range, run)| Arc::new(Piece::new(range, run))).collect();
                // Without threads, the reader reads for itself.
                drop(state.begin(pieces, &self.whole, &self.pool));
            }
        }
        state.forget(&self.whole);
        state.covering(offset..offset + length)
    }
}

impl State {
    /// Queues these pieces for reading.
    fn begin(
        &mut self,
        pieces: Vec<Arc<Piece>>,
        whole: &Arc<RecordingView>,
        pool: &Arc<Pool>,
    ) -> io::Result<()> {
        self.share.get_or_insert_with(Share::new);
        for _ in self.lanes.len()..whole.lanes().max(1) {
            self.lanes.push(lane(whole, pool)?);
        }
        for piece in pieces {
            self.turn += 1;
            let lane = piece.lane().unwrap_or(self.turn) % self.lanes.len();
            // If a disk hangs, its queue fills up and takes no more pieces. A reader of those bytes reads for
            // itself and hangs too.
            if self.lanes[lane].try_send(piece.clone()).is_ok() {
                self.pieces.push_back(piece);
            }
        }
        Ok(())
    }

    /// Drops pieces that the reader has passed, and pieces with blocks that have become unreadable. Parts of
    /// such a block read earlier do not fit the frames that fill the rest.
    fn forget(&mut self, whole: &RecordingView) {
        let lanes = whole.lanes();
        if std::mem::replace(&mut self.known, lanes) != lanes {
            // Missing blocks may have appeared.
            self.pieces.clear();
        }
        let behind = self.window.behind();
        let faulted = whole.faulted_since(&mut self.faulted);
        let hurt = |range: &Range<u64>| {
            faulted.iter().any(|block| block.start < range.end && range.start < block.end)
        };
        self.pieces.retain(|piece| piece.range.end > behind && !hurt(&piece.range));
    }

    fn covering(&self, range: Range<u64>) -> Vec<Arc<Piece>> {
        let within = |piece: &&Arc<Piece>| piece.range.end > range.start && piece.range.start < range.end;
        let pieces: Vec<_> = self.pieces.iter().filter(within).cloned().collect();
        let no_hole = pieces.windows(2).all(|pair| pair[0].range.end == pair[1].range.start);
        let begins = pieces.first().is_some_and(|first| first.range.start <= range.start);
        let ends = pieces.last().is_some_and(|last| last.range.end >= range.end);
        if no_hole && begins && ends { pieces } else { Vec::new() }
    }
}

/// Starts threads that read the pieces of one lane, in the order in which the reader needs them.
fn lane(whole: &Arc<RecordingView>, pool: &Arc<Pool>) -> io::Result<SyncSender<Arc<Piece>>> {
    let (ask, asked) = mpsc::sync_channel(WAITING);
    let asked = Arc::new(Mutex::new(asked));
    for _ in 0..DEPTH {
        let whole = whole.clone();
        let pool = pool.clone();
        let asked = asked.clone();
        thread::Builder::new().name("ahead".into()).spawn(move || {
            for piece in iter::from_fn(|| next(&asked)) {
                // The reader may have dropped the piece.
                if Arc::strong_count(&piece) > 1 {
                    let filled = catch_unwind(AssertUnwindSafe(|| piece.fill(&whole, &pool)));
                    // After a panic the reader reads for itself and meets the panic there, so nobody waits for
                    // ever.
                    filled.unwrap_or_else(|_| piece.give_up());
                }
            }
        })?;
    }
    Ok(ask)
}

fn next(asked: &Mutex<Receiver<Arc<Piece>>>) -> Option<Arc<Piece>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Bytes that each reader may read ahead.
fn share_of_memory() -> u64 {
    memory() / PART_OF_MEMORY * 2 / SHARES.load(Ordering::Relaxed).max(1)
}

/// Memory of the machine in bytes.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}
