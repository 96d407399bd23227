//! What was recorded in HDF5 is read in a way of its own, once it is recorded: a phase behind the ingest, of the same cell. Its
//! operations are frames, its bytes those of the pixels that were asked for.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use nilometer_acquisition::{FrameReadError, Hdf5FrameReader, ReadingTotals, sink::Hdf5Contents};
use nilometer_model::{Coldness, Format, Invalid, Moment, ReadingWay, Sample, Seed, plan::RecordingRun};
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
#[derive(Debug)]
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
            coldness: Some(cold),
            invalid: (cold == Coldness::Contradicted).then_some(Invalid::WarmRead),
            ..Sample::new(totals.took)
        })
    }

    fn read_in(&self, way: ReadingWay, run: &Run, seed: Seed) -> Result<ReadFiles, Invalid> {
        let contents = Hdf5Contents::of(&self.cell.recorded(), Moment::default());
        let contents = contents.filter(|_| self.cell.recorded().recording.format == Format::Hdf5);
        let contents = contents.ok_or_else(|| Invalid::Refused("it is not in HDF5".into()))?;
        let names: Vec<_> =
            (0..u64::from(self.cell.count)).map(|number| name_of(self.index, number)).collect();
        let clock = run.clock;
        let ask = move |target: &dyn Target| all_of(target, &names, &contents, way, seed, clock);
        match within(run.hang_after, self.target, ask) {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(error)) => Err(Invalid::Refused(format!("can't be read: {error}"))),
            Err(_) => Err(Invalid::Hung),
        }
    }
}

/// Reads all files of the recordings of these names.
fn all_of(
    target: &dyn Target,
    names: &[String],
    contents: &Hdf5Contents,
    way: ReadingWay,
    seed: Seed,
    clock: Clock,
) -> Result<ReadFiles, FrameReadError> {
    let directory = target.directory().ok_or(FrameReadError::NoFrames)?;
    let mut read =
        ReadFiles { totals: ReadingTotals::default(), cold: Coldness::Proved, usage: Usage::default() };
    let before = Usage::of_thread();
    for (number, file) in (0..).zip(files_of(directory, names)?) {
        let mut reader = Hdf5FrameReader::open(&directory.join(&file), contents)?;
        let cold = target.chill(&file).unwrap_or(Coldness::NotProvable);
        let totals = reader.read(way, seed.named("read").part(number), clock, &AtomicBool::new(false))?;
        read.totals = read.totals.and(totals);
        read.cold = [read.cold, cold].into_iter().max_by_key(|cold| cold.severity()).unwrap_or(cold);
    }
    read.usage = Usage::of_thread().since(before);
    if read.totals.frames == 0 { Err(FrameReadError::NoFrames) } else { Ok(read) }
}

/// Files in HDF5 of these recordings, in order.
fn files_of(directory: &Path, names: &[String]) -> Result<Vec<String>, FrameReadError> {
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
