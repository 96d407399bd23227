//! The duration and the space of a plan, before it runs.

use nilometer_model::{ByteRate, Bytes, Nanos, Phase};

use super::{Footprint, ResolvedPlan, Volumes, Work, WorkloadRun};

/// The assumed speed of a storage system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EstimatedSpeed {
    /// Bytes a second, all workers together.
    pub rate: ByteRate,
    /// Operations a second, all workers together.
    pub operations: f64,
    /// Calls a second that the page cache takes or answers in sequence, all workers together.
    pub cached: f64,
}

impl EstimatedSpeed {
    /// The speed of an unknown storage system.
    pub const ASSUMED: EstimatedSpeed =
        EstimatedSpeed { rate: ByteRate(500e6), operations: 10_000.0, cached: 500_000.0 };
    /// A speed above that of any storage for one node: if a plan takes too long at this speed, it always
    /// does.
    pub const UTMOST: EstimatedSpeed =
        EstimatedSpeed { rate: ByteRate(100e9), operations: 10e6, cached: 100e6 };

    fn time(self, work: Work, in_sequence: bool) -> f64 {
        let operations = if in_sequence { self.cached } else { self.operations };
        (work.bytes as f64 / self.rate.0).max(work.operations as f64 / operations)
    }
}

/// The time and space that a plan takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The time from the first cell to the last, over all rounds and targets.
    pub time: Nanos,
    /// The space that the largest cell leaves on a target until it is cleared, without recordings.
    pub space: Footprint,
    /// Bytes written to each target in all.
    pub written: Bytes,
}

/// A longer time can't be counted, in seconds.
const LONGEST: f64 = 9e9;
/// Threads, settling and clearing of a phase.
const OVERHEAD: f64 = 0.02;

impl ResolvedPlan {
    /// The estimate for this many targets of such a speed.
    pub fn estimate(&self, targets: usize, speed: EstimatedSpeed) -> Estimate {
        let rounds = f64::from(self.warm_up + self.repeats);
        let mut seconds = 0.0;
        let mut written = 0_u64;
        let mut space = Footprint::default();
        for (_, _, cell) in self.workloads().filter(|(index, ..)| self.is_measured_on(*index, targets)) {
            let times = if cell.volumes == Volumes::Alone { targets as f64 } else { 1.0 };
            let processes = self.processes_of(cell);
            seconds += rounds * times * self.time_of(cell, speed).seconds();
            let often = u64::from(self.warm_up + self.repeats);
            written = written.saturating_add(cell.written(processes).saturating_mul(often));
            let Footprint { bytes, entries } = cell.footprint(processes);
            space = Footprint { bytes: space.bytes.max(bytes), entries: space.entries.max(entries) };
        }
        for (_, recording) in self.recordings() {
            let onto_each = if recording.is_onto_each() { targets } else { 0 };
            let times = (onto_each + recording.at_once(targets).len()).max(1);
            seconds += f64::from(recording.repeats) * times as f64 * recording.duration.seconds();
        }
        seconds += self.network_time().seconds();
        // A plan of the longest time is too long in any case.
        Estimate { time: Nanos::from_seconds(seconds.min(LONGEST)), space, written: Bytes(written) }
    }

    /// The time of all phases of a cell, once, on storage of such a speed.
    pub fn time_of(&self, cell: &WorkloadRun, speed: EstimatedSpeed) -> Nanos {
        Nanos::from_seconds(cell.seconds(speed, self.processes_of(cell)).min(LONGEST))
    }
}

impl WorkloadRun {
    /// The time of all phases at such a speed, for this many processes.
    fn seconds(&self, speed: EstimatedSpeed, processes: u32) -> f64 {
        let parameters = self.workload.parameters();
        let parts = self.parts(processes);
        let phases = parameters.phases().into_iter().map(|phase| {
            let work = parameters.work(phase, parts);
            let offered = if phase.is_setup() { Nanos(0) } else { self.offered.least_time(work) };
            let least = parameters.least_time(phase, parts).max(offered).seconds();
            let whole = speed.time(work, parameters.traits().in_sequence_through_the_cache).max(least);
            let whole = whole + parameters.think_time(phase).seconds() / f64::from(self.workers);
            let limit = self.time_limit.filter(|_| parameters.may_end_early(phase));
            OVERHEAD + limit.map_or(whole, |limit| whole.min(limit.seconds()))
        });
        phases.sum()
    }

