//! A recording into one new file, in order: what a [`RecordingView`] shows is written through an engine.
//!
//! ```text
//! RecordingView -> Export (workload) -> file under a temporary name -> read back and checked -> its own name
//! ```

mod read_back;

pub use read_back::{DamagedBlocks, ExportReadBack, read_back};

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::{ByteRate, Nanos};
use nilometer_storage::{
    Arena, Buffer, Completion, Errno, OpKind, Open, Operation, ROOT, Slot, Step, Wait, Workload,
    buffer::ALIGNMENT,
};

use crate::view::{ReadAhead, RecordingView};

/// How it is written.
#[derive(Debug, Clone)]
pub struct Exporting {
    /// The file's name in the engine's directory: it is there, and empty.
    pub name: String,
    /// Past the page cache.
    pub direct: bool,
    /// No faster than this.
    pub at_most: Option<ByteRate>,
    /// Writes in flight.
    pub depth: usize,
}

/// See the module. A workload: the file is synced when it is done.
#[derive(Debug)]
pub struct Export {
    ahead: ReadAhead,
    exporting: Exporting,
    stop: Arc<AtomicBool>,
    length: u64,
    stage: Stage,
    buffers: Vec<Buffer>,
    flying: usize,
    offset: u64,
    begun: Option<Nanos>,
    hasher: crc32fast::Hasher,
    fault: Option<Errno>,
    overwritten: bool,
    opened: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Write,
    /// The last bytes do not fill a page: past the cache they can't be written.
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
/// Bytes that are written at once.
const AT_ONCE: u64 = 4 << 20;

impl Export {
    /// All that is shown now; an end that is asked for is one before the end.
    pub fn new(whole: Arc<RecordingView>, exporting: Exporting, stop: Arc<AtomicBool>) -> Self {
        let (_, buffers) = Arena::shared_out(exporting.depth + 1, AT_ONCE as usize);
        Export {
            length: whole.length(),
            ahead: ReadAhead::new(whole),
            exporting,
            stop,
            stage: Stage::Open,
            buffers,
            flying: 0,
            offset: 0,
            begun: None,
            hasher: crc32fast::Hasher::new(),
            fault: None,
            overwritten: false,
            opened: false,
        }
    }

    /// Bytes that were read so far.
    pub fn done(&self) -> u64 {
        self.offset
    }

    /// CRC-32 (ISO-HDLC) of them.
    pub fn checksum(&self) -> u32 {
        self.hasher.clone().finalize()
    }

    /// Something was overwritten before it was read: it was not finished.
    pub fn is_overwritten(&self) -> bool {
        self.overwritten
    }

    /// What went wrong, if it was not finished.
    pub fn ending(&self) -> Result<(), Errno> {
        self.fault.map_or(Ok(()), Err)
    }

    /// Whether all of it is in the file.
    pub fn is_whole(&self) -> bool {
        let failed = self.fault.is_some() || self.overwritten;
        self.stage == Stage::Done && !failed && self.offset == self.length
    }

    /// Bytes before the last page, if that can't be written as the others.
    fn body(&self) -> u64 {
        if self.exporting.direct { self.length / ALIGNMENT as u64 * ALIGNMENT as u64 } else { self.length }
    }

    fn write(&mut self, file: Slot, end: u64) -> Operation {
        let mut buffer = self.buffers.pop().expect("one is left for each write in flight");
        let length = (end - self.offset).min(AT_ONCE) as usize;
        self.ahead.read_at(self.offset, &mut buffer[..length]);
        if self.ahead.whole().is_overwritten(self.offset..self.offset + length as u64) {
            self.overwritten = true;
        }
        self.hasher.update(&buffer[..length]);
        let operation = Operation::write(file, self.offset, length as u32, buffer);
        self.offset += length as u64;
        operation
    }

