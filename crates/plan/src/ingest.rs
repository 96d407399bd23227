//! One recording of an instrument: its frames, their pace, and the readers meanwhile. A recording may have a
//! background load, and a load may be a recording, so both are here.

use std::{borrow::Cow, fmt};

use nilometer_model::{
    ByteRate, Bytes, Capabilities, Capability, Format, Goal, Instrument, Nanos, Phase, Readers, ReadingWay,
    RecordingLayout, Subnet,
};
use serde::{Deserialize, Serialize};

use super::{
    AppliedSetting, Condition, Fill, Footprint, InstrumentTurn, OfferedRate, Onto, RecordedInstrument, Route,
    Swept, Volumes, WorkloadCell,
};

/// An instrument to be recorded onto a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingRun {
    /// The instrument that delivers frames, with the plan's changes.
    pub instrument: Instrument,
    /// The plan's changes to the instrument of the catalogue.
    #[serde(default)]
    pub swept: Swept,
    /// Number of such instruments, each with its own recorder.
    pub count: u32,
    /// The question that the recording answers.
    pub goal: Goal,
    /// The longest time in which frames arrive.
    pub duration: Nanos,
    /// Memory of each ring.
    pub buffer: Bytes,
    /// Older frames are removed when a recording is larger than this.
    pub keep: Bytes,
    /// In place of `keep`: the level up to which the target is filled.
    #[serde(default)]
    pub fill: Option<Fill>,
    /// The number of repeats.
    pub repeats: u32,
    /// The readers during the recording.
    pub readers: Readers,
    /// The recordings at the same time: all cells of a plan with the same number.
    pub company: Option<u32>,
    /// The state of the target during the recording; `None` leaves it as it is.
    #[serde(default)]
    pub condition: Option<Condition>,
    /// The route of frames to the recorder.
    #[serde(default)]
    pub route: Route,
    /// The destination of frames.
    #[serde(default)]
    pub onto: Onto,
    /// The way to read an HDF5 recording afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadingWay>,
    /// The most processes that record it together. A recording at full speed has no packets, and takes this
    /// from the places that its packets can go to. `None` means no further limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorders: Option<u32>,
    /// The frames of this part, if several processes take an instrument's frames in turn. `None` if this process
    /// takes all frames of its streams.
    #[serde(skip)]
    pub turn: Option<InstrumentTurn>,
    /// The network of packets, by its addresses; `None` means that of each machine's first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Subnet>,
    /// The background load on the same target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<BackgroundLoad>>,
    /// Settings outside of the program, which the user's commands apply around each repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<AppliedSetting>,
    /// The recordings: onto each target, and one over several at once for each of these counts. Empty means
    /// onto each alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volumes>,
}

/// The least frames of a recording that can show losses.
pub const FRAMES_LEAST: u64 = 20;
/// The least time of a recording.
pub const DURATION_LEAST: Nanos = Nanos::from_millis(100);

/// The longest duration of a recording that finds the limit of the storage.
pub(super) const LIMIT_DURATION: Nanos = Nanos::from_millis(40_000);
/// The space that a recording keeps by default.
pub const USUAL_KEEP: Bytes = Bytes(2 << 30);

