//! Checks that there are as many processes as a plan asks for.

use std::{os::unix::ffi::OsStrExt, path::Path};

use nilometer_model::{Bytes, Goal, MpiIoImplementation, TargetDescription};
use nilometer_plan::{Cell, RecordingRun, RecordingSplit, ResolvedPlan, Route, Siblings, WorkloadRun};

use super::ResolveError;

/// Checks that there are as many processes as a cell asks for. If it goes by nodes, each must have the same
/// number.
pub(super) fn check_processes(
    plan: &ResolvedPlan,
    stage: &str,
    run: &WorkloadRun,
) -> Result<(), ResolveError> {
    let numbers = [(run.nodes, "nodes"), (run.processes, "processes")];
    let asked = numbers.into_iter().filter_map(|(count, key)| Some(format!("{key} = {}", count?)));
    let asked = asked.collect::<Vec<_>>().join(", ");
    let stage = stage.to_owned();
    if let Some(there) = plan.too_few_processes(run) {
        let verb = if there.starts_with("1 ") { "is" } else { "are" };
        return Err(ResolveError::Processes { stage, asked, there: format!("{verb} {there}") });
    }
    let least = run.workload.parameters().traits().least_processes;
    let used = plan.processes_of(run);
    if used < least {
        let asked = format!("the workload `{}`, which needs {least} processes", run.workload.name());
        return Err(ResolveError::Processes { stage, asked, there: format!("is {used}") });
    }
    let counts = plan.processes_a_node(run);
    if run.workload.parameters().traits().shifts_by_node && counts.iter().any(|count| *count != counts[0]) {
        let counts = counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let asked = "shift = \"node\", with as many processes on each node".into();
        let there = format!("are {counts} on them");
        return Err(ResolveError::Processes { stage, asked, there });
    }
    Ok(())
}

/// Checks that an instrument can be split among the processes that are to record it, and that each has room for
/// its part.
pub(super) fn check_recorders(
    plan: &ResolvedPlan,
    stage: &str,
    run: &RecordingRun,
) -> Result<(), ResolveError> {
    let numbers = [(run.swept.nodes, "nodes"), (run.swept.processes, "processes")];
    let asked = numbers.into_iter().filter_map(|(count, key)| Some(format!("{key} = {}", count?)));
    let asked = asked.collect::<Vec<_>>().join(", ");
    let instrument = run.who();
    if let Some(there) = plan.too_few_processes(run) {
        let verb = if there.starts_with("1 ") { "is" } else { "are" };
        return Err(ResolveError::Processes { stage: stage.into(), asked, there: format!("{verb} {there}") });
    }
    if run.route == Route::Network && plan.processes_a_node(run).len() < 2 {
        let there = "is one machine".into();
        let asked = "packets from another machine (route = \"network\", --over-network)".into();
        return Err(ResolveError::Processes { stage: stage.into(), asked, there });
    }
    let processes = plan.processes_of(run);
    let most = run.most_processes();
    if !asked.is_empty() && processes > most {
        let asked = format!("{asked} makes {processes} processes");
        let streams = run.instrument.streams;
        let why = if run.readers.copy {
            "a recording with a copy has one process".into()
        } else if run.read.is_some() && !run.is_read_together() {
            "one process records data that a phase reads back (read), unless all write one dataset (storing = \
             \"shared\", one instrument with one stream)"
                .into()
        } else {
            format!("{most} can record it: it has {streams} streams of packets, which come to one place each")
        };
        return Err(ResolveError::Recorders { instrument, asked, why });
    }
    if processes > 1 && run.readers.copy {
        let asked = format!("a copy, and {processes} processes");
        let why = "copies need one process, as do the recordings to compare: write --nodes 1 --processes 1";
        return Err(ResolveError::Recorders { instrument, asked, why: why.into() });
    }
    let recorders = plan.recorders_of(run);
    if run.goal == Goal::Buffer && run.split(recorders) == RecordingSplit::Streams {
        let asked = format!("the smallest buffer, and {recorders} processes");
        let why = "they share its streams, each with a buffer of its own size: write --nodes 1 --processes 1, or leave \
                   --find-limit out";
        return Err(ResolveError::Recorders { instrument, asked, why: why.into() });
    }
    let part = run.part(0, recorders);
    let slot = part.recorded().frame_size().0 * part.rings();
    if recorders > 1 && part.buffer.0 / 2 < slot {
        let asked =
            format!("a buffer of {} is {} for each of {recorders} processes", run.buffer, part.buffer);
        let why = format!("a frame has {}, of which each needs two", Bytes(slot));
        return Err(ResolveError::Recorders { instrument, asked, why });
    }
    Ok(())
}

