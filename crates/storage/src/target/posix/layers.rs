//! The block devices below a local file system, from `/sys`. The root of that tree is an argument, so that
//! tests can replace it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_model::{BlockLayer, BlockLayerKind, Bytes, PcieLink};

/// Follows arrays of volumes of arrays down to this many levels.
const LEVELS: u32 = 16;

/// Returns the device of these numbers, such as `8:1`, with all devices below it; `None` if it does not
/// exist.
pub(super) fn device_of_number(sys: &Path, numbers: &str) -> Option<BlockLayer> {
    walk(&fs::canonicalize(sys.join("dev/block").join(numbers)).ok()?, LEVELS)
}

/// Returns the device of this name, with all devices below it.
pub(super) fn device_of_name(sys: &Path, name: &str) -> Option<BlockLayer> {
    walk(&fs::canonicalize(sys.join("class/block").join(name)).ok()?, LEVELS)
}

/// Returns all devices of the btrfs file system that the device `one` belongs to, from the kernel's list.
pub(super) fn btrfs_devices(sys: &Path, one: &str) -> Vec<BlockLayer> {
    let pools = entries(&sys.join("fs/btrfs"));
    let pool = pools.into_iter().find(|pool| pool.join("devices").join(one).exists());
    let members = pool.map(|pool| entries(&pool.join("devices"))).unwrap_or_default();
    members.iter().filter_map(|member| device_of_name(sys, name_of(member)?)).collect()
}

/// Returns the data profile of that btrfs file system: `raid0`, `single`.
pub(super) fn btrfs_profile(sys: &Path, one: &str) -> Option<String> {
    let pools = entries(&sys.join("fs/btrfs"));
    let pool = pools.into_iter().find(|pool| pool.join("devices").join(one).exists())?;
    let mut profiles = entries(&pool.join("allocation/data")).into_iter().filter(|path| path.is_dir());
    profiles.next().and_then(|path| name_of(&path).map(str::to_owned))
}

fn walk(device: &Path, levels: u32) -> Option<BlockLayer> {
    let name = name_of(device)?.to_owned();
    let below = if levels == 0 { Vec::new() } else { below(device, levels - 1) };
    // The queue is the whole disk's.
    let disk = if device.join("partition").exists() { device.parent()? } else { device };
    Some(BlockLayer {
        kind: kind(device, &name),
        rotational: number(&disk.join("queue/rotational")).map(|rotational| rotational == 1),
        write_cache: text(&disk.join("queue/write_cache")).map(|cache| cache == "write back"),
        pcie: if below.is_empty() { links(device) } else { Vec::new() },
        name,
        below,
    })
}

/// Returns the links of PCI Express above a device in `/sys/devices`, the nearest first. A device of another bus has
/// the links of its controller. Parts of the chip set state no link: width 0 or 255, or an unknown speed
/// (Documentation/ABI/testing/sysfs-bus-pci of Linux, `current_link_speed` and `current_link_width`).
fn links(device: &Path) -> Vec<PcieLink> {
    device.ancestors().filter_map(link).collect()
}

fn link(function: &Path) -> Option<PcieLink> {
    let width = |file: &str| number(&function.join(file)).filter(|width| (1..=32).contains(width));
    let speed = |file: &str| megatransfers(&text(&function.join(file))?);
    Some(PcieLink {
        address: name_of(function)?.to_owned(),
        width: width("current_link_width")? as u32,
        megatransfers: speed("current_link_speed")?,
        width_max: width("max_link_width")? as u32,
        megatransfers_max: speed("max_link_speed")?,
    })
}

/// The megatransfers per second in a text like `8.0 GT/s PCIe`; kernels before 4.20 leave the last word out.
fn megatransfers(text: &str) -> Option<u32> {
    let giga: f64 = text.split_once(" GT/s")?.0.parse().ok()?;
    #[expect(clippy::cast_sign_loss, reason = "it is above 0")]
    (giga > 0.0 && giga < 1000.0).then(|| (giga * 1000.0).round() as u32)
}

/// Returns the disk of a partition; the members of any other device are listed in its `slaves`.
fn below(device: &Path, levels: u32) -> Vec<BlockLayer> {
    if device.join("partition").exists() {
        return device.parent().and_then(|disk| walk(disk, levels)).into_iter().collect();
    }
    let members = entries(&device.join("slaves")).into_iter();
    members.filter_map(|member| walk(&fs::canonicalize(member).ok()?, levels)).collect()
}

