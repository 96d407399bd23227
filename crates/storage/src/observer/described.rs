//! The description of an observed machine: the header of its observations.

use std::{fs, path::Path, thread};

use nilometer_model::{
    Moment, Nanos,
    observed::{
        OBSERVED_FORMAT, OBSERVED_VERSION, ObservedDisk, ObservedHeader, ObservedLink, ObservedMount,
    },
};

use super::whole_devices;
use crate::{
    clock::{Calendar, clock_source},
    network::{kernel_text, links::links_by_kernel},
    process::{BootId, proc_text},
    target::{Mount, block_device, mount_table},
};

pub(super) fn described(host: String, interval: Nanos) -> ObservedHeader {
    let uname = rustix::system::uname();
    let memory = kernel_text("/proc/meminfo").and_then(|text| proc_text::meminfo(&text, "MemTotal"));
    ObservedHeader {
        format: OBSERVED_FORMAT.into(),
        version: OBSERVED_VERSION,
        nilometer: env!("CARGO_PKG_VERSION").into(),
        host,
        boot_id: BootId::now().map_or_else(String::new, |id| id.to_string()),
        kernel: [uname.sysname(), uname.release()].map(|part| part.to_string_lossy()).join(" "),
        started: Moment(Calendar::now().time),
        interval_s: interval.seconds(),
        clock_source: clock_source(),
        processors: thread::available_parallelism().map_or(1, Into::into),
        memory_bytes: memory.unwrap_or(0),
        links: links_by_kernel().into_iter().map(observed_link).collect(),
        disks: whole_devices().iter().filter_map(|name| disk(name)).collect(),
        mounts: mount_table().into_iter().filter(is_storage).map(observed_mount).collect(),
    }
}

fn observed_link(link: nilometer_model::NetworkLink) -> ObservedLink {
    ObservedLink {
        name: link.name,
        is_card: link.is_card,
        speed_bytes_per_second: link.speed.map(|speed| speed.0),
        mtu_bytes: link.mtu.map(|mtu| mtu.0),
        bond: link.bond,
    }
}

/// Describes a disk; `None` for a device without a medium, such as most loops.
fn disk(name: &str) -> Option<ObservedDisk> {
    /// The unit of `/sys/block/*/size`, independent of the disk's own sector.
    const SECTOR: u64 = 512;
    let folder = Path::new("/sys/block").join(name);
    let size: u64 = fs::read_to_string(folder.join("size")).ok()?.trim().parse().ok()?;
    if size == 0 {
        return None;
    }
    let layer = block_device(name)?;
    let whole = whole_devices();
    let below = layer.below.iter().flat_map(|below| below.all());
    Some(ObservedDisk {
        name: name.to_owned(),
        kind: layer.kind.to_string(),
        size_bytes: size.saturating_mul(SECTOR),
        rotational: layer.rotational,
        made_of: below.map(|layer| layer.name.clone()).filter(|name| whole.contains(name)).collect(),
    })
}

/// Types of file systems whose entry in the mount table has neither a device nor a server.
const POOLS: [&str; 6] = ["btrfs", "zfs", "gpfs", "lustre", "ceph", "beegfs"];

/// Returns true if the mount is on a block device, a server, or a daemon that serves one, not in the kernel's
/// memory.
fn is_storage(mount: &Mount) -> bool {
    let on_device = mount.numbers.split(':').next().is_some_and(|major| major != "0");
    let is_served = mount.source.contains(':') || mount.file_system.starts_with("fuse.");
    on_device || is_served || POOLS.contains(&mount.file_system.as_str())
}

fn observed_mount(mount: Mount) -> ObservedMount {
    ObservedMount {
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        file_system: mount.file_system,
        source: mount.source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_data_is_told_from_what_the_kernel_keeps_in_memory() {
        let mount = |numbers: &str, file_system: &str, source: &str| Mount {
            id: 1,
            numbers: numbers.into(),
            mount_point: "/m".into(),
            file_system: file_system.into(),
            source: source.into(),
            options: "rw".into(),
        };
        for (numbers, file_system, source) in [
            ("8:1", "ext4", "/dev/sda1"),
            ("0:44", "nfs4", "server:/export"),
            ("0:45", "fuse.glusterfs", "node1:vol"),
            ("0:46", "btrfs", "/dev/sdb"),
        ] {
            assert!(is_storage(&mount(numbers, file_system, source)), "{file_system}");
        }
        for (file_system, source) in [("proc", "proc"), ("tmpfs", "tmpfs"), ("cgroup2", "cgroup2")] {
            assert!(!is_storage(&mount("0:5", file_system, source)), "{file_system}");
        }
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let header = described("here".into(), Nanos::from_millis(500));
        assert_eq!(
            (header.format.as_str(), header.version, header.host.as_str()),
            (OBSERVED_FORMAT, 1, "here")
        );
        assert!((header.interval_s - 0.5).abs() < 1e-9 && header.kernel.starts_with("Linux "), "{header:?}");
        assert_eq!(header.boot_id.len(), 36, "as the kernel writes it");
        assert!(header.disks.iter().all(|disk| disk.size_bytes > 0 && !disk.made_of.contains(&disk.name)));
    }
}
