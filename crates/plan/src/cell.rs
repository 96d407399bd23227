//! One combination of a stage's parameters: the unit that a repeat measures on a target.

use std::fmt;

use nilometer_model::{
    Bytes, Capabilities, Capability, EngineKind, MpiIoImplementation, Nanos, Phase, StripeControl,
    StripeLayout,
};
use serde::{Deserialize, Serialize};

use super::{
    Access, AppliedSetting, BackgroundLoad, BufferData, Footprint, ImportedRun, MpiIo, OfferedRate, Onto,
    RecordingRun, Siblings, Volumes, WorkloadCell,
};

/// The unit that a repeat measures on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The stage it belongs to.
    pub stage: String,
    /// The kind of measurement.
    pub measurement: Measurement,
}

/// The ways to measure a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measurement {
    /// Operations of a kind, as fast as they are done.
    Workload(WorkloadRun),
    /// Frames of an instrument, as they arrive.
    Recording(Box<RecordingRun>),
    /// Results of another program or a publication: read, and never measured here.
    Imported(ImportedRun),
}

impl Cell {
    /// A workload of a stage.
    pub fn workload(stage: impl Into<String>, run: WorkloadRun) -> Self {
        Cell { stage: stage.into(), measurement: Measurement::Workload(run) }
    }

    /// A recording of a stage.
    pub fn recording(stage: impl Into<String>, run: RecordingRun) -> Self {
        Cell { stage: stage.into(), measurement: Measurement::Recording(Box::new(run)) }
    }

    /// A cell for results of a stage from elsewhere.
    pub fn imported(stage: impl Into<String>, run: ImportedRun) -> Self {
        Cell { stage: stage.into(), measurement: Measurement::Imported(run) }
    }

    /// The imported results, if it has those.
    pub fn as_imported(&self) -> Option<&ImportedRun> {
        match &self.measurement {
            Measurement::Imported(run) => Some(run),
            Measurement::Workload(_) | Measurement::Recording(_) => None,
        }
    }

    /// The workload, if it is one.
    pub fn as_workload(&self) -> Option<&WorkloadRun> {
        match &self.measurement {
            Measurement::Workload(run) => Some(run),
            Measurement::Recording(_) | Measurement::Imported(_) => None,
        }
    }

    /// The recording, if it is one.
    pub fn as_recording(&self) -> Option<&RecordingRun> {
        match &self.measurement {
            Measurement::Recording(run) => Some(run),
            Measurement::Workload(_) | Measurement::Imported(_) => None,
        }
    }

    /// The whole cell as phrases, to be joined with commas. Reports print phrases that all cells of a stage
    /// share only once.
    pub fn phrases(&self) -> Vec<String> {
        match &self.measurement {
            Measurement::Workload(run) => run.phrases(),
            Measurement::Recording(run) => run.phrases(),
            Measurement::Imported(run) => run.phrases(),
        }
    }

    /// Returns true if the tool alone would be faster than any storage. It is false for a recording that
    /// keeps to a pace.
    pub fn has_ceiling(&self) -> bool {
        self.as_workload().is_some()
    }

    /// True if no data are stored: the result describes no target.
    pub fn is_onto_nothing(&self) -> bool {
        self.as_recording().is_some_and(|run| run.onto == Onto::Nothing)
    }

    /// The capabilities that a target must have for it.
    pub fn needs(&self) -> Capabilities {
        match &self.measurement {
            Measurement::Workload(run) => run.needs(),
            Measurement::Recording(run) => run.needs(),
            Measurement::Imported(_) => Capabilities::of(&[]),
        }
    }

    /// The settings that it is measured under.
    pub fn settings(&self) -> &[AppliedSetting] {
        match &self.measurement {
            Measurement::Workload(run) => &run.settings,
            Measurement::Recording(run) => &run.settings,
            Measurement::Imported(_) => &[],
        }
    }

