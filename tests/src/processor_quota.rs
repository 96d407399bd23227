//! A control group that gives processes little processor time, of either version of control groups.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Directories for groups: version 1 has a hierarchy for processors, version 2 one for everything.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
/// Microseconds for which a quota counts.
const PERIOD: u64 = 100_000;

/// A control group with a processor quota. Dropping it moves remaining processes to the group above and removes
/// it.
#[derive(Debug)]
pub struct ProcessorQuota {
    group: PathBuf,
}

impl ProcessorQuota {
    /// A group of these processes with this share of one processor, in percent. If nobody can make one on this
    /// machine, it returns `None` and says so, or panics in CI.
    pub fn percent(share: u64, processes: &[u32]) -> Option<Self> {
        let name = format!("nilometer-test-{}", processes.first().copied().unwrap_or_default());
        let made = HIERARCHIES.iter().find_map(|hierarchy| {
            let group = Path::new(hierarchy).join(&name);
            fs::create_dir(&group).ok()?;
            let quota = ProcessorQuota { group };
            quota.limit(Some(share)).and_then(|()| quota.take(processes)).is_ok().then_some(quota)
        });
        if made.is_none() {
            assert!(std::env::var_os("CI").is_none(), "no control group for processors can be made here");
            eprintln!("skipped: no control group for processors can be made here");
        }
        made
    }

    /// Sets the share. `None` lets the processes use the whole machine.
    fn limit(&self, share: Option<u64>) -> io::Result<()> {
        let quota = share.map(|share| PERIOD * share / 100);
        if self.group.join("cpu.max").exists() {
            let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
            return fs::write(self.group.join("cpu.max"), format!("{quota} {PERIOD}"));
        }
        let quota = quota.map_or("-1".to_owned(), |quota| quota.to_string());
        fs::write(self.group.join("cpu.cfs_quota_us"), quota)
    }

    fn take(&self, processes: &[u32]) -> io::Result<()> {
        processes
            .iter()
            .try_for_each(|process| fs::write(self.group.join("cgroup.procs"), process.to_string()))
    }

    /// Lets the processes use the whole machine from now on.
    pub fn lift(&self) {
        self.limit(None).expect("the group is there");
    }
}

impl Drop for ProcessorQuota {
    fn drop(&mut self) {
        // Remaining processes go back to the group above, because a group with processes can't be removed.
        let above = self.group.parent().map(|above| above.join("cgroup.procs"));
        let left = fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default();
        for process in left.lines() {
            if let Some(above) = &above {
                drop(fs::write(above, process));
            }
        }
        drop(fs::remove_dir(&self.group));
    }
}
