//! NFS: the mount options and `/proc/self/mountstats` show the values that the client negotiated.

use std::path::Path;

use super::{super::mounts::Mount, SystemFindings};

pub(super) fn ask(findings: &mut SystemFindings, mount: &Mount) {
    let statistics = std::fs::read_to_string("/proc/self/mountstats").unwrap_or_default();
    tell(findings, mount, &statistics);
}

fn tell(findings: &mut SystemFindings, mount: &Mount, statistics: &str) {
    let version = option(&mount.options, "vers").or_else(|| option(&mount.options, "nfsvers"));
    findings.add("version", version.map(|version| format!("NFS {version}")));
    let server = mount.source.rsplit_once(":/").map(|(server, _)| server);
    let address = option(&mount.options, "addr").or_else(|| option(&mount.options, "mountaddr"));
    let address = address.filter(|address| Some(*address) != server);
    let named = server.map(|server| match address {
        Some(address) => format!("{server} ({address})"),
        None => server.to_owned(),
    });
    findings.add("servers", named);
    findings.add("pNFS", parallel(statistics, &mount.mount_point));
    let remembered =
        if has(&mount.options, "noac") { "pages; no attributes" } else { "pages, attributes and names" };
    findings.add("client cache", Some(remembered));
}

fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn has(options: &str, name: &str) -> bool {
    options.split(',').any(|option| option == name)
}

/// Returns the layout type that the client uses on this mount, or a note that it uses none; `None` before
/// version 4.1.
fn parallel<'a>(statistics: &'a str, mount_point: &Path) -> Option<&'a str> {
    let escaped = mount_point.to_string_lossy().replace('\\', r"\134").replace(' ', r"\040");
    let ours = format!(" mounted on {escaped} with ");
    let is_ours = |block: &&str| block.lines().next().is_some_and(|line| line.contains(&ours));
    // If several mounts share a place, only the last is visible.
    let block = statistics.split("\ndevice ").filter(is_ours).last()?;
    let said = block.split_once("pnfs=")?.1;
    said.split([',', '\n']).next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of nfsstat(8) and the kernel's `nfs_show_stats`: a replay.
    const STATISTICS: &str = "device proc mounted on /proc with fstype proc\n\
        device server:/export mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1\n\
        \topts:\trw,vers=4.2,rsize=1048576\n\
        \tnfsv4:\tbm0=0xfdffbfff,bm1=0x40f9be3e,acl=0x3,sessions,pnfs=LAYOUT_FLEX_FILES,lease_time=90\n\
        device server:/old mounted on /mnt/old with fstype nfs statvers=1.1\n\
        \topts:\trw,vers=3\n";

    fn facts(point: &str, source: &str, options: &str) -> Vec<(String, String)> {
        let mount = Mount {
            id: 51,
            numbers: "0:50".into(),
            mount_point: point.into(),
            file_system: "nfs4".into(),
            source: source.into(),
            options: options.into(),
        };
        let mut findings = SystemFindings::default();
        tell(&mut findings, &mount, STATISTICS);
        findings.facts
    }

    #[test]
    fn replay_of_what_a_client_negotiated() {
        let options = "rw,vers=4.2,rsize=1048576,proto=tcp,addr=10.0.0.1";
        let expected = [
            ("version", "NFS 4.2"),
            ("servers", "server (10.0.0.1)"),
            ("pNFS", "LAYOUT_FLEX_FILES"),
            ("client cache", "pages, attributes and names"),
        ];
        let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(facts("/mnt/a b", "server:/export", options), expected);
        let old = facts("/mnt/old", "server:/old", "rw,vers=3,noac");
        assert_eq!(old.len(), 3, "no pNFS in version 3: {old:?}");
        assert_eq!(old[2].1, "pages; no attributes");
    }
}
