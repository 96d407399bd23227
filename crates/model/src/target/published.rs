//! Published features of storage systems, from the manuals of current versions. Features that a mount can be
//! tested for are not here: Nilometer measures them.

use super::FileSystemKind as Kind;

/// The published features of systems that share all answers.
pub(super) struct PublishedSystem {
    pub(super) kinds: &'static [Kind],
    /// POSIX, metadata server, RDMA, striping of a file, failover, quota, snapshots, data migration. An empty
    /// text is no answer.
    pub(super) answers: [&'static str; 8],
}

const fn of(kinds: &'static [Kind], answers: [&'static str; 8]) -> PublishedSystem {
    PublishedSystem { kinds, answers }
}

/// Every system with published features.
pub(super) const PUBLISHED: &[PublishedSystem] = &[
    of(
        &[Kind::Ext2, Kind::Ext3, Kind::Ext4],
        ["yes", "none", "no", "by the devices below", "by the devices below", "yes", "no", "no"],
    ),
    of(
        &[Kind::Xfs],
        ["yes", "none", "no", "by the devices below", "by the devices below", "yes", "no", "no"],
    ),
    of(
        &[Kind::Btrfs],
        [
            "yes",
            "none",
            "no",
            "raid0, raid10",
            "raid1, raid10",
            "of subvolumes",
            "yes",
            "balance, device replace",
        ],
    ),
    of(
        &[Kind::Jfs],
        ["yes", "none", "no", "by the devices below", "by the devices below", "yes", "no", "no"],
    ),
    of(
        &[Kind::Zfs],
        ["yes", "none", "no", "over all vdevs", "mirror, raidz", "yes", "yes", "send and receive"],
    ),
    of(&[Kind::Tmpfs, Kind::Ramfs], ["yes", "none", "no", "no", "no", "size of the mount", "no", "no"]),
    of(
        &[Kind::Nfs],
        [
            "close-to-open",
            "the server",
            "yes, where the server has it",
            "with pNFS",
            "as the server's storage",
            "as the server's storage",
            "as the server's storage",
            "no",
        ],
    ),
    of(
        &[Kind::Lustre],
        [
            "yes",
            "MDS with MDTs",
            "yes",
            "yes, each file its own layout",
            "pairs of servers, mirrors of files",
            "yes",
            "of ZFS targets",
            "lfs migrate, HSM",
        ],
    ),
    of(
        &[Kind::BeeGfs],
        [
            "yes",
            "yes, several",
            "yes",
            "yes, by directory",
            "buddy mirrors",
            "yes",
            "no",
            "between targets and pools",
        ],
    ),
    of(
        &[Kind::Gpfs],
        [
            "yes",
            "distributed",
            "yes",
            "blocks over all disks of a pool",
            "replicas, erasure code in GNR",
            "yes",
            "yes",
            "mmrestripefs, policies, AFM",
        ],
    ),
    of(
        &[Kind::GlusterFs],
        [
            "yes",
            "none: names are hashed",
            "no",
            "shards, disperse",
            "replicas, erasure code",
            "yes",
            "on thin LVM only",
            "rebalance, remove-brick",
        ],
    ),
    of(
        &[Kind::MooseFs],
        [
            "nearly",
            "yes, one in the community edition",
            "no",
            "chunks of 64 MiB",
            "copies by goal",
            "yes",
            "yes",
            "storage classes, rebalancing",
        ],
    ),
    of(
        &[Kind::CephFs],
        [
            "yes",
            "MDS",
            "no",
            "yes, by directory and file",
            "replicas, erasure code",
            "yes",
            "yes",
            "pools, balancer",
        ],
    ),
    of(&[Kind::XRootD], ["partly", "redirector", "no", "no", "no", "no", "no", "third-party copies"]),
    of(
        &[Kind::Eos],
        [
            "nearly",
            "MGM with QuarkDB",
            "no",
            "raid layouts",
            "replicas, RAIN",
            "yes",
            "versions",
            "convert, balancer, drain",
        ],
    ),
    of(
        &[Kind::DCache],
        [
            "through NFS 4.1",
            "PnfsManager",
            "no",
            "no",
            "copies by replica manager",
            "yes",
            "no",
            "migration module",
        ],
    ),
    of(&[Kind::OrangeFs], ["nearly", "yes, several", "yes", "yes, by directory", "", "no", "no", ""]),
    of(
        &[Kind::XtreemFs],
        ["yes", "DIR and MRC", "no", "yes, by volume and directory", "replicas", "yes", "yes", "by policies"],
    ),
    of(
        &[Kind::WekaFs],
        ["yes", "distributed", "yes", "yes", "erasure code", "yes", "yes", "tiering to objects"],
    ),
    of(&[Kind::S3], ["no: whole objects", "", "no", "", "", "", "versions of objects", ""]),
    of(
        &[Kind::Hdfs],
        [
            "no: files grow at their ends",
            "the name node",
            "no",
            "blocks, erasure code by directory",
            "copies, erasure code",
            "yes",
            "yes",
            "balancer, mover, distcp",
        ],
    ),
    of(&[Kind::Sshfs], ["partly", "the server", "no", "no", "no", "as the server's storage", "no", "no"]),
];
