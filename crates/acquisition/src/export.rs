//! Exports a recording in order into one new file: writes the content of a [`RecordingView`] through an engine.
//!
//! ```text
//! RecordingView -> a thread that reads -> Export (workload) -> file under a temporary name -> read back -> its own name
//! ```
//!
//! An export into HDF5 goes through a recorder, which [`RecordedFrames`] feeds, so that HDF5 files are written
//! in one place only.

mod frames;
mod read_back;
mod reading;
mod stacks_read_back;

pub(crate) use frames::FrameSupply;
pub use frames::{DamagedFrames, FramesRead, RecordedFrames};
pub use read_back::{DamagedBlocks, ExportReadBack, read_back};
pub use stacks_read_back::{StackFault, read_back_stacks};

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::TryRecvError,
    },
};

use nilometer_model::{ByteRate, Nanos};
use nilometer_storage::{
    Arena, Buffer, Completion, Errno, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload,
    buffer::ALIGNMENT, engine::Wake,
};

use nilometer_recording::view::RecordingView;
use reading::{ExportPart, Reading};

/// Settings of an export.
#[derive(Debug, Clone)]
pub struct Exporting {
    /// The file's name in the engine's directory. The file must exist and be empty.
    pub name: String,
    /// Write past the page cache.
    pub direct: bool,
    /// Limit on the rate.
    pub at_most: Option<ByteRate>,
    /// Writes in flight.
    pub depth: usize,
}

/// A workload that writes a recording into one file. The file is synced when it is done.
#[derive(Debug)]
pub struct Export {
    reading: Reading,
    exporting: Exporting,
    stop: Arc<AtomicBool>,
    length: u64,
    /// Bytes before the last, incomplete page, if that needs another way of writing.
    body: u64,
    stage: Stage,
    /// Buffer for names, and for operations without bytes.
    scratch: Option<Buffer>,
    flying: usize,
    /// Number of bytes given to the engine.
    offset: u64,
    /// CRC-32 of those bytes.
    checksum: u32,
    begun: Option<Nanos>,
    fault: Option<ExportFault>,
    overwritten: bool,
    opened: bool,
}

/// The reason why an export did not finish.
#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    /// The destination refused a write.
    #[error("{0}")]
    Destination(Errno),
    /// The export can't start the thread that reads the recording. Neither the recording nor the destination is
    /// at fault.
    #[error("can't start the thread that reads the recording: {0}")]
    NoReader(#[source] io::Error),
    /// The thread that reads the recording ended early.
    #[error("the thread that reads the recording ended before all of it was read")]
    ReaderEnded,
}

/// The next stage of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Write,
    /// The last bytes do not fill a page, so they can't be written past the page cache.
    OpenTail,
    Tail,
    Sync,
    Close,
    Done,
}

/// Slots that the engine needs.
pub const SLOTS: u32 = 3;
const FILE: Slot = Slot(1);
const TAIL: Slot = Slot(2);
/// Bytes per write.
const AT_ONCE: u64 = 4 << 20;
/// Bytes of the buffer for names.
const SCRATCH: usize = 4096;
/// Interval at which to check for a stop request while there is nothing to write, or while it is not due.
const LOOK: Nanos = Nanos::from_millis(100);

impl Export {
    /// Creates an export of the present content of the view, on the engine of this waker. After a stop request
    /// the export stays incomplete.
    ///
    /// # Errors
    ///
    /// If the thread that reads the recording can't be started.
    pub fn new(
        whole: Arc<RecordingView>,
        exporting: Exporting,
        stop: Arc<AtomicBool>,
        waker: Arc<dyn Wake>,
    ) -> Result<Self, ExportFault> {
        let length = whole.length();
        let body = if exporting.direct { length / ALIGNMENT as u64 * ALIGNMENT as u64 } else { length };
        let (_, buffers) = Arena::shared_out(2 * exporting.depth, AT_ONCE as usize);
        let (_, mut scratch) = Arena::shared_out(1, SCRATCH);
        let reading = Reading::new(whole, [body, length], buffers, waker).map_err(ExportFault::NoReader)?;
        Ok(Export {
            length,
            body,
            reading,
            exporting,
            stop,
            stage: Stage::Open,
            scratch: scratch.pop(),
            flying: 0,
            offset: 0,
            checksum: 0,
            begun: None,
            fault: None,
            overwritten: false,
            opened: false,
        })
    }

