//! The description of a target: found once before the run, and kept in the record.

mod address;
mod capabilities;
mod chosen_stripes;
mod description_rows;
mod engine_trial;
mod expected;
mod feature;
mod joined;
mod kind;
mod layer;
mod mount_options;
mod pcie_link;
mod published;
mod url;

pub use address::{RunHandle, TargetAddress, TargetAddressError};
pub use capabilities::{Capabilities, Capability};
pub use chosen_stripes::StripesRefused;
pub use description_rows::DescriptionRow;
pub use engine_trial::{EngineTrial, TriedEngine};
pub use expected::{NotExpected, check_expected, check_expected_count};
pub use feature::{FeatureBasis, FeatureFinding, StorageFeature, published_features};
pub use kind::{FileSystemKind, UnknownFileSystem, is_volatile};
pub use layer::{BlockLayer, BlockLayerKind};
pub use mount_options::option_meanings;
pub use pcie_link::PcieLink;
pub use url::{TargetUrl, TargetUrlError, UrlScheme};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Bytes, EngineKind};
use layer::hide_a_cache;

/// The description of a storage system. Code decides by its fields; information for people only is in
/// `facts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetDescription {
    /// Its address; a directory is without symlinks.
    #[serde(alias = "path")]
    pub address: TargetAddress,
    /// Its capabilities.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The type in the mount table, such as `ext4`, `nfs4` or `fuse.glusterfs`. Storage without a mount has a
    /// type of its own.
    pub file_system: String,
    /// The mount point; empty if it is not mounted.
    pub mount_point: PathBuf,
    /// The mounted device, server and path, or cluster.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// The block device in `/sys/class/block`, if there is one.
    pub device: Option<String>,
    /// Size and free space.
    pub space: FileSystemSpace,
    /// True if the path is writable.
    pub writable: bool,
    /// The behaviour of `O_DIRECT`.
    pub direct: DirectIo,
    /// The way to choose the layout of files, if there is one.
    pub striping: Option<StripeControl>,
    /// The stripe size of its files on storage devices, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_size: Option<Bytes>,
    /// The storage that Nilometer recognised.
    #[serde(default)]
    pub profile: StorageProfile,
    /// More facts about it: name and value.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
}

/// The storage that Nilometer recognised at a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StorageProfile {
    /// The file system, by its standard name.
    #[serde(default)]
    pub kind: FileSystemKind,
    /// The block devices of this machine below it: one tree each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<BlockLayer>,
    /// The layout of new files, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<StripeLayout>,
    /// Protection against the loss of a part, in words: `2 copies`, `erasure code 4+2`, `none`. `None` means
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<String>,
    /// The feature table's answers, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<FeatureFinding>,
    /// The trial of engines. `None` if Nilometer had no reason for one, or could not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engines: Option<EngineTrial>,
}

impl StorageProfile {
    /// The finding about a feature.
    pub fn finding(&self, feature: StorageFeature) -> Option<&FeatureFinding> {
        self.features.iter().find(|finding| finding.feature == feature)
    }
}

/// The distribution of a target's files over its storage devices. A field that is `None` leaves it open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StripeLayout {
    /// Number of storage devices for each file.
    pub stripe_count: Option<u32>,
    /// Bytes written to a device before the next one.
    pub stripe_size: Option<Bytes>,
    /// The pool of the devices.
    pub pool: Option<String>,
    /// Number of copies of all data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
}

impl StripeLayout {
    /// The parts of this layout that `given` lacks, each as `stripe count 8 requested, 4 given`.
    pub fn not_given(&self, given: &StripeLayout) -> Vec<String> {
        let text = |number: Option<u32>| number.map(|number| number.to_string());
        let size = |layout: &StripeLayout| layout.stripe_size.map(|size| size.to_string());
        let compared = [
            ("stripe count", text(self.stripe_count), text(given.stripe_count)),
            ("stripe size", size(self), size(given)),
            ("pool", self.pool.clone(), given.pool.clone()),
            ("number of copies", text(self.replicas), text(given.replicas)),
        ];
        let mut differing = Vec::new();
        for (name, asked, given) in compared {
            if let Some(asked) = asked.filter(|asked| Some(asked) != given.as_ref()) {
                differing.push(format!(
                    "{name} {asked} requested, {} given",
                    given.as_deref().unwrap_or("an unknown one")
                ));
            }
        }
        differing
    }
}

