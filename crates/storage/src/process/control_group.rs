//! The limits of a container or a job: the control groups of this process bound its memory and processor
//! time. Each visible group above it counts too. The kernel documents them in
//! `admin-guide/cgroup-v1/memory.rst`, `scheduler/sched-bwc.rst` and `admin-guide/cgroup-v2.rst`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_model::{Bytes, Nanos};

/// Memory that a control group allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMemory {
    /// The limit.
    pub limit: Bytes,
    /// The memory left; pages of files that can be dropped count as free.
    pub available: Bytes,
}

/// Returns the memory that the control groups of this process allow: of several limits, the one that leaves
/// least.
pub fn group_memory() -> Option<GroupMemory> {
    Hierarchies::of_this_process().memory()
}

/// Returns the processor time that the control groups of this process allow, if they set a quota; 0.5 is half
/// a processor.
pub fn processor_quota() -> Option<f64> {
    Hierarchies::of_this_process().quota()
}

/// Returns the time for which processes of this control group could not run because their quota was spent. It
/// adds all processors, and takes the longest time of this group and those above it.
pub fn throttled() -> Nanos {
    Hierarchies::of_this_process().throttled()
}

/// Version 1 has a hierarchy for each controller, version 2 one for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The directories of this process's groups, the innermost first.
#[derive(Debug, Clone)]
struct Groups {
    version: Version,
    directories: Vec<PathBuf>,
}

/// The groups of the controllers used here.
#[derive(Debug, Clone, Default)]
struct Hierarchies {
    memory: Vec<Groups>,
    processor: Vec<Groups>,
}

impl Hierarchies {
    fn of_this_process() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Hierarchies::of(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"))
    }

    /// Builds it from the texts of `/proc/self/cgroup` (`cgroups(7)`) and `/proc/self/mountinfo`
    /// (`proc_pid_mountinfo(5)`).
    fn of(cgroup: &str, mountinfo: &str) -> Self {
        let found = |controller: &str| {
            let lines = cgroup.lines().filter_map(|line| groups_of(line, controller, mountinfo));
            lines.collect::<Vec<_>>()
        };
        Hierarchies { memory: found("memory"), processor: found("cpu") }
    }

    fn memory(&self) -> Option<GroupMemory> {
        let each = self.memory.iter().flat_map(|groups| {
            groups.directories.iter().filter_map(|directory| memory_of(groups.version, directory))
        });
        each.min_by_key(|memory| memory.available)
    }

    fn quota(&self) -> Option<f64> {
        let each = self.processor.iter().flat_map(|groups| {
            groups.directories.iter().filter_map(|directory| quota_of(groups.version, directory))
        });
        each.min_by(f64::total_cmp)
    }

    fn throttled(&self) -> Nanos {
        let each = self.processor.iter().flat_map(|groups| {
            groups.directories.iter().map(|directory| throttled_of(groups.version, directory))
        });
        each.max().unwrap_or(Nanos(0))
    }
}

/// Returns the groups of a line of `/proc/self/cgroup` for this controller: `4:memory:/job`, or `0::/job` of
/// version 2.
fn groups_of(line: &str, controller: &str, mountinfo: &str) -> Option<Groups> {
    let mut parts = line.splitn(3, ':');
    let number = parts.next()?;
    let controllers = parts.next()?;
    let path = parts.next()?;
    let version = match (number, controllers) {
        ("0", "") => Version::Two,
        (_, all) if all.split(',').any(|one| one == controller) => Version::One,
        _ => return None,
    };
    let (root, mount) = mountinfo.lines().find_map(|line| mounted(line, version, controller))?;
    // A container may see only a part of the tree, whose root is its own group.
    let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
    let directories = below.ancestors().map(|part| mount.join(part)).collect();
    Some(Groups { version, directories })
}

/// Returns the root and the mount point of a mount, if it belongs to the controller.
fn mounted(line: &str, version: Version, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let (place, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let kind = system.next()?;
    let options = system.nth(1)?;
    let is_it = match version {
        Version::Two => kind == "cgroup2",
        Version::One => kind == "cgroup" && options.split(',').any(|option| option == controller),
    };
    let mut place = place.split(' ').skip(3);
    let root = place.next()?;
    let mount = place.next()?;
    is_it.then(|| (root.into(), mount.into()))
}

fn number(path: PathBuf) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Reads the value of `key value` from a file with one pair per line.
fn field(path: PathBuf, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == key)?.1.trim().parse().ok()
}

/// Version 1 writes a number near `i64::MAX` for no limit, version 2 `max`.
const UNLIMITED: u64 = 1 << 60;

