//! The file system of a target: a closed list of standard names, derived from the mount table. This is pure;
//! `nilometer_storage` queries the mount itself.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::TargetDescription;

/// The place of a file system's data, as far as its type tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// On block devices of this machine, behind no cache but the kernel's page cache.
    Devices,
    /// On block devices of this machine, behind a cache that the kernel can't report.
    OwnCache,
    /// In the memory of this machine.
    Memory,
    /// On servers of a network.
    Servers,
    /// Behind a process, on a device that machines share, or uncertain.
    Elsewhere,
}

use Placement::{Devices, Elsewhere, Memory, OwnCache, Servers};

macro_rules! file_systems {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $placement:ident, $magic:expr;)*) => {
        /// A kind of file system.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        pub enum FileSystemKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
            /// None of these, or uncertain.
            #[default]
            #[serde(rename = "unknown")]
            Unknown,
        }

        impl FileSystemKind {
            /// All kinds except `Unknown`.
            pub const KNOWN: &'static [FileSystemKind] = &[$(FileSystemKind::$kind),*];

            /// Its name in options, as in `--expect lustre`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FileSystemKind::$kind => $name,)*
                    FileSystemKind::Unknown => "unknown",
                }
            }

            const fn placement(self) -> Placement {
                match self {
                    $(FileSystemKind::$kind => $placement,)*
                    FileSystemKind::Unknown => Elsewhere,
                }
            }

            /// Its magic number in statfs(2); `None` if it is unknown or differs by version.
            const fn magic(self) -> Option<u32> {
                match self {
                    $(FileSystemKind::$kind => $magic,)*
                    FileSystemKind::Unknown => None,
                }
            }
        }
    };
}

/// The magic number of every FUSE mount; it does not identify the file system.
const FUSE: Option<u32> = Some(0x6573_5546);
/// ext2, ext3 and ext4 share one.
const EXT: Option<u32> = Some(0xef53);

file_systems! {
    /// The second extended file system.
    Ext2 = "ext2", Devices, EXT;
    /// The third extended file system.
    Ext3 = "ext3", Devices, EXT;
    /// The fourth extended file system.
    Ext4 = "ext4", Devices, EXT;
    /// XFS.
    Xfs = "xfs", Devices, Some(0x5846_5342);
    /// Btrfs.
    Btrfs = "btrfs", Devices, Some(0x9123_683e);
    /// F2FS, for flash.
    F2fs = "f2fs", Devices, Some(0xf2f5_2010);
    /// JFS.
    Jfs = "jfs", Devices, Some(0x3153_464a);
    /// FAT, as on memory cards.
    Vfat = "vfat", Devices, Some(0x4d44);
    /// exFAT, as on memory cards.
    Exfat = "exfat", Devices, Some(0x2011_bab0);
    /// ZFS, in the kernel or through FUSE: the ARC is a cache of its own.
    Zfs = "zfs", OwnCache, None;
    /// Memory of this machine.
    Tmpfs = "tmpfs", Memory, Some(0x0102_1994);
    /// Memory of this machine, without a limit.
    Ramfs = "ramfs", Memory, Some(0x8584_58f6);
    /// Layers of other file systems, at an unknown place.
    Overlay = "overlay", Elsewhere, Some(0x794c_7630);
    /// An automount point with nothing mounted yet.
    Autofs = "autofs", Elsewhere, Some(0x0187);
    /// NFS of any version.
    Nfs = "nfs", Servers, Some(0x6969);
    /// dCache through NFS 4.1.
    DCache = "dcache", Servers, Some(0x6969);
    /// SMB of any version.
    Smb = "smb", Servers, None;
    /// Lustre.
    Lustre = "lustre", Servers, Some(0x0bd0_0bd0);
    /// `BeeGFS`, once `FhGFS`.
    BeeGfs = "beegfs", Servers, Some(0x1983_0326);
    /// IBM Storage Scale, once GPFS.
    Gpfs = "gpfs", Servers, Some(0x4750_4653);
    /// `GlusterFS`.
    GlusterFs = "glusterfs", Servers, FUSE;
    /// `MooseFS`.
    MooseFs = "moosefs", Servers, FUSE;
    /// `CephFS`, through the kernel or FUSE.
    CephFs = "cephfs", Servers, None;
    /// `XRootD`, through its FUSE client or by URL.
    XRootD = "xrootd", Servers, FUSE;
    /// EOS through its FUSE client.
    Eos = "eos", Servers, FUSE;
    /// `OrangeFS`, once PVFS2.
    OrangeFs = "orangefs", Servers, Some(0x2003_0528);
    /// `XtreemFS`.
    XtreemFs = "xtreemfs", Servers, FUSE;
    /// `WekaFS`.
    WekaFs = "wekafs", Servers, None;
    /// DAOS through dfuse.
    Daos = "daos", Servers, None;
    /// `PanFS`.
    PanFs = "panfs", Servers, Some(0xaad7_aaea);
    /// GFS2, on a device that machines share.
    Gfs2 = "gfs2", Elsewhere, Some(0x0116_1970);
    /// OCFS2, on a device that machines share.
    Ocfs2 = "ocfs2", Elsewhere, Some(0x7461_636f);
    /// SFTP, through sshfs.
    Sshfs = "sshfs", Servers, FUSE;
    /// Directories united by mergerfs.
    Mergerfs = "mergerfs", Elsewhere, FUSE;
    /// A directory of the host of a virtual machine.
    Virtiofs = "virtiofs", Elsewhere, FUSE;
    /// A directory of the host of a virtual machine, or of another server, over 9P.
    NineP = "9p", Elsewhere, Some(0x0102_1997);
    /// Objects, as S3 has them.
    S3 = "s3", Servers, None;
    /// The file system of Hadoop.
    Hdfs = "hdfs", Servers, None;
    /// Some other file system through FUSE.
    Fuse = "fuse", Elsewhere, FUSE;
}