impl RecordingRun {
    /// One recording of one instrument by itself, at its own pace, without a network. It lasts 40 s with a
    /// buffer of 1 GiB, and keeps 2 GiB.
    pub fn new(instrument: Instrument) -> Self {
        RecordingRun {
            instrument,
            swept: Swept::default(),
            count: 1,
            goal: Goal::Pace,
            duration: LIMIT_DURATION,
            buffer: Bytes(1 << 30),
            keep: USUAL_KEEP,
            fill: None,
            repeats: 1,
            readers: Readers::default(),
            company: None,
            condition: None,
            route: Route::InPlace,
            onto: Onto::Target,
            read: None,
            recorders: None,
            turn: None,
            network: None,
            background: None,
            settings: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// The capabilities that a target must have for it; readers must find the data written.
    pub fn needs(&self) -> Capabilities {
        let mut needs = Phase::Ingest.needs().to_vec();
        needs.extend(self.background.iter().flat_map(|load| load.needs()));
        let RecordingLayout { storing, format, frames_per_file, .. } = self.instrument.recording;
        // The recording plan stores packets as the storage takes them.
        if self.instrument.packets.is_none() {
            needs.extend(storing.needs(frames_per_file));
        }
        if !self.readers.none() || self.read.is_some() {
            needs.push(Capability::Keep);
        }
        // The library of HDF5 reads files by their paths.
        if self.read.is_some() || format == Format::Hdf5 {
            needs.extend([Capability::Mounted, Capability::WriteAnywhere]);
        }
        Capabilities::of(&needs)
    }

    /// The key for the way of storing on a target, in the record's environment.
    pub fn layout_key(&self, target: &str) -> String {
        let pace = if self.goal == Goal::Limit { "as fast as it is taken" } else { "at a pace" };
        format!("layout of {} {pace} on {target}", self.who())
    }

    /// The recorded instrument, with its changes and count.
    pub fn recorded_instrument(&self) -> RecordedInstrument {
        RecordedInstrument { name: self.instrument.name.clone(), swept: self.swept, count: self.count }
    }

    /// The instrument and the plan's changes to it, in words.
    pub fn label(&self) -> String {
        self.recorded_instrument().label()
    }

    /// The instrument in words, with its count.
    pub fn who(&self) -> String {
        self.recorded_instrument().to_string()
    }

    /// The recorded form of each instrument: its frames, or blocks of its packets.
    pub fn recorded(&self) -> Cow<'_, Instrument> {
        let blocks = if self.route.has_packets() { self.instrument.in_blocks() } else { None };
        blocks.map_or(Cow::Borrowed(&self.instrument), Cow::Owned)
    }

    /// The rate to record, over all instruments; for VDIF and Mark5B it includes the headers.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.recorded().rate().0 * f64::from(self.count))
    }

    /// The most frames of each instrument in the duration.
    pub fn frames(&self) -> u64 {
        let recorded = self.recorded();
        self.duration.0.div_ceil(recorded.period().0) + recorded.streams
    }

    /// Bytes of a frame, or a block of packets, of all recorders.
    fn slot(&self) -> Bytes {
        Bytes(self.recorded().frame_size().0.saturating_mul(self.rings()))
    }

    /// Bytes of these.
    pub fn all(&self) -> Bytes {
        Bytes(self.frames().saturating_mul(self.recorded().frame_size().0))
    }

    /// The least duration; a shorter recording would show nothing. For packets over a network it counts
    /// frames or recorded blocks, whichever are more.
    pub fn least_duration(&self) -> Nanos {
        let period = self.recorded().period().min(self.instrument.period());
        Nanos(FRAMES_LEAST * period.0).max(DURATION_LEAST)
    }

    /// Checks that the duration is long enough to show anything. The message gives the least duration.
    /// `asked` is the user's text.
    pub fn check_duration(&self, asked: &str) -> Result<(), String> {
        let least = self.least_duration();
        if self.duration >= least {
            return Ok(());
        }
        let name = &self.instrument.name;
        Err(format!(
            "{asked}: too short to show whether frames of {name} are lost: write at least {least} ({FRAMES_LEAST} of its \
             frames, and no less than {DURATION_LEAST})"
        ))
    }

    /// Checks that the buffer has room for two frames, or blocks of packets. `asked` is the user's text.
    pub fn check_buffer(&self, asked: &str) -> Result<(), String> {
        let slot = self.slot();
        if self.buffer.0 / 2 >= slot.0 {
            return Ok(());
        }
        Err(format!("{asked}: write room for at least two frames of {slot}"))
    }

    /// The pace of frames, in words.
    pub fn pace(&self) -> String {
        match self.goal {
            Goal::Limit => "at full speed".into(),
            Goal::Pace => format!("at {}", self.rate()),
            Goal::Search => "at the highest rate without loss".into(),
            Goal::Buffer => format!("at {}, with the smallest buffer without loss", self.rate()),
        }
    }

    /// The whole recording in phrases, to be joined with commas.
    pub fn phrases(&self) -> Vec<String> {
        let pace = self.pace();
        let mut phrases =
            vec![format!("{} {pace} for {}", self.who(), self.duration), format!("buffer {}", self.buffer)];
        if self.route.has_packets() {
            phrases.push(self.route.words().into());
        }
        if self.onto == Onto::Nothing {
            phrases.push("onto nothing".into());
        }
        if !self.readers.none() {
            phrases.push(self.readers.to_string());
        }
        phrases.extend(self.read.map(|way| format!("read by {way}")));
        phrases.extend(self.company.map(|number| format!("in company {}", number + 1)));
        phrases.extend(self.fill.map(|fill| format!("filled to {:.0} %", 100.0 * fill.level)));
        phrases.extend(self.condition.iter().map(|condition| condition.name.clone()));
        phrases.extend(self.settings.iter().map(AppliedSetting::phrase));
        phrases.extend(self.background.iter().map(ToString::to_string));
        phrases.extend(Volumes::phrase_of_recording(&self.volumes));
        phrases
    }

