//! A program with a limit of memory: in a control group of its own, as a container or a job has one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use nilometer_model::Bytes;

use crate::{Running, command_of, nilometer};

/// A control group with a limit of memory and without swap. It is removed when this is dropped, and what runs in it must have ended.
#[derive(Debug)]
pub struct MemoryGroup {
    directory: PathBuf,
    files: GroupFiles,
}

/// The names of what the kernel has in a group, by its version.
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
    /// A group with this limit. None, with a word, if this user can't make one; it fails where everything must be tested.
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
        // A kernel without accounts of swap has no such file.
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

    /// How many processes the kernel killed in it for want of memory.
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.directory.join(self.files.kills)).expect("the kernel tells");
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        kills.expect("the kernel counts them")
    }

    /// The most memory that was in use in it, pages of files included.
    pub fn peak(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.directory.join(self.files.peak)).ok()?;
        text.trim().parse().ok().map(Bytes)
    }
}

/// The directory of this process's own group, in which others can be made.
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
    // In a container the path is that of the machine, and the mount is the group itself.
    [Path::new(mount).join(own), mount.into()].into_iter().find(|path| path.join("cgroup.procs").exists())
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process of it may still be ending: then it stays, and is empty.
        drop(fs::remove_dir(&self.directory));
    }
}

/// The most memory that a process had so far, in bytes (`VmHWM`); none once it has ended.
pub fn peak_memory(process: u32) -> Option<Bytes> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Bytes(kib * 1024))
}