fn kind(device: &Path, name: &str) -> BlockLayerKind {
    if device.join("partition").exists() {
        return BlockLayerKind::Partition;
    }
    if device.join("md").is_dir() {
        return array(&device.join("md"));
    }
    if device.join("dm").is_dir() {
        return mapped(device);
    }
    let is = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match name {
        _ if is("loop") => BlockLayerKind::Loop { file: text(&device.join("loop/backing_file")) },
        _ if is("nvme") => BlockLayerKind::Nvme { transport: nvme_transport(device) },
        _ if is("zd") => BlockLayerKind::ZfsVolume,
        _ if name.starts_with("xvd") => BlockLayerKind::VirtualDisk,
        _ if is("zram") || is("ram") || is("pmem") => BlockLayerKind::Memory,
        _ => beyond(device, name),
    }
}

/// Returns the transport of an `NVMe` disk. With several paths to it (native multipath) these belong to its
/// subsystem, and the path that is no bus of this machine counts.
fn nvme_transport(device: &Path) -> Option<String> {
    let above = device.join("device");
    if let Some(transport) = text(&above.join("transport")) {
        return Some(transport);
    }
    let ways =
        entries(&above).into_iter().filter(|path| name_of(path).is_some_and(|name| name.starts_with("nvme")));
    let ways: Vec<String> = ways.filter_map(|way| text(&way.join("transport"))).collect();
    ways.iter().find(|way| *way != "pcie").or(ways.first()).cloned()
}

/// Returns a disk, unless its name or its path in `/sys/devices` shows that it is on a network.
fn beyond(device: &Path, name: &str) -> BlockLayerKind {
    let networks = ["nbd", "rbd", "drbd"];
    if let Some(by) = networks.iter().find(|by| name.starts_with(**by)) {
        return BlockLayerKind::Network((*by).into());
    }
    let passes =
        |prefix: &str| device.components().any(|part| part.as_os_str().to_string_lossy().starts_with(prefix));
    // The kernel's transport classes of iSCSI and Fibre Channel name the parents of a disk like this.
    match () {
        () if passes("session") => BlockLayerKind::Network("iscsi".into()),
        () if passes("rport-") => BlockLayerKind::Network("fc".into()),
        () if passes("virtio") || passes("vmbus") || passes("VMBUS") => BlockLayerKind::VirtualDisk,
        () => BlockLayerKind::Disk,
    }
}

fn array(md: &Path) -> BlockLayerKind {
    let count = |file: &str| number(&md.join(file)).unwrap_or_default() as u32;
    BlockLayerKind::Md {
        level: text(&md.join("level")).unwrap_or_else(|| "of unknown level".into()),
        members: count("raid_disks"),
        chunk: number(&md.join("chunk_size")).filter(|&chunk| chunk > 0).map(Bytes),
        degraded: count("degraded"),
    }
}

/// Classifies a mapped device. `/sys` does not show whether it is striped, but the driver for stripes sets
/// its limits: the optimal request spans all stripes, the minimum one stripe. If requests of members have
/// limits of their own, the number of members decides.
fn mapped(device: &Path) -> BlockLayerKind {
    let uuid = text(&device.join("dm/uuid")).unwrap_or_default();
    let by = uuid.split('-').next().filter(|by| !by.is_empty()).unwrap_or("mapped").to_ascii_lowercase();
    let by = if by == "mpath" { "multipath".into() } else { by };
    let [least, best] =
        ["minimum_io_size", "optimal_io_size"].map(|limit| number(&device.join("queue").join(limit)));
    let members = entries(&device.join("slaves")).len() as u64;
    let stripes = match (least, best) {
        (Some(least), Some(best))
            if least > 4096 && best == least * members && members > 1 && !has_striped_member(device) =>
        {
            Some(members as u32)
        }
        _ => None,
    };
    BlockLayerKind::Mapped {
        by,
        name: text(&device.join("dm/name")).unwrap_or_default(),
        stripes,
        chunk: least.filter(|_| stripes.is_some()).map(Bytes),
    }
}

/// Returns true if a member is striped itself. Its limits then become those of the whole, which need not be
/// striped.
fn has_striped_member(device: &Path) -> bool {
    let best = |member: &PathBuf| number(&member.join("queue/optimal_io_size")).unwrap_or_default();
    entries(&device.join("slaves")).iter().any(|member| best(member) > 0)
}

