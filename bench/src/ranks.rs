//! Four processes under the same `mpirun`, against mdtest and IOR, which are looked for in the `PATH`: what an operation and a
//! GiB cost in processor time, how late the processes begin, and what passes between two phases.
//!
//! What a peer costs is that of all its processes in a long run, less that of a short one: its start is not held against it, the
//! barriers between its phases are, which wait for a processor as long as they last. Ours is what the record has of the phases
//! with the same operations; a campaign measures more than those, the tool's own ceiling for one.

use std::{path::Path, process::Command, thread::available_parallelism};

use nilometer_model::{Nanos, Phase};
use nilometer_plan::{Measured, Results};
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};

const RANKS: u32 = 4;
/// Files of each process.
const FILES: u32 = 10_000;
/// In a run that is short.
const FEW: u32 = 1000;

const TREE: &str = r#"
title = "ranks"
repeats = 1
reserve = "0 B"
[[stage]]
name = "tree"
[stage.workload.tree]
items = 10_000
levels = 0
branching = 1
kind = "files"
"#;

const FILE: &str = r#"
title = "ranks"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "256 MiB"
block_size = "1 MiB"
access = "buffered"
shift = "node"
"#;

/// By MPI-IO, all into one file. `CALLS` stands for how.
const ONE_FILE: &str = r#"
title = "ranks"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
engine = "mpi_io"
[stage.mpi_io]
calls = "CALLS"
[stage.workload.stream]
file_size = "128 MiB"
block_size = "1 MiB"
access = "buffered"
layout = "segmented"
"#;

const TINY: &str = r#"
title = "ranks"
repeats = 40
reserve = "0 B"
[[stage]]
name = "tiny"
[stage.workload.stream]
file_size = "4 KiB"
block_size = "4 KiB"
access = "buffered"
"#;

const OURS: &str = "nilometer, 4 processes";
const MDTEST: &str = "mdtest, 4 processes";
const IOR: &str = "IOR, 4 processes";
/// More than these begin one after the other, when a processor is free.
const AS_PROCESSORS: &str = "nilometer, as many processes as processors";

/// Of the processor time of a peer.
const AT_MOST: f64 = 0.8;
/// Of that of a peer where both call the same library, which does all the work.
const AS_MUCH: f64 = 1.1;
/// Milliseconds from a phase to the next, settling apart.
const GAP: f64 = 20.0;
/// Milliseconds from the agreed start to that of the last process.
const SKEW: f64 = 0.1;

/// Creation, stat, read and removal of empty files in a directory a process, in memory.
pub(crate) fn files(stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let contest = Contest {
        title: format!("ranks: {FILES} empty files a process: creation, stat, read, removal; in memory"),
        quantity: Quantity::CpuPerOperation,
        phases: &["all four"],
        rounds: 5,
        contestants: vec![
            Contestant::new(MDTEST, || mdtest(&memory)),
            Contestant::new(OURS, || tree(&memory)),
        ],
        bounds: vec![Bound { subject: OURS, peer: MDTEST, limit: Limit::Times(AT_MOST) }],
    };
    contest.run(stop)
}

/// A file a process, written and read by the next one, in memory.
pub(crate) fn stream(stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let contest = Contest {
        title: "ranks: 256 MiB a process by 1 MiB, written and read by the next; in memory".into(),
        quantity: Quantity::CpuPerGib,
        phases: &["both"],
        rounds: 5,
        contestants: vec![
            Contestant::new(IOR, || ior(&memory)),
            Contestant::new(OURS, || streamed(&memory, FILE)),
        ],
        bounds: vec![Bound { subject: OURS, peer: IOR, limit: Limit::Times(AT_MOST) }],
    };
    contest.run(stop)
}

/// One file of all processes by MPI-IO, each by itself, in memory.
pub(crate) fn independent(stop: &Stop) -> anyhow::Result<Outcome> {
    one_file("independent", &[], stop)
}

/// The same, all together.
pub(crate) fn collective(stop: &Stop) -> anyhow::Result<Outcome> {
    one_file("collective", &["-c"], stop)
}