    /// Number of bytes written, or on their way.
    pub fn done(&self) -> u64 {
        self.offset
    }

    /// CRC-32 (ISO-HDLC) of those bytes.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Returns true if the recorder overwrote a part before it was read, so that the export did not finish.
    pub fn is_overwritten(&self) -> bool {
        self.overwritten
    }

    /// The error, if any.
    pub fn fault(&self) -> Option<&ExportFault> {
        self.fault.as_ref()
    }

    /// Returns true if the file is complete.
    pub fn is_whole(&self) -> bool {
        let failed = self.fault.is_some() || self.overwritten;
        self.stage == Stage::Done && !failed && self.offset == self.length
    }

    /// Writes the next part, if it has been read.
    fn write(&mut self, file: Slot, now: Nanos) -> Result<Operation, Step> {
        let ExportPart { buffer, length, checksum, overwritten } = match self.reading.next() {
            Ok(part) => part,
            Err(TryRecvError::Empty) => return Err(Step::Wait(Wait::Until(now + LOOK))),
            Err(TryRecvError::Disconnected) => {
                self.fault = Some(ExportFault::ReaderEnded);
                return Err(self.end());
            }
        };
        if overwritten {
            self.overwritten = true;
            return Err(self.end());
        }
        let operation = Operation::write(file, self.offset, length as u32, buffer);
        self.offset += length as u64;
        self.checksum = checksum;
        Ok(operation)
    }

    /// Waits for the operations in flight and starts no more.
    fn end(&self) -> Step {
        if self.flying > 0 { Step::Wait(Wait::ForOne) } else { Step::Done }
    }

    /// Starts the next stage when the present one is complete.
    fn next_stage(&mut self, now: Nanos) -> Result<Operation, Step> {
        if self.stage == Stage::Write && self.body < self.length {
            self.stage = Stage::OpenTail;
        }
        let (operation, next) = match self.stage {
            Stage::Open => (self.open(Open::WRITE.direct_if(self.exporting.direct), FILE), Stage::Write),
            Stage::OpenTail => (self.open(Open::WRITE, TAIL), Stage::Tail),
            Stage::Tail => (self.write(TAIL, now)?, Stage::Sync),
            Stage::Write | Stage::Sync => (self.on_file(OpKind::Sync), Stage::Close),
            Stage::Close => (self.on_file(OpKind::Close), Stage::Done),
            Stage::Done => return Err(Step::Done),
        };
        self.stage = next;
        Ok(operation)
    }

    fn scratch(&mut self) -> Buffer {
        self.scratch.take().expect("nothing is in flight")
    }

    fn open(&mut self, open: Open, slot: Slot) -> Operation {
        let buffer = self.scratch();
        Operation::named(OpKind::Open(open), ROOT, slot, self.exporting.name.as_bytes(), buffer)
    }

    fn on_file(&mut self, kind: OpKind) -> Operation {
        Operation::on(kind, FILE, self.scratch())
    }

    /// Returns the time from which the next bytes may be written.
    fn due(&mut self, now: Nanos) -> Nanos {
        let begun = *self.begun.get_or_insert(now);
        let rate = self.exporting.at_most;
        rate.map_or(now, |rate| begun + Nanos::from_seconds(self.offset as f64 / rate.0))
    }
}

