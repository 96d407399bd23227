//! The block devices below a local file system, as a tree: what is mounted, and what it is made of.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A block device with those that it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayer {
    /// Its name in `/sys/class/block`.
    pub name: String,
    /// What it is.
    pub kind: BlockLayerKind,
    /// Whether it says that it turns; of no meaning for devices that are made of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// It says that it keeps writes in a cache that has to be flushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<bool>,
    /// What it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<BlockLayer>,
}

/// What a block device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockLayerKind {
    /// A disk, or what passes for one.
    Disk,
    /// A disk of a virtual machine: what it lies on is its host's.
    VirtualDisk,
    /// An `NVMe` disk; of one on a network its transport.
    Nvme {
        /// `pcie`, `tcp`, `rdma`, `fc`, as far as it is said.
        transport: Option<String>,
    },
    /// A volume of ZFS, which has a cache of its own.
    ZfsVolume,
    /// A part of another device.
    Partition,
    /// Memory of this machine.
    Memory,
    /// On another machine, or on an array that others use too: `iscsi`, `fc`, `nbd`, `rbd`, `drbd`.
    Network(String),
    /// A file that passes for a device.
    Loop {
        /// The file, as it was named.
        file: Option<String>,
    },
    /// An array of the kernel's md driver.
    Md {
        /// `raid5`, as the kernel says it.
        level: String,
        /// How many members it should have.
        members: u32,
        /// In turns of so many bytes its members are written; none without turns.
        chunk: Option<Bytes>,
        /// How many members it lacks.
        degraded: u32,
    },
    /// A device of the device mapper.
    Mapped {
        /// `lvm`, `crypt`, `multipath`, or another word before the dash of its UUID.
        by: String,
        /// Its name there.
        name: String,
        /// Over so many devices it is striped; none if it is not, or does not say so.
        stripes: Option<u32>,
        /// In turns of so many bytes.
        chunk: Option<Bytes>,
    },
}

impl BlockLayer {
    /// It, and all below it.
    pub fn all(&self) -> Vec<&BlockLayer> {
        std::iter::once(self).chain(self.below.iter().flat_map(BlockLayer::all)).collect()
    }

    /// It keeps what is read where this kernel can't look: in the page cache of a file below, on another machine.
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

/// Whether some device in these trees keeps a cache that this kernel can't be asked for.
pub(super) fn hide_a_cache(layers: &[BlockLayer]) -> bool {
    layers.iter().flat_map(BlockLayer::all).any(BlockLayer::hides_a_cache)
}

/// ` (chunk 64 KiB)`, if there is one.
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
    /// On one line: `md0 (md raid5 of 3) on sda (disk, rotational) + sdb (disk, rotational)`.
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
        BlockLayer { name: name.into(), kind, rotational, write_cache: None, below }
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