    /// True if there is a recording onto each target alone.
    pub fn is_onto_each(&self) -> bool {
        self.volumes.is_empty() || self.volumes.contains(&Volumes::Alone)
    }

    /// The numbers of targets that it stripes over, each at least two: one recording each.
    pub fn at_once(&self, targets: usize) -> Vec<usize> {
        Volumes::several(&self.volumes, targets)
    }

    /// The condition of its target and its settings, in words; empty if the target is left as it is.
    pub fn condition_name(&self) -> String {
        let condition = self.condition.iter().map(|condition| condition.name.clone());
        condition.chain(self.settings.iter().map(AppliedSetting::phrase)).collect::<Vec<_>>().join(", ")
    }

    /// The background load on its target, in words; empty if there is none.
    pub fn load_words(&self) -> String {
        let load = self.background.as_ref().filter(|load| !load.is_none());
        load.map(ToString::to_string).unwrap_or_default()
    }

    /// Rings of each recording. Each stream of packets has one, and they share the memory.
    pub fn rings(&self) -> u64 {
        if self.route.has_packets() { self.instrument.streams } else { 1 }
    }
}

impl fmt::Display for RecordingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrases().join(", "))
    }
}

/// One level of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundLoad {
    /// Number of threads, each with a synchronous engine, or of instruments; 0 without a load.
    pub workers: u32,
    /// Their rate limit.
    #[serde(default, skip_serializing_if = "OfferedRate::is_none")]
    pub offered: OfferedRate,
    /// The one phase that the load repeats; `None` is all measured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Their work.
    #[serde(flatten)]
    pub work: LoadWork,
}

/// The work of a background load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadWork {
    /// Workers repeat this workload.
    Workload(WorkloadCell),
    /// A recording of an instrument, for as long as the measurement takes.
    Recording(Box<RecordingRun>),
}

/// The most instruments beside a cell.
const INSTRUMENTS_MAX: u32 = 64;
/// A load with this rate has no limit: a list of rates can end with it.
const UNLIMITED: ByteRate = ByteRate(1e12);

impl BackgroundLoad {
    /// One worker or instrument, as fast as it goes.
    pub(super) fn of(work: LoadWork) -> Self {
        BackgroundLoad { workers: 1, offered: OfferedRate::None, phase: None, work }
    }

    /// The workload that its workers repeat; `None` for an instrument.
    pub fn workload(&self) -> Option<&WorkloadCell> {
        match &self.work {
            LoadWork::Workload(workload) => Some(workload),
            LoadWork::Recording(_) => None,
        }
    }

    /// The recording beside the cell, with its count; `None` for a workload, and without a load.
    pub fn recording(&self) -> Option<RecordingRun> {
        match &self.work {
            LoadWork::Recording(run) if self.workers > 0 => {
                Some(RecordingRun { count: self.workers, ..RecordingRun::clone(run) })
            }
            _ => None,
        }
    }

    /// True if it copies a tree from the target to other storage.
    pub fn migrates(&self) -> bool {
        !self.is_none() && self.workload().is_some_and(WorkloadCell::migrates)
    }

    /// True if this level has no load.
    pub const fn is_none(&self) -> bool {
        self.workers == 0
    }

    pub(super) fn at_scale(mut self, scale: f64) -> Result<Self, String> {
        if matches!(self.offered, OfferedRate::Rate(rate) if rate >= UNLIMITED) {
            self.offered = OfferedRate::None;
        }
        if self.workers == 0 || self.offered.is_zero() {
            (self.workers, self.offered) = (0, OfferedRate::None);
        }
        self.check()?;
        let LoadWork::Workload(workload) = &mut self.work else { return Ok(self) };
        if (scale - 1.0).abs() > f64::EPSILON {
            workload.parameters_mut().scale(scale);
            self.check().map_err(|why| format!("at scale {scale}: {why}"))?;
        }
        Ok(self)
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |why: String| Err(format!("background: {why}"));
        if self.workers > 1024 {
            return wrong(format!("workers = {}: write 0 to 1024", self.workers));
        }
        let workload = match &self.work {
            LoadWork::Workload(workload) => workload,
            LoadWork::Recording(_) if self.workers > INSTRUMENTS_MAX => {
                return wrong(format!("count = {}: write 0 to {INSTRUMENTS_MAX}", self.workers));
            }
            LoadWork::Recording(_) => return Ok(()),
        };
        let parameters = workload.parameters();
        if workload.copies() && !workload.migrates() || parameters.traits().least_processes > 1 {
            return wrong(format!("a workload `{}` like this can't go on beside others", workload.name()));
        }
        let measured: Vec<&str> = self.measured().into_iter().map(Phase::name).collect();
        if measured.is_empty() {
            let all = parameters.phases().into_iter().filter(|phase| !phase.is_setup()).map(Phase::name);
            let all: Vec<&str> = all.collect();
            return wrong(format!(
                "phase: the workload `{}` has none of this name: write one of {}",
                workload.name(),
                all.join(", ")
            ));
        }
        let workers = self.workers.max(1);
        self.offered.check(parameters.block_size(), workers).or_else(wrong)?;
        self.offered.check_moved(parameters, &self.measured()).or_else(wrong)?;
        parameters.check(workers).or_else(wrong)
    }

