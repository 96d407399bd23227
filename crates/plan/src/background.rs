//! Background load during a measurement: another workload or an instrument on the same target, in its own
//! directory, at several levels. It runs throughout each measured phase of a cell.

use std::fmt;

use nilometer_model::{ByteRate, Capability, Phase};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    Catalogue, IngestSweep, KeyValue, OfferedRate, RecordingRun, Sweep, ValueKind, WorkloadCell,
    WorkloadSweep, plan_table::plan_table,
};

plan_table! {
    /// A load in the plan: its levels, and its work.
    #[derive(Debug, Clone)]
    BackgroundSweep {
        /// Threads of the load on each target, in each process. Default: 1. With 0 there is no load, as
        /// reference for the others.
        workers: Option<Sweep<u32>>,
        /// Instruments at once, each with a recorder of its own, over all processes. Default: 1. With 0 there
        /// is no load.
        count: Option<Sweep<u32>>,
        /// Move at most this much, over all of them; "0 MB/s" is no load, "1 TB/s" is no limit.
        rate: Option<Sweep<ByteRate>>,
        /// Issue at most this many operations a second, over all of them; 0 is no load.
        rate_iops: Option<Sweep<u32>>,
        /// Repeat this phase during the measurement, named as in reports. Default: all measured phases.
        phase: Option<PhaseName>,
        /// The load: a workload.
        workload: Option<WorkloadSweep>,
        /// The load: a recording, without frames, duration, route, network, readers, read and onto.
        ingest: Option<IngestSweep>,
    }
}

/// A phase, by its word in reports.
#[derive(Debug, Clone, Copy)]
pub struct PhaseName(pub Phase);

impl<'de> Deserialize<'de> for PhaseName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = || Phase::ALL.iter().map(|phase| phase.name()).collect::<Vec<_>>().join(", ");
        let refused = || de::Error::custom(format!("no phase `{name}`: write one of {}", known()));
        Phase::from_name(&name).map(PhaseName).ok_or_else(refused)
    }
}

impl KeyValue for PhaseName {
    fn kind() -> ValueKind {
        ValueKind::Words(Phase::ALL.iter().map(|phase| phase.name().to_owned()).collect())
    }
}