fn one_file(calls: &'static str, option: &'static [&'static str], stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let plan = ONE_FILE.replace("CALLS", calls);
    let contest = Contest {
        title: format!(
            "ranks: one file by {calls} calls of MPI-IO, 128 MiB a process by 1 MiB, written and read; in memory"
        ),
        quantity: Quantity::CpuPerGib,
        phases: &["both"],
        rounds: 5,
        contestants: vec![
            Contestant::new(IOR, || ior_mpi_io(&memory, option)),
            Contestant::new(OURS, || streamed(&memory, &plan)),
        ],
        bounds: vec![Bound { subject: OURS, peer: IOR, limit: Limit::Times(AS_MUCH) }],
    };
    contest.run(stop)
}

/// From phase to phase of a campaign of tiny cells.
pub(crate) fn between(stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let contest = Contest {
        title: "ranks: from the end of a phase to the start of the next, settling apart".into(),
        quantity: Quantity::WallPerGap,
        phases: &["between"],
        rounds: 5,
        contestants: vec![Contestant::new(OURS, || gaps(&memory))],
        bounds: vec![Bound { subject: OURS, peer: OURS, limit: Limit::AtMost(GAP) }],
    };
    contest.run(stop)
}

/// How late the last process begins a phase: half of the phases are better.
pub(crate) fn start(stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let contest = Contest {
        title: "ranks: from the agreed start of a phase to that of its last process, the median of 80 phases"
            .into(),
        quantity: Quantity::WallPerStart,
        phases: &["start"],
        rounds: 5,
        contestants: vec![
            Contestant::new(AS_PROCESSORS, || skew(&memory, available_parallelism()?.get() as u32)),
            Contestant::new(OURS, || skew(&memory, RANKS)),
        ],
        bounds: vec![Bound { subject: AS_PROCESSORS, peer: AS_PROCESSORS, limit: Limit::AtMost(SKEW) }],
    };
    contest.run(stop)
}

/// Of a program and its arguments. A process that waits lets another one have its processor, or with more processes than
/// processors nothing would go on.
pub(crate) fn mpirun(program: &Path) -> Command {
    mpirun_of(RANKS, program)
}

fn mpirun_of(ranks: u32, program: &Path) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", &ranks.to_string()]);
    if rustix::process::geteuid().is_root() {
        command.arg("--allow-run-as-root");
    }
    command.arg(program);
    command
}

/// What is more in a long run than in a short one.
fn beyond(long: Cost, short: Cost) -> Cost {
    Cost { amount: long.amount - short.amount, cpu: long.cpu - short.cpu, wall: long.wall - short.wall }
}

fn mdtest(memory: &TempDir) -> anyhow::Result<Vec<Cost>> {
    let run = |files: u32| {
        let home = tempfile::tempdir_in(memory.path())?;
        let mut command = mpirun(Path::new("mdtest"));
        command.args(["-F", "-u", "-n", &files.to_string(), "-d"]).arg(home.path());
        let operations = 4.0 * f64::from(files) * f64::from(RANKS);
        anyhow::Ok(measure::child(operations, &mut command)?.0)
    };
    Ok(vec![beyond(run(FILES)?, run(FEW)?)])
}

fn ior(memory: &TempDir) -> anyhow::Result<Vec<Cost>> {
    let run = |times: u32| {
        let home = tempfile::tempdir_in(memory.path())?;
        let mut command = mpirun(Path::new("ior"));
        command.args(["-a", "POSIX", "-F", "-w", "-r", "-e", "-C", "-b", "256m", "-t", "1m", "-i"]);
        command.arg(times.to_string()).arg("-o").arg(home.path().join("file"));
        let gib = 2.0 * f64::from(times) * f64::from(RANKS) / 4.0;
        anyhow::Ok(measure::child(gib, &mut command)?.0)
    };
    Ok(vec![beyond(run(2)?, run(1)?)])
}

/// IOR shares one file where it is not told otherwise.
fn ior_mpi_io(memory: &TempDir, option: &[&str]) -> anyhow::Result<Vec<Cost>> {
    let run = |times: u32| {
        let home = tempfile::tempdir_in(memory.path())?;
        let mut command = mpirun(Path::new("ior"));
        command.args(["-a", "MPIIO", "-w", "-r", "-e", "-b", "128m", "-t", "1m", "-i"]);
        command.arg(times.to_string()).args(option).arg("-o").arg(home.path().join("file"));
        let gib = 2.0 * f64::from(times) * f64::from(RANKS) / 8.0;
        anyhow::Ok(measure::child(gib, &mut command)?.0)
    };
    Ok(vec![beyond(run(2)?, run(1)?)])
}

/// A campaign of four processes; what is in its record of the target.
pub(crate) fn evaluated(memory: &TempDir, text: &str) -> anyhow::Result<Vec<Measured>> {
    evaluated_by(RANKS, memory, text)
}

