//! The block devices below a local file system, as a tree of devices and their components.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::pcie_link::PcieLink;
use crate::Bytes;

/// A block device with its components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayer {
    /// Its name in `/sys/class/block`.
    pub name: String,
    /// Its kind.
    pub kind: BlockLayerKind,
    /// True if the kernel reports it as rotational; meaningless for devices made of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// True if the kernel reports a write cache that needs flushes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<bool>,
    /// The links of PCI Express on the way to the processor, the disk's or its card's first. Empty for devices made
    /// of others, and for disks without such a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pcie: Vec<PcieLink>,
    /// The devices that it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<BlockLayer>,
}

/// The kind of a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockLayerKind {
    /// A disk, or a device that looks like one.
    Disk,
    /// A disk of a virtual machine; its real storage belongs to the host.
    VirtualDisk,
    /// An `NVMe` disk, with its transport.
    Nvme {
        /// `pcie`, `tcp`, `rdma` or `fc`, if the kernel reports it.
        transport: Option<String>,
    },
    /// A volume of ZFS, which has a cache of its own.
    ZfsVolume,
    /// A part of another device.
    Partition,
    /// Memory of this machine.
    Memory,
    /// A device on another machine, or on a shared array: `iscsi`, `fc`, `nbd`, `rbd`, `drbd`.
    Network(String),
    /// A file that acts as a device.
    Loop {
        /// The path of the file, as given to `losetup`.
        file: Option<String>,
    },
    /// An array of the kernel's md driver.
    Md {
        /// The level in the kernel's word, such as `raid5`.
        level: String,
        /// Number of members that it should have.
        members: u32,
        /// Bytes written to a member before the next one; `None` if it does not stripe.
        chunk: Option<Bytes>,
        /// Number of missing members.
        degraded: u32,
    },
    /// A device of the device mapper.
    Mapped {
        /// `lvm`, `crypt`, `multipath`, or another word before the dash of its UUID.
        by: String,
        /// Its name there.
        name: String,
        /// Number of devices that it stripes over; `None` if it does not stripe or does not report it.
        stripes: Option<u32>,
        /// Bytes written to a device before the next one.
        chunk: Option<Bytes>,
    },
}

impl BlockLayer {
    /// This device, and all below it.
    pub fn all(&self) -> Vec<&BlockLayer> {
        std::iter::once(self).chain(self.below.iter().flat_map(BlockLayer::all)).collect()
    }

    /// True if it caches data outside this kernel's view: in the page cache for a file below, or on another
    /// machine.
    fn hides_a_cache(&self) -> bool {
        match &self.kind {
            BlockLayerKind::Loop { .. }
            | BlockLayerKind::Memory
            | BlockLayerKind::ZfsVolume
            | BlockLayerKind::Network(_) => true,
            BlockLayerKind::Nvme { transport } => transport.as_ref().is_some_and(|by| by != "pcie"),
            _ => false,
        }
    }
}

/// Returns true if some device in these trees keeps a cache that this kernel can't report.
pub(super) fn hide_a_cache(layers: &[BlockLayer]) -> bool {
    layers.iter().flat_map(BlockLayer::all).any(BlockLayer::hides_a_cache)
}

/// `, chunks of 64 KiB`, if there are chunks.
fn chunked(chunk: Option<&Bytes>) -> String {
    chunk.map_or_else(String::new, |chunk| format!(", chunks of {chunk}"))
}

impl fmt::Display for BlockLayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockLayerKind::Disk => f.write_str("disk"),
            BlockLayerKind::VirtualDisk => f.write_str("disk of a virtual machine"),
            BlockLayerKind::Nvme { transport: None } => f.write_str("NVMe"),
            BlockLayerKind::Nvme { transport: Some(by) } => write!(f, "NVMe over {by}"),
            BlockLayerKind::ZfsVolume => f.write_str("volume of ZFS"),
            BlockLayerKind::Partition => f.write_str("partition"),
            BlockLayerKind::Memory => f.write_str("memory"),
            BlockLayerKind::Network(by) => write!(f, "on a network: {by}"),
            BlockLayerKind::Loop { file: Some(file) } => write!(f, "loop device of {file}"),
            BlockLayerKind::Loop { file: None } => f.write_str("loop device"),
            BlockLayerKind::Md { level, members, chunk, degraded } => {
                write!(f, "md {level} of {members}{}", chunked(chunk.as_ref()))?;
                if *degraded > 0 { write!(f, ", DEGRADED: {degraded} missing") } else { Ok(()) }
            }
            BlockLayerKind::Mapped { by, name, stripes, chunk } => {
                write!(f, "{by} {name}")?;
                if let Some(stripes) = stripes {
                    write!(f, ", {stripes} stripes")?;
                }
                f.write_str(&chunked(chunk.as_ref()))
            }
        }
    }
}

impl fmt::Display for BlockLayer {
    /// On one line: `md0 (md raid5 of 3) on [sda (disk, rotational) + sdb (disk, rotational)]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.kind)?;
        if self.below.is_empty() {
            match self.rotational {
                Some(true) => f.write_str(", rotational")?,
                Some(false) => f.write_str(", not rotational")?,
                None => {}
            }
            if self.write_cache == Some(true) {
                f.write_str(", volatile write cache")?;
            }
            if let Some(link) = self.pcie.first() {
                write!(f, ", {link}")?;
            }
        }
        f.write_str(")")?;
        let below: Vec<String> = self.below.iter().map(ToString::to_string).collect();
        match below.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " on {one}"),
            several => write!(f, " on [{}]", several.join(" + ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, kind: BlockLayerKind, below: Vec<BlockLayer>) -> BlockLayer {
        let rotational = below.is_empty().then_some(true);
        BlockLayer { name: name.into(), kind, rotational, write_cache: None, pcie: Vec::new(), below }
    }

    #[test]
    fn an_array_is_said_on_one_line() {
        let disks = ["sda", "sdb"].map(|name| layer(name, BlockLayerKind::Disk, Vec::new()));
        let kind = BlockLayerKind::Md {
            level: "raid5".into(),
            members: 3,
            chunk: Some(Bytes(512 << 10)),
            degraded: 1,
        };
        let array = layer("md0", kind, disks.to_vec());
        let expected = "md0 (md raid5 of 3, chunks of 512 KiB, DEGRADED: 1 missing) \
                        on [sda (disk, rotational) + sdb (disk, rotational)]";
        assert_eq!(array.to_string(), expected);
    }

    #[test]
    fn a_cache_anywhere_below_is_a_cache() {
        let on = |kind| {
            let below = layer("x", kind, Vec::new());
            let by =
                BlockLayerKind::Mapped { by: "lvm".into(), name: "v".into(), stripes: None, chunk: None };
            hide_a_cache(&[layer("dm-0", by, vec![below])])
        };
        assert!(on(BlockLayerKind::Loop { file: None }) && on(BlockLayerKind::Network("iscsi".into())));
        assert!(on(BlockLayerKind::Nvme { transport: Some("tcp".into()) }));
        assert!(!on(BlockLayerKind::Nvme { transport: Some("pcie".into()) }) && !on(BlockLayerKind::Disk));
    }
}
