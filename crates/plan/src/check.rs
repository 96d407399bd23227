//! Checks of a plan that hold for any targets.

use nilometer_model::{EngineKind, Phase};

use super::{AskedProcesses, Plan, WorkloadRun, mpi_io::check_mpi_io};

/// Refuses values that no campaign could use.
pub(super) fn check_head(plan: &Plan) -> Result<(), String> {
    if plan.repeats == 0 || plan.repeats > 1000 {
        return Err(format!("repeats = {}: write 1 to 1000", plan.repeats));
    }
    if plan.warm_up > 1000 {
        return Err(format!("warm_up = {}: write 0 to 1000", plan.warm_up));
    }
    if plan.precision.is_some_and(|precision| !(0.1..100.0).contains(&precision)) {
        let precision = plan.precision.unwrap_or_default();
        return Err(format!("precision = {precision}: write 0.1 to less than 100 percent"));
    }
    if plan.repeats_most == 0 || plan.repeats_most > 1000 {
        return Err(format!("repeats_most = {}: write 1 to 1000", plan.repeats_most));
    }
    if !(plan.margin > 0.0 && plan.margin < 100.0) {
        return Err(format!("margin = {}: write more than 0 and less than 100 percent", plan.margin));
    }
    Ok(())
}

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
