//! Describes several targets that one recording is striped over as one.

use super::{DirectIo, FileSystemSpace, StorageProfile, TargetAddress, TargetDescription};
use crate::{Bytes, Capabilities};

impl TargetDescription {
    /// The separator between the names of joined targets.
    pub const BETWEEN: &str = " + ";

    /// Joins targets, at least one. The result has the capabilities that all share, and the space of all.
    pub fn joined(members: &[TargetDescription]) -> Self {
        let profiles = members.iter().map(|member| &member.profile);
        // The cache is invisible if that of any member is.
        let most_remote = profiles.clone().find(|profile| !profile.kind.is_certainly_local());
        let kind = most_remote.or(profiles.clone().next()).map(|profile| profile.kind).unwrap_or_default();
        let mut layers = Vec::new();
        for layer in profiles.flat_map(|profile| &profile.layers) {
            if !layers.contains(layer) {
                layers.push(layer.clone());
            }
        }
        TargetDescription {
            address: TargetAddress::Joined(members.iter().map(|member| member.address.clone()).collect()),
            capabilities: capabilities(members),
            file_system: distinct(members.iter().map(|member| &member.file_system)),
            mount_point: std::path::PathBuf::new(),
            source: distinct(members.iter().map(|member| &member.source)),
            options: String::new(),
            device: None,
            space: space(members),
            writable: members.iter().all(|member| member.writable),
            direct: direct(members),
            striping: None,
            stripe_size: None,
            profile: StorageProfile { kind, layers, ..StorageProfile::default() },
            facts: Vec::new(),
        }
    }

    /// True if one recording is striped over several targets.
    pub fn is_joined(&self) -> bool {
        !self.address.members().is_empty()
    }
}

/// The capabilities that all members share.
fn capabilities(members: &[TargetDescription]) -> Capabilities {
    let first = members.first().map(|member| member.capabilities.all_of_them()).unwrap_or_default();
    let of_all =
        |capability: &crate::Capability| members.iter().all(|member| member.capabilities.has(*capability));
    Capabilities::of(&first.into_iter().filter(of_all).collect::<Vec<_>>())
}

/// Each name once, in order.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut told: Vec<&str> = Vec::new();
    for name in names {
        if !told.contains(&name.as_str()) {
            told.push(name);
        }
    }
    told.join(TargetDescription::BETWEEN)
}

/// The total space; members that share a file system count once.
fn space(members: &[TargetDescription]) -> FileSystemSpace {
    let first = |index: usize| !members[..index].iter().any(|other| other.shares_space_with(&members[index]));
    let counted = members.iter().enumerate().filter(|(index, _)| first(*index));
    let spaces: Vec<FileSystemSpace> = counted.map(|(_, member)| member.space).collect();
    FileSystemSpace {
        size: Bytes(spaces.iter().map(|space| space.size.0).sum()),
        free: Bytes(spaces.iter().map(|space| space.free.0).sum()),
        used: spaces.iter().map(|space| Some(space.used?.0)).sum::<Option<u64>>().map(Bytes),
        inodes: spaces.iter().map(|space| space.inodes).sum(),
        free_inodes: spaces.iter().map(|space| space.free_inodes).sum(),
    }
}

/// Direct I/O only if it works on each member, aligned to the largest alignment.
fn direct(members: &[TargetDescription]) -> DirectIo {
    let other = members.iter().find(|member| member.direct_alignment().is_none());
    let alignment = members.iter().filter_map(TargetDescription::direct_alignment).max();
    let real = alignment.map_or(DirectIo::Unknown, |alignment| DirectIo::Real { alignment });
    other.map_or(real, |member| member.direct.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capability;

    fn described(path: &str, file_system: &str, free: u64) -> TargetDescription {
        let text = format!(
            r#"{{"address": "{path}", "file_system": "{file_system}", "mount_point": "{path}", "source": "/dev{path}",
            "options": "rw", "device": null, "writable": true, "direct": {{"real": {{"alignment": 512}}}}, "striping": null,
            "space": {{"size": "8 GiB", "free": "{free} GiB", "inodes": null, "free_inodes": 100}},
            "profile": {{"kind": "{file_system}"}}}}"#
        );
        serde_json::from_str(&text).expect("a description")
    }

    #[test]
    fn several_targets_as_one_can_do_what_each_can_and_have_the_space_of_all() {
        let a = described("/a", "ext4", 3);
        let b = TargetDescription {
            direct: DirectIo::Real { alignment: 4096 },
            capabilities: Capabilities::all().without(&[Capability::Rename]),
            ..described("/b", "ext4", 4)
        };
        let joined = TargetDescription::joined(&[a.clone(), b.clone()]);
        assert_eq!(joined.address.to_string(), "/a + /b");
        assert_eq!((joined.file_system.as_str(), joined.source.as_str()), ("ext4", "/dev/a + /dev/b"));
        assert_eq!(
            (joined.space.free, joined.space.inodes, joined.space.free_inodes),
            (Bytes(7 << 30), None, Some(200))
        );
        assert_eq!(joined.direct, DirectIo::Real { alignment: 4096 });
        assert!(joined.is_joined() && !a.is_joined() && !joined.capabilities.has(Capability::Rename));
        let text = serde_json::to_string(&joined).expect("text");
        assert_eq!(serde_json::from_str::<TargetDescription>(&text).expect("the same"), joined);
    }

    #[test]
    fn one_that_is_memory_or_remote_makes_all_of_it_that() {
        let of = |kinds: [&str; 2]| {
            TargetDescription::joined(&[described("/a", kinds[0], 1), described("/b", kinds[1], 1)])
        };
        assert!(of(["ext4", "tmpfs"]).is_memory() && !of(["ext4", "xfs"]).is_memory());
        assert!(of(["ext4", "nfs"]).is_remote() && !of(["ext4", "xfs"]).is_remote());
        let shared = TargetDescription { mount_point: "/a".into(), ..described("/b", "ext4", 3) };
        let joined = TargetDescription::joined(&[described("/a", "ext4", 3), shared]);
        assert_eq!(joined.space.free, Bytes(3 << 30), "they are on one file system");
        let refused = TargetDescription { direct: DirectIo::Buffered, ..described("/c", "ext4", 3) };
        let joined = TargetDescription::joined(&[described("/a", "ext4", 3), refused]);
        assert_eq!(joined.direct, DirectIo::Buffered);
    }
}
