//! What a target is: found once before the run, and kept in the record.

mod address;
mod capabilities;

pub use address::{RunHandle, TargetAddress, TargetAddressError};
pub use capabilities::{Capabilities, Capability};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Bytes, is_volatile};

/// A storage system as it was found. Its fields are what something is decided by; what only explains it is among the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetDescription {
    /// Where it is; a directory without symlinks.
    #[serde(alias = "path")]
    pub address: TargetAddress,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The type in the mount table, such as `ext4`, `nfs4` or `fuse.glusterfs`; of what is not mounted what it is.
    pub file_system: String,
    /// Where it is mounted; empty if it is not.
    pub mount_point: PathBuf,
    /// What is mounted: a device, a server and its path, a cluster.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// The block device in `/sys/class/block`, if there is one.
    pub device: Option<String>,
    /// Size and free space.
    pub space: FileSystemSpace,
    /// Whether the path can be written.
    pub writable: bool,
    /// What `O_DIRECT` does.
    pub direct: DirectIo,
    /// How the layout of files is chosen, where it can be.
    pub striping: Option<StripeControl>,
    /// In turns of so many bytes files lie on storage devices, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_size: Option<Bytes>,
    /// What else is known of it: name and value.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
}

/// How the files of a target are spread over its storage devices; of a field that is none nothing is said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StripeLayout {
    /// Over so many storage devices each.
    pub stripe_count: Option<u32>,
    /// In turns of so many bytes.
    pub stripe_size: Option<Bytes>,
    /// On the devices of the pool of this name.
    pub pool: Option<String>,
}

impl StripeLayout {
    /// The same with what `other` says where this says nothing.
    #[must_use]
    pub fn or(self, other: StripeLayout) -> Self {
        StripeLayout {
            stripe_count: self.stripe_count.or(other.stripe_count),
            stripe_size: self.stripe_size.or(other.stripe_size),
            pool: self.pool.or(other.pool),
        }
    }
}

/// By what means a file system lets the layout of files be chosen: over how many storage devices a file is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StripeControl {
    /// `lfs setstripe` (Lustre manual, "Managing File Layout").
    Lustre,
    /// `beegfs-ctl --setpattern` (`BeeGFS` 7 documentation, "Striping").
    BeeGfs,
    /// The attribute `ceph.dir.layout.stripe_count` (Ceph documentation, "File layouts").
    CephFs,
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemSpace {
    /// In all, with what is reserved for the system.
    pub size: Bytes,
    /// Free for this user.
    pub free: Bytes,
    /// Taken by what is there: neither free nor reserved. None in descriptions that were made before it was asked for.
    #[serde(default)]
    pub used: Option<Bytes>,
    /// Inodes in all; none where they are made as needed.
    pub inodes: Option<u64>,
    /// Inodes free.
    pub free_inodes: Option<u64>,
}

impl FileSystemSpace {
    /// What this user's files could take if nothing else were there: without what is reserved for the system, which file
    /// systems such as ext4 keep back. The whole that `df` counts its share of.
    pub fn usable(&self) -> Bytes {
        self.used.map_or(self.size, |used| Bytes(used.0 + self.free.0))
    }

    /// The share of the usable space that is taken, as `df` says it: 0 to 1.
    pub fn fullness(&self) -> f64 {
        1.0 - self.free.0 as f64 / self.usable().0.max(1) as f64
    }
}

/// What `O_DIRECT` does here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectIo {
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

impl TargetDescription {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.address.directory()
    }

    /// What is written here is there afterwards.
    pub fn keeps(&self) -> bool {
        self.capabilities.has(Capability::Keep)
    }

    /// Data stay in the memory of this machine: nothing survives the loss of power.
    pub fn is_memory(&self) -> bool {
        is_volatile(&self.file_system)
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
    pub fn shares_space_with(&self, other: &TargetDescription) -> bool {
        let one_device = self.device.is_some() && self.device == other.device;
        let mounted = !self.mount_point.as_os_str().is_empty();
        one_device || mounted && self.mount_point == other.mount_point
    }

    /// `O_DIRECT` works and is what it says.
    pub fn direct_alignment(&self) -> Option<u32> {
        match self.direct {
            DirectIo::Real { alignment } => Some(alignment),
            _ => None,
        }
    }
}

impl std::fmt::Display for DirectIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DirectIo::Real { alignment } => write!(f, "real, aligned to {}", Bytes(u64::from(*alignment))),
            DirectIo::Buffered => f.write_str("accepted, but it goes through the page cache"),
            DirectIo::Refused(why) => write!(f, "refused: {why}"),
            DirectIo::Unknown => f.write_str("not tried: the path can't be written"),
        }
    }
}

impl std::fmt::Display for TargetDescription {
    /// A block of lines for a person.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FileSystemSpace { size, free, inodes, free_inodes, .. } = self.space;
        let full = 100.0 * self.space.fullness();
        let reserved = size.0.saturating_sub(self.space.usable().0);
        writeln!(f, "path          {}", self.address)?;
        let memory = if self.is_memory() { " (memory: nothing here survives the loss of power)" } else { "" };
        writeln!(f, "file system   {}{memory}", self.file_system)?;
        writeln!(f, "source        {}", self.source)?;
        if self.directory().is_some() {
            writeln!(f, "mounted at    {} ({})", self.mount_point.display(), self.options)?;
        }
        writeln!(f, "device        {}", self.device.as_deref().unwrap_or("none on this machine"))?;
        write!(f, "space         {free} free of {size}, {full:.0} % full")?;
        if reserved > 0 {
            write!(f, ", {} reserved for the system", Bytes(reserved))?;
        }
        writeln!(f)?;
        match (inodes, free_inodes) {
            (Some(all), Some(free)) => writeln!(f, "inodes        {free} free of {all}")?,
            _ => writeln!(f, "inodes        made as needed")?,
        }
        writeln!(f, "writable      {}", if self.writable { "yes" } else { "no" })?;
        writeln!(f, "O_DIRECT      {}", self.direct)?;
        write!(f, "stripe count  {}", self.striping.map_or("no choice here", |_| "can be chosen"))?;
        if let Some(size) = self.stripe_size {
            write!(f, "\nstripe size   {size}")?;
        }
        let lacking = self.capabilities.lacking(&Capabilities::all());
        if !lacking.is_empty() {
            let names: Vec<_> = lacking.iter().map(|capability| capability.name()).collect();
            write!(f, "\nno            {}", names.join(", "))?;
        }
        for (name, value) in &self.facts {
            write!(f, "\n{name:<13} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn space(used: Option<u64>) -> FileSystemSpace {
        let used = used.map(|used| Bytes(used * GIB));
        FileSystemSpace {
            size: Bytes(252 * GIB),
            free: Bytes(70 * GIB),
            used,
            inodes: None,
            free_inodes: None,
        }
    }

    #[test]
    fn what_is_reserved_for_the_system_is_not_used() {
        let space = space(Some(22));
        assert_eq!(space.usable(), Bytes(92 * GIB));
        assert!((space.fullness() - 22.0 / 92.0).abs() < 1e-9, "as df says it");
    }

    #[test]
    fn an_older_description_says_nothing_of_what_is_reserved() {
        assert_eq!(space(None).usable(), Bytes(252 * GIB));
        let older = r#"{"size": "252 GiB", "free": "70 GiB", "inodes": null, "free_inodes": null}"#;
        assert_eq!(serde_json::from_str::<FileSystemSpace>(older).ok(), Some(space(None)));
    }
}