fn memory_of(version: Version, directory: &Path) -> Option<GroupMemory> {
    let (limit, usage, prefix) = match version {
        Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        Version::Two => ("memory.max", "memory.current", ""),
    };
    let limit = number(directory.join(limit)).filter(|limit| *limit < UNLIMITED)?;
    let pages = |kind: &str| field(directory.join("memory.stat"), &format!("{prefix}{kind}")).unwrap_or(0);
    let used = number(directory.join(usage)).unwrap_or(0);
    let kept = used.saturating_sub(pages("active_file") + pages("inactive_file"));
    Some(GroupMemory { limit: Bytes(limit), available: Bytes(limit.saturating_sub(kept)) })
}

fn quota_of(version: Version, directory: &Path) -> Option<f64> {
    let (quota, period) = match version {
        Version::One => {
            (number(directory.join("cpu.cfs_quota_us"))?, number(directory.join("cpu.cfs_period_us"))?)
        }
        Version::Two => {
            let text = fs::read_to_string(directory.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
    };
    Some(quota as f64 / period.max(1) as f64)
}

fn throttled_of(version: Version, directory: &Path) -> Nanos {
    let stat = directory.join("cpu.stat");
    let nanos = match version {
        Version::One => field(stat, "throttled_time"),
        Version::Two => field(stat, "throttled_usec").map(|micros| micros.saturating_mul(1000)),
    };
    Nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
28 24 0:24 / MOUNT/memory rw,nosuid - cgroup cgroup rw,memory
29 24 0:25 / MOUNT/cpu rw - cgroup cgroup rw,cpu,cpuacct
30 24 0:26 / MOUNT/unified rw - cgroup2 cgroup2 rw,nsdelegate
";

    fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().expect("space");
        for (path, content) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("space");
            fs::write(path, content).expect("space");
        }
        let mounts = MOUNTS.replace("MOUNT", directory.path().to_str().expect("a path"));
        (directory, mounts)
    }

    #[test]
    fn the_tightest_group_of_version_1_counts_and_pages_of_files_are_free() {
        let (_directory, mounts) = made(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/job/memory.limit_in_bytes", "536870912\n"),
            ("memory/job/memory.usage_in_bytes", "300000000\n"),
            (
                "memory/job/memory.stat",
                "cache 1\ntotal_inactive_file 150000000\ntotal_active_file 50000000\n",
            ),
            ("memory/job/step/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cpu/job/cpu.cfs_quota_us", "50000\n"),
            ("cpu/job/cpu.cfs_period_us", "100000\n"),
            ("cpu/job/step/cpu.cfs_quota_us", "-1\n"),
            ("cpu/job/step/cpu.cfs_period_us", "100000\n"),
            ("cpu/job/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 250000000\n"),
        ]);
        let groups = Hierarchies::of("4:memory:/job/step\n2:cpu,cpuacct:/job/step\n0::/\n", &mounts);
        let memory = groups.memory().expect("a limit");
        assert_eq!(memory, GroupMemory { limit: Bytes(536_870_912), available: Bytes(436_870_912) });
        assert_eq!(groups.quota(), Some(0.5));
        assert_eq!(groups.throttled(), Nanos::from_millis(250));
    }

    #[test]
    fn version_2_has_one_tree_for_all_and_a_container_sees_its_own_part() {
        let (_directory, mounts) = made(&[
            ("unified/memory.max", "1000000000\n"),
            ("unified/memory.current", "400000000\n"),
            ("unified/memory.stat", "inactive_file 100000000\n"),
            ("unified/cpu.max", "150000 100000\n"),
            ("unified/cpu.stat", "usage_usec 9\nthrottled_usec 1500\n"),
            ("unified/step/memory.max", "max\n"),
            ("unified/step/cpu.max", "max 100000\n"),
        ]);
        let mounts = mounts.replace("0:26 / ", "0:26 /docker/abc ");
        let groups = Hierarchies::of("0::/docker/abc/step\n", &mounts);
        let memory = groups.memory().expect("a limit");
        assert_eq!(memory, GroupMemory { limit: Bytes(1_000_000_000), available: Bytes(700_000_000) });
        assert_eq!((groups.quota(), groups.throttled()), (Some(1.5), Nanos(1_500_000)));
    }

    #[test]
    fn without_groups_nothing_is_limited() {
        let groups = Hierarchies::of("", "");
        assert_eq!((groups.memory(), groups.quota(), groups.throttled()), (None, None, Nanos(0)));
    }
}
