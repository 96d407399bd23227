//! Real storage systems on this machine. `testbed/up` starts them in a folder of the test's own, and they end
//! with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Ended, await_some, clients,
    file_system::{FileSystem, may_mount},
    root,
};

/// End of the message of `testbed/up` if a package is missing.
const HOW_TO_INSTALL: &str = "Install them as root: scripts/bootstrap testbed";

/// A testbed of a test's own. Dropping it takes the testbed down, in any state.
#[derive(Debug)]
pub struct Testbed {
    /// A file system of its own, if the testbed has limited room.
    room: Option<FileSystem>,
    /// Otherwise holds the testbed's folder.
    base: TempDir,
}

impl Testbed {
    /// A folder in which nothing runs yet. If this user may not mount, the test says that it is skipped, or
    /// fails if `CI` or `NILOMETER_REQUIRE_ROOT` is set.
    pub fn empty() -> Option<Self> {
        may_mount().then(|| Testbed { room: None, base: tempfile::tempdir().expect("a temporary directory") })
    }

    /// Starts these systems. If their packages are not there, the test says that it is skipped, or fails in CI.
    pub fn of(systems: &[&str]) -> Option<Self> {
        Testbed::empty()?.with(systems)
    }

    /// The same, with all data of the servers on a file system of `mebibytes` MiB.
    pub fn with_room_of(mebibytes: u64, systems: &[&str]) -> Option<Self> {
        let mut testbed = Testbed::empty()?;
        testbed.room = Some(FileSystem::ext4(mebibytes));
        testbed.with(systems)
    }

