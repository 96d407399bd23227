//! A program with a memory limit, in a control group of its own, like that of a container or a job.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use nilometer_model::Bytes;

use crate::{Running, command_of, nilometer};

/// A control group with a memory limit and without swap. Dropping it removes it; processes in it must have
/// ended before.
#[derive(Debug)]
pub struct MemoryGroup {
    directory: PathBuf,
    files: GroupFiles,
}

/// Names of the kernel's files in a group, by its version.
#[derive(Debug, Clone, Copy)]
struct GroupFiles {
    limit: &'static str,
    swap: (&'static str, bool),
    peak: &'static str,
    kills: &'static str,
}

const VERSION_ONE: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    // Memory and swap together.
    swap: ("memory.memsw.limit_in_bytes", true),
    peak: "memory.max_usage_in_bytes",
    kills: "memory.oom_control",
};
const VERSION_TWO: GroupFiles = GroupFiles {
    limit: "memory.max",
    swap: ("memory.swap.max", false),
    peak: "memory.peak",
    kills: "memory.events",
};

static MADE: AtomicU32 = AtomicU32::new(0);

impl MemoryGroup {
    /// Makes a group with this limit. If this user can't, it returns `None` and says so, or panics if `CI` or
    /// `NILOMETER_REQUIRE_ROOT` is set.
    pub fn with_limit(limit: Bytes) -> Option<Self> {
        let made = [VERSION_ONE, VERSION_TWO].into_iter().find_map(|files| Self::made(limit, files));
        let required = ["CI", "NILOMETER_REQUIRE_ROOT"].iter().any(|name| std::env::var_os(name).is_some());
        assert!(made.is_some() || !required, "this test limits memory: it needs root and control groups");
        if made.is_none() {
            eprintln!("skipped: this test limits memory, which needs root and control groups");
        }
        made
    }

    fn made(limit: Bytes, files: GroupFiles) -> Option<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("nilometer-test-{}-{number}", std::process::id());
        let directory = own_group(files)?.join(name);
        fs::create_dir(&directory).ok()?;
        let group = MemoryGroup { directory, files };
        let (swap, together) = files.swap;
        fs::write(group.directory.join(files.limit), limit.0.to_string()).ok()?;
        // A kernel without swap accounting has no such file.
        let swap_max = if together { limit.0 } else { 0 };
        fs::write(group.directory.join(swap), swap_max.to_string()).ok();
        Some(group)
    }

    /// Starts the program in it.
    pub fn start(&self, directory: &Path, arguments: &[&str]) -> Running {
        let mut command = command_of(nilometer());
        command.args(arguments).current_dir(directory);
        self.start_command(&command)
    }

    /// Starts a command in it, with all processes that it starts.
    pub fn start_command(&self, command: &Command) -> Running {
        // The shell enters, and becomes the program.
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.directory.display());
        let mut entering = Command::new("sh");
        entering.args(["-c", &enter, "sh"]).arg(command.get_program()).args(command.get_args());
        entering.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            entering.current_dir(directory);
        }
        Running::of(entering)
    }

    /// Number of processes in the group that the kernel killed for lack of memory.
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.directory.join(self.files.kills)).expect("the kernel tells");
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        kills.expect("the kernel counts them")
    }

    /// Peak memory of the group, including pages of files.
    pub fn peak(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.directory.join(self.files.peak)).ok()?;
        text.trim().parse().ok().map(Bytes)
    }
}

/// The directory of this process's own group, in which it can make others.
fn own_group(files: GroupFiles) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let is_one = files.limit == VERSION_ONE.limit;
    let own = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let controllers = parts.nth(1)?;
        let path = parts.next()?;
        let fits =
            if is_one { controllers.split(',').any(|one| one == "memory") } else { controllers.is_empty() };
        fits.then(|| path.trim_start_matches('/').to_owned())
    })?;
    let mount = if is_one { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
    // In a container the path is the host's, and the mount is the group itself.
    [Path::new(mount).join(own), mount.into()].into_iter().find(|path| path.join("cgroup.procs").exists())
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process of the group may still be ending: then the group stays, without processes.
        drop(fs::remove_dir(&self.directory));
    }
}

/// Peak memory of a process so far, in bytes (`VmHWM`). `None` once it has ended.
pub fn peak_memory(process: u32) -> Option<Bytes> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(kib * 1024))
}
