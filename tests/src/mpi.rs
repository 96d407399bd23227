//! The program in several processes, started by the `mpirun` of an MPI.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::{Ended, Running, Testbed, nilometer, run};

const LIMIT: Duration = Duration::from_mins(3);

/// An implementation of MPI. Debian installs several beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiKind {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

/// An MPI with an adapter that its compiler has made.
#[derive(Debug)]
pub struct Mpi {
    kind: MpiKind,
    place: TempDir,
}

impl Mpi {
    /// Makes the adapter. If the programs are not there, it says that the test is skipped, or panics in CI.
    pub fn of(kind: MpiKind) -> Option<Self> {
        let programs = ["mpicc", "mpirun"].map(|name| kind.program(name));
        let there = programs.iter().all(|name| Command::new(name).arg("--version").output().is_ok());
        if !there {
            let missing = format!("this test needs {}: scripts/bootstrap test", programs.join(" and "));
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        }
        let mpi = Mpi { kind, place: tempfile::tempdir().expect("a temporary directory") };
        let source = mpi.place.path().join("adapter.c");
        let text = run(&["generate", "mpi"]).stdout;
        std::fs::write(&source, text).expect("space");
        let mut compiler = Command::new(kind.program("mpicc"));
        compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
        let made = compiler.arg(mpi.adapter()).arg(&source).output().expect("it is there");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(mpi)
    }

    /// Both implementations, as far as they are installed.
    pub fn all() -> impl Iterator<Item = Self> {
        [MpiKind::OpenMpi, MpiKind::Mpich].into_iter().filter_map(Mpi::of)
    }

    /// The implementation.
    pub fn kind(&self) -> MpiKind {
        self.kind
    }

    /// The path of the adapter.
    pub fn adapter(&self) -> PathBuf {
        self.place.path().join("libnilometer_mpi.so")
    }

    /// A command that starts `ranks` processes of a program in a directory. They find the adapter in their
    /// environment.
    pub fn command(&self, ranks: u32, at: &Path, program: &[&str]) -> Command {
        let mut command = Command::new(self.kind.program("mpirun"));
        if self.kind == MpiKind::OpenMpi {
            command.args(["--oversubscribe", "--mca", "orte_abort_on_non_zero_status", "1"]);
            if rustix::process::geteuid().is_root() {
                command.arg("--allow-run-as-root");
            }
        }
        command.args(["-n", &ranks.to_string()]).args(program).current_dir(at);
        command.env("NILOMETER_MPI", self.adapter()).process_group(0);
        command
    }

    /// A command that starts a process of `nilometer` on each of these nodes of a testbed, from the first of
    /// them.
    pub fn command_on(&self, testbed: &Testbed, nodes: &[u32], at: &Path, arguments: &[&str]) -> Command {
        let hosts: Vec<_> = nodes.iter().map(|node| format!("node-{node}")).collect();
        let hosts = hosts.join(",");
        let (launcher, ranks) = (self.kind.program("mpirun"), nodes.len().to_string());
        let program = nilometer().to_str().expect("a plain name");
        let launch = match self.kind {
            MpiKind::OpenMpi => vec!["--host", &hosts, "-x", "NILOMETER_MPI"],
            MpiKind::Mpich => vec!["-hosts", &hosts],
        };
        let first = nodes[0].to_string();
        let words = [&[first.as_str(), &launcher][..], &launch, &["-n", &ranks, program], arguments].concat();
        let mut command = testbed.command("node", &words);
        command.current_dir(at).env("NILOMETER_MPI", self.adapter()).process_group(0);
        command
    }

    /// The worker process of a rank, among those started in a directory.
    pub fn worker_of(&self, rank: u32, at: &Path) -> Option<Pid> {
        let wanted = format!("{}={rank}\0", self.kind.rank_variable());
        let program = nilometer().canonicalize().expect("it is there");
        let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
        let mut numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
        let found = numbers.find(|number| {
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            let said = String::from_utf8_lossy(&environment);
            let is = |link: &str, wanted: &Path| {
                std::fs::read_link(format!("/proc/{number}/{link}")).is_ok_and(|path| path == wanted)
            };
            // Commands that it started have its environment.
            is("cwd", at)
                && is("exe", &program)
                && said.contains("NILOMETER_WATCHED=1\0")
                && said.contains(&wanted)
        });
        found.and_then(Pid::from_raw)
    }

    /// Runs `ranks` processes of `nilometer` to their end.
    pub fn run(&self, ranks: u32, at: &Path, arguments: &[&str]) -> Ended {
        self.start(ranks, at, arguments).end(LIMIT)
    }

    /// Starts `ranks` processes of `nilometer`.
    pub fn start(&self, ranks: u32, at: &Path, arguments: &[&str]) -> Running {
        let program = nilometer();
        let program = program.to_str().expect("a plain name");
        Running::of(self.command(ranks, at, &[&[program], arguments].concat()))
    }
}

impl MpiKind {
    /// The name of one of its programs.
    fn program(self, name: &str) -> String {
        let suffix = match self {
            MpiKind::OpenMpi => "openmpi",
            MpiKind::Mpich => "mpich",
        };
        format!("{name}.{suffix}")
    }

    /// The environment variable with the rank of a process.
    pub fn rank_variable(self) -> &'static str {
        match self {
            MpiKind::OpenMpi => "OMPI_COMM_WORLD_RANK",
            MpiKind::Mpich => "PMI_RANK",
        }
    }
}