    /// Takes all room of such a testbed except `mebibytes` MiB.
    pub fn leave_room_of(&self, mebibytes: u64) {
        let place = self.room.as_ref().expect("it has a file system of its own").path();
        let there = rustix::fs::statvfs(place).expect("it is mounted");
        let taken = (there.f_bavail * there.f_frsize).saturating_sub(mebibytes << 20);
        let file = fs::File::create(place.join("taken")).expect("a file");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, taken).expect("room");
    }

    fn with(self, systems: &[&str]) -> Option<Self> {
        let ended = self.verb("up", systems);
        if ended.code == Some(2) && ended.stderr.contains(HOW_TO_INSTALL) {
            assert!(std::env::var_os("CI").is_none(), "{}", ended.stderr);
            eprintln!("skipped: {}", ended.stderr.trim());
            return None;
        }
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        Some(self)
    }

    /// Starts a system for one of the program's clients. If the client's library is not installed, the test
    /// says that it is skipped, or fails in CI.
    pub fn of_client(system: &str, client: &str) -> Option<Self> {
        if clients().contains(&client) {
            return Testbed::of(&[system]);
        }
        let missing = format!("the library of the client {client} is missing: scripts/bootstrap remote");
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
        None
    }

    /// The same for systems of the extended set, whose packages are large: only in `make test-long`.
    pub fn of_extended(systems: &[&str]) -> Option<Self> {
        if std::env::var_os("NILOMETER_LONG").is_none() {
            eprintln!("skipped: {systems:?} are tested by `make test-long`");
            return None;
        }
        Testbed::of(systems)
    }

    /// A system of the extended set, for a client that reaches it by URL: only in `make test-long`, and if the
    /// client's library is installed.
    pub fn of_extended_client(system: &str, client: &str) -> Option<Self> {
        if std::env::var_os("NILOMETER_LONG").is_none() {
            return Testbed::of_extended(&[system]);
        }
        Testbed::of_client(system, client)
    }

    /// The testbed's folder, once something runs.
    pub fn folder(&self) -> PathBuf {
        self.room.as_ref().map_or(self.base.path(), FileSystem::path).join("testbed")
    }

    /// The command `testbed/VERB ARGUMENT...` for this folder.
    pub fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(root().join("testbed").join(verb));
        command.args(arguments).env("NILOMETER_TESTBED", self.folder()).stdin(Stdio::null());
        command
    }

    /// Runs `testbed/VERB ARGUMENT...` to its end.
    pub fn verb(&self, verb: &str, arguments: &[&str]) -> Ended {
        ended(&mut self.command(verb, arguments))
    }

    /// The same, but panics if it fails. Returns its standard output.
    pub fn must(&self, verb: &str, arguments: &[&str]) -> String {
        let ended = self.verb(verb, arguments);
        assert_eq!(ended.code, Some(0), "{verb} {arguments:?}: {}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Starts `testbed/up SYSTEM...`, drops its output, and waits until a file exists; it then still runs.
    ///
    /// If it ended before because a package is missing, this returns `None` and says that the test is skipped,
    /// or panics in CI.
    pub fn start_up_to(&self, systems: &[&str], file: &str) -> Option<Child> {
        let mut command = self.command("up", systems);
        let mut up = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let is_over = await_some(file, || {
            let ended = up.try_wait().expect("a child of ours").is_some();
            (ended || self.folder().join(file).exists()).then_some(ended)
        });
        if !is_over {
            return Some(up);
        }
        let again = self.verb("up", systems);
        assert!(
            again.stderr.contains(HOW_TO_INSTALL) && std::env::var_os("CI").is_none(),
            "{}",
            again.stderr
        );
        eprintln!("skipped: {}", again.stderr.trim());
        None
    }

    /// The output of `testbed/status --json`.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.must("status", &["--json"])).expect("JSON")
    }

    /// The status of one system.
    pub fn system(&self, name: &str) -> Value {
        let status = self.status();
        let systems = status["systems"].as_array().expect("a list").clone();
        systems.into_iter().find(|system| system["system"] == name).expect("a system of this name")
    }

    /// The mount points of a system, at which tests can write.
    pub fn mounts(&self, system: &str) -> Vec<PathBuf> {
        let mounts = self.system(system)["mounts"].as_array().cloned().unwrap_or_default();
        mounts.iter().map(|mount| mount["path"].as_str().expect("a path").into()).collect()
    }

    /// The first URL of a system.
    pub fn url(&self, system: &str) -> String {
        self.system(system)["urls"][0]["url"].as_str().expect("a URL").to_owned()
    }

    /// Remains of a testbed on this machine, a line each: its folder, mounts, loop devices, network namespace,
    /// processes. `namespace` is its name as `status` reports it.
    pub fn left(&self, namespace: &str) -> Vec<String> {
        let mut left = Vec::new();
        let folder = self.folder();
        for place in [&folder, &Path::new("/run/netns").join(namespace)] {
            left.extend(place.exists().then(|| format!("{} exists", place.display())));
        }
        let folder = folder.to_str().expect("a folder in plain letters");
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        left.extend(lines_with(&mounts, folder, "mounted"));
        let loops = ended(Command::new("losetup").arg("--list"));
        assert_eq!(loops.code, Some(0), "{}", loops.stderr);
        left.extend(lines_with(&loops.stdout, folder, "loop device"));
        left.extend(processes_with(folder));
        left
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let ended = self.verb("down", &[]);
        if ended.code != Some(0) {
            eprintln!("testbed/down failed: {}", ended.stderr);
        }
    }
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().unwrap_or_else(|error| panic!("can't start {command:?}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn lines_with(text: &str, word: &str, what: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(word));
    lines.map(|line| format!("{what}: {line}")).collect()
}

/// Processes with a word in their command or their environment, except this one.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("processes");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|number| *number != std::process::id());
    others.filter_map(|number| process_with(number, word)).collect()
}

/// The line for a process, if it has the word. A process may end meanwhile: then there is nothing to read.
fn process_with(number: u32, word: &str) -> Option<String> {
    let text = |name| fs::read(format!("/proc/{number}/{name}")).unwrap_or_default();
    let command = String::from_utf8_lossy(&text("cmdline")).replace('\0', " ");
    let environment = text("environ");
    let is_in_it = command.contains(word) || String::from_utf8_lossy(&environment).contains(word);
    is_in_it.then(|| format!("process {number}: {command}"))
}
