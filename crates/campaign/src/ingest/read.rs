//! Reads a recording in HDF5 after it was made, as a phase of the same cell behind the ingest. Its operations
//! are frames, or blocks of frames, and its bytes are those of the requested pixels.
//!
//! The processes that wrote one dataset read it together, each a part of its own:
//!
//! ```text
//! rank 0   ReadBack ->    open  Opened -> Begin   cold  Ready -> Begin   start agreed ....  Measured -> one sample
//! others   <- ReadBack    open  Opened -> Begin   cold  Ready -> Begin   start agreed ....  Measured
//! ```
//!
//! All must find a dataset of the same dimensions. No process opens or reads the file while others on its machine
//! drop it from their cache.

use std::{path::Path, sync::Arc};

use nilometer_cluster::RankReport;
use nilometer_hdf5_recording::{FrameReadError, Hdf5Contents, settle_instrument};
use nilometer_model::{
    Coldness, Format, Invalid, Moment, Nanos, ReaderPlace, ReadingWay, Sample, Seed, WorkerTotals,
};
use nilometer_plan::RecordingRun;
use nilometer_storage::{Calendar, Target, process, within};

use super::{
    name_of, name_of_all,
    opened_files::{FilesToRead, OpenedFiles, ReadFiles, refused},
    together::RecordingRanks,
};
use crate::{
    surroundings::Surroundings,
    task::{Run, traffic_since},
    together::{of_rank, united},
};

/// The files of a finished recording.
#[derive(Debug)]
pub(crate) struct RecordedFiles<'a> {
    /// The target's number in the plan.
    pub(crate) number: usize,
    pub(crate) target: &'a Arc<dyn Target>,
    /// The index of its cell among those recorded at once. It names files that one process recorded.
    pub(crate) index: usize,
    pub(crate) cell: &'a RecordingRun,
    pub(crate) seed: Seed,
    /// The way in which to read them.
    pub(crate) way: ReadingWay,
    /// The processes of the campaign, and the repeat that recorded them.
    pub(crate) together: RecordingRanks<'a>,
}

/// The part of this process, ready to read.
struct ReadyPart {
    files: OpenedFiles,
    cold: Coldness,
    place: ReaderPlace,
}