fn evaluated_by(ranks: u32, memory: &TempDir, text: &str) -> anyhow::Result<Vec<Measured>> {
    let home = tempfile::tempdir_in(memory.path())?;
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("plan.toml"), text)?;
    let program = place::program()?;
    make_adapter(&program, &at("adapter.so"))?;
    let mut command = mpirun_of(ranks, Path::new("sh"));
    // Four processes on two processors wait for one, and `evaluate` ends with 4 where it counts no figure because of that:
    // what they spent is what is asked here.
    command.args(["-c", "\"$0\" \"$@\"; code=$?; [ $code = 4 ] || exit $code"]).arg(&program);
    command.arg("evaluate").arg(home.path()).arg("--plan").arg(at("plan.toml"));
    command.arg("--record").arg(at("r.sqlite")).env("NILOMETER_MPI", at("adapter.so"));
    measure::child(1.0, &mut command)?;
    let Results { samples, .. } = nilometer_record::read(&at("r.sqlite"))?;
    anyhow::ensure!(!samples.is_empty(), "nothing was measured");
    Ok(samples.into_iter().filter(|measured| measured.key.target == 0).collect())
}

pub(crate) fn make_adapter(program: &Path, adapter: &Path) -> anyhow::Result<()> {
    let (_, source) = measure::child(1.0, Command::new(program).args(["generate", "mpi"]))?;
    let text = adapter.with_extension("c");
    std::fs::write(&text, source.stdout)?;
    let mut compiler = Command::new("mpicc.openmpi");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(adapter).arg(&text);
    measure::child(1.0, &mut compiler)?;
    Ok(())
}

/// All processes together, in these phases.
pub(crate) fn spent<'a>(
    samples: impl Iterator<Item = &'a Measured>,
    amount: impl Fn(&Measured) -> f64,
) -> Cost {
    samples.fold(Cost { amount: 0.0, cpu: 0.0, wall: 0.0 }, |sum, measured| {
        let sample = &measured.sample;
        Cost {
            amount: sum.amount + amount(measured),
            cpu: sum.cpu + (sample.user + sample.system).seconds(),
            wall: sum.wall + sample.wall.seconds(),
        }
    })
}

/// What mdtest does too.
const COMPARED: [Phase; 4] = [Phase::CreateFiles, Phase::StatFiles, Phase::ReadFiles, Phase::RemoveFiles];

fn tree(memory: &TempDir) -> anyhow::Result<Vec<Cost>> {
    let samples = evaluated(memory, TREE)?;
    let compared = samples.iter().filter(|measured| COMPARED.contains(&measured.key.phase));
    let cost = spent(compared, |measured| measured.sample.operations as f64);
    let missing = 4.0 * f64::from(FILES * RANKS) - cost.amount;
    anyhow::ensure!(missing.abs() < 0.5, "{} operations", cost.amount);
    Ok(vec![cost])
}

fn streamed(memory: &TempDir, plan: &str) -> anyhow::Result<Vec<Cost>> {
    let samples = evaluated(memory, plan)?;
    Ok(vec![spent(samples.iter(), |measured| measured.sample.bytes as f64 / f64::from(1 << 30))])
}

fn gaps(memory: &TempDir) -> anyhow::Result<Vec<Cost>> {
    let samples = evaluated(memory, TINY)?;
    let gap = |pair: &[Measured]| {
        let [last, next] = pair else { return Nanos(0) };
        next.sample.started.since(last.sample.started + last.sample.wall + next.sample.settling)
    };
    // From one repeat of a cell to another the ceiling may lie between: within a repeat there is nothing else.
    let pairs: Vec<&[Measured]> = samples
        .chunks(2)
        .filter(|pair| pair.len() == 2 && pair[0].key.repeat == pair[1].key.repeat)
        .collect();
    let sum = pairs.iter().map(|pair| gap(pair)).fold(Nanos(0), |sum, gap| sum + gap);
    Ok(vec![Cost { amount: pairs.len() as f64, cpu: 0.0, wall: sum.seconds() }])
}

fn skew(memory: &TempDir, ranks: u32) -> anyhow::Result<Vec<Cost>> {
    let samples = evaluated_by(ranks, memory, TINY)?;
    let last = |measured: &Measured| measured.sample.parts.iter().map(|part| part.began).max();
    let mut late: Vec<Nanos> = samples.iter().filter_map(last).collect();
    late.sort_unstable();
    let median = late.get(late.len() / 2).copied().unwrap_or_default();
    Ok(vec![Cost { amount: 1.0, cpu: 0.0, wall: median.seconds() }])
}
