//! The open files, and how each is read. Threads of the recording or of the handle do all work that may wait
//! for a disk. The threads that answer the kernel wait for nothing.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use fuser::{BackingId, Errno, FileHandle, FopenFlags, INodeNo, ReplyData, ReplyOpen};
use nilometer_recording::view::{Asked, ReadAhead};

use crate::{crew::Crew, entry::Entry};

/// The open files.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, Open>>,
}

#[derive(Debug)]
struct Open {
    inode: INodeNo,
    way: Way,
}

/// How a file is read. The kernel requires the same way for all that have it open at the same time.
#[derive(Debug, Clone)]
enum Way {
    /// The kernel sends its reads here, and caches the answers.
    Asked(Arc<Reader>),
    /// The kernel reads the underlying file directly.
    Passed(Arc<BackingId>),
}

/// A reader for one open file handle.
#[derive(Debug)]
pub(crate) struct Reader {
    ahead: ReadAhead,
    crew: Crew,
}

/// Number of reads of one reader that may wait for disks at the same time.
const READS: usize = 4;

thread_local! {
    /// The bytes of an answer, in the thread that sends it to the kernel.
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Handles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file. If the recording is over, this reads from its disks, in a separate thread.
    pub(crate) fn open(self: &Arc<Self>, inode: INodeNo, entry: &Arc<Entry>, reply: ReplyOpen) {
        if !entry.is_over() {
            return self.opened(inode, entry, None, FopenFlags::empty(), reply);
        }
        let handles = self.clone();
        let of = entry.clone();
        entry.opens.ask(Box::new(move || {
            // The kernel drops its cache if the content may have changed: missing blocks may have arrived,
            // and existing ones may be lost.
            let stays = of.whole.is_readable() && of.whole.faults().count == 0;
            let flags = if stays { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
            let backing = if handles.way(inode).is_none() { backing(&of, &reply) } else { None };
            handles.opened(inode, &of, backing, flags, reply);
        }));
    }

    /// Opens it this way, unless it is already open in another way.
    fn opened(
        &self,
        inode: INodeNo,
        entry: &Entry,
        backing: Option<Arc<BackingId>>,
        flags: FopenFlags,
        reply: ReplyOpen,
    ) {
        let handle = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = || Way::Asked(Arc::new(Reader::of(entry)));
        let mut open = self.lock();
        let way = match way_of(&open, inode) {
            Some(Way::Passed(backing)) => Way::Passed(backing),
            Some(Way::Asked(_)) => asked(),
            None => backing.map_or_else(asked, Way::Passed),
        };
        open.insert(handle, Open { inode, way: way.clone() });
        match way {
            Way::Asked(_) => reply.opened(FileHandle(handle), flags),
            Way::Passed(backing) => {
                reply.opened_passthrough(FileHandle(handle), FopenFlags::empty(), &backing);
            }
        }
    }

    fn way(&self, inode: INodeNo) -> Option<Way> {
        way_of(&self.lock(), inode)
    }

    /// The reader of this handle. `None` if the kernel reads directly.
    pub(crate) fn reader(&self, handle: FileHandle) -> Option<Arc<Reader>> {
        match &self.lock().get(&handle.0)?.way {
            Way::Asked(reader) => Some(reader.clone()),
            Way::Passed(_) => None,
        }
    }

    pub(crate) fn close(&self, handle: FileHandle) {
        let closed = self.lock().remove(&handle.0);
        // This frees memory, and other threads need not wait for that.
        drop(closed);
    }
}

/// The way in which an open file is read.
fn way_of(open: &BTreeMap<u64, Open>, inode: INodeNo) -> Option<Way> {
    open.values().find(|open| open.inode == inode).map(|open| open.way.clone())
}

/// The single file of a recording, for the kernel to read directly. Only root may request it.
fn backing(entry: &Entry, reply: &ReplyOpen) -> Option<Arc<BackingId>> {
    reply.open_backing(entry.whole.only_file()?).ok().map(Arc::new)
}

impl Reader {
    fn of(entry: &Entry) -> Self {
        Reader { ahead: ReadAhead::new(entry.whole.clone()), crew: Crew::new(READS) }
    }

    /// Answers with these bytes: at once if they were read ahead, otherwise when the disks have returned
    /// them.
    pub(crate) fn read(self: &Arc<Self>, offset: u64, length: u32, reply: ReplyData) {
        let asked = self.ahead.ask(offset, length as usize);
        if asked.is_there() {
            return self.answer(&asked, reply);
        }
        let reader = self.clone();
        self.crew.ask(Box::new(move || reader.answer(&asked, reply)));
    }

    fn answer(&self, asked: &Asked, reply: ReplyData) {
        ANSWER.with_borrow_mut(|answer| {
            self.ahead.give_asked(asked, answer, |bytes| {
                if self.ahead.whole().is_overwritten(asked.range()) {
                    reply.error(Errno::EIO);
                } else {
                    reply.data(bytes);
                }
            });
        });
    }
}