impl std::fmt::Display for StripeLayout {
    /// `stripe count 4 of 1 MiB, 2 copies, pool flash`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stripes = match (self.stripe_count, self.stripe_size) {
            (Some(count), Some(size)) => Some(format!("stripe count {count} of {size}")),
            (Some(count), None) => Some(format!("stripe count {count}")),
            (None, Some(size)) => Some(format!("stripes of {size}")),
            (None, None) => None,
        };
        let replicas = self.replicas.map(|replicas| format!("{replicas} {}", copies(replicas)));
        let pool = self.pool.as_ref().map(|pool| format!("pool {pool}"));
        let parts: Vec<String> = [stripes, replicas, pool].into_iter().flatten().collect();
        f.write_str(&if parts.is_empty() { "nothing is said".into() } else { parts.join(", ") })
    }
}

/// `copy` for one.
fn copies(number: u32) -> &'static str {
    if number == 1 { "copy" } else { "copies" }
}

impl StripeLayout {
    /// Fills open fields from `other`.
    #[must_use]
    pub fn or(self, other: StripeLayout) -> Self {
        StripeLayout {
            stripe_count: self.stripe_count.or(other.stripe_count),
            stripe_size: self.stripe_size.or(other.stripe_size),
            pool: self.pool.or(other.pool),
            replicas: self.replicas.or(other.replicas),
        }
    }
}

/// The way in which a file system lets you choose the layout of files: how many storage devices a file is
/// spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StripeControl {
    /// `lfs setstripe` (Lustre manual, "Managing File Layout").
    Lustre,
    /// `beegfs-ctl --setpattern` (`BeeGFS` 7 documentation, "Striping").
    BeeGfs,
    /// `beegfs entry set` (`BeeGFS` 8 documentation, "Striping").
    #[serde(rename = "beegfs_8")]
    BeeGfs8,
    /// `mfssetgoal` (mfsgoal(1)): copies only.
    MooseFs,
    /// The attribute `ceph.dir.layout.stripe_count` (Ceph documentation, "File layouts").
    CephFs,
    /// Parameters of the creation of a file (HDFS documentation, "`WebHDFS` REST API"): copies, and the size
    /// of blocks.
    Hdfs,
    /// `eos attr set sys.forced.*` (EOS documentation, "Space layouts").
    Eos,
    /// `xtfsutil` (`XtreemFS` user guide, "Changing Striping Policies").
    #[serde(rename = "xtreemfs")]
    XtreemFs,
}

impl StripeControl {
    /// True if you can choose the stripe count.
    pub fn has_stripe_count(self) -> bool {
        !matches!(self, StripeControl::MooseFs | StripeControl::Hdfs)
    }

    /// The parts of a layout that you can choose there.
    #[must_use]
    pub fn choosable(self, layout: &StripeLayout) -> StripeLayout {
        use StripeControl as Control;
        let StripeLayout { stripe_count, stripe_size, pool, replicas } = layout.clone();
        let has_pools = !matches!(self, Control::MooseFs | Control::Hdfs | Control::XtreemFs);
        StripeLayout {
            stripe_count: stripe_count.filter(|_| self.has_stripe_count()),
            stripe_size: stripe_size.filter(|_| self != Control::MooseFs),
            pool: pool.filter(|_| has_pools),
            replicas: replicas.filter(|_| self != Control::CephFs),
        }
    }
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemSpace {
    /// Total space, including the part reserved for the system.
    pub size: Bytes,
    /// Free for this user.
    pub free: Bytes,
    /// Used space: neither free nor reserved. `None` if the storage does not report it.
    #[serde(default)]
    pub used: Option<Bytes>,
    /// Total inodes; `None` if the file system makes them as needed.
    pub inodes: Option<u64>,
    /// Inodes free.
    pub free_inodes: Option<u64>,
}

impl FileSystemSpace {
    /// The space that this user's files could take if nothing else were there.
    ///
    /// It leaves out the space reserved for the system, which file systems such as ext4 keep back. It is the
    /// whole in the percentage of `df`.
    pub fn usable(&self) -> Bytes {
        self.used.map_or(self.size, |used| Bytes(used.0 + self.free.0))
    }

