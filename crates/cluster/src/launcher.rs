//! Whether a launcher has started this program several times, as one of many: who does not look would do the same as all others,
//! in the same places.

use std::env;

/// A program that starts others as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// What says so, and what it says: a variable of the environment.
    pub said_by: String,
    /// How many it has started.
    pub processes: u32,
}

/// Variables in which launchers say how many processes they started. Slurm's number of tasks is that of a step, which `srun`
/// begins: a batch script has the number of the job's tasks too, and is one process.
const COUNTS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"),
    ("PMI_SIZE", "mpirun of MPICH, or what is made of it"),
    ("MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
];

/// The launcher of this process, if it started more than one.
pub fn launched() -> Option<Launcher> {
    launched_by(|name| env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    // The nearest one says how many it has started; what is around it may have left its own words.
    let said = COUNTS.into_iter().find_map(|(name, what)| Some((name, what, variable(name)?.parse().ok()?)));
    let (name, what, processes) = said.filter(|(_, _, processes)| *processes > 1)?;
    Some(Launcher { said_by: format!("{what} ({name}={processes})"), processes })
}

/// Variables in which launchers say how many of the processes are on this machine.
const ON_NODE: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "SLURM_STEP_TASKS_PER_NODE",
];

/// How many of the launched processes are on this machine, at least 1. A launcher that does not say it may have started all of them
/// here.
pub fn launched_here() -> u32 {
    launched_here_by(|name| env::var(name).ok())
}

fn launched_here_by(variable: impl Fn(&str) -> Option<String>) -> u32 {
    let Some(Launcher { processes, .. }) = launched_by(&variable) else { return 1 };
    // Slurm writes several machines as `3(x2),1`: the largest number is on none too small.
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