/// Lists a directory by name; empty if it does not exist.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn text(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(file: &Path) -> Option<u64> {
    text(file)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A tree like `/sys`: devices in `devices`, found through links.
    struct SysTree(tempfile::TempDir);

    impl SysTree {
        fn new() -> Self {
            SysTree(tempfile::tempdir().expect("a temporary directory"))
        }

        /// A device at this place below `devices`, with files and members.
        fn device(&self, place: &str, numbers: &str, files: &[(&str, &str)], members: &[&str]) {
            let root = self.0.path();
            let device = root.join("devices").join(place);
            fs::create_dir_all(device.join("slaves")).expect("space");
            for (file, text) in files {
                fs::create_dir_all(device.join(file).parent().expect("it has one")).expect("space");
                fs::write(device.join(file), format!("{text}\n")).expect("space");
            }
            for member in members {
                let target = fs::canonicalize(root.join("class/block").join(member)).expect("made before");
                symlink(target, device.join("slaves").join(member)).expect("a link");
            }
            let name = device.file_name().expect("it has one");
            for (directory, link) in [("class/block", Path::new(name)), ("dev/block", Path::new(numbers))] {
                fs::create_dir_all(root.join(directory)).expect("space");
                symlink(&device, root.join(directory).join(link)).expect("a link");
            }
        }

        fn disk(&self, name: &str, numbers: &str) {
            let files = [("queue/rotational", "1"), ("queue/write_cache", "write back")];
            self.device(&format!("pci0000:00/ata1/block/{name}"), numbers, &files, &[]);
        }
    }

    #[test]
    fn an_array_of_partitions_is_followed_to_its_disks() {
        let sys = SysTree::new();
        for (index, disk) in ["sda", "sdb", "sdc"].iter().enumerate() {
            sys.disk(disk, &format!("8:{}", 16 * index));
            let place = format!("pci0000:00/ata1/block/{disk}/{disk}1");
            sys.device(&place, &format!("8:{}", 16 * index + 1), &[("partition", "1")], &[]);
        }
        let files = [
            ("md/level", "raid5"),
            ("md/raid_disks", "3"),
            ("md/chunk_size", "524288"),
            ("md/degraded", "0"),
        ];
        sys.device("virtual/block/md0", "9:0", &files, &["sda1", "sdb1", "sdc1"]);
        let array = device_of_number(sys.0.path(), "9:0").expect("it is there");
        let (level, chunk) = ("raid5".into(), Some(Bytes(512 << 10)));
        assert_eq!(array.kind, BlockLayerKind::Md { level, members: 3, chunk, degraded: 0 });
        let names: Vec<_> = array.all().iter().map(|layer| layer.name.clone()).collect();
        assert_eq!(names, ["md0", "sda1", "sda", "sdb1", "sdb", "sdc1", "sdc"]);
        let sda = &array.below[0].below[0];
        assert_eq!((sda.rotational, sda.write_cache), (Some(true), Some(true)));
        assert_eq!(device_of_number(sys.0.path(), "9:1"), None);
    }

    #[test]
    fn stripes_of_a_volume_are_told_from_its_limits() {
        let sys = SysTree::new();
        sys.disk("sda", "8:0");
        sys.disk("sdb", "8:16");
        let volume = |name: &str, numbers: &str, least: &str, best: &str| {
            let files = [
                ("dm/name", "vg-data"),
                ("dm/uuid", "LVM-abc"),
                ("queue/minimum_io_size", least),
                ("queue/optimal_io_size", best),
            ];
            sys.device(&format!("virtual/block/{name}"), numbers, &files, &["sda", "sdb"]);
            device_of_name(sys.0.path(), name).expect("it is there").kind
        };
        let mapped = |stripes, chunk: Option<u64>| BlockLayerKind::Mapped {
            by: "lvm".into(),
            name: "vg-data".into(),
            stripes,
            chunk: chunk.map(Bytes),
        };
        assert_eq!(volume("dm-0", "253:0", "262144", "524288"), mapped(Some(2), Some(256 << 10)));
        assert_eq!(volume("dm-1", "253:1", "512", "0"), mapped(None, None), "linear");
    }

    #[test]
    fn what_is_on_a_network_or_in_a_file_is_told_apart() {
        let sys = SysTree::new();
        let kind = |place: &str, files: &[(&str, &str)]| {
            let name = place.rsplit('/').next().unwrap_or_default();
            sys.device(place, name, files, &[]);
            device_of_name(sys.0.path(), name).expect("it is there").kind
        };
        assert_eq!(
            kind("platform/host7/session1/target7/block/sdx", &[]),
            BlockLayerKind::Network("iscsi".into())
        );
        assert_eq!(kind("pci/host8/rport-8:0-1/block/sdy", &[]), BlockLayerKind::Network("fc".into()));
        assert_eq!(kind("virtual/block/nbd0", &[]), BlockLayerKind::Network("nbd".into()));
        assert_eq!(kind("pci/virtio1/block/vda", &[]), BlockLayerKind::VirtualDisk);
        let file = Some("/img/disk".to_owned());
        assert_eq!(
            kind("virtual/block/loop0", &[("loop/backing_file", "/img/disk")]),
            BlockLayerKind::Loop { file }
        );
        let transport = Some("tcp".to_owned());
        assert_eq!(
            kind("fabrics/nvme0n1", &[("device/transport", "tcp")]),
            BlockLayerKind::Nvme { transport }
        );
        assert_eq!(kind("virtual/block/zram0", &[]), BlockLayerKind::Memory);
    }

    /// As in `/sys` of a server: a disk of NVM Express behind a root port, and an HBA. AHCI of the chip set has
    /// no link.
    #[test]
    fn the_links_between_a_disk_and_the_processor_are_found() {
        let sys = SysTree::new();
        let links = |place: &str, current: [&str; 2], max: [&str; 2]| {
            let function = sys.0.path().join("devices").join(place);
            fs::create_dir_all(&function).expect("space");
            let files = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
            for (file, text) in files.iter().zip(current.iter().chain(&max)) {
                fs::write(function.join(file), format!("{text}\n")).expect("space");
            }
        };
        links("pci0000:00/0000:00:01.1", ["8.0 GT/s PCIe", "4"], ["16.0 GT/s PCIe", "16"]);
        links("pci0000:00/0000:00:01.1/0000:02:00.0", ["8.0 GT/s PCIe", "4"], ["16.0 GT/s PCIe", "4"]);
        links("pci0000:00/0000:00:17.0", ["Unknown", "0"], ["Unknown", "255"]);
        let found = |place: &str| {
            let name = place.rsplit('/').next().unwrap_or_default();
            sys.device(place, name, &[], &[]);
            device_of_name(sys.0.path(), name).expect("it is there").pcie
        };
        let nvme = found("pci0000:00/0000:00:01.1/0000:02:00.0/nvme/nvme0/nvme0n1");
        let texts: Vec<_> = nvme.iter().map(|link| format!("{} {link}", link.address)).collect();
        let expected = [
            "0000:02:00.0 PCIe 8.0 GT/s x4, of 16.0 GT/s x4 possible",
            "0000:00:01.1 PCIe 8.0 GT/s x4, of 16.0 GT/s x16 possible",
        ];
        assert_eq!(texts, expected);
        assert!(found("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda").is_empty());
        assert_eq!(megatransfers("2.5 GT/s"), Some(2500));
        assert_eq!((megatransfers("Unknown"), megatransfers("-1 GT/s")), (None, None));
    }

    #[test]
    fn devices_of_btrfs_are_found_by_one_of_them() {
        let sys = SysTree::new();
        sys.disk("sda", "8:0");
        sys.disk("sdb", "8:16");
        let pool = sys.0.path().join("fs/btrfs/1b2c");
        fs::create_dir_all(pool.join("devices")).expect("space");
        for name in ["sda", "sdb"] {
            symlink(sys.0.path().join("class/block").join(name), pool.join("devices").join(name))
                .expect("a link");
        }
        fs::create_dir_all(pool.join("allocation/data/raid0")).expect("space");
        let names: Vec<_> = btrfs_devices(sys.0.path(), "sdb").into_iter().map(|layer| layer.name).collect();
        assert_eq!(names, ["sda", "sdb"]);
        assert_eq!(btrfs_profile(sys.0.path(), "sda").as_deref(), Some("raid0"));
        assert!(btrfs_devices(sys.0.path(), "sdz").is_empty());
    }
}
