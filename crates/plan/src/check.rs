//! Checks of a plan that hold for any targets.

use nilometer_model::{EngineKind, Phase};

use super::{AskedProcesses, Volumes, WorkloadRun};

/// Refuses values that no target could run.
pub(super) fn check(run: &WorkloadRun) -> Result<(), String> {
    if run.workers == 0 || run.workers > 1024 {
        return Err(format!("workers = {}: write 1 to 1024", run.workers));
    }
    check_processes(run.into())?;
    if run.depth == 0 || run.depth > 4096 {
        return Err(format!("depth = {}: write 1 to 4096", run.depth));
    }
    if run.engine == EngineKind::Sync && run.depth > 1 {
        let depth = run.depth;
        return Err(format!(
            "depth = {depth}: the engine `sync` has depth 1; write engine = \"io_uring\" or \"pool\""
        ));
    }
    check_mpi_io(run)?;
    if run.workload.migrates() {
        return Err("source = \"disk\": `unpack` copies as a load only: write it in \
                    [stage.background.workload.unpack] (docs/migration.md)"
            .into());
    }
    check_pool(run.pool.as_deref())?;
    if run.workload.parameters().traits().needs_all_of_others && (run.time_limit.is_some() || run.stonewall) {
        return Err("shift: a worker reads another's file whole: write no time_limit and no stonewall".into());
    }
    run.offered.check(run.block_size(), run.workers)?;
    if !run.offered.is_none() && run.workload.parameters().least_time(Phase::Wait, 1).0 > 0 {
        return Err("rate: this workload says itself when its operations are due: leave the rate out".into());
    }
    let measured: Vec<Phase> = run.phases().into_iter().filter(|phase| !phase.is_setup()).collect();
    run.offered.check_moved(run.workload.parameters(), &measured)?;
    run.workload.parameters().check(run.workers)
}

/// Refuses `mpi_io` settings that make no sense on any target, or hints without that engine.
fn check_mpi_io(run: &WorkloadRun) -> Result<(), String> {
    let Some(mpi_io) = &run.mpi_io else { return Ok(()) };
    if run.workers > 1 {
        return Err(format!(
            "workers = {}: one thread of each process calls MPI-IO: write workers = 1, and start more processes (processes \
             = {})",
            run.workers, run.workers
        ));
    }
    if run.depth > 1 {
        return Err(format!(
            "depth = {}: the engine `mpi_io` makes one call after the other: write depth = 1",
            run.depth
        ));
    }
    if run.volumes != Volumes::Alone {
        return Err("volumes: one thread of each process calls MPI-IO: write volumes = \"alone\"".into());
    }
    mpi_io.check()?;
    let parameters = run.workload.parameters();
    parameters.check_mpi_io(mpi_io.calls).map_err(|why| format!("engine = \"mpi_io\": {why}"))?;
    let ends = [
        ("time_limit", run.time_limit.is_some()),
        ("stonewall", run.stonewall),
        ("rate", !run.offered.is_none()),
    ];
    match ends.into_iter().find(|(_, is_written)| *is_written && parameters.traits().shares_a_file) {
        Some((key, _)) => Err(format!(
            "{key}: all processes make the same calls on a file shared by MPI-IO; if one ended earlier, the \
             others would wait: leave it out"
        )),
        None => Ok(()),
    }
}

/// Refuses more processes than any launcher starts.
pub(super) fn check_processes(asked: AskedProcesses) -> Result<(), String> {
    for (key, count) in [("nodes", asked.nodes), ("processes", asked.processes)] {
        if let Some(count) = count.filter(|count| !(1..=65_536).contains(count)) {
            return Err(format!("{key} = {count}: write 1 to 65536"));
        }
    }
    Ok(())
}

/// The name of a pool becomes an argument of the file system's tool: it must not be read as an option.
fn check_pool(pool: Option<&str>) -> Result<(), String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-:".contains(letter);
    let is_name = |pool: &str| !pool.is_empty() && !pool.starts_with('-') && pool.chars().all(is_letter);
    match pool {
        Some(pool) if !is_name(pool) => Err(format!(
            "pool = {pool:?}: write the name of a pool, of letters, digits, `.`, `_`, `-` and `:`, which begins with no `-`"
        )),
        _ => Ok(()),
    }
}