impl RecordedFiles<'_> {
    /// Reads the files together with the other processes. Returns a sample at rank 0. Returns `None` at other
    /// ranks, and if the campaign ended first: an interrupted read gives no figure.
    pub(crate) fn read(&self, run: &Run, surroundings: &mut Surroundings) -> Option<Sample> {
        let sample = self.read_together(run, surroundings);
        surroundings.pass_together(self.together.cluster, &run.clock);
        sample
    }

    fn read_together(&self, run: &Run, surroundings: &mut Surroundings) -> Option<Sample> {
        let cluster = self.together.cluster;
        let own = match self.ready(run)? {
            Ok(own) => own,
            Err(why) => return (cluster.rank() == 0).then(|| Sample::invalid(why)),
        };
        let report = self.measured(run, surroundings, own.as_ref());
        united(cluster, cluster.gather(report))?.pop()
    }

    /// Agrees that all processes have opened the same dataset, and that it is cold. Returns the part of this
    /// process, if it has one, or the reason why none reads. Returns `None` if the campaign is over.
    fn ready(&self, run: &Run) -> Option<Result<Option<ReadyPart>, Invalid>> {
        let is_over = || run.is_over();
        let place = self.place();
        let opened = place.map(|place| self.opened(run, place)).transpose();
        let dimensions = opened.as_ref().map(|opened| opened.as_ref().map(|files| files.dimensions.clone()));
        if let Err(why) = self.together.all_opened(dimensions.map_err(Clone::clone), &is_over)? {
            return Some(Err(why));
        }
        let own = opened.and_then(|opened| {
            let files = place.zip(opened);
            files.map(|(place, files)| ReadyPart::chilled(files, place, run)).transpose()
        });
        let agreed = self.together.all_ready(own.as_ref().err(), &is_over)?;
        Some(agreed.and(own))
    }

    /// The place of this process among those that read; `None` if it is not one of them.
    fn place(&self) -> Option<ReaderPlace> {
        let readers = self.together.ranks.nodes.recorded_by(self.cell);
        let number = readers.iter().position(|rank| *rank == self.together.cluster.rank())?;
        Some(ReaderPlace { number: number as u32, of: readers.len() as u32 })
    }

    /// Opens the files of this process's part.
    fn opened(&self, run: &Run, place: ReaderPlace) -> Result<OpenedFiles, Invalid> {
        let contents = self.contents()?;
        let files = self.files(run, place)?;
        let target = self.target.clone();
        let RecordedFiles { way, seed, .. } = *self;
        FilesToRead { target, files, contents, way, place, seed, clock: run.clock }.opened(run)
    }

    /// The contents of the recorded files.
    fn contents(&self) -> Result<Hdf5Contents, Invalid> {
        let mut recorded = self.cell.recorded().into_owned();
        settle_instrument(&mut recorded).map_err(Invalid::Refused)?;
        let contents = Hdf5Contents::of(&recorded, Moment::default());
        let contents = contents.filter(|_| recorded.recording.format == Format::Hdf5);
        contents.ok_or_else(|| Invalid::Refused("it is not in HDF5".into()))
    }

    /// The names of the files. If several processes wrote one dataset, they know its name. They need no listing,
    /// which the client of a network file system may keep in its cache.
    fn files(&self, run: &Run, place: ReaderPlace) -> Result<Vec<String>, Invalid> {
        let numbers = 0..u64::from(self.cell.count) * self.cell.rings();
        if place.of > 1 {
            let suffix = Format::Hdf5.suffix();
            let name = |number| format!("{}.{suffix}", name_of_all(&self.together, self.seed, number));
            return Ok(numbers.map(name).collect());
        }
        let names: Vec<_> = numbers.map(|number| name_of(Some(&self.together), self.index, number)).collect();
        match within(run.hang_after, self.target, move |target| files_of(target, &names)) {
            Ok(files) => files.map_err(|error| refused(&error)),
            Err(_) => Err(Invalid::Hung),
        }
    }

    /// Reads this process's part from the agreed start on. Without a part it waits for the others.
    fn measured(&self, run: &Run, surroundings: &mut Surroundings, own: Option<&ReadyPart>) -> RankReport {
        let cluster = self.together.cluster;
        let load = process::load_average();
        let traffic = self.target.traffic();
        cluster.barrier();
        let (moment, before) = surroundings.begin(&run.clock);
        let start = cluster.agree_start(&run.clock);
        let started = Calendar::now().time + start.since(run.clock.now());
        let reported = |whole, samples| RankReport::Measured { whole, samples, loads: Vec::new() };
        let Some(own) = own else { return reported(true, Vec::new()) };
        let read = own.files.read_from(start, run).map(|read| read.beginning_with(own.cold));
        if run.is_over() {
            return reported(false, Vec::new());
        }
        let spent = surroundings.end(&run.clock, &moment);
        let began = read.as_ref().map_or(Nanos(0), |read| read.late);
        let sample = read.map_or_else(Sample::invalid, |read| part_sample(read, own.place));
        let device = traffic_since(traffic, self.target.as_ref());
        let mut sample = Sample { load, before, started, device, ..sample };
        spent.put(&mut sample, self.number, 1, surroundings.idle_cores());
        reported(true, vec![of_rank(cluster, sample, began)])
    }

    /// The sample, compared with the recording, which stored this many frames. If all of them are in one dataset,
    /// a reading that finds fewer or more pixels is wrong.
    pub(crate) fn compared(&self, sample: Sample, stored: u64) -> Sample {
        let is_other = self.expected(stored).is_some_and(|expected| sample.bytes != expected);
        let wrong = is_other.then_some(Invalid::Wrong);
        let none = (sample.operations == 0).then(|| refused(&FrameReadError::NoFrames));
        let fault = Invalid::gravest(wrong, none);
        let invalid = Invalid::gravest(fault, sample.invalid.clone());
        Sample { invalid, ..sample }
    }

    /// The bytes that all processes together must find of this many frames. `None` if the recording may have removed
    /// some, or the way takes any frames.
    fn expected(&self, stored: u64) -> Option<u64> {
        let known = self.cell.is_read_together() && self.way != ReadingWay::Frame;
        let contents = self.contents().ok().filter(|_| known)?;
        let (_, shape) = contents.tree.frames().into_iter().next()?;
        Some(stored * self.way.block(&shape.frame).pixels() * shape.element.bytes() as u64)
    }
}