    /// Checks that the load's rate is enough for the workers of this many processes.
    ///
    /// # Errors
    /// If a worker would wait too long for its next operation, with the reason in words.
    pub fn check_processes(&self, processes: u32) -> Result<(), String> {
        let Some(workload) = self.workload().filter(|_| !self.is_none()) else { return Ok(()) };
        let workers = self.workers.saturating_mul(processes);
        let checked = self.offered.check(workload.parameters().block_size(), workers);
        checked.map_err(|why| format!("background: {why}"))
    }

    /// The size of the load, for comparison with others of its kind: first the count, then the rate of each.
    pub fn amount(&self) -> (u32, f64) {
        let of_one = match &self.work {
            LoadWork::Workload(_) => self.offered.amount(),
            LoadWork::Recording(run) => run.rate().0,
        };
        (self.workers, of_one)
    }

    /// The phases of its workload, in order.
    fn phases(&self) -> Vec<Phase> {
        self.workload().map(|workload| workload.parameters().phases()).unwrap_or_default()
    }

    /// The phases that the load repeats.
    pub fn measured(&self) -> Vec<Phase> {
        let phases = self.phases().into_iter().filter(|phase| !phase.is_setup());
        phases.filter(|phase| self.phase.is_none_or(|only| only == *phase)).collect()
    }

    /// The phases that run once before: the layout, and the needs of its measured phase.
    pub fn prepared(&self) -> Vec<Phase> {
        let first = self.measured().first().copied();
        self.phases().into_iter().take_while(|phase| Some(*phase) != first).collect()
    }

    /// The most space that its workload takes on a target; the space of an instrument depends on the target.
    pub fn footprint(&self) -> Footprint {
        let workload = self.workload().filter(|_| !self.is_none());
        workload.map(|workload| workload.parameters().footprint(self.workers)).unwrap_or_default()
    }

    /// The capabilities that a target must have for it.
    pub fn needs(&self) -> Vec<Capability> {
        match &self.work {
            _ if self.is_none() => Vec::new(),
            LoadWork::Recording(run) => run.needs().all_of_them(),
            LoadWork::Workload(workload) => {
                let phases = self.prepared().into_iter().chain(self.measured());
                let of_phases = phases.flat_map(|phase| phase.needs().iter().copied());
                of_phases.chain(workload.parameters().needs()).collect()
            }
        }
    }
}

impl fmt::Display for BackgroundLoad {
    /// `beside 2 workers of stream at 100 MB/s: 64 MiB by 1 MiB, buffered`; `beside 2 x camera at 80 MB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workload = match &self.work {
            LoadWork::Workload(workload) => workload,
            LoadWork::Recording(run) if self.is_none() => {
                return write!(f, "beside no {}", run.instrument.name);
            }
            LoadWork::Recording(run) => {
                let run = RecordingRun { count: self.workers, ..RecordingRun::clone(run) };
                return write!(f, "beside {} {}", run.who(), run.pace());
            }
        };
        let name = workload.name().replace('_', " ");
        if self.is_none() {
            return write!(f, "beside no {name}");
        }
        let workers = if self.workers == 1 { "worker" } else { "workers" };
        write!(f, "beside {} {workers} of {name}", self.workers)?;
        if let Some(phase) = self.phase {
            write!(f, ", {} only", phase.name())?;
        }
        if let Some(rate) = self.offered.phrase() {
            write!(f, " {rate}")?;
        }
        write!(f, " ({workload})")
    }
}

#[cfg(test)]
mod tests;