/// Checks that all processes have the MPI-IO that a cell asks for, all of them the same, and that it can read
/// the paths.
pub(super) fn check_mpi_io(
    plan: &ResolvedPlan,
    stage: &str,
    run: &WorkloadRun,
    targets: &[TargetDescription],
) -> Result<(), ResolveError> {
    let Some(mpi_io) = &run.mpi_io else { return Ok(()) };
    let refused = |why: String| {
        let why = format!("engine = \"mpi_io\": {why} (docs/cluster.md)");
        Err(ResolveError::Lacking { stage: stage.to_owned(), why })
    };
    if plan.ranks < 2 {
        return refused("there is one process, which no MPI has started: start several, as `mpirun -n 4 nilometer evaluate ...`".into());
    }
    let there: Vec<String> = plan.mpi_io_ranks.iter().map(|(which, counts)| has(*which, counts)).collect();
    let there = there.join(", ");
    match mpi_io.implementation {
        Some(asked) if !plan.mpi_io_ranks.contains_key(&asked) => {
            return refused(format!(
                "implementation = \"{asked}\": there is {there}. Open MPI reads which one a process has when it starts: set \
                 OMPI_MCA_io to ompio or to romio321, for all processes or for some"
            ));
        }
        None if plan.mpi_io_ranks.len() > 1 => {
            return refused(format!(
                "there is {there}: write which, as implementation = [\"ompio\", \"romio\"]"
            ));
        }
        _ => {}
    }
    let odd = targets.iter().filter_map(|target| target.directory()).find(|path| has_colon(path));
    match odd {
        Some(path) => refused(format!(
            "{}: libraries of MPI-IO take text before a colon as a type of file system: name a directory \
             without a colon",
            path.display()
        )),
        None => Ok(()),
    }
}

fn has_colon(path: &Path) -> bool {
    path.as_os_str().as_bytes().contains(&b':')
}

/// Formats, for example, `ompio in 4 processes`.
fn has(which: MpiIoImplementation, counts: &[u32]) -> String {
    let all: u32 = counts.iter().sum();
    format!("{which} in {all} process{}", if all == 1 { "" } else { "es" })
}

/// Checks that a load's rate is enough for the workers of all processes.
pub(super) fn check_background(plan: &ResolvedPlan, cell: &Cell) -> Result<(), ResolveError> {
    let Some(load) = cell.background() else { return Ok(()) };
    let lacking = |why| ResolveError::Lacking { stage: cell.stage.clone(), why };
    if load.migrates() && plan.copy_to.is_none() {
        return Err(lacking("a load that copies needs the new storage: write --copy-to DIRECTORY".into()));
    }
    if load.migrates() && plan.ranks > 1 {
        return Err(lacking("a load copies from one process only: start one (docs/migration.md)".into()));
    }
    load.check_processes(plan.ranks.max(1)).map_err(lacking)
}

/// Checks that there are several machines: between the processes of one there is no network.
pub(super) fn check_machines(plan: &ResolvedPlan) -> Result<(), ResolveError> {
    let refused = |stage: &str, why| Err(ResolveError::Lacking { stage: stage.to_owned(), why });
    for run in &plan.network {
        // A plan from a record was not read from a file, and so not checked.
        if let Err(why) = run.clone().checked() {
            return refused(&run.stage, why);
        }
        if plan.machines() < 2 {
            return refused(&run.stage, one_machine(plan.ranks));
        }
        if let Err(why) = run.check_machines(plan.machines()) {
            return refused(&run.stage, why);
        }
    }
    Ok(())
}

fn one_machine(processes: u32) -> String {
    let there = if processes == 1 { "is one process".into() } else { format!("are {processes} processes") };
    format!(
        "this stage measures the network between machines, but there {there} on one machine: start it on \
         several, as `mpirun --host a,b -n 2 nilometer evaluate ...` (docs/cluster.md), or leave the stage \
         out"
    )
}

/// Checks that there are several targets: a single one has no siblings.
pub(super) fn check_siblings(stage: &str, run: &WorkloadRun, targets: usize) -> Result<(), ResolveError> {
    if run.siblings != Some(Siblings::Targets) || targets >= 2 {
        return Ok(());
    }
    let why = "siblings = \"targets\": name two targets or more, three to find an odd one";
    Err(ResolveError::Lacking { stage: stage.to_owned(), why: why.into() })
}