    /// The background load on the same target.
    pub fn background(&self) -> Option<&BackgroundLoad> {
        match &self.measurement {
            Measurement::Workload(run) => run.background.as_deref(),
            Measurement::Recording(run) => run.background.as_deref(),
            Measurement::Imported(_) => None,
        }
    }

    /// The phases whose samples are recorded, in order.
    pub fn measured_phases(&self) -> Vec<Phase> {
        match &self.measurement {
            Measurement::Workload(run) => {
                run.phases().into_iter().filter(|phase| !phase.is_setup()).collect()
            }
            Measurement::Recording(run) => {
                // The rate of writing belongs beside the rate of reading.
                let read = run.read.map(|_| [Phase::Write, Phase::Read]);
                std::iter::once(Phase::Ingest).chain(read.into_iter().flatten()).collect()
            }
            Measurement::Imported(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Cell {
    /// The whole cell in a line, as the record's key within its plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrases().join(", "))
    }
}

/// A workload with one value for each parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRun {
    /// Threads of each process.
    pub workers: u32,
    /// The index of the only worker that works while the others rest; `None` if all work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lone_worker: Option<u32>,
    /// Number of machines that take part, the first ones; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Number of processes on each of them that take part, the first ones; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// The way to issue operations.
    pub engine: EngineKind,
    /// The way of calling MPI-IO, if it is the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_io: Option<MpiIo>,
    /// Operations in flight a worker.
    pub depth: u32,
    /// A phase ends after this time at the latest.
    pub time_limit: Option<Nanos>,
    /// A phase ends for all workers when the first has done its part.
    pub stonewall: bool,
    /// One target at a time, or several at once.
    pub volumes: Volumes,
    /// The parts that should be alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<Siblings>,
    /// Number of storage devices for a file, if the target lets you choose; `None` means its default.
    pub stripe_count: Option<u32>,
    /// Bytes written to a storage device before the next one, if the target lets you choose; `None` means its
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_size: Option<Bytes>,
    /// Copies of all data, if the target lets you choose; `None` means its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The pool of storage devices, if the target lets you choose; `None` means its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Settings outside of the program, which commands of the user's apply around each repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<AppliedSetting>,
    /// The content of write buffers.
    #[serde(default, skip_serializing_if = "BufferData::is_random")]
    pub data: BufferData,
    /// The rate limit of all workers together.
    #[serde(default, skip_serializing_if = "OfferedRate::is_none")]
    pub offered: OfferedRate,
    /// The background load on the same target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<BackgroundLoad>>,
    /// The work of the workers.
    pub workload: WorkloadCell,
}

impl fmt::Display for WorkloadRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrases().join(", "))
    }
}

impl WorkloadRun {
    /// True if nothing distorts the figure of the storage: no background load, no rate limit, and
    /// incompressible data.
    pub fn is_undisturbed(&self) -> bool {
        let is_alone = self.background.as_ref().is_none_or(|load| load.is_none());
        is_alone && self.offered.is_none() && self.data.is_random()
    }

    /// The capabilities that a target must have for it. Writes in flight begin in the order of the file.
    pub fn needs(&self) -> Capabilities {
        let of_phases = self.phases().into_iter().flat_map(|phase| phase.needs().iter().copied());
        let own = self.workload.parameters().needs();
        let beside = self.background.iter().flat_map(|load| load.needs());
        let by_path = self.mpi_io.iter().map(|_| Capability::Mounted);
        let all: Vec<Capability> = of_phases.chain(own).chain(beside).chain(by_path).collect();
        Capabilities::of(&all)
    }

