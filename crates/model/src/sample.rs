//! A sample: one repeat of one phase of one cell on one target. It is the unit of every comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Activity, BackgroundDone, ByteRate, DeviceTraffic, FilesSeen, Goal, Histogram, Ingest, Invalid,
    LocksSeen, MpiIoInForce, Nanos, NodeStart, RankPart, Series, Switches,
    sustained::{RecorderWait, SustainedRate, sustained},
};

/// The results of one phase of one repeat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished. For phases over files and directories, [`Phase`](crate::Phase) defines an
    /// operation.
    pub operations: u64,
    /// From the barrier until the last worker was done.
    pub wall: Nanos,
    /// Processor time of this process in user space.
    pub user: Nanos,
    /// Processor time of this process in the kernel.
    pub system: Nanos,
    /// Processor time of the file system client on this machine: kernel threads, and its daemon if it has
    /// one.
    pub client: Nanos,
    /// Processor time of the whole machine above its idle level.
    pub machine: Nanos,
    /// Context switches of this process.
    pub switches: Switches,
    /// How long the workers waited for a processor. A recorder's wait is that of the thread that takes frames and the
    /// mean of its writers. Several recorders have the sum.
    pub run_delay: Nanos,
    /// The time to fill buffers, outside the measured time.
    pub filling: Nanos,
    /// How long the machine took to settle before.
    pub settling: Nanos,
    /// When it began, in UTC since 1970.
    pub started: Nanos,
    /// Load average over a minute, just before.
    pub load: f64,
    /// The activity of the whole machine just before, without the processor time and the disk traffic of Nilometer
    /// itself.
    pub before: Activity,
    /// The activity of the whole machine during the phase.
    pub during: Activity,
    /// The traffic of the target's device during the phase, if it has one.
    pub device: Option<DeviceTraffic>,
    /// From issue to completion of each of these operations.
    pub latency: Histogram,
    /// From due to issue.
    pub lateness: Histogram,
    /// Work over time, all workers.
    pub series: Series,
    /// Failed operations by the kernel's error number, or [`Sample::SHORT`].
    pub errors: BTreeMap<i32, u64>,
    /// The totals of each worker, over all processes in the order of their ranks.
    pub workers: Vec<WorkerTotals>,
    /// The share of each process if several measured together (see [`Sample::united`]). Empty if one measured
    /// alone.
    pub parts: Vec<RankPart>,
    /// The state of each node just before, if several processes measured together. Empty if one measured
    /// alone, and in records up to schema 9.
    pub node_starts: Vec<NodeStart>,
    /// For reads: did the data come from the storage?
    pub coldness: Option<Coldness>,
    /// In an ingest phase: the fate of the frames.
    pub ingest: Option<Ingest>,
    /// The work of a background load meanwhile, if there was one.
    pub background: Option<BackgroundDone>,
    /// In a visibility phase: the files of another process, as others saw them.
    pub seen: Option<FilesSeen>,
    /// In a phase of locks: the counts of attempts.
    pub locks: Option<LocksSeen>,
    /// The MPI-IO implementation and hints in force for its files, if it used MPI-IO and no other place
    /// reports it yet.
    pub mpi_io: Option<MpiIoInForce>,
    /// The reason to reject the figure, if there is one.
    pub invalid: Option<Invalid>,
}

/// The totals of one worker in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerTotals {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The completion of its first operation, from the barrier.
    pub first_done: Nanos,
    /// The completion of its last operation, from the barrier.
    pub last_done: Nanos,
}

/// Did the data of a read come from the storage, or from a cache of this machine?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coldness {
    /// No page was in the cache before, or the device delivered the bytes.
    Proved,
    /// Pages were in the cache.
    Contradicted,
    /// The file system keeps a cache that is invisible to this machine.
    NotProvable,
    /// Another client of the storage wrote the data, and this one has not touched them since: there was
    /// nothing to drop.
    NeverSeen,
}

impl Coldness {
    /// Its word in the record and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Coldness::Proved => "proved",
            Coldness::Contradicted => "contradicted",
            Coldness::NotProvable => "not provable here",
            Coldness::NeverSeen => "never seen here",
        }
    }

    /// The severity; of several findings about one figure the most severe holds.
    pub const fn severity(self) -> u32 {
        match self {
            Coldness::NeverSeen => 0,
            Coldness::Proved => 1,
            Coldness::NotProvable => 2,
            Coldness::Contradicted => 3,
        }
    }

    /// The opposite of [`Coldness::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Coldness::Proved, Coldness::Contradicted, Coldness::NotProvable, Coldness::NeverSeen]
            .into_iter()
            .find(|c| c.name() == name)
    }
}

/// The frames of a recording that its readers did not find as they were written.
struct UnfoundFrames {
    /// Frames that differ from those written.
    differ: u64,
    /// Frames that could not be read after the recording. During it, one may be gone before its reader comes.
    unread: u64,
}

impl Sample {
    /// The key in `errors` for writes that were shorter than requested: often the end of a full disk.
    pub const SHORT: i32 = 0;

    /// An empty sample for a phase that hung or was refused.
    pub fn invalid(why: Invalid) -> Self {
        Sample { invalid: Some(why), ..Sample::new(Nanos(0)) }
    }