impl Workload for Export {
    fn next(&mut self, now: Nanos) -> Step {
        // After the engine has all bytes, a stop request no longer prevents sync and close.
        let stopped = self.stop.load(Ordering::Relaxed) && self.offset < self.length;
        if self.fault.is_some() || self.overwritten || stopped {
            return self.end();
        }
        if self.flying >= self.exporting.depth {
            return Step::Wait(Wait::ForOne);
        }
        let operation = if self.stage == Stage::Write && self.opened && self.offset < self.body {
            let due = self.due(now);
            if due > now {
                return Step::Wait(Wait::Until(due.min(now + LOOK)));
            }
            self.write(FILE, now)
        } else if self.flying > 0 {
            return Step::Wait(Wait::ForOne);
        } else {
            self.next_stage(now)
        };
        match operation {
            Ok(operation) => {
                self.flying += 1;
                Step::Issue(operation, now)
            }
            Err(step) => step,
        }
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { operation, result, .. } = completion;
        self.flying -= 1;
        let is_write = operation.kind == OpKind::Write;
        let fault = match result {
            Ok(written) if is_write && written != operation.length => Some(Errno::ENOSPC),
            Ok(_) => None,
            Err(errno) => Some(errno),
        };
        self.opened |= fault.is_none() && matches!(operation.kind, OpKind::Open(_));
        self.fault = self.fault.take().or(fault.map(ExportFault::Destination));
        if is_write {
            self.reading.give_back(operation.buffer);
        } else {
            self.scratch = Some(operation.buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use nilometer_model::{EngineKind, Storing};
    use nilometer_storage::{
        Clock, Drive, Engine,
        engine::{Options, on_directory},
    };
    use tempfile::TempDir;

    use super::*;
    use nilometer_recording::view::{
        Extent,
        laid_out::{PACKET_CASES, laid_out, overtaken},
    };

    fn engine(directory: &TempDir, kind: EngineKind) -> Box<dyn Engine> {
        let root = std::os::fd::OwnedFd::from(File::open(directory.path()).expect("it is there"));
        let options = Options { kind, depth: 4, slots: SLOTS, clock: Clock::start() };
        on_directory(root, &options).expect("an engine")
    }

    fn exported(
        whole: &Arc<RecordingView>,
        directory: &TempDir,
        kind: EngineKind,
        direct: bool,
        stop: bool,
    ) -> Export {
        let depth = if kind == EngineKind::Sync { 1 } else { 4 };
        File::create(directory.path().join("all")).expect("room");
        let exporting = Exporting { name: "all".into(), direct, at_most: Some(ByteRate(1e12)), depth };
        let mut engine = engine(directory, kind);
        let stop = Arc::new(AtomicBool::new(stop));
        let mut export = Export::new(whole.clone(), exporting, stop, engine.waker()).expect("a thread");
        Drive::new(&mut export, engine.as_mut()).run(|_| {});
        export
    }

    #[test]
    fn a_file_has_every_byte() {
        let blocks: Vec<_> = (0..900).map(|block| Some(block % 2).filter(|_| block % 7 != 3)).collect();
        let (lanes, reference) = laid_out(PACKET_CASES[2], Storing::Files, 2, &blocks, 3);
        let whole = Arc::new(lanes.whole(Extent::All));
        assert!(whole.length() > 4 * AT_ONCE && !whole.length().is_multiple_of(ALIGNMENT as u64));
        for (kind, direct) in [(EngineKind::Sync, false), (EngineKind::Pool, false), (EngineKind::Pool, true)]
        {
            let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory on a disk");
            let export = exported(&whole, &directory, kind, direct, false);
            assert!(export.is_whole(), "{:?}", export.fault());
            let written = fs::read(directory.path().join("all")).expect("it was made");
            assert!(written == reference, "{kind:?} {direct}");
            assert_eq!(export.checksum(), crc32fast::hash(&reference));
        }
    }

    #[test]
    fn what_was_overwritten_before_it_was_read_ends_it() {
        let (_lanes, whole) = overtaken();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let export = exported(&Arc::new(whole), &directory, EngineKind::Sync, false, false);
        assert!(!export.is_whole() && export.is_overwritten() && export.fault().is_none(), "{export:?}");
    }

    /// A waker that wakes nobody, so that the export has to poll.
    struct Deaf;

    impl Wake for Deaf {
        fn wake(&self) {}
    }

    /// Completes an operation at once.
    fn done(operation: Operation) -> Completion {
        let result = Ok(if operation.kind == OpKind::Write { operation.length } else { 0 });
        Completion { operation, result, due: Nanos(0), issued: Nanos(0), finished: Nanos(1) }
    }

    /// Returns an export whose file is already open.
    fn opened(whole: &Arc<RecordingView>, direct: bool, depth: usize) -> Export {
        let exporting = Exporting { name: "all".into(), direct, at_most: None, depth };
        let export = Export::new(whole.clone(), exporting, Arc::default(), Arc::new(Deaf));
        let mut export = export.expect("a thread");
        let Step::Issue(open, _) = export.next(Nanos(0)) else { panic!("it opens the file") };
        export.completed(done(open));
        export
    }

    /// Returns a reader that is stuck at its disk.
    fn stuck(whole: &Arc<RecordingView>) -> Reading {
        Reading::new(whole.clone(), [whole.length(); 2], Vec::new(), Arc::new(Deaf)).expect("a thread")
    }

    #[test]
    fn what_is_not_read_yet_is_waited_for_and_never_read_while_it_decides() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let whole = Arc::new(lanes.whole(Extent::All));
        let mut export = opened(&whole, false, 1);
        export.reading = stuck(&whole);
        assert!(matches!(export.next(Nanos(1)), Step::Wait(Wait::Until(time)) if time == Nanos(1) + LOOK));
        assert_eq!((export.done(), export.is_whole()), (0, false));
        export.stop.store(true, Ordering::Relaxed);
        assert!(matches!(export.next(Nanos(2)), Step::Done), "it does not wait for the disk");
    }

    #[test]
    fn a_stop_is_heeded_while_a_low_rate_keeps_the_next_bytes_waiting() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let mut export = opened(&Arc::new(lanes.whole(Extent::All)), false, 1);
        export.exporting.at_most = Some(ByteRate(1.0));
        export.begun = Some(Nanos(0));
        export.offset = 1;
        // The next bytes are due after a second. A signal need not wake the thread that waits.
        assert!(matches!(export.next(Nanos(1)), Step::Wait(Wait::Until(time)) if time == Nanos(1) + LOOK));
        export.stop.store(true, Ordering::Relaxed);
        assert!(matches!(export.next(Nanos(2)), Step::Done));
    }

    #[test]
    fn a_stop_is_heeded_while_the_tail_is_read() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let whole = Arc::new(lanes.whole(Extent::All));
        let mut export = opened(&whole, true, 1);
        assert!(export.body < export.length, "its last bytes fill no page");
        export.reading = stuck(&whole);
        export.offset = export.body;
        let Step::Issue(open, _) = export.next(Nanos(1)) else { panic!("it opens the file for the tail") };
        export.completed(done(open));
        assert!(matches!(export.next(Nanos(2)), Step::Wait(Wait::Until(_))));
        export.stop.store(true, Ordering::Relaxed);
        assert!(matches!(export.next(Nanos(3)), Step::Done), "it does not wait for the disk");
        assert!(!export.is_whole() && export.fault().is_none(), "{export:?}");
    }