    /// The whole cell in phrases.
    pub fn phrases(&self) -> Vec<String> {
        let mut phrases = self.workload.parameters().phrases();
        phrases.push(match self.lone_worker {
            Some(worker) => format!("worker {} of {} alone", worker + 1, self.workers),
            None => plural(self.workers, "worker"),
        });
        phrases.extend(self.processes.map(|count| match count {
            1 => "1 process a node".into(),
            count => format!("{count} processes a node"),
        }));
        phrases.extend(self.nodes.map(|count| plural(count, "node")));
        if let Some(mpi_io) = &self.mpi_io {
            phrases.extend(mpi_io.phrases());
        } else if self.engine != EngineKind::Sync {
            phrases.push(format!("{} depth {}", self.engine.name(), self.depth));
        }
        if let Some(count) = self.stripe_count {
            phrases.push(format!("stripe count {count}"));
        }
        if let Some(size) = self.stripe_size {
            phrases.push(format!("stripes of {size}"));
        }
        if let Some(replicas) = self.replicas {
            phrases.push(if replicas == 1 { "1 copy".into() } else { format!("{replicas} copies") });
        }
        phrases.extend(self.pool.as_ref().map(|pool| format!("pool {pool}")));
        phrases.extend(self.volumes.phrase());
        if self.stonewall {
            phrases.push("stonewall".into());
        }
        phrases.extend((!self.data.is_random()).then(|| "zeros".to_owned()));
        phrases.extend(self.offered.phrase());
        phrases.extend(self.settings.iter().map(AppliedSetting::phrase));
        phrases.extend(self.background.iter().map(ToString::to_string));
        phrases
    }

    /// True if its workers wait between operations, for as long as their program would compute.
    pub(super) fn thinks(&self) -> bool {
        let parameters = self.workload.parameters();
        self.phases().into_iter().any(|phase| parameters.think_time(phase) > Nanos(0))
    }

    /// The layout that it requires for its files.
    pub fn layout(&self) -> StripeLayout {
        let WorkloadRun { stripe_count, stripe_size, replicas, .. } = *self;
        StripeLayout { stripe_count, stripe_size, replicas, pool: self.pool.clone() }
    }

    /// Removes the parts of a layout that you can't choose there.
    #[must_use]
    pub fn where_chosen_by(&self, control: Option<StripeControl>) -> Self {
        let chosen = control.map(|control| control.choosable(&self.layout())).unwrap_or_default();
        let StripeLayout { stripe_count, stripe_size, replicas, pool } = chosen;
        WorkloadRun { stripe_count, stripe_size, replicas, pool, ..self.clone() }
    }

    /// The phases, in order.
    pub fn phases(&self) -> Vec<Phase> {
        self.workload.parameters().phases()
    }

    /// The most bytes that an operation moves.
    pub fn block_size(&self) -> Bytes {
        self.workload.parameters().block_size()
    }

    /// Through the page cache or past it; `None` if no data are moved.
    pub fn access(&self) -> Option<Access> {
        self.workload.parameters().access()
    }

    /// True if its data come from files in the plan's source directory.
    pub fn copies(&self) -> bool {
        self.workload.copies()
    }

    /// The space that this many processes leave on a target until the cell is cleared.
    pub fn footprint(&self, processes: u32) -> Footprint {
        let own = self.own_footprint(processes);
        self.background.as_ref().map_or(own, |load| own.and(load.footprint()))
    }

    /// The same without the load beside it, which has processes of its own.
    pub fn own_footprint(&self, processes: u32) -> Footprint {
        self.workload.parameters().footprint(self.parts(processes))
    }

    /// The implementation of MPI-IO that the cell requires; `None` if it takes any, or uses none.
    pub fn asked_of_mpi_io(&self) -> Option<MpiIoImplementation> {
        self.mpi_io.as_ref()?.implementation
    }

    /// True if all processes make the same calls on one file, so that none may end before the others.
    pub fn keeps_step(&self) -> bool {
        self.mpi_io.is_some() && self.workload.parameters().traits().shares_a_file
    }

    /// Workers of each process that work.
    pub fn at_work(&self) -> u32 {
        if self.lone_worker.is_some() { 1 } else { self.workers }
    }

    /// Number of parts that the work of `processes` processes divides into: their workers, or the processes
    /// if the workers of a process share one task.
    pub(super) fn parts(&self, processes: u32) -> u32 {
        let workers = if self.workload.parameters().traits().one_a_process { 1 } else { self.at_work() };
        workers.saturating_mul(processes)
    }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}
