//! A campaign as written in TOML: any parameter may be a list.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Bytes, EngineKind, FileSystemKind, Format, Nanos};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::{
    AcceptTerms, BackgroundLoad, BackgroundSweep, BufferData, Catalogue, IngestSweep, KeyValue, MpiIoSweep,
    NetworkSweep, OfferedRate, Onto, ProcessCount, RecordingRun, Route, SettingSweep, Siblings, Sweep,
    ValueKind, Volumes, WorkloadRun, WorkloadSweep, check::check_processes, plan_table::plan_table, setting,
};

plan_table! {
    /// A campaign as written.
    #[derive(Debug, Clone)]
    Plan {
        /// The purpose of the plan, in a line.
        title: String,
        /// Rounds. Each measures every cell once.
        repeats: u32 = 3,
        /// Rounds before those, which do not count.
        warm_up: u32 = 0,
        /// Differences smaller than this do not count.
        margin: f64 as "a number of percent" = 5.0,
        /// Repeat cells until half of the 95 % interval of each figure is at most this share of it.
        precision: Option<f64> as "a number of percent",
        /// The most rounds for `precision`.
        repeats_most: u32 = 30,
        /// End the campaign after this time at the latest, with the results until then.
        time_limit: Nanos = Nanos::from_millis(24 * 3600 * 1000),
        /// Refuse cells that need more space than this.
        space_limit: Option<Bytes>,
        /// Refuse targets on any other type of file system; "lustre" refuses a missing mount.
        expect: Option<ExpectedFileSystem>,
        /// Copy from this directory, in workloads with `source = "disk"`.
        source: Option<String> as "a directory",
        /// The seed of all random decisions.
        seed: u64 = 0,
        /// Space that stays free on each target.
        reserve: Bytes = Bytes(1 << 30),
        /// Give a target up as hung if it completes no operation for this time.
        hang_after: Nanos = Nanos::from_millis(60_000),
        /// A measurement. A key without `(one)` may be a list: the stage is then the matrix of all
        /// combinations.
        stage: Vec<Stage> = Vec::new(),
        /// The criteria by which a target is accepted (docs/acceptance.md).
        accept: Option<AcceptTerms>,
    }
}

/// A kind of file system by its name. No plan can expect an unknown one.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedFileSystem(pub FileSystemKind);

impl<'de> Deserialize<'de> for ExpectedFileSystem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(ExpectedFileSystem).map_err(de::Error::custom)
    }
}

impl KeyValue for ExpectedFileSystem {
    fn kind() -> ValueKind {
        ValueKind::Text("a type of file system, such as \"lustre\"")
    }
}

plan_table! {
    /// A workload over a matrix of parameters.
    #[derive(Debug, Clone)]
    Stage {
        /// The stage's name in reports.
        name: Spanned<String>,
        /// Threads of each process, each with an engine of its own.
        workers: Sweep<u32> = one(),
        /// Use the first N machines of those on which a launcher started processes. Default: all
        /// (docs/cluster.md).
        nodes: Option<Sweep<ProcessCount>>,
        /// Use the first N processes on each of them. Default: all.
        processes: Option<Sweep<ProcessCount>>,
        /// The way in which workers issue operations.
        engine: Sweep<EngineKind> = Sweep::default(),
        /// The calls of MPI-IO, with `engine = "mpi_io"` (docs/between-processes.md).
        mpi_io: Option<MpiIoSweep>,
        /// Operations in flight a worker.
        depth: Sweep<u32> = one(),
        /// Measure no phase for longer. Nilometer then completes or removes, unmeasured, the files of later
        /// phases.
        time_limit: Option<Nanos>,
        /// End a phase for all workers when the first has done its part.
        stonewall: Sweep<bool> = Sweep::default(),
        /// Measure targets alone, all together, or the first N together, from 2 on. For `ingest`: one
        /// recording striped over them.
        volumes: Sweep<Volumes> = Sweep::default(),
        /// Parts that should perform alike. Nilometer measures them alone and together, and names the odd one
        /// (docs/siblings.md).
        siblings: Option<Siblings>,
        /// Spread each file over N storage devices, if the target can.
        stripe_count: Option<Sweep<u32>>,
        /// Spread a file in pieces of this size, if the target can.
        stripe_size: Option<Sweep<Bytes>>,
        /// Keep N copies of all data, if the target can.
        replicas: Option<Sweep<u32>>,
        /// Use the devices of the pool with this name, if the target has pools.
        pool: Option<Sweep<String>>,
        /// A setting outside of the program that your commands apply around each repeat.
        setting: BTreeMap<String, SettingSweep> = BTreeMap::new(),
        /// The data of writes: random, or zeros except a few bytes a page.
        data: Sweep<BufferData> = Sweep::default(),
        /// Move at most this much, over all workers. Operations are due at times that follow from the rate,
        /// and latency counts from then.
        rate: Option<Sweep<ByteRate>>,
        /// The same limit in operations a second.
        rate_iops: Option<Sweep<u32>>,
        /// The load of the workers: one of these.
        workload: Option<WorkloadSweep>,
        /// Record an instrument, in place of a workload.
        ingest: Option<IngestSweep>,
        /// Measure the network between machines, in place of a workload (docs/network.md).
        network: Option<NetworkSweep>,
        /// A load on the same target during the measurement, at several levels (docs/load.md).
        background: Option<BackgroundSweep>,
    }
}

