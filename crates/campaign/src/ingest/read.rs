//! Reads a recording in HDF5 after it was made, as a phase of the same cell behind the ingest. Its operations
//! are frames, and its bytes are those of the requested pixels.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use nilometer_hdf5_recording::{
    FrameReadError, Hdf5Contents, Hdf5FrameReader, ReadingTotals, ReadingWatch, settle_instrument,
};
use nilometer_model::{Coldness, Format, Invalid, Moment, Nanos, ReadingWay, Sample, Seed};
use nilometer_plan::RecordingRun;
use nilometer_storage::{Calendar, Clock, DetachedTask, NoOutcome, Target, process::Usage, within};

use super::name_of;
use crate::task::Run;

/// The files of a finished recording.
#[derive(Debug)]
pub(crate) struct RecordedFiles<'a> {
    pub(crate) target: &'a Arc<dyn Target>,
    /// The index of its cell among those recorded at once.
    pub(crate) index: usize,
    pub(crate) cell: &'a RecordingRun,
    /// True if the recording hung; then nothing of it is read.
    pub(crate) hung: bool,
}

/// The results of reading, and the resources it took.
#[derive(Debug, Clone, Copy)]
struct ReadFiles {
    totals: ReadingTotals,
    cold: Coldness,
    usage: Usage,
}

impl RecordedFiles<'_> {
    /// Reads the files in the way that the cell asks for, if it does.
    pub(crate) fn read(&self, run: &Run, seed: Seed) -> Option<Sample> {
        let way = self.cell.read?;
        // An interrupted read gives no figure.
        if run.is_over() {
            return None;
        }
        let started = Calendar::now().time;
        let result = if self.hung { Err(Invalid::Hung) } else { self.read_in(way, run, seed) };
        let read = match result {
            _ if run.is_over() => return None,
            Ok(read) => read,
            Err(why) => return Some(Sample::invalid(why)),
        };
        let ReadFiles { totals, cold, usage } = read;
        Some(Sample {
            bytes: totals.asked,
            operations: totals.frames,
            user: usage.user,
            system: usage.system,
            started,
            wall: totals.took,
            coldness: Some(cold),
            invalid: (cold == Coldness::Contradicted).then_some(Invalid::WarmRead),
            ..Sample::new(Nanos(0))
        })
    }

    fn read_in(&self, way: ReadingWay, run: &Run, seed: Seed) -> Result<ReadFiles, Invalid> {
        let mut recorded = self.cell.recorded().into_owned();
        settle_instrument(&mut recorded).map_err(Invalid::Refused)?;
        let contents = Hdf5Contents::of(&recorded, Moment::default());
        let contents = contents.filter(|_| recorded.recording.format == Format::Hdf5);
        let contents = contents.ok_or_else(|| Invalid::Refused("it is not in HDF5".into()))?;
        let names: Vec<_> = (0..u64::from(self.cell.count) * self.cell.rings())
            .map(|number| name_of(None, self.index, number))
            .collect();
        let files = self.asked(run, move |target| files_of(target, &names))?;
        let mut read = ReadFiles::default();
        for (number, file) in (0..).zip(files) {
            let contents = contents.clone();
            let clock = run.clock;
            let seed = seed.named("read").part(number);
            let watch = Arc::new(ReadingWatch::default());
            let one = FileReading { target: self.target.clone(), file, contents, way, seed, clock, watch };
            read = read.and(one.watched(run)?);
            if run.is_over() {
                break;
            }
        }
        if read.totals.frames == 0 {
            Err(Invalid::Refused(FrameReadError::NoFrames.to_string()))
        } else {
            Ok(read)
        }
    }

    /// Calls the target on another thread, and gives up if it hangs.
    fn asked<T: Send + 'static>(
        &self,
        run: &Run,
        ask: impl FnOnce(&dyn Target) -> Result<T, FrameReadError> + Send + 'static,
    ) -> Result<T, Invalid> {
        match within(run.hang_after, self.target, ask) {
            Ok(answer) => answer.map_err(|error| refused(&error)),
            Err(_) => Err(Invalid::Hung),
        }
    }
}

impl ReadFiles {
    fn and(self, other: ReadFiles) -> Self {
        let cold = if self.cold.severity() > other.cold.severity() { self.cold } else { other.cold };
        ReadFiles { totals: self.totals.and(other.totals), cold, usage: self.usage.and(other.usage) }
    }
}

impl Default for ReadFiles {
    fn default() -> Self {
        ReadFiles { totals: ReadingTotals::default(), cold: Coldness::Proved, usage: Usage::default() }
    }
}

/// A file of a recording that is being read.
struct FileReading {
    target: Arc<dyn Target>,
    file: String,
    contents: Hdf5Contents,
    way: ReadingWay,
    seed: Seed,
    clock: Clock,
    watch: Arc<ReadingWatch>,
}

impl FileReading {
    /// Reads the file from a cold cache.
    fn read(&self) -> Result<ReadFiles, FrameReadError> {
        let directory = self.target.directory().ok_or(FrameReadError::NoFrames)?;
        let mut reader = Hdf5FrameReader::open(&directory.join(&self.file), &self.contents)?;
        let cold = self.target.chill(&self.file).unwrap_or(Coldness::NotProvable);
        let before = Usage::of_thread();
        let totals = reader.read(self.way, self.seed, self.clock, &self.watch)?;
        Ok(ReadFiles { totals, cold, usage: Usage::of_thread().since(before) })
    }

    /// Reads on a separate thread, which is abandoned if no frame comes for too long: slow storage does not
    /// count as hung. It stops reading when the campaign is over.
    fn watched(self, run: &Run) -> Result<ReadFiles, Invalid> {
        let watch = self.watch.clone();
        let task = DetachedTask::begin("reader", move || self.read())
            .map_err(|error| Invalid::Refused(format!("can't start a thread: {error}")))?;
        let mut frames = 0;
        let mut since = run.clock.now();
        loop {
            match task.outcome_within(LOOK) {
                Ok(read) => return read.map_err(|error| refused(&error)),
                Err(NoOutcome::Gone) => unreachable!("the thread answers, or the panic was ours"),
                Err(NoOutcome::Unfinished) => {}
            }
            let now = run.clock.now();
            let before = std::mem::replace(&mut frames, watch.frames.load(Ordering::Relaxed));
            if frames != before {
                since = now;
            }
            let hangs = now.since(since) >= run.hang_after;
            watch.stop.fetch_or(hangs || run.is_over(), Ordering::Relaxed);
            if hangs {
                return Err(Invalid::Hung);
            }
        }
    }
}

/// How often `watched` checks the progress of reading.
const LOOK: Nanos = Nanos::from_millis(20);

fn refused(error: &FrameReadError) -> Invalid {
    Invalid::Refused(format!("can't be read: {error}"))
}

/// Lists the HDF5 files of these recordings, in order.
fn files_of(target: &dyn Target, names: &[String]) -> Result<Vec<String>, FrameReadError> {
    let directory = target.directory().ok_or(FrameReadError::NoFrames)?;
    let mut files = Vec::new();
    for entry in directory.read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_of = |of: &String| name.strip_prefix(of.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let suffix = Path::new(&name).extension().and_then(|suffix| suffix.to_str());
        if suffix == Some(Format::Hdf5.suffix()) && names.iter().any(is_of) {
            files.push(name);
        }
    }
    files.sort_unstable();
    Ok(files)
}