impl FileSystemKind {
    /// The kind of a mount, from its type and source in the mount table.
    pub fn of_mount(file_system: &str, source: &str) -> Self {
        use FileSystemKind as Kind;
        match file_system {
            "nfs" | "nfs4" => Kind::Nfs,
            "cifs" | "smb3" => Kind::Smb,
            "ceph" | "fuse.ceph" | "fuse.ceph-fuse" => Kind::CephFs,
            "beegfs" | "fhgfs" => Kind::BeeGfs,
            "orangefs" | "pvfs2" => Kind::OrangeFs,
            "lustre_lite" => Kind::Lustre,
            "msdos" => Kind::Vfat,
            "fuse.glusterfs" => Kind::GlusterFs,
            "fuse.mfs" | "fuse.moosefs" => Kind::MooseFs,
            "fuse.xrootdfs" => Kind::XRootD,
            "fuse.eosxd" => Kind::Eos,
            "fuse.xtreemfs" => Kind::XtreemFs,
            "fuse.daos" => Kind::Daos,
            "fuse.sshfs" => Kind::Sshfs,
            "fuse.mergerfs" => Kind::Mergerfs,
            "fuse.zfs" => Kind::Zfs,
            "fuse" => Self::of_fuse_source(source),
            // Other FUSE file systems: a block device below tells nothing about the process between.
            other if other.starts_with("fuse.") || other == "fuseblk" => Kind::Fuse,
            other => Self::of_name(other),
        }
    }

    /// FUSE without a subtype: the source is the name that the program gives itself.
    fn of_fuse_source(source: &str) -> Self {
        use FileSystemKind as Kind;
        match source {
            "xrootdfs" => Kind::XRootD,
            mfs if mfs.starts_with("mfs#") => Kind::MooseFs,
            eos if eos.starts_with("eosxd") => Kind::Eos,
            xtreemfs if xtreemfs.starts_with("xtreemfs@") => Kind::XtreemFs,
            _ => Kind::Fuse,
        }
    }

    /// For types equal to a standard name. It skips standard names that no mount table contains, such as
    /// `moosefs`.
    fn of_name(name: &str) -> Self {
        let is_mounted_so = |kind: &&FileSystemKind| kind.magic() != FUSE || **kind == Self::Virtiofs;
        let known = Self::KNOWN.iter().filter(is_mounted_so);
        let invented = [Self::DCache, Self::Smb, Self::CephFs, Self::Daos, Self::S3, Self::Hdfs];
        let mut known = known.filter(|kind| !invented.contains(kind));
        known.find(|kind| kind.name() == name).copied().unwrap_or_default()
    }

    /// Confirms the kind with the magic number of statfs(2). If the mount table and the kernel disagree, the
    /// kind is unknown.
    #[must_use]
    pub fn confirmed_by(self, magic: u32) -> Self {
        match self.magic() {
            Some(known) if known != magic => FileSystemKind::Unknown,
            _ => self,
        }
    }

    /// True if it is certainly on block devices or in the memory of this machine.
    pub fn is_certainly_local(self) -> bool {
        !matches!(self.placement(), Servers | Elsewhere)
    }

    /// True if its data are on servers behind a network.
    pub fn is_on_servers(self) -> bool {
        self.placement() == Servers
    }

    /// True if it keeps an invisible cache, or may be on another machine with one.
    pub fn hides_a_cache(self) -> bool {
        self.placement() != Devices
    }