fn one() -> Sweep<u32> {
    Sweep::from(1)
}

impl Stage {
    /// Checks that a stage measures one thing, and has keys about workers only with a workload.
    pub(super) fn check_kind(&self) -> Result<(), String> {
        let kinds = [
            (self.workload.is_some(), "a workload"),
            (self.ingest.is_some(), "an ingest"),
            (self.network.is_some(), "a network"),
        ];
        let there: Vec<&str> =
            kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, kind)| kind).collect();
        match there[..] {
            [] | ["a workload"] => Ok(()),
            ["an ingest"] => self.check_without_workers("a recording", false),
            ["a network"] if self.background.is_some() => {
                Err("background: the network has none, leave it out".into())
            }
            ["a network"] => self.check_without_workers("the network", true),
            _ => Err(format!("has {}: write one of them", there.join(" and "))),
        }
    }

    fn check_without_workers(&self, what: &str, by_all: bool) -> Result<(), String> {
        let written = [
            ("workers", self.workers != one()),
            ("nodes", self.nodes.is_some() && by_all),
            ("processes", self.processes.is_some() && by_all),
            ("engine", self.engine != Sweep::default()),
            ("mpi_io", self.mpi_io.is_some()),
            ("depth", self.depth != one()),
            ("time_limit", self.time_limit.is_some()),
            ("stonewall", self.stonewall != Sweep::default()),
            ("volumes", self.volumes != Sweep::default() && by_all),
            ("siblings", self.siblings.is_some()),
            ("stripe_count", self.stripe_count.is_some()),
            ("stripe_size", self.stripe_size.is_some()),
            ("replicas", self.replicas.is_some()),
            ("pool", self.pool.is_some()),
            ("setting", !self.setting.is_empty() && by_all),
            ("data", self.data != Sweep::default()),
            ("rate", self.rate.is_some()),
            ("rate_iops", self.rate_iops.is_some()),
        ];
        match written.into_iter().find(|(_, written)| *written) {
            Some((key @ ("stripe_count" | "stripe_size"), _)) if !by_all => {
                Err(format!("{key}: write it in [stage.ingest]"))
            }
            Some((key, _)) => Err(format!("{key}: {what} has none, leave it out")),
            None => Ok(()),
        }
    }

    /// The matrix, in the order of the plan.
    pub(super) fn runs(
        &self,
        workload: &WorkloadSweep,
        scale: f64,
        catalogue: Catalogue<'_>,
    ) -> Result<Vec<WorkloadRun>, String> {
        let mut runs = Vec::new();
        for workload in workload.cells() {
            runs.push(WorkloadRun {
                workers: 1,
                lone_worker: None,
                nodes: None,
                processes: None,
                engine: EngineKind::Sync,
                mpi_io: None,
                depth: 1,
                time_limit: self.time_limit,
                stonewall: false,
                volumes: Volumes::Alone,
                siblings: self.siblings,
                stripe_count: None,
                stripe_size: None,
                replicas: None,
                pool: None,
                settings: Vec::new(),
                data: BufferData::Random,
                offered: OfferedRate::None,
                background: None,
                workload,
            });
        }
        let runs = over(self.nodes.as_ref(), runs, |run, value| run.nodes = value.first());
        let runs = over(self.processes.as_ref(), runs, |run, value| run.processes = value.first());
        let volumes = Siblings::volumes(self.siblings, &self.volumes)?;
        let runs = self.by_workers(runs)?;
        let runs = self.by_engines(runs)?;
        let runs = self.depth.over(runs, |run, value| run.depth = value);
        let runs = self.stonewall.over(runs, |run, value| run.stonewall = value);
        let runs = volumes.over(runs, |run, value| run.volumes = value);
        let runs = over(self.stripe_count.as_ref(), runs, |run, value| run.stripe_count = Some(value));
        let runs = over(self.stripe_size.as_ref(), runs, |run, value| run.stripe_size = Some(value));
        let runs = over(self.replicas.as_ref(), runs, |run, value| run.replicas = Some(value));
        let runs = over(self.pool.as_ref(), runs, |run, value| run.pool = Some(value));
        let all = setting::combinations(&self.setting);
        let with = |run: WorkloadRun| {
            all.clone().into_iter().map(move |settings| WorkloadRun { settings, ..run.clone() })
        };
        let runs: Vec<WorkloadRun> = runs.into_iter().flat_map(with).collect();
        let runs = self.data.over(runs, |run: &mut WorkloadRun, data| run.data = data);
        let set = |run: &mut WorkloadRun, offered| run.offered = offered;
        let runs = OfferedRate::over(self.rate.as_ref(), self.rate_iops.as_ref(), runs, set)?;
        let levels = self.levels(scale, catalogue)?;
        Ok(over_levels(runs, &levels, |run, load| run.background = Some(load)))
    }

    /// Each of the runs by each number of workers. For siblings it first adds each worker by itself, up to the
    /// largest number.
    fn by_workers(&self, runs: Vec<WorkloadRun>) -> Result<Vec<WorkloadRun>, String> {
        let together = |runs: Vec<WorkloadRun>| self.workers.over(runs, |run, value| run.workers = value);
        if self.siblings != Some(Siblings::Workers) {
            return Ok(together(runs));
        }
        let most = self.workers.values().iter().copied().max().unwrap_or(1);
        check_workers(&self.workers, most, &runs)?;
        let lone = Sweep::of((0..most).collect());
        let mut all = lone.over(runs.clone(), |run, worker| {
            run.workers = most;
            run.lone_worker = Some(worker);
        });
        all.extend(together(runs));
        Ok(all)
    }

    /// Each run with each engine, and with MPI-IO in each requested way.
    fn by_engines(&self, runs: Vec<WorkloadRun>) -> Result<Vec<WorkloadRun>, String> {
        let is_used = self.engine.values().contains(&EngineKind::MpiIo);
        if self.mpi_io.is_some() && !is_used {
            return Err(
                "mpi_io: only the engine `mpi_io` uses it: add the engine, or leave the table out".into()
            );
        }
        if is_used && self.siblings == Some(Siblings::Workers) {
            return Err(
                "siblings = \"workers\": processes call MPI-IO together, so no worker can run alone: write \
                 another engine, or leave siblings out"
                    .into(),
            );
        }
        let ways = Sweep::of(self.mpi_io.clone().unwrap_or_default().ways());
        let runs = self.engine.over(runs, |run, value| run.engine = value);
        let by_mpi_io = |run: &WorkloadRun| run.engine == EngineKind::MpiIo;
        let with = |run: WorkloadRun| ways.over(vec![run], |run, way| run.mpi_io = Some(way));
        let in_ways = |run: WorkloadRun| if by_mpi_io(&run) { with(run) } else { vec![run] };
        Ok(runs.into_iter().flat_map(in_ways).collect())
    }

    /// Recordings by each number of processes, at each level of the load beside them.
    pub(super) fn recordings(
        &self,
        mut runs: Vec<RecordingRun>,
        scale: f64,
        catalogue: Catalogue<'_>,
    ) -> Result<Vec<RecordingRun>, String> {
        if let Some(nodes) = &self.nodes {
            runs = nodes.over(runs, |run, value| run.swept.nodes = value.first());
        }
        if let Some(processes) = &self.processes {
            runs = processes.over(runs, |run, value| run.swept.processes = value.first());
        }
        runs.iter().try_for_each(|run| check_processes(run.into()))?;
        setting::check_settings(&self.setting)?;
        if self.volumes != Sweep::default() {
            runs.iter().try_for_each(|run| self.check_volumes(run))?;
            for run in &mut runs {
                run.volumes = self.volumes.values().to_vec();
            }
        }
        let all = setting::combinations(&self.setting);
        let with = |run: RecordingRun| {
            all.clone().into_iter().map(move |settings| RecordingRun { settings, ..run.clone() })
        };
        let runs: Vec<RecordingRun> = runs.into_iter().flat_map(with).collect();
        let levels = self.levels(scale, catalogue)?;
        Ok(over_levels(runs, &levels, |run, load| run.background = Some(load)))
    }

    /// One recording over several targets can be made of it.
    fn check_volumes(&self, run: &RecordingRun) -> Result<(), String> {
        let refused = [
            (
                run.instrument.recording.format == Format::Hdf5,
                "HDF5 files lie on one target: write another format",
            ),
            (run.onto == Onto::Nothing, "nothing is stored: leave onto out"),
            (run.route == Route::Network, "it is made by one process: leave route out, or write another"),
            (
                self.nodes.is_some() || self.processes.is_some(),
                "it is made by one process: leave nodes and processes out",
            ),
            (self.background.is_some(), "no load works beside it: leave background out"),
            (!self.setting.is_empty(), "settings are those of one target: leave setting out"),
        ];
        match refused.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, why)) => {
                Err(format!("volumes: one recording over several targets: {why}, or leave volumes out"))
            }
            None => Ok(()),
        }
    }

    /// The levels of its background load; empty without one.
    fn levels(&self, scale: f64, catalogue: Catalogue<'_>) -> Result<Vec<BackgroundLoad>, String> {
        self.background.as_ref().map_or(Ok(Vec::new()), |background| background.levels(scale, catalogue))
    }
}

