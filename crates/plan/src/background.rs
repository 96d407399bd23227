//! Background load during a measurement: another workload or an instrument on the same target, in its own
//! directory, at several levels. It runs throughout each measured phase of a cell.

use nilometer_model::{ByteRate, Phase};
use serde::{Deserialize, Deserializer, de};

use super::{
    BackgroundLoad, Catalogue, IngestSweep, KeyValue, LoadWork, OfferedRate, Sweep, ValueKind, WorkloadSweep,
    plan_table::plan_table,
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