    /// The next stage begins when all of the one before is done.
    fn next_stage(&mut self) -> Option<Operation> {
        let buffer = |export: &mut Self| export.buffers.pop().expect("nothing is in flight");
        let direct = self.exporting.direct;
        let named = |export: &mut Self, open, slot| {
            let buffer = buffer(export);
            Operation::named(OpKind::Open(open), ROOT, slot, export.exporting.name.as_bytes(), buffer)
        };
        let (operation, next) = match self.stage {
            Stage::Open => (named(self, Open::WRITE.direct_if(direct), FILE), Stage::Write),
            Stage::Write if self.body() < self.length => {
                self.stage = Stage::OpenTail;
                return self.next_stage();
            }
            Stage::OpenTail => (named(self, Open::WRITE, TAIL), Stage::Tail),
            Stage::Tail => (self.write(TAIL, self.length), Stage::Sync),
            Stage::Write | Stage::Sync => (Operation::on(OpKind::Sync, FILE, buffer(self)), Stage::Close),
            Stage::Close => (Operation::on(OpKind::Close, FILE, buffer(self)), Stage::Done),
            Stage::Done => return None,
        };
        self.stage = next;
        Some(operation)
    }

    /// When the next bytes may be written.
    fn due(&mut self, now: Nanos) -> Nanos {
        let begun = *self.begun.get_or_insert(now);
        let rate = self.exporting.at_most;
        rate.map_or(now, |rate| begun + Nanos::from_seconds(self.offset as f64 / rate.0))
    }
}

impl Workload for Export {
    fn next(&mut self, now: Nanos) -> Step {
        let over = self.fault.is_some()
            || self.overwritten
            || self.stop.load(Ordering::Relaxed) && self.stage == Stage::Write;
        if over {
            return if self.flying > 0 { Step::Wait(Wait::ForOne) } else { Step::Done };
        }
        let operation = if self.stage == Stage::Write && self.opened && self.offset < self.body() {
            if self.buffers.len() < 2 {
                return Step::Wait(Wait::ForOne);
            }
            let due = self.due(now);
            if due > now {
                return Step::Wait(Wait::Until(due));
            }
            Some(self.write(FILE, self.body()))
        } else if self.flying > 0 {
            return Step::Wait(Wait::ForOne);
        } else {
            self.next_stage()
        };
        let Some(operation) = operation else { return Step::Done };
        self.flying += 1;
        Step::Issue(operation, now)
    }

    fn completed(&mut self, completion: Completion) {
        let Completion { operation, result, .. } = completion;
        self.flying -= 1;
        let whole = |written| operation.kind != OpKind::Write || written == operation.length;
        let fault = match result {
            Ok(written) if whole(written) => None,
            Ok(_) => Some(Errno::ENOSPC),
            Err(errno) => Some(errno),
        };
        self.opened |= fault.is_none() && matches!(operation.kind, OpKind::Open(_));
        self.fault = self.fault.or(fault);
        self.buffers.push(operation.buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use nilometer_model::{Storing, plan::EngineKind};
    use nilometer_storage::{
        Clock, Drive, Engine,
        engine::{Options, on_directory},
    };
    use tempfile::TempDir;

    use super::*;
    use crate::view::{
        Extent,
        tests::{COURSES, laid_out, overtaken},
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
        let mut export = Export::new(whole.clone(), exporting, Arc::new(AtomicBool::new(stop)));
        Drive::new(&mut export, engine(directory, kind).as_mut()).run(|_| {});
        export
    }

    #[test]
    fn a_file_has_every_byte() {
        let blocks: Vec<_> = (0..900).map(|block| Some(block % 2).filter(|_| block % 7 != 3)).collect();
        let (lanes, reference) = laid_out(COURSES[2], Storing::Files, 2, &blocks, 3);
        let whole = Arc::new(lanes.whole(Extent::All));
        assert!(whole.length() > 4 * AT_ONCE && !whole.length().is_multiple_of(ALIGNMENT as u64));
        for (kind, direct) in [(EngineKind::Sync, false), (EngineKind::Pool, false), (EngineKind::Pool, true)]
        {
            let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory on a disk");
            let export = exported(&whole, &directory, kind, direct, false);
            assert!(export.is_whole(), "{:?}", export.ending());
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
        assert_eq!((export.is_whole(), export.is_overwritten(), export.ending()), (false, true, Ok(())));
    }

    #[test]
    fn a_stop_is_one_before_the_end() {
        let (lanes, _) = laid_out(COURSES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let export = exported(&Arc::new(lanes.whole(Extent::All)), &directory, EngineKind::Sync, false, true);
        assert_eq!((export.is_whole(), export.ending(), export.done()), (false, Ok(()), 0));
    }
}