    /// An empty sample whose series begins at `start`.
    pub fn new(start: Nanos) -> Self {
        Sample {
            bytes: 0,
            operations: 0,
            wall: Nanos(0),
            user: Nanos(0),
            system: Nanos(0),
            client: Nanos(0),
            machine: Nanos(0),
            switches: Switches::default(),
            run_delay: Nanos(0),
            filling: Nanos(0),
            settling: Nanos(0),
            started: Nanos(0),
            load: 0.0,
            before: Activity::default(),
            during: Activity::default(),
            device: None,
            latency: Histogram::default(),
            lateness: Histogram::default(),
            series: Series::new(start),
            errors: BTreeMap::new(),
            workers: Vec::new(),
            parts: Vec::new(),
            node_starts: Vec::new(),
            coldness: None,
            ingest: None,
            background: None,
            seen: None,
            locks: None,
            mpi_io: None,
            invalid: None,
        }
    }

    /// The figure that makes it invalid and its limit, if recorded. They come from the reason, or from the
    /// sample's own counts.
    pub fn invalid_figures(&self) -> Option<String> {
        match self.invalid.as_ref()? {
            Invalid::Errors => {
                Some(self.failures()).filter(|count| *count > 0).map(|count| format!("{count}, allowed none"))
            }
            Invalid::Wrong => {
                let UnfoundFrames { differ, unread } = self.unfound();
                let is_known = differ + unread > 0;
                is_known.then(|| format!("{differ} differ and {unread} can't be read, allowed none"))
            }
            why => why.figures(),
        }
    }

    /// How many times the figure exceeds its limit, to find the worst of a kind; 0 if the figure is missing.
    pub fn invalid_excess(&self) -> f64 {
        match &self.invalid {
            Some(Invalid::Errors) => self.failures() as f64,
            Some(Invalid::Wrong) => {
                let UnfoundFrames { differ, unread } = self.unfound();
                (differ + unread) as f64
            }
            Some(why) => why.excess(),
            None => 0.0,
        }
    }

    /// Number of failed operations.
    fn failures(&self) -> u64 {
        self.errors.values().sum()
    }

    fn unfound(&self) -> UnfoundFrames {
        let readers = || self.ingest.iter().flat_map(|ingest| &ingest.readers);
        UnfoundFrames {
            differ: readers().map(|reader| reader.wrong).sum(),
            unread: readers().filter(|reader| reader.after).map(|reader| reader.failed).sum(),
        }
    }

    /// Bytes a second over the wall time.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.bytes, self.wall)
    }

    /// The long-term rate of a recording at full speed, behind caches; for any other sample the rate over the
    /// wall time.
    pub fn sustained_rate(&self) -> ByteRate {
        let at_full_speed = self.ingest.as_ref().is_some_and(|ingest| ingest.goal == Goal::Limit);
        let long_run = if at_full_speed { sustained(&[&self.series]) } else { None };
        long_run.map_or_else(|| self.rate(), |found| found.rate)
    }

    /// How long a recorder waited for a processor in a pass at full speed. The longest wait of several processes
    /// counts: the others end without that one, and the rate falls as if a cache were full. The sum stands for
    /// several recorders in a process.
    pub fn recorder_wait(&self) -> RecorderWait {
        let longest = self.parts.iter().map(|part| part.run_delay).max();
        RecorderWait::new(longest.unwrap_or(self.run_delay), self.wall)
    }

    /// The passes at full speed that show a rate: the valid ones whose recorder did not wait long for a processor.
    /// If there are none, all valid ones, which show a lower bound.
    pub fn passes_with_a_rate<'a>(passes: &[&'a Sample]) -> Vec<&'a Sample> {
        let valid: Vec<&Sample> = passes.iter().copied().filter(|pass| pass.invalid.is_none()).collect();
        let unspoilt: Vec<&Sample> =
            valid.iter().copied().filter(|pass| !pass.recorder_wait().is_long()).collect();
        if unspoilt.is_empty() { valid } else { unspoilt }
    }

    /// The long-term rate of a storage from [`Sample::passes_with_a_rate`], with the recorder's wait in them. `None`
    /// with too little data.
    pub fn long_run(passes: &[&Sample]) -> Option<SustainedRate> {
        let used = Self::passes_with_a_rate(passes);
        let series: Vec<&Series> = used.iter().map(|pass| &pass.series).collect();
        let found = sustained(&series)?;
        let waits = used.iter().map(|pass| pass.recorder_wait());
        let waited = waits.fold(RecorderWait::default(), RecorderWait::and);
        let within = found.over.min(waited.of);
        Some(SustainedRate { waited: RecorderWait { within, ..waited }, ..found })
    }

    /// Operations a second over the wall time.
    pub fn operation_rate(&self) -> f64 {
        if self.wall.0 == 0 { 0.0 } else { self.operations as f64 / self.wall.seconds() }
    }

    /// Time in which this process neither computed nor was in the kernel: `wall x workers - user - system`.
    pub fn wait(&self) -> Nanos {
        let whole = self.wall.0.saturating_mul(self.workers.len().max(1) as u64);
        Nanos(whole.saturating_sub(self.user.0 + self.system.0))
    }
}