    /// The used share of the usable space, as in `df`: 0 to 1.
    pub fn fullness(&self) -> f64 {
        1.0 - self.free.0 as f64 / self.usable().0.max(1) as f64
    }
}

/// The behaviour of `O_DIRECT` here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectIo {
    /// It bypasses the page cache.
    Real {
        /// Memory and file offsets must be multiples of this many bytes.
        alignment: u32,
    },
    /// The file system accepts it but uses the page cache all the same.
    Buffered,
    /// The file system refuses it.
    Refused(String),
    /// Unknown: the path is not writable, so Nilometer tried nothing.
    Unknown,
}

impl TargetDescription {
    /// The fact with the reason why the path is not writable.
    pub const UNWRITABLE: &str = "not writable";

    /// The reason why the path is not writable, in brackets with a leading space; empty if there is no such
    /// fact.
    pub fn why_not_written(&self) -> String {
        let said = self.facts.iter().find(|(name, _)| name == Self::UNWRITABLE);
        said.map(|(_, why)| format!(" ({why})")).unwrap_or_default()
    }

    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.address.directory()
    }

    /// True if it is on some storage system: every target except `null:` is.
    pub fn is_on_storage(&self) -> bool {
        self.address != TargetAddress::Null
    }

    /// True if data persist here after writing.
    pub fn keeps(&self) -> bool {
        self.capabilities.has(Capability::Keep)
    }

    /// True if data stay in the memory of this machine: nothing survives a loss of power.
    pub fn is_memory(&self) -> bool {
        is_volatile(&self.file_system)
    }

    /// True if a server or a process beyond this kernel may keep an invisible cache. Every file system is
    /// such unless it is certainly local.
    pub fn is_remote(&self) -> bool {
        !self.profile.kind.is_certainly_local() && !self.is_memory()
    }

    /// True if it is on another machine behind a network: on servers, by its type, and not on this machine.
    pub fn is_behind_network(&self) -> bool {
        let address = self.address.to_string();
        let host = |place: &str| place.split_once("://").map_or(place, |(_, rest)| rest).to_owned();
        let is_here = |place: &str| ["localhost", "127."].iter().any(|here| host(place).starts_with(here));
        self.profile.kind.is_on_servers() && !is_here(&self.source) && !is_here(&address)
    }

    /// True if there is another, invisible cache beyond the page cache: in memory, on a server, or below one
    /// of its block devices.
    pub fn has_a_cache_of_its_own(&self) -> bool {
        let kind = self.profile.kind;
        self.is_memory() || kind.hides_a_cache() || hide_a_cache(&self.profile.layers)
    }

    /// The kind, unless the type in the mount table already tells it.
    fn recognised(&self) -> String {
        match self.profile.kind {
            _ if self.directory().is_none() || self.is_memory() => String::new(),
            FileSystemKind::Unknown => " (not recognised: taken for remote)".into(),
            kind if kind.name() == self.file_system => String::new(),
            kind => format!(" ({kind})"),
        }
    }

    /// True if writing here also takes free space there: both are on one file system, as far as this machine
    /// can tell.
    pub fn shares_space_with(&self, other: &TargetDescription) -> bool {
        let one_device = self.device.is_some() && self.device == other.device;
        let mounted = !self.mount_point.as_os_str().is_empty();
        let one_server = self.address.url().is_some() && self.source == other.source;
        one_device || one_server || mounted && self.mount_point == other.mount_point
    }

    /// The engine for several operations in flight: `io_uring`, unless a trial here spoke against it.
    pub fn deep_engine(&self) -> EngineKind {
        self.profile.engines.as_ref().map_or(EngineKind::IoUring, EngineTrial::suited)
    }

    /// The alignment for `O_DIRECT` if it really bypasses the page cache; else `None`.
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
    fn what_is_not_certainly_local_proves_nothing_by_its_page_cache() {
        let kept = |file_system: &str, kind: &str| {
            let text = format!(
                r#"{{"address": "/data", "file_system": "{file_system}", "mount_point": "/data", "source": "x",
                "options": "rw", "device": null, "writable": true, "direct": "unknown", "striping": null,
                "space": {{"size": "1 GiB", "free": "1 GiB", "inodes": null, "free_inodes": null}}{kind}}}"#
            );
            serde_json::from_str::<TargetDescription>(&text).expect("a description")
        };
        for file_system in ["fhgfs", "pvfs2", "virtiofs", "nfs4", "fuse.sshfs", "newfs"] {
            let kind = FileSystemKind::of_mount(file_system, "x");
            let found = kept(file_system, &format!(r#", "profile": {{"kind": "{kind}"}}"#));
            assert!(found.is_remote() && found.has_a_cache_of_its_own(), "{file_system}");
            assert!(kept(file_system, "").is_remote(), "{file_system}, described before kinds were told");
        }
        let on_servers = kept("nfs4", r#", "profile": {"kind": "nfs"}"#);
        assert!(on_servers.is_behind_network());
        let of_this_machine = TargetDescription { source: "127.0.0.1:/export".into(), ..on_servers };
        assert!(!of_this_machine.is_behind_network() && of_this_machine.is_remote());
        assert!(!kept("virtiofs", r#", "profile": {"kind": "virtiofs"}"#).is_behind_network());
        let local = kept("xfs", r#", "profile": {"kind": "xfs"}"#);
        assert!(!local.is_remote() && !local.has_a_cache_of_its_own());
        let on_a_file = r#", "profile": {"kind": "xfs", "layers": [{"name": "dm-0", "kind": "partition", "below":
            [{"name": "loop0", "kind": {"loop": {"file": "/img"}}}]}]}"#;
        assert!(kept("xfs", on_a_file).has_a_cache_of_its_own());
    }

    #[test]
    fn targets_that_are_not_what_is_expected_are_refused() {
        let found = |path: &str, kind: FileSystemKind| TargetDescription {
            address: std::path::Path::new(path).into(),
            capabilities: Capabilities::all(),
            file_system: kind.name().into(),
            mount_point: "/".into(),
            source: "/dev/vda".into(),
            options: "rw".into(),
            device: None,
            space: space(None),
            writable: true,
            direct: DirectIo::Unknown,
            striping: None,
            stripe_size: None,
            profile: StorageProfile { kind, ..StorageProfile::default() },
            facts: Vec::new(),
        };
        let targets = [found("/a", FileSystemKind::Xfs), found("/b", FileSystemKind::Ext4)];
        assert_eq!(check_expected(&targets, &[]), Ok(()));
        assert_eq!(check_expected(&targets, &[FileSystemKind::Xfs, FileSystemKind::Ext4]), Ok(()));
        assert_eq!(check_expected(&targets[..1], &[FileSystemKind::Xfs]), Ok(()));
        let error = check_expected(&targets, &[FileSystemKind::Xfs]).expect_err("/b is none").to_string();
        let parts = [
            "/b: is on ext4 (ext4 of /dev/vda, mounted at /)",
            "not on the expected xfs",
            "lustre",
            "mount it",
        ];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        let error = check_expected(&targets, &[FileSystemKind::Xfs; 3]).expect_err("too many").to_string();
        assert!(error.contains("3 types") && error.contains("2 targets"), "{error}");
    }

    #[test]
    fn all_free_space_is_usable_if_the_storage_does_not_say_what_is_taken() {
        assert_eq!(space(None).usable(), Bytes(252 * GIB));
    }
}
