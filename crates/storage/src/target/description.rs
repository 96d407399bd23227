//! What a target is: found once before the run, and kept in the record.

use std::path::PathBuf;

use nilometer_model::Bytes;
use serde::{Deserialize, Serialize};

use super::Striping;

/// A file system as it is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The directory under test, without symlinks.
    pub path: PathBuf,
    /// The type in the mount table, such as `ext4`, `nfs4` or `fuse.glusterfs`.
    pub file_system: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// What is mounted: a device, a server and its path, a cluster.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// The block device in `/sys/class/block`, if there is one.
    pub device: Option<String>,
    /// Size and free space.
    pub space: Space,
    /// Whether the path can be written.
    pub writable: bool,
    /// What `O_DIRECT` does.
    pub direct: Direct,
    /// How the stripe count of files is chosen, where it can be.
    pub striping: Option<Striping>,
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// In all.
    pub size: Bytes,
    /// Free for this user.
    pub free: Bytes,
    /// Inodes in all; none where they are made as needed.
    pub inodes: Option<u64>,
    /// Inodes free.
    pub free_inodes: Option<u64>,
}

/// What `O_DIRECT` does here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direct {
    /// It goes past the page cache.
    Real {
        /// Memory and file offsets must be multiples of this many bytes.
        alignment: u32,
    },
    /// It is taken, and the page cache used all the same.
    Buffered,
    /// It is refused.
    Refused(String),
    /// The path could not be written, so nothing was tried.
    Unknown,
}

impl Description {
    /// Data stay in the memory of this machine.
    pub fn is_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }

    /// A server or a process beyond this kernel may keep a cache that can't be looked into.
    pub fn is_remote(&self) -> bool {
        let name = self.file_system.as_str();
        name.starts_with("fuse")
            || matches!(
                name,
                "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "lustre" | "gpfs" | "beegfs" | "wekafs" | "9p"
            )
            || matches!(name, "overlay" | "zfs")
    }

    /// Beyond the page cache of its files there is another that can't be looked into: memory, a server, or the file below
    /// a loop device.
    pub fn has_a_cache_of_its_own(&self) -> bool {
        let on_a_file = self.device.as_ref().is_some_and(|device| device.starts_with("loop"));
        self.is_memory() || self.is_remote() || on_a_file
    }

    /// What is written here is taken from the free space there too: they are on one file system, as far as this machine can
    /// tell.
    pub fn shares_space_with(&self, other: &Description) -> bool {
        let one_device = self.device.is_some() && self.device == other.device;
        one_device || self.mount_point == other.mount_point
    }

    /// `O_DIRECT` works and is what it says.
    pub fn direct_alignment(&self) -> Option<u32> {
        match self.direct {
            Direct::Real { alignment } => Some(alignment),
            _ => None,
        }
    }
}

impl std::fmt::Display for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Direct::Real { alignment } => write!(f, "real, aligned to {}", Bytes(u64::from(*alignment))),
            Direct::Buffered => f.write_str("accepted, but it goes through the page cache"),
            Direct::Refused(why) => write!(f, "refused: {why}"),
            Direct::Unknown => f.write_str("not tried: the path can't be written"),
        }
    }
}

impl std::fmt::Display for Description {
    /// A block of lines for a person.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Space { size, free, inodes, free_inodes } = self.space;
        let full = 100.0 * (1.0 - free.0 as f64 / size.0.max(1) as f64);
        writeln!(f, "path          {}", self.path.display())?;
        writeln!(f, "file system   {}", self.file_system)?;
        writeln!(f, "source        {}", self.source)?;
        writeln!(f, "mounted at    {} ({})", self.mount_point.display(), self.options)?;
        writeln!(f, "device        {}", self.device.as_deref().unwrap_or("none on this machine"))?;
        writeln!(f, "space         {free} free of {size}, {full:.0} % full")?;
        match (inodes, free_inodes) {
            (Some(all), Some(free)) => writeln!(f, "inodes        {free} free of {all}")?,
            _ => writeln!(f, "inodes        made as needed")?,
        }
        writeln!(f, "writable      {}", if self.writable { "yes" } else { "no" })?;
        writeln!(f, "O_DIRECT      {}", self.direct)?;
        write!(f, "stripe count  {}", self.striping.map_or("no choice here", |_| "can be chosen"))
    }
}
