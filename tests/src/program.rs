//! The program, built once and run from outside: its exit code and its output.

use std::{
    ffi::OsStr,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{MARKER, await_some, awaited, patience::PATIENCE, root, run_directories};

/// The path of the program: the value of `NILOMETER_PROGRAM`, or, if unset, one built at the first call.
pub fn nilometer() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os("NILOMETER_PROGRAM") {
            return PathBuf::from(program);
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--package", "nilometer-cli", "--features"]).current_dir(root());
        build.arg(clients().join(","));
        assert!(build.status().expect("cargo starts").success(), "the program can't be built");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let program = root().join(target).join("debug/nilometer");
        program.canonicalize().expect("cargo built the program")
    })
}

/// The clients of storage by URL that can be built here: those whose library `scripts/bootstrap` has installed.
/// Tests of any other client say that they are skipped, or panic in CI.
pub fn clients() -> Vec<&'static str> {
    let curl = format!("/usr/include/{}-linux-gnu/curl/curl.h", std::env::consts::ARCH);
    let libraries = [
        ("xrootd", "/usr/include/xrootd/XrdCl/XrdClFile.hh"),
        ("nfs", "/usr/include/nfsc/libnfs.h"),
        ("s3", curl.as_str()),
        ("hdfs", curl.as_str()),
    ];
    let there = libraries.into_iter().filter(|(_, header)| Path::new(header).exists());
    there.map(|(client, _)| client).collect()
}

/// A command of this program or a copy of it. SIGHUP ends it even if the tests run under `nohup`, which ignores
/// SIGHUP.
pub fn command_of(program: &Path) -> Command {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if ignored >> (Signal::HUP.as_raw() - 1) & 1 == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP").arg(program);
    command
}

/// The end of a run.
#[derive(Debug)]
pub struct Ended {
    /// The exit code. `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output: results.
    pub stdout: String,
    /// Standard error: progress and messages.
    pub stderr: String,
}

impl Ended {
    /// Returns true if an evaluation ended without a fault. Its answer is another question: on a busy machine
    /// frames are lost, and figures are INVALID.
    pub fn has_answered(&self) -> bool {
        matches!(self.code, Some(0 | 3 | 4))
    }

    /// Returns true if a simulated instrument sent everything. On a busy machine it may send late, but must
    /// report nothing else.
    pub fn has_sent_all(&self) -> bool {
        let only_late = || {
            let error = self.stderr.lines().last().unwrap_or_default();
            let more = ["images were", "the network did not take", "interrupted"];
            error.contains("the pace was not kept") && !more.iter().any(|words| error.contains(words))
        };
        self.code == Some(0) || self.code == Some(1) && only_late()
    }
}

/// The number at the beginning of a line of the summary.
pub fn number(ended: &Ended, key: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(key));
    let first = line.and_then(|line| line.split_whitespace().next());
    first.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no number of `{key}`: {ended:?}"))
}

/// The frames or blocks that `verify` found undamaged: those that were compared, and those without a checksum.
pub fn undamaged(ended: &Ended) -> u64 {
    let of = |key: &str| {
        let mut lines = ended.stdout.lines();
        let rest = lines.find_map(|line| line.strip_prefix(key))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let counts = ["right ", "readable "].map(of);
    let sum = counts.iter().flatten().sum();
    assert!(counts.iter().any(Option::is_some), "no number of frames: {ended:?}");
    sum
}

/// A running program. Dropping it kills the program.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: TempDir,
}

/// Starts the program in the given directory.
pub fn start<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Running {
    start_copy(nilometer(), directory, arguments)
}

/// Starts a copy of the program in the given directory.
pub fn start_copy<S: AsRef<OsStr>>(program: &Path, directory: &Path, arguments: &[S]) -> Running {
    let mut command = command_of(program);
    command.args(arguments).current_dir(directory);
    Running::of(command)
}

/// Runs the program to its end, at most two minutes, in the system's temporary directory.
pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Ended {
    start(&std::env::temp_dir(), arguments).end(PATIENCE)
}

impl Running {
    /// Starts a command, and keeps its output.
    pub fn of(mut command: Command) -> Self {
        let said = tempfile::tempdir().expect("a temporary directory");
        let file = |name| Stdio::from(File::create(said.path().join(name)).expect("space"));
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let child = command.spawn().expect("it starts");
        Running { child, said }
    }

    /// Waits for the end. Panics with all output if it does not come within `limit`, or within two minutes if
    /// these are longer. A busy machine gets more time.
    pub fn end(mut self, limit: Duration) -> Ended {
        let limit = limit.max(PATIENCE);
        let status = awaited(limit, || self.child.try_wait().expect("a child of ours"));
        let Some(status) = status else {
            panic!("no end within {limit:?}:\n{}\n{}", self.read("stdout"), self.stderr());
        };
        Ended { code: status.code(), stdout: self.read("stdout"), stderr: self.stderr() }
    }

    /// Kills the program, and waits until its children have ended too: they die a moment later.
    pub fn killed(self) -> Ended {
        let children = children_of(self.process());
        self.signal(Signal::KILL);
        let ended = self.end(PATIENCE);
        await_some("the end of its children", || children.iter().all(|id| has_ended(id)).then_some(()));
        ended
    }

    /// Returns true if the program has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_some()
    }

    /// Waits until stderr has this text. Panics if the program ends first, or after two minutes, or later on
    /// a busy machine.
    pub fn await_said(&mut self, text: &str) {
        let said = awaited(PATIENCE, || {
            let is_over = self.child.try_wait().expect("a child of ours").is_some();
            let is_said = self.stderr().contains(text);
            assert!(is_said || !is_over, "it ended before it said `{text}`:\n{}", self.stderr());
            is_said.then_some(())
        });
        assert!(said.is_some(), "it did not say `{text}`:\n{}", self.stderr());
    }

    /// Waits for its directory on a target, before it measures anything there. Panics after two minutes, or
    /// later on a busy machine.
    pub fn await_run_directory(&self, target: &Path, record: &Path) -> PathBuf {
        // The record is made after the probe, which has a directory of its own, and before the run's.
        let ours = |path: &PathBuf| record.exists() && path.join(MARKER).exists();
        let found = awaited(PATIENCE, || run_directories(target).into_iter().find(ours));
        found.unwrap_or_else(|| panic!("it made no run directory:\n{}", self.stderr()))
    }

    /// The output on stderr so far.
    pub fn stderr(&self) -> String {
        self.read("stderr")
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// The id of the started process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The worker process.
    pub fn worker(&self) -> Pid {
        let children = children_of(self.child.id());
        let first = children.first().and_then(|id| id.parse().ok());
        first.and_then(Pid::from_raw).expect("it has a child")
    }

    /// Returns true if both the started process and the worker are stopped.
    pub fn is_stopped(&self) -> bool {
        let both = [Pid::from_child(&self.child), self.worker()];
        both.into_iter().all(|id| state(&id.as_raw_nonzero().to_string()) == Some('T'))
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.said.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The children of a process that its first thread has started.
pub(crate) fn children_of(process: u32) -> Vec<String> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

/// The state of a process, as the kernel abbreviates it. `None` if there is no such process.
fn state(process: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns true if a process is gone, or waits for nothing but its parent.
fn has_ended(process: &str) -> bool {
    matches!(state(process), None | Some('Z' | 'X'))
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does not wait: if the program hangs, the test has to thaw the file system first.
        drop(self.child.kill());
        drop(self.child.try_wait());
    }
}