    /// All names, as a list for messages.
    pub fn names() -> String {
        Self::KNOWN.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for FileSystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no known file system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no known type of file system: {names}", names = FileSystemKind::names())]
pub struct UnknownFileSystem(String);

impl FromStr for FileSystemKind {
    type Err = UnknownFileSystem;

    fn from_str(name: &str) -> Result<Self, UnknownFileSystem> {
        let known = Self::KNOWN.iter().find(|kind| kind.name() == name);
        known.copied().ok_or_else(|| UnknownFileSystem(name.into()))
    }
}

/// Returns true if the data of this file system are in the machine's memory. Nothing on it survives a loss of
/// power, even after a sync. For joined targets one such member is enough.
pub fn is_volatile(file_system: &str) -> bool {
    let mut types = file_system.split(TargetDescription::BETWEEN);
    types.any(|name| matches!(name, "tmpfs" | "ramfs" | "hugetlbfs" | "devtmpfs" | "rootfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of mount tables. The replays of `nilometer_storage` contain the ones seen on real systems.
    const MOUNTS: &[(&str, &str, &str)] = &[
        ("ext4", "/dev/vda", "ext4"),
        ("zfs", "tank/data", "zfs"),
        ("fuse.zfs", "tank", "zfs"),
        ("nfs", "server:/export", "nfs"),
        ("nfs4", "server:/export", "nfs"),
        ("cifs", "//server/share", "smb"),
        ("fhgfs", "fhgfs_nodev", "beegfs"),
        ("beegfs", "beegfs_nodev", "beegfs"),
        ("pvfs2", "tcp://server:3334/orangefs", "orangefs"),
        ("lustre", "10.0.0.1@tcp:/fs", "lustre"),
        ("gpfs", "fs1", "gpfs"),
        ("ceph", "10.0.0.1:6789:/", "cephfs"),
        ("fuse.ceph-fuse", "ceph-fuse", "cephfs"),
        ("fuse.glusterfs", "10.77.0.1:/dist", "glusterfs"),
        ("fuse", "mfs#10.77.0.1:9421", "moosefs"),
        ("fuse", "xrootdfs", "xrootd"),
        ("fuse.eosxd", "eosuser", "eos"),
        ("fuse", "xtreemfs@server/volume", "xtreemfs"),
        ("wekafs", "backend/fs01", "wekafs"),
        ("fuse.sshfs", "user@host:dir", "sshfs"),
        ("virtiofs", "share", "virtiofs"),
        ("fuse.rclone", "remote:", "fuse"),
        ("fuse", "something", "fuse"),
        ("fuseblk", "/dev/sdb1", "fuse"),
        ("moosefs", "x", "unknown"),
        ("smb", "x", "unknown"),
        ("newfs", "/dev/sdb1", "unknown"),
    ];

    #[test]
    fn a_kind_is_told_from_type_and_source() {
        for (file_system, source, expected) in MOUNTS {
            assert_eq!(
                FileSystemKind::of_mount(file_system, source).name(),
                *expected,
                "{file_system} {source}"
            );
        }
    }

    #[test]
    fn what_is_not_certainly_local_is_not_called_so() {
        let local = |name: &str| FileSystemKind::of_mount(name, "x").is_certainly_local();
        for name in ["ext4", "xfs", "btrfs", "jfs", "tmpfs", "zfs"] {
            assert!(local(name), "{name}");
        }
        for name in ["fhgfs", "pvfs2", "virtiofs", "nfs4", "fuseblk", "overlay", "autofs", "newfs", "gfs2"] {
            assert!(!local(name), "{name}");
        }
        assert!(FileSystemKind::Zfs.hides_a_cache() && !FileSystemKind::Xfs.hides_a_cache());
    }

    #[test]
    fn a_magic_number_confirms_or_makes_unknown() {
        assert_eq!(FileSystemKind::Ext4.confirmed_by(0xef53), FileSystemKind::Ext4);
        assert_eq!(FileSystemKind::Ext4.confirmed_by(0x6573_5546), FileSystemKind::Unknown);
        assert_eq!(FileSystemKind::WekaFs.confirmed_by(7), FileSystemKind::WekaFs, "its number is not known");
    }

    #[test]
    fn names_are_read_back_and_others_refused_with_the_list() {
        for kind in FileSystemKind::KNOWN {
            assert_eq!(kind.name().parse(), Ok(*kind));
            let text = serde_json::to_string(kind).expect("plain data");
            assert_eq!(text, format!("\"{kind}\""), "records have the same name");
        }
        let error = "lustr".parse::<FileSystemKind>().expect_err("a typo").to_string();
        assert!(
            error.contains("`lustr`") && error.contains("lustre") && error.contains("moosefs"),
            "{error}"
        );
        assert!("unknown".parse::<FileSystemKind>().is_err(), "nothing can be expected of it");
    }
}
