//! Detects a launcher that started this program several times. Without this check, every process would do the
//! same work in the same places.

use std::env;

/// A program that started several processes as one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The variable of the environment that revealed the launcher, with its value.
    pub said_by: String,
    /// Number of processes started.
    pub processes: u32,
}

/// Variables in which launchers state the number of processes. For Slurm it is the number of tasks in a step,
/// which `srun` begins. A batch script also has the job's number of tasks, but is a single process.
const COUNTS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"),
    ("PMI_SIZE", "mpirun of MPICH or a derivative"),
    ("MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
];

/// Returns the launcher of this process if it started more than one.
pub fn launched() -> Option<Launcher> {
    launched_by(|name| env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    // The innermost launcher determines the count; outer ones may have left their variables.
    let said = COUNTS.into_iter().find_map(|(name, what)| Some((name, what, variable(name)?.parse().ok()?)));
    let (name, what, processes) = said.filter(|(_, _, processes)| *processes > 1)?;
    Some(Launcher { said_by: format!("{what} ({name}={processes})"), processes })
}

/// Variables in which launchers state the number of processes on this machine.
const ON_NODE: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "SLURM_STEP_TASKS_PER_NODE",
];

/// Returns the number of launched processes on this machine, at least 1. If the launcher does not state it, all
/// of them may be here.
pub fn launched_here() -> u32 {
    launched_here_by(|name| env::var(name).ok())
}

fn launched_here_by(variable: impl Fn(&str) -> Option<String>) -> u32 {
    let Some(Launcher { processes, .. }) = launched_by(&variable) else { return 1 };
    // Slurm writes several machines as `3(x2),1`. The largest count is too small for none of them.
    let most = |text: String| {
        let counts = text.split(',').filter_map(|part| part.split('(').next()?.trim().parse::<u32>().ok());
        counts.max()
    };
    let here = ON_NODE.into_iter().find_map(|name| variable(name).and_then(most));
    here.map_or(processes, |here| here.clamp(1, processes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_known_by_what_it_says() {
        let of = |said: &[(&str, &str)]| {
            launched_by(|name| said.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).into()))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMI_SIZE", "x")]), None);
        assert_eq!(
            of(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]),
            None,
            "a batch script is one process"
        );
        assert_eq!(
            of(&[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "4")]),
            None,
            "one of a step"
        );
        let launcher = of(&[("PMI_RANK", "3"), ("PMI_SIZE", "4")]).expect("four were started");
        assert_eq!((launcher.processes, launcher.said_by.contains("PMI_SIZE=4")), (4, true));
    }

    #[test]
    fn processes_of_this_machine_are_counted_and_all_of_them_where_nobody_says_it() {
        let of = |said: &[(&str, &str)]| {
            launched_here_by(|name| {
                said.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).into())
            })
        };
        assert_eq!(of(&[("OMPI_COMM_WORLD_LOCAL_SIZE", "7")]), 1, "nothing was launched");
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "6"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "3")]), 3);
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "7"), ("SLURM_STEP_TASKS_PER_NODE", "3(x2),1")]), 3);
        assert_eq!(of(&[("PMI_SIZE", "4")]), 4);
        assert_eq!(of(&[("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "0")]), 1);
    }
}