    /// Bytes that a repeat of this many processes writes to a target, if no time limit ends it.
    fn written(&self, processes: u32) -> u64 {
        let parameters = self.workload.parameters();
        let parts = self.parts(processes);
        // The source of a copy is written elsewhere.
        let writes = |phase: &Phase| match phase {
            Phase::LayOut => !self.copies(),
            _ => matches!(phase, Phase::Write | Phase::Rewrite | Phase::CreateFiles | Phase::Unpack),
        };
        let phases = parameters.phases().into_iter().filter(writes);
        phases.map(|phase| parameters.work(phase, parts).bytes).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const PLAN: &str = r#"
title = "a test"
repeats = 4
warm_up = 1
[[stage]]
name = "large files"
workers = 2
[stage.workload.stream]
file_size = "1 GB"
block_size = "1 MB"
access = "buffered"
"#;

    fn estimate(text: &str, targets: usize) -> Estimate {
        parse(text, "my.toml", 1.0).expect("a valid plan").estimate(targets, EstimatedSpeed::ASSUMED)
    }

    #[test]
    fn time_and_space_follow_from_the_matrix() {
        let once = estimate(PLAN, 1);
        // Five rounds of writing and reading 2 GB at 500 MB/s.
        assert!((once.time.seconds() - 5.0 * (8.0 + 2.0 * OVERHEAD)).abs() < 1e-6, "{once:?}");
        assert_eq!(once.space, Footprint { bytes: Bytes(2_000_000_000), entries: 2 });
        assert_eq!(once.written, Bytes(10_000_000_000));
        assert_eq!(estimate(PLAN, 3).time.0, 3 * once.time.0);
    }

    /// Like dd by default: the kernel collects such calls, and a disk never sees them.
    #[test]
    fn small_blocks_in_sequence_through_the_cache_take_as_long_as_calls_do() {
        let with = |block: &str, access: &str| {
            let text = PLAN.replace("\"1 MB\"", &format!("{block:?}")).replace("buffered", access);
            estimate(&text, 1).time.seconds()
        };
        let large = with("1 MB", "buffered");
        assert!((large - with("5 kB", "buffered")).abs() < 1e-6, "the rate decides");
        // Five rounds of two passes of four million calls.
        assert!((with("512 B", "buffered") - 5.0 * 2.0 * (4e6 / 1.024 / 500e3)).abs() < 1.0);
        assert!(with("4 kB", "direct") > 5.0 * large);
        let nus = parse(include_str!("../../../plans/nus.toml"), "nus.toml", 1.0).expect("a plan");
        let time = nus.estimate(1, EstimatedSpeed::ASSUMED).time;
        assert!(time < nus.time_limit, "{time} beside a limit of {}", nus.time_limit);
    }

    #[test]
    fn a_time_limit_limits_and_targets_at_once_count_once() {
        let limited =
            PLAN.replace("workers = 2", "workers = 2\ntime_limit = \"1 s\"\nvolumes = \"together\"");
        let (one, three) = (estimate(&limited, 1).time, estimate(&limited, 3).time);
        assert!(
            (one.seconds() - 5.0 * 2.0 * (1.0 + OVERHEAD)).abs() < 1e-6 && one == three,
            "{one} and {three}"
        );
    }

    #[test]
    fn a_lock_is_held_twice_the_time_in_each_turn_of_each_process() {
        let text = "title = \"a test\"\nrepeats = 1\nwarm_up = 0\n[[stage]]\nname = \"locks\"\n\
                    [stage.workload.locks]\nrounds = 10\nhold = \"20 ms\"\n";
        let plan = ResolvedPlan { ranks: 3, ..parse(text, "my.toml", 1.0).expect("a valid plan") };
        let once = plan.estimate(1, EstimatedSpeed::ASSUMED).time.seconds();
        assert!((once - 1.2 - OVERHEAD).abs() < 1e-6, "{once}");
    }

    #[test]
    fn workers_of_a_build_think_at_the_same_time() {
        let of = |think: &str| {
            let text = format!(
                "title = \"a test\"\nrepeats = 1\n[[stage]]\nname = \"make\"\nworkers = 8\n[stage.workload.build]\n\
                 directories = 10\nfiles = 1000\nsize = \"1 MB\"\nunits = 80\nthink_time = \"{think}\"\n"
            );
            parse(&text, "my.toml", 1.0)
                .expect("a valid plan")
                .estimate(1, EstimatedSpeed::ASSUMED)
                .time
                .seconds()
        };
        assert!((of("200 ms") - of("0 ns") - 2.0).abs() < 1e-6);
    }

    #[test]
    fn what_can_not_be_counted_is_long_not_short() {
        let endless = PLAN.replace("\"1 GB\"", "\"9000 TB\"").replace("workers = 2", "workers = 1024");
        assert!(estimate(&endless, 1).time.seconds() > 1e9);
    }
}
