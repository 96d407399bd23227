//! The HDF5 files of a recording that a process reads, on a thread of its own. Storage that hangs therefore stops
//! only that thread.
//!
//! ```text
//! process   begins the thread .. Opened | all agree, the first file gets cold | start agreed .......... Ended
//! thread    opens the first file        | waits                              | reads its part of each file
//! ```

use std::{
    mem,
    sync::{Arc, atomic::Ordering, mpsc::SyncSender},
};

use nilometer_hdf5_recording::{FrameReadError, Hdf5Contents, Hdf5FrameReader, ReadingTotals, ReadingWatch};
use nilometer_model::{Coldness, Invalid, Nanos, ReaderPlace, ReadingWay, Seed};
use nilometer_storage::{Clock, DetachedTask, NoOutcome, Target, process::Usage, within};

use crate::{barrier::Barrier, task::Run};

/// The results of reading, and the resources it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadFiles {
    pub(super) totals: ReadingTotals,
    pub(super) cold: Coldness,
    pub(super) usage: Usage,
    /// The time from the agreed start until the thread began to read.
    pub(super) late: Nanos,
}

impl ReadFiles {
    fn and(self, other: ReadFiles) -> Self {
        ReadFiles {
            totals: self.totals.and(other.totals),
            cold: worse(self.cold, other.cold),
            usage: self.usage.and(other.usage),
            late: self.late.max(other.late),
        }
    }

    /// The results if the first file was as cold as this.
    pub(super) fn beginning_with(self, cold: Coldness) -> Self {
        ReadFiles { cold: worse(self.cold, cold), ..self }
    }
}

/// The more severe of two findings.
fn worse(one: Coldness, other: Coldness) -> Coldness {
    if one.severity() > other.severity() { one } else { other }
}

impl Default for ReadFiles {
    fn default() -> Self {
        ReadFiles {
            totals: ReadingTotals::default(),
            cold: Coldness::Proved,
            usage: Usage::default(),
            late: Nanos(0),
        }
    }
}

/// The files to read, and the part of this process.
pub(super) struct FilesToRead {
    pub(super) target: Arc<dyn Target>,
    /// The names of the files, in order.
    pub(super) files: Vec<String>,
    pub(super) contents: Hdf5Contents,
    pub(super) way: ReadingWay,
    pub(super) place: ReaderPlace,
    pub(super) seed: Seed,
    pub(super) clock: Clock,
}

/// A report of the thread.
enum ReaderReport {
    /// The first file is open; the dimensions of its dataset.
    Opened(Vec<u64>),
    /// The thread has ended.
    Ended(Result<ReadFiles, FrameReadError>),
}

impl FilesToRead {
    /// Opens the first file on a new thread, which then waits. Gives up if the storage hangs.
    pub(super) fn opened(self, run: &Run) -> Result<OpenedFiles, Invalid> {
        let first = self.files.first().cloned().ok_or_else(|| refused(&FrameReadError::NoFrames))?;
        let target = self.target.clone();
        let start = Arc::new(Barrier::default());
        let watch = Arc::new(ReadingWatch::default());
        let thread = ReaderThread { read: self, start: start.clone(), watch: watch.clone() };
        let task = DetachedTask::begin_reporting("reader", move |reports| thread.work(reports))
            .map_err(|error| Invalid::Refused(format!("can't start a thread: {error}")))?;
        let dimensions = match task.outcome_within(run.hang_after) {
            Ok(ReaderReport::Opened(dimensions)) => dimensions,
            Ok(ReaderReport::Ended(Err(error))) => return Err(refused(&error)),
            Ok(ReaderReport::Ended(Ok(_))) => unreachable!("it opens a file before it reads"),
            Err(NoOutcome::Unfinished) => return Err(Invalid::Hung),
            Err(NoOutcome::Gone) => unreachable!("the thread answers, or the panic was ours"),
        };
        Ok(OpenedFiles { target, first, task, start, watch, dimensions })
    }
}

/// The state of the thread.
struct ReaderThread {
    read: FilesToRead,
    start: Arc<Barrier>,
    watch: Arc<ReadingWatch>,
}

impl ReaderThread {
    fn work(&self, reports: &SyncSender<ReaderReport>) {
        let ended = self.read(reports);
        // Nobody may wait any longer.
        drop(reports.send(ReaderReport::Ended(ended)));
    }