fn one() -> Sweep<u32> {
    Sweep::from(1)
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

impl BackgroundSweep {
    /// Its levels, in the order of the plan. All levels without load count as one.
    pub(super) fn levels(&self, scale: f64, catalogue: Catalogue<'_>) -> Result<Vec<BackgroundLoad>, String> {
        let loads = match (&self.workload, &self.ingest) {
            (Some(workload), None) => self.of_workload(workload)?,
            (None, Some(ingest)) => self.of_instrument(ingest, catalogue)?,
            _ => return Err(NO_WORK.into()),
        };
        let mut levels: Vec<BackgroundLoad> = Vec::new();
        for load in loads {
            let load = load.at_scale(scale)?;
            let is_known = |level: &BackgroundLoad| *level == load || level.is_none() && load.is_none();
            if !levels.iter().any(is_known) {
                levels.push(load);
            }
        }
        Ok(levels)
    }

    fn of_workload(&self, workload: &WorkloadSweep) -> Result<Vec<BackgroundLoad>, String> {
        if self.count.is_some() {
            return Err("background: count: only an instrument has it; for a workload write workers".into());
        }
        let loads = workload.cells().into_iter().map(LoadWork::Workload);
        let phase = self.phase.map(|PhaseName(phase)| phase);
        let loads = loads.map(|work| BackgroundLoad { phase, ..BackgroundLoad::of(work) });
        let workers = self.workers.clone().unwrap_or_else(one);
        let loads = workers.over(loads.collect(), |load, workers| load.workers = workers);
        let set = |load: &mut BackgroundLoad, offered| load.offered = offered;
        OfferedRate::over(self.rate.as_ref(), self.rate_iops.as_ref(), loads, set)
            .map_err(|why| format!("background {why}"))
    }

    fn of_instrument(
        &self,
        ingest: &IngestSweep,
        catalogue: Catalogue<'_>,
    ) -> Result<Vec<BackgroundLoad>, String> {
        let of_workers = [
            ("workers", self.workers.is_some()),
            ("rate", self.rate.is_some()),
            ("rate_iops", self.rate_iops.is_some()),
            ("phase", self.phase.is_some()),
        ];
        if let Some((key, _)) = of_workers.into_iter().find(|(_, is_written)| *is_written) {
            return Err(format!(
                "background: {key}: an instrument has none; write count, and its rate in [stage.background.ingest]"
            ));
        }
        let runs = ingest.lasting_runs(catalogue).map_err(|why| format!("background: {why}"))?;
        let loads = runs.into_iter().map(|run| BackgroundLoad::of(LoadWork::Recording(Box::new(run))));
        let count = self.count.clone().unwrap_or_else(one);
        Ok(count.over(loads.collect(), |load, count| load.workers = count))
    }
}

/// The message for a load without work, or with two kinds.
const NO_WORK: &str = "background: write the load, [stage.background.workload.NAME] or \
                       [stage.background.ingest], one of them";
/// The most instruments beside a cell.
const INSTRUMENTS_MAX: u32 = 64;
/// A load with this rate has no limit: a list of rates can end with it.
const UNLIMITED: ByteRate = ByteRate(1e12);

impl BackgroundLoad {
    /// One worker or instrument, as fast as it goes.
    fn of(work: LoadWork) -> Self {
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

    fn at_scale(mut self, scale: f64) -> Result<Self, String> {
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
    pub fn footprint(&self) -> super::Footprint {
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
mod tests {
    use nilometer_model::Bytes;

    use super::*;
    use crate::{ResolvedPlan, parse};

    const PLAN: &str = r#"
title = "listing beside writers"
[[stage]]
name = "list"
[stage.workload.walk]
levels = 1
branching = 1
files = 8
[stage.background]
workers = [0, 1, 2]
rate = ["0 MB/s", "50 MB/s"]
phase = "write"
[stage.background.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "buffered"
"#;

    fn read(text: &str) -> Result<ResolvedPlan, String> {
        parse(text, "my.toml", 1.0).map_err(|error| error.to_string())
    }

    fn loads(plan: &ResolvedPlan) -> Vec<&BackgroundLoad> {
        plan.workloads().filter_map(|(_, _, run)| run.background.as_deref()).collect()
    }

    #[test]
    fn levels_are_a_dimension_and_no_load_is_one_cell() {
        let plan = read(PLAN).expect("a valid plan");
        let told: Vec<String> = plan.cells.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].ends_with("beside no stream"), "{}", told[0]);
        assert!(
            told[2]
                .ends_with("beside 2 workers of stream, write only at 50 MB/s (64 MiB by 1 MiB, buffered)"),
            "{}",
            told[2]
        );
        let recorded = serde_json::to_string(&plan).expect("it can be written");
        assert_eq!(serde_json::from_str::<ResolvedPlan>(&recorded).expect("it can be read"), plan);
        let [none, one, two] = loads(&plan)[..] else { panic!("three levels") };
        assert_eq!((none.footprint().bytes, two.footprint().bytes), (Bytes(0), Bytes(128 << 20)));
        assert_eq!((one.prepared(), one.measured()), (Vec::new(), vec![Phase::Write]));
        let reading = read(&PLAN.replace("\"write\"", "\"read\"")).expect("a valid plan");
        assert_eq!(loads(&reading)[1].prepared(), [Phase::Write], "what is read was written");
    }

    #[test]
    fn a_load_is_scaled_with_what_it_is_beside() {
        let plan = parse(PLAN, "my.toml", 0.5).expect("a valid plan");
        assert_eq!(loads(&plan)[1].footprint().bytes, Bytes(32 << 20));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_valid_values() {
        for (from, to, parts) in [
            (
                "workers = [0, 1, 2]",
                "workers = 2000",
                &["my.toml:4", "background: workers = 2000: write 0 to"],
            ),
            ("\"write\"", "\"du\"", &["background: phase", "write one of write, read"]),
            ("phase = \"write\"", "rate_iops = 5", &["background has a rate and rate_iops", "one of them"]),
            ("phase = \"write\"", "depth = 5", &["unknown key `depth`", "`rate_iops`"]),
            (
                "file_size = \"64 MiB\"",
                "file_size = \"63.5 MiB\"",
                &["background: file_size", "whole number"],
            ),
        ] {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN, "{from}");
            let error = read(&text).expect_err(to);
            assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
        }
    }

    #[test]
    fn a_workload_may_be_held_to_a_rate() {
        let text = "title = \"t\"\n[[stage]]\nname = \"s\"\nrate = [\"10 MB/s\", \"20 MB/s\"]\n[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";
        let told: Vec<String> =
            read(text).expect("a valid plan").cells.iter().map(ToString::to_string).collect();
        assert!(told[1].ends_with("1 worker, at 20 MB/s"), "{told:?}");
        let counted = read(&text.replace("rate = [\"10 MB/s\", \"20 MB/s\"]", "rate_iops = 100"));
        assert!(counted.expect("valid").cells[0].to_string().ends_with("at 100 operations/s"));
        for (wrong, part) in [
            ("rate = \"0 MB/s\"", "rate = \"0 B/s\": write 1 B/s to"),
            ("rate_iops = 0", "rate_iops = 0: write 1"),
            ("rate_iops = 1\nrate = \"1 MB/s\"", "has a rate and rate_iops"),
        ] {
            let error = read(&text.replace("rate = [\"10 MB/s\", \"20 MB/s\"]", wrong)).expect_err(wrong);
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