/// The most workers that are measured one by one.
const WORKERS_MOST: u32 = 64;

/// Checks that each of the workers can work by itself.
fn check_workers(written: &Sweep<u32>, most: u32, runs: &[WorkloadRun]) -> Result<(), String> {
    if written.values().iter().any(|count| *count < 2) || most > WORKERS_MOST {
        return Err(format!(
            "siblings = \"workers\": each worker also runs alone: write workers = 2 to {WORKERS_MOST}"
        ));
    }
    let together = runs.iter().find(|run| !run.workload.parameters().traits().has_workers_apart);
    together.map_or(Ok(()), |run| {
        Err(format!(
            "siblings = \"workers\": workers of `{}` share something, so none can work alone: leave \
             siblings out, or write a workload whose workers have their own files",
            run.workload.name()
        ))
    })
}

/// Each run at each level, if there are any.
fn over_levels<T: Clone>(
    runs: Vec<T>,
    levels: &[BackgroundLoad],
    set: impl Fn(&mut T, Box<BackgroundLoad>),
) -> Vec<T> {
    if levels.is_empty() {
        return runs;
    }
    let mut at_each = Vec::with_capacity(runs.len() * levels.len());
    for run in runs {
        for level in levels {
            let mut run = run.clone();
            set(&mut run, Box::new(level.clone()));
            at_each.push(run);
        }
    }
    at_each
}

/// The matrix over a parameter that need not be written.
fn over<T: Clone>(
    sweep: Option<&Sweep<T>>,
    runs: Vec<WorkloadRun>,
    set: impl Fn(&mut WorkloadRun, T),
) -> Vec<WorkloadRun> {
    match sweep {
        Some(sweep) => sweep.over(runs, set),
        None => runs,
    }
}
