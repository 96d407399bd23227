//! What was recorded in HDF5 is read in a way of its own, once it is recorded: a phase behind the ingest, of the same cell. Its
//! operations are frames, its bytes those of the pixels that were asked for.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use nilometer_acquisition::{FrameReadError, Hdf5FrameReader, ReadingTotals, sink::Hdf5Contents};
use nilometer_model::{
    Coldness, Format, Invalid, Moment, Nanos, ReadingWay, Sample, Seed, plan::RecordingRun,
};
use nilometer_storage::{Calendar, Clock, Target, process::Usage, within};

use super::name_of;
use crate::phase::Run;

/// The files of a recording that is over.
#[derive(Debug)]
pub(crate) struct RecordedFiles<'a> {
    pub(crate) target: &'a Arc<dyn Target>,
    /// Of the cell among those that were recorded at once.
    pub(crate) index: usize,
    pub(crate) cell: &'a RecordingRun,
    /// It hung: nothing of it is read.
    pub(crate) hung: bool,
}

/// What reading came to, and what it cost.
#[derive(Debug, Clone, Copy)]
struct ReadFiles {
    totals: ReadingTotals,
    cold: Coldness,
    usage: Usage,
}

impl RecordedFiles<'_> {
    /// Reads them as the cell asks for, if it does.
    pub(crate) fn read(&self, run: &Run, seed: Seed) -> Option<Sample> {
        let way = self.cell.read?;
        let started = Calendar::now().time;
        let result = if self.hung { Err(Invalid::Hung) } else { self.read_in(way, run, seed) };
        let read = match result {
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
        let contents = Hdf5Contents::of(&self.cell.recorded(), Moment::default());
        let contents = contents.filter(|_| self.cell.recorded().recording.format == Format::Hdf5);
        let contents = contents.ok_or_else(|| Invalid::Refused("it is not in HDF5".into()))?;
        let names: Vec<_> = (0..u64::from(self.cell.count) * self.cell.rings())
            .map(|number| name_of(self.index, number))
            .collect();
        let files = self.asked(run, move |target| files_of(target, &names))?;
        let mut read = ReadFiles::default();
        for (number, file) in (0..).zip(files) {
            let contents = contents.clone();
            let clock = run.clock;
            let seed = seed.named("read").part(number);
            // Each by itself: storage that is slow does not hang.
            let one = self.asked(run, move |target| read_file(target, &file, &contents, way, seed, clock))?;
            read = read.and(one);
        }
        if read.totals.frames == 0 {
            Err(Invalid::Refused(FrameReadError::NoFrames.to_string()))
        } else {
            Ok(read)
        }
    }

    /// What the target says, unless it hangs.
    fn asked<T: Send + 'static>(
        &self,
        run: &Run,
        ask: impl FnOnce(&dyn Target) -> Result<T, FrameReadError> + Send + 'static,
    ) -> Result<T, Invalid> {
        match within(run.hang_after, self.target, ask) {
            Ok(answer) => answer.map_err(|error| Invalid::Refused(format!("can't be read: {error}"))),
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

/// Reads a file of a recording, from a cold cache.
fn read_file(
    target: &dyn Target,
    file: &str,
    contents: &Hdf5Contents,
    way: ReadingWay,
    seed: Seed,
    clock: Clock,
) -> Result<ReadFiles, FrameReadError> {
    let directory = target.directory().ok_or(FrameReadError::NoFrames)?;
    let mut reader = Hdf5FrameReader::open(&directory.join(file), contents)?;
    let cold = target.chill(file).unwrap_or(Coldness::NotProvable);
    let before = Usage::of_thread();
    let totals = reader.read(way, seed, clock, &AtomicBool::new(false))?;
    Ok(ReadFiles { totals, cold, usage: Usage::of_thread().since(before) })
}

/// Files in HDF5 of these recordings, in order.
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
