//! A sample: one repeat of one phase of one cell on one target. The unit of every comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BackgroundDone, ByteRate, DeviceTraffic, FilesSeen, Goal, Histogram, Ingest, Invalid, LocksSeen,
    MpiIoInForce, Nanos, RankPart, Series, sustained::sustained,
};

/// What one phase of one repeat gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished; in phases over files and directories those that [`crate::Phase`] names.
    pub operations: u64,
    /// From the barrier until the last worker was done.
    pub wall: Nanos,
    /// Processor time of this process in user space.
    pub user: Nanos,
    /// Processor time of this process in the kernel.
    pub system: Nanos,
    /// Processor time of what serves the file system in this machine: kernel threads, and its daemon where it has one.
    pub client: Nanos,
    /// Processor time of the whole machine above its idle level.
    pub machine: Nanos,
    /// Context switches of this process.
    pub switches: Switches,
    /// How long the workers waited for a processor.
    pub run_delay: Nanos,
    /// How long buffers were filled, outside the measured time.
    pub filling: Nanos,
    /// How long the machine took to settle before.
    pub settling: Nanos,
    /// When it began, by the calendar: since 1970, UTC.
    pub started: Nanos,
    /// Load average over a minute, just before.
    pub load: f64,
    /// What the whole machine did just before.
    pub before: Activity,
    /// What the whole machine did during the phase.
    pub during: Activity,
    /// What came to the target's device during the phase, if it has one.
    pub device: Option<DeviceTraffic>,
    /// From issue to completion, of each of these operations.
    pub latency: Histogram,
    /// From due to issue.
    pub lateness: Histogram,
    /// Work over time, all workers.
    pub series: Series,
    /// Failed operations by the kernel's error number, or [`Sample::SHORT`].
    pub errors: BTreeMap<i32, u64>,
    /// What each worker did, of all processes in the order of their ranks.
    pub workers: Vec<WorkerTotals>,
    /// What each process did, where several measured together; see [`Sample::united`]. Empty where one did alone.
    pub parts: Vec<RankPart>,
    /// For reads: whether the data came from the storage.
    pub coldness: Option<Coldness>,
    /// In an ingest phase: what became of the frames.
    pub ingest: Option<Ingest>,
    /// What a load beside it did meanwhile, if there was one.
    pub background: Option<BackgroundDone>,
    /// In a visibility phase: what was seen of files that another process wrote.
    pub seen: Option<FilesSeen>,
    /// In a phase of locks: what was seen of them.
    pub locks: Option<LocksSeen>,
    /// What its files were really opened by and with, where that is MPI-IO and it is not told of elsewhere yet.
    pub mpi_io: Option<MpiIoInForce>,
    /// Why the figure must not be used, if so.
    pub invalid: Option<Invalid>,
}

/// How often threads of this process left the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// To wait for something.
    pub voluntary: u64,
    /// Because another thread's turn had come.
    pub involuntary: u64,
}

/// What a whole machine did over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Activity {
    /// How long it was looked at.
    pub over: Nanos,
    /// Processor time of all processes and the kernel.
    pub busy: Nanos,
    /// Processor time that the host of a virtual machine gave to others.
    pub stolen: Nanos,
    /// Context switches.
    pub switches: u64,
    /// Bytes read from all disks.
    pub disk_read: u64,
    /// Bytes written to all disks.
    pub disk_written: u64,
    /// Bytes received from the network, the loopback device apart.
    pub received: u64,
    /// Bytes sent to the network, the loopback device apart.
    pub sent: u64,
    /// How long some task was delayed; none where the kernel does not tell.
    pub pressure: Option<Pressure>,
}

/// How long some task waited for a resource that was busy (Linux pressure stall information, `some`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// For a processor.
    pub cpu: Nanos,
    /// For input or output.
    pub io: Nanos,
    /// For memory.
    pub memory: Nanos,
}

/// What one worker did in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerTotals {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// When its first operation was done, from the barrier.
    pub first_done: Nanos,
    /// When its last operation was done, from the barrier.
    pub last_done: Nanos,
}

/// Whether data that was read came from the storage and not from a cache of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coldness {
    /// No page was in the cache before, or the device delivered the bytes.
    Proved,
    /// Pages were in the cache.
    Contradicted,
    /// The file system keeps a cache that this machine cannot see into.
    NotProvable,
    /// Another client of the storage wrote them, and this one has not touched them since: there was nothing to be dropped.
    NeverSeen,
}

impl Coldness {
    /// The word in the record and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Coldness::Proved => "proved",
            Coldness::Contradicted => "contradicted",
            Coldness::NotProvable => "not provable here",
            Coldness::NeverSeen => "never seen here",
        }
    }

    /// Of several findings about one figure the one of the greatest severity holds.
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

impl Sample {
    /// Stands for an error number where fewer bytes were written than asked: often the end of a full disk.
    pub const SHORT: i32 = 0;

    /// A sample of nothing, for a phase that hung or was refused.
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
            coldness: None,
            ingest: None,
            background: None,
            seen: None,
            locks: None,
            mpi_io: None,
            invalid: None,
        }
    }

    /// The figure of what makes it invalid and what is allowed, where they are known: those of the reason, or what the
    /// sample counted itself.
    pub fn invalid_figures(&self) -> Option<String> {
        match self.invalid.as_ref()? {
            Invalid::Errors | Invalid::Wrong => Some(self.faults())
                .filter(|faults| *faults > 0)
                .map(|faults| format!("{faults}, allowed none")),
            why => why.figures(),
        }
    }

    /// How many times more than is allowed, to find the worst of a kind; 0 where that is not known.
    pub fn invalid_excess(&self) -> f64 {
        match &self.invalid {
            Some(Invalid::Errors | Invalid::Wrong) => self.faults() as f64,
            Some(why) => why.excess(),
            None => 0.0,
        }
    }

    /// Operations that failed, or frames that were not what was written.
    fn faults(&self) -> u64 {
        if self.invalid == Some(Invalid::Errors) {
            return self.errors.values().sum();
        }
        let readers = self.ingest.iter().flat_map(|ingest| &ingest.readers);
        readers.map(|reader| reader.wrong + if reader.after { reader.failed } else { 0 }).sum()
    }

    /// Bytes a second over the wall time.
    pub fn rate(&self) -> ByteRate {
        ByteRate::of(self.bytes, self.wall)
    }

    /// What a recording at full speed took in the long run, behind caches; of any other sample the rate over the wall time.
    pub fn sustained_rate(&self) -> ByteRate {
        let at_full_speed = self.ingest.as_ref().is_some_and(|ingest| ingest.goal == Goal::Limit);
        let long_run = if at_full_speed { sustained(&[&self.series]) } else { None };
        long_run.map_or_else(|| self.rate(), |found| found.rate)
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