    fn read(&self, reports: &SyncSender<ReaderReport>) -> Result<ReadFiles, FrameReadError> {
        let FilesToRead { target, files, clock, .. } = &self.read;
        let mut all = ReadFiles::default();
        for (number, file) in (0..).zip(files) {
            let mut reader = self.open(file)?;
            let begun = if number == 0 {
                let Some(late) = self.wait_for_start(&reader, reports) else { break };
                ReadFiles { late, ..ReadFiles::default() }
            } else {
                let cold = target.chill(file).unwrap_or(Coldness::NotProvable);
                ReadFiles { cold, ..ReadFiles::default() }
            };
            let FilesToRead { way, place, seed, .. } = self.read;
            let before = Usage::of_thread();
            let totals = reader.read(way, place, seed.named("read").part(number), *clock, &self.watch)?;
            all = all.and(ReadFiles { totals, usage: Usage::of_thread().since(before), ..begun });
            if self.watch.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(all)
    }

    fn open(&self, file: &str) -> Result<Hdf5FrameReader, FrameReadError> {
        let directory = self.read.target.directory().ok_or(FrameReadError::NoFrames)?;
        Hdf5FrameReader::open(&directory.join(file), &self.read.contents)
    }

    /// Reports that the first file is open, and sleeps until the agreed start. Returns how late it woke. Returns
    /// `None` if there is nothing to read.
    fn wait_for_start(&self, reader: &Hdf5FrameReader, reports: &SyncSender<ReaderReport>) -> Option<Nanos> {
        let clock = self.read.clock;
        reports.send(ReaderReport::Opened(reader.dimensions().to_vec())).ok()?;
        let start = self.start.pass()?;
        clock.sleep_until(start);
        Some(clock.now().since(start))
    }
}

/// Opened files, and the thread that waits to read them. Dropping it ends a thread that still waits.
pub(super) struct OpenedFiles {
    target: Arc<dyn Target>,
    first: String,
    task: DetachedTask<ReaderReport>,
    start: Arc<Barrier>,
    watch: Arc<ReadingWatch>,
    /// The dimensions of the first file's dataset, slowest first.
    pub(super) dimensions: Vec<u64>,
}

impl OpenedFiles {
    /// Drops the first file from the cache of this machine. No process on it may read the file meanwhile.
    pub(super) fn chill(&self, run: &Run) -> Result<Coldness, Invalid> {
        let file = self.first.clone();
        match within(run.hang_after, &self.target, move |target| target.chill(&file)) {
            Ok(cold) => Ok(cold.unwrap_or(Coldness::NotProvable)),
            Err(_) => Err(Invalid::Hung),
        }
    }

    /// Reads from this time on, to the end. Gives up the thread if it begins no frame for too long: slow storage
    /// does not count as hung. The thread stops reading when the campaign is over.
    pub(super) fn read_from(&self, start: Nanos, run: &Run) -> Result<ReadFiles, Invalid> {
        self.start.open(start);
        let mut frames = 0;
        let mut since = run.clock.now().max(start);
        loop {
            match self.task.outcome_within(LOOK) {
                Ok(ReaderReport::Ended(read)) => return read.map_err(|error| refused(&error)),
                Ok(ReaderReport::Opened(_)) => unreachable!("it was opened before"),
                Err(NoOutcome::Gone) => unreachable!("the thread answers, or the panic was ours"),
                Err(NoOutcome::Unfinished) => {}
            }
            let now = run.clock.now();
            let before = mem::replace(&mut frames, self.watch.frames.load(Ordering::Relaxed));
            if frames != before {
                since = now;
            }
            let hangs = now.since(since) >= run.hang_after;
            self.watch.stop.fetch_or(hangs || run.is_over(), Ordering::Relaxed);
            if hangs {
                return Err(Invalid::Hung);
            }
        }
    }
}

impl Drop for OpenedFiles {
    fn drop(&mut self) {
        self.start.cancel();
    }
}

/// The interval at which a process looks for the progress of its thread.
const LOOK: Nanos = Nanos::from_millis(20);

/// The reason why files can't be read.
pub(super) fn refused(error: &FrameReadError) -> Invalid {
    Invalid::Refused(format!("can't be read: {error}"))
}