impl ReadyPart {
    /// Drops the first file from the cache.
    fn chilled(files: OpenedFiles, place: ReaderPlace, run: &Run) -> Result<Self, Invalid> {
        let cold = files.chill(run)?;
        Ok(ReadyPart { files, cold, place })
    }
}

/// The sample of a process's part. If there are several, its time begins at the agreed start.
fn part_sample(read: ReadFiles, place: ReaderPlace) -> Sample {
    let ReadFiles { totals, cold, usage, late } = read;
    let wall = if place.of > 1 { late + totals.took } else { totals.took };
    let worker =
        WorkerTotals { bytes: totals.asked, operations: totals.frames, first_done: wall, last_done: wall };
    Sample {
        bytes: totals.asked,
        operations: totals.frames,
        user: usage.user,
        system: usage.system,
        wall,
        workers: vec![worker],
        coldness: Some(cold),
        invalid: (cold == Coldness::Contradicted).then_some(Invalid::WarmRead),
        ..Sample::new(Nanos(0))
    }
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

#[cfg(test)]
mod tests {
    use nilometer_cluster::{Alone, CampaignRanks};
    use nilometer_model::{Bytes, Instrument, Storing};
    use nilometer_storage::testing::Memory;

    use super::*;

    /// Frames of 6000 B.
    const CAMERA: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [50, 60]\npixel = \"uint16\"\n\
                          frame_rate = \"200 Hz\"\n";

    fn cell(storing: Storing) -> RecordingRun {
        let mut instrument = Instrument::parse(CAMERA, "camera.toml").expect("valid");
        instrument.recording.format = Format::Hdf5;
        instrument.recording.storing = storing;
        RecordingRun::new(instrument)
    }

    /// The reason why a sample of a reading must not be used, if the recording stored 10 frames.
    fn fault(cell: &RecordingRun, way: ReadingWay, sample: Sample) -> Option<Invalid> {
        let target: Arc<dyn Target> = Arc::new(Memory::new(Bytes(1 << 20)));
        let ranks = CampaignRanks::alone();
        let together = RecordingRanks { cluster: &Alone, ranks: &ranks, attempt: 0 };
        let target = &target;
        let files = RecordedFiles { number: 0, target, index: 0, cell, seed: Seed(1), way, together };
        files.compared(sample, 10).invalid
    }

    fn read(bytes: u64, operations: u64) -> Sample {
        Sample { bytes, operations, ..Sample::new(Nanos(0)) }
    }

    #[test]
    fn a_reading_of_other_bytes_than_the_recording_stored_is_wrong() {
        let shared = cell(Storing::Shared);
        for (way, bytes) in [
            (ReadingWay::Frames, 60_000),
            (ReadingWay::Rows, 60_000),
            (ReadingWay::Blocks, 60_000),
            (ReadingWay::Line, 1200),
            (ReadingWay::Pixel, 20),
        ] {
            assert_eq!(fault(&shared, way, read(bytes, 10)), None, "{way}");
            for other in [bytes - 2, 2 * bytes] {
                assert_eq!(fault(&shared, way, read(other, 10)), Some(Invalid::Wrong), "{way}: {other}");
            }
        }
        assert_eq!(fault(&shared, ReadingWay::Frame, read(6000, 1)), None, "any number of single frames");
        let apart = cell(Storing::Growing);
        assert_eq!(fault(&apart, ReadingWay::Frames, read(54_000, 9)), None, "files may have been removed");
        assert!(matches!(fault(&apart, ReadingWay::Frames, read(0, 0)), Some(Invalid::Refused(_))));
    }

    #[test]
    fn the_gravest_fault_of_a_reading_stays() {
        let shared = cell(Storing::Shared);
        let faulty = |why: Invalid| fault(&shared, ReadingWay::Rows, Sample::invalid(why));
        assert_eq!(faulty(Invalid::Hung), Some(Invalid::Hung));
        let refused = Invalid::Refused("process 0 finds a dataset of 1x2".into());
        assert_eq!(faulty(refused.clone()), Some(refused));
        let warm = Sample { invalid: Some(Invalid::WarmRead), ..read(6000, 1) };
        assert_eq!(fault(&shared, ReadingWay::Rows, warm), Some(Invalid::Wrong));
    }
}