    #[test]
    fn no_more_writes_are_in_flight_than_were_asked_for() {
        let blocks: Vec<_> = (0..900).map(|block| Some(block % 2)).collect();
        let (lanes, _) = laid_out(PACKET_CASES[2], Storing::Files, 2, &blocks, 3);
        let whole = Arc::new(lanes.whole(Extent::All));
        assert!(whole.length() > 4 * AT_ONCE);
        let mut export = opened(&whole, false, 2);
        let mut flying = Vec::new();
        // The reader reads parts in the meantime, into twice as many buffers.
        while flying.len() < 4 {
            match export.next(Nanos(1)) {
                Step::Issue(write, _) => flying.push(write),
                Step::Wait(Wait::ForOne) => break,
                _ => std::thread::yield_now(),
            }
        }
        assert_eq!(flying.len(), 2);
        export.completed(done(flying.remove(0)));
        while !matches!(export.next(Nanos(2)), Step::Issue(..)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_reader_that_ends_early_is_no_fault_of_the_destination() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let whole = Arc::new(lanes.whole(Extent::All));
        let mut export = opened(&whole, false, 1);
        // This reader has nothing to read.
        export.reading = Reading::new(whole, [0; 2], Vec::new(), Arc::new(Deaf)).expect("a thread");
        while matches!(export.next(Nanos(1)), Step::Wait(Wait::Until(_))) {
            std::thread::yield_now();
        }
        assert!(matches!(export.fault(), Some(ExportFault::ReaderEnded)), "{export:?}");
    }

    #[test]
    fn a_stop_is_one_before_the_end() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let export = exported(&Arc::new(lanes.whole(Extent::All)), &directory, EngineKind::Sync, false, true);
        assert!(!export.is_whole() && export.fault().is_none() && export.done() == 0, "{export:?}");
    }
}
