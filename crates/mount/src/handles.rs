//! Who has what open, and how it is read. What may have to wait for a disk is done by threads of the recording or of the
//! handle: whoever answers the kernel waits for nothing.

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

/// See the module.
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

/// How a file is read. The kernel wants one way for all who have it open at the same time.
#[derive(Debug, Clone)]
enum Way {
    /// It asks here, and keeps what it got.
    Asked(Arc<Reader>),
    /// It reads the file behind it by itself.
    Passed(Arc<BackingId>),
}

/// One who has a file open that is asked for here.
#[derive(Debug)]
pub(crate) struct Reader {
    ahead: ReadAhead,
    crew: Crew,
}

/// Reads of one reader that wait for disks at the same time.
const READS: usize = 4;

thread_local! {
    /// What is read for the kernel, in the thread that answers it.
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Handles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file. The disks of one that is over are asked: by a thread of its own.
    pub(crate) fn open(self: &Arc<Self>, inode: INodeNo, entry: &Arc<Entry>, reply: ReplyOpen) {
        if !entry.is_over() {
            return self.opened(inode, entry, None, FopenFlags::empty(), reply);
        }
        let handles = self.clone();
        let of = entry.clone();
        entry.opens.ask(Box::new(move || {
            // What the kernel kept of it is forgotten where it may have become another: what was missing may have come, and
            // what was there may be lost.
            let stays = of.whole.is_readable() && of.whole.faults().count == 0;
            let flags = if stays { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
            let backing = if handles.way(inode).is_none() { backing(&of, &reply) } else { None };
            handles.opened(inode, &of, backing, flags, reply);
        }));
    }

    /// Opens it this way, if nobody has it open another way.
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

    /// Who reads for this handle.
    pub(crate) fn reader(&self, handle: FileHandle) -> Option<Arc<Reader>> {
        match &self.lock().get(&handle.0)?.way {
            Way::Asked(reader) => Some(reader.clone()),
            Way::Passed(_) => None,
        }
    }

    pub(crate) fn close(&self, handle: FileHandle) {
        let closed = self.lock().remove(&handle.0);
        // It has memory to give back: others need not wait for that.
        drop(closed);
    }
}

/// How those read who have a file open.
fn way_of(open: &BTreeMap<u64, Open>, inode: INodeNo) -> Option<Way> {
    open.values().find(|open| open.inode == inode).map(|open| open.way.clone())
}

/// The file that is all of a recording, for the kernel to read by itself. Root may ask that; others are refused.
fn backing(entry: &Entry, reply: &ReplyOpen) -> Option<Arc<BackingId>> {
    reply.open_backing(entry.whole.only_file()?).ok().map(Arc::new)
}

impl Reader {
    fn of(entry: &Entry) -> Self {
        Reader { ahead: ReadAhead::new(entry.whole.clone()), crew: Crew::new(READS) }
    }

    /// Answers with these bytes: at once if they were read ahead, else when the disks have given them.
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
