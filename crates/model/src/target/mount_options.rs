//! Mount options that change the meaning of a figure, in words. This is pure; it skips options that are not
//! in the list.

use super::FileSystemKind;

/// The effect of an option with this name, and with this value if there is one.
struct OptionMeaning {
    name: &'static str,
    value: Option<&'static str>,
    meaning: &'static str,
}

const fn plain(name: &'static str, meaning: &'static str) -> OptionMeaning {
    OptionMeaning { name, value: None, meaning }
}

const fn valued(name: &'static str, value: &'static str, meaning: &'static str) -> OptionMeaning {
    OptionMeaning { name, value: Some(value), meaning }
}

const NO_BARRIERS: &str = "fsync does not flush the caches of disks: synced data may be lost with the power";
const ATTRIBUTES: &str =
    "this client sees changes of others only when its remembered attributes are this old";

/// Options of any file system. A `{}` in a meaning is the option's value.
const MEANINGS: &[OptionMeaning] = &[
    plain("ro", "nothing can be written"),
    plain("sync", "every write waits for the storage: buffered writing is as slow as synced writing"),
    plain("dirsync", "every change of a directory waits for the storage"),
    plain("nobarrier", NO_BARRIERS),
    valued("barrier", "0", NO_BARRIERS),
    valued("barrier", "none", NO_BARRIERS),
    valued("data", "journal", "data are written twice, into the journal first"),
    valued("data", "writeback", "after a crash files may hold old content of their blocks"),
    plain("commit", "unsynced data reach the disk every {} s"),
    plain("discard", "freed blocks are given back to the device at once: removing files takes longer"),
    plain("compress", "data are compressed ({}): rates depend on their content"),
    plain("compress-force", "data are compressed ({}): rates depend on their content"),
    plain("nodatacow", "data are overwritten in place, without checksums"),
    plain("nodatasum", "data have no checksums"),
    plain("dax", "data go past the page cache, as memory"),
    plain("stripe", "the file system knows stripes of {} of its blocks below"),
    plain("sunit", "the file system knows stripes of {} sectors below"),
];

/// Options of network file systems only; elsewhere these names mean something else.
const REMOTE_MEANINGS: &[OptionMeaning] = &[
    plain("noac", "attributes are not remembered, and every write waits for the server"),
    plain("nocto", "opening a file does not check it at the server: this client sees changes of others late"),
    plain("actimeo", ATTRIBUTES),
    plain("acregmin", ATTRIBUTES),
    plain("acregmax", ATTRIBUTES),
    plain("acdirmax", ATTRIBUTES),
    plain("actime", ATTRIBUTES),
    valued("lookupcache", "none", "every look-up of a name asks the server: many small files are slow"),
    valued("lookupcache", "positive", "every look-up of a missing name asks the server"),
    valued("lookupcache", "pos", "every look-up of a missing name asks the server"),
    plain("nconnect", "{} connections to the server: one stream has more than one connection can carry"),
    plain("max_connect", "up to {} connections to addresses of the server"),
    plain("rsize", "reads go to the server in requests of {} B at most"),
    plain("wsize", "writes go to the server in requests of {} B at most"),
    plain("soft", "a server that is slow makes operations fail, and data may be lost without a word"),
    plain("softerr", "a server that is slow makes operations fail, and data may be lost without a word"),
    plain("fsc", "a local disk keeps data that were read: cold reads may not be cold"),
    valued("local_lock", "all", "locks hold on this machine only"),
    plain("nolock", "locks hold on this machine only"),
    plain("localflock", "locks hold on this machine only"),
    plain("noflock", "there are no locks"),
    valued("proto", "rdma", "over RDMA"),
    valued("proto", "udp", "over UDP: lost packets cost whole requests"),
    valued("sec", "krb5i", "requests are signed, which costs processor time"),
    valued("sec", "krb5p", "requests are encrypted, which costs processor time"),
    valued("cache", "none", "nothing is remembered: every read and write is the server's"),
    valued("cache", "loose", "the client remembers data although others may have changed them"),
    plain("seal", "requests are encrypted, which costs processor time"),
    plain("checksum", "network transfers have checksums, which cost processor time"),
];

/// The effects of mount options on measurements: each option as written, and its meaning.
pub fn option_meanings(kind: FileSystemKind, options: &str) -> Vec<(String, String)> {
    let remote: &[OptionMeaning] = if kind.is_certainly_local() { &[] } else { REMOTE_MEANINGS };
    let mut found: Vec<(String, String)> = Vec::new();
    for option in options.split(',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let is_it = |meaning: &&OptionMeaning| {
            meaning.name == name && meaning.value.is_none_or(|expected| expected == value)
        };
        let known = MEANINGS.iter().chain(remote).find(is_it);
        // The table lists options of the mount and of the file system, some of them twice.
        if let Some(meaning) = known.filter(|_| found.iter().all(|(other, _)| other != option)) {
            found.push((option.into(), meaning.meaning.replace("{}", value)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: FileSystemKind, options: &str) -> Vec<String> {
        option_meanings(kind, options)
            .into_iter()
            .map(|(option, meaning)| format!("{option}: {meaning}"))
            .collect()
    }

    #[test]
    fn options_that_change_a_figure_are_said_in_words() {
        let local = said(FileSystemKind::Ext4, "rw,relatime,sync,nobarrier,stripe=128");
        let begins: Vec<_> = local.iter().map(|said| said.split(':').next().unwrap_or_default()).collect();
        assert_eq!(begins, ["sync", "nobarrier", "stripe=128"]);
        assert!(
            local[1].contains("lost with the power") && local[2].contains("128 of its blocks"),
            "{local:?}"
        );
        assert_eq!(said(FileSystemKind::Ext4, "barrier=0").len(), 1);
        assert!(said(FileSystemKind::Ext4, "rw,barrier=1,noatime").is_empty(), "what is usual");
    }

    #[test]
    fn options_of_servers_mean_nothing_elsewhere() {
        let options = "rw,vers=3,rsize=1048576,wsize=1048576,noac,nconnect=4,lookupcache=none,actimeo=60,rw";
        assert_eq!(said(FileSystemKind::Nfs, options).len(), 6);
        assert!(said(FileSystemKind::Nfs, options).iter().any(|said| said.contains("4 connections")));
        assert!(said(FileSystemKind::Xfs, options).is_empty());
        assert!(!said(FileSystemKind::Unknown, options).is_empty(), "it may be one of a server");
    }
}
