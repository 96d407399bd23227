//! Facts that a recognised storage system reports: version, servers, layout, redundancy, client caches.
//! Unreported facts are left out; a failed query is shown with the attempt.

mod beegfs;
mod gluster;
mod local;
mod nfs;
mod paths;

use std::path::Path;

use nilometer_model::{FileSystemKind, StorageProfile, StripeControl, StripeLayout};

use super::{
    recognise::Recognised,
    stripe::{copies_in_words, layout, missing_tool, parts},
    tool::Tool,
};

/// The facts found about a system, in the order of display.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SystemFindings {
    pub(super) facts: Vec<(String, String)>,
    pub(super) layout: Option<StripeLayout>,
    pub(super) redundancy: Option<String>,
}

impl SystemFindings {
    /// Adds a fact, if it has a value.
    fn add(&mut self, name: &str, value: Option<impl Into<String>>) {
        let value = value.map(Into::into).filter(|value: &String| !value.is_empty());
        self.facts.extend(value.map(|value| (name.to_owned(), value)));
    }
}

/// Queries the system of a directory. `control` is the way to query its layouts, if there is one; `given` is
/// the layout of a file that was made there.
pub(super) fn findings(
    found: &Recognised,
    directory: &Path,
    control: Option<StripeControl>,
    given: Option<StripeLayout>,
) -> SystemFindings {
    let mut findings = SystemFindings::default();
    let source = &found.mount.source;
    match found.profile.kind {
        FileSystemKind::Nfs | FileSystemKind::DCache => nfs::ask(&mut findings, &found.mount),
        FileSystemKind::BeeGfs => beegfs::ask(&mut findings),
        FileSystemKind::GlusterFs => gluster::ask(&mut findings, source, directory),
        FileSystemKind::Lustre => ask_lustre(&mut findings, source, directory),
        FileSystemKind::MooseFs => ask_moosefs(&mut findings, source),
        FileSystemKind::CephFs => {
            findings.add("servers", source.split_once(":/").map(|(servers, _)| servers));
        }
        FileSystemKind::XRootD => findings.add("origin", attribute(directory, "xroot.url")),
        FileSystemKind::Sshfs => findings.add("servers", source.split_once(':').map(|(server, _)| server)),
        FileSystemKind::Gpfs => ask_gpfs(&mut findings, directory),
        _ => local::ask(&mut findings, &found.mount, &found.profile),
    }
    paths::ask(&mut findings, &found.profile.layers);
    if let Some(control) = control {
        ask_layout(&mut findings, control, directory, given);
    }
    let missing = missing_tool(found.profile.kind);
    findings.add("not asked", missing.map(|tool| format!("the layout: there is no {tool} in PATH")));
    findings
}

/// Adds the layout of new files in the directory, or the reason that it is unknown. A directory reports the
/// requested layout; if a file got another one, both are added.
fn ask_layout(
    findings: &mut SystemFindings,
    control: StripeControl,
    directory: &Path,
    given: Option<StripeLayout>,
) {
    match layout(control, directory) {
        Ok(asked) => {
            let given = given.unwrap_or_else(|| asked.clone());
            // Values that a file does not report come from the directory.
            let given = given.or(asked.clone());
            findings.add("layout", Some(asked.not_given(&given).join("; ")));
            let copies = given.replicas.map(copies_in_words);
            findings.redundancy = findings.redundancy.take().or(copies);
            findings.layout = Some(given);
        }
        Err(error) => findings.add("not asked", Some(format!("the layout: {error}"))),
    }
}

fn ask_lustre(findings: &mut SystemFindings, source: &str, directory: &Path) {
    let said = |arguments: &[&str]| Tool::new("lfs", arguments).said().ok();
    findings.add("version", said(&["--version"]).and_then(|text| version_in(&text)));
    findings.add("servers", source.rsplit_once(":/").map(|(servers, _)| servers));
    findings.add("layout parts", parts(directory));
    let cached = Tool::new("lctl", &["get_param", "-n", "llite.*.max_read_ahead_mb"]).said().ok();
    let cached =
        cached.and_then(|text| text.lines().next().map(|line| format!("read-ahead of {} MB", line.trim())));
    findings.add("client cache", cached);
}

/// Returns the last word of a text that begins with a digit: `lfs 2.17.0`.
fn version_in(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().rev();
    words.find(|word| word.starts_with(|letter: char| letter.is_ascii_digit())).map(str::to_owned)
}

fn ask_moosefs(findings: &mut SystemFindings, source: &str) {
    findings.add("servers", source.strip_prefix("mfs#").map(|master| format!("master {master}")));
    let version = Tool::new("mfsmount", &["-V"]).said_in_all().ok().and_then(|text| moosefs_version(&text));
    findings.add("version", version.map(|version| format!("client {version}")));
}

/// Finds `MFS version: 3.0.117-1 ; build: 1341` in FUSE's own output.
fn moosefs_version(text: &str) -> Option<String> {
    text.split_once("MFS version: ")?.1.split_whitespace().next().map(str::to_owned)
}

fn ask_gpfs(findings: &mut SystemFindings, directory: &Path) {
    match Tool::new("/usr/lpp/mmfs/bin/mmlsattr", &["-L"]).on(directory).said() {
        Ok(text) => tell_gpfs(findings, &text),
        Err(error) => findings.add("not asked", Some(error.to_string())),
    }
}

/// Parses the output of `mmlsattr -L` for a directory (IBM Storage Scale documentation, "mmlsattr command").
fn tell_gpfs(findings: &mut SystemFindings, text: &str) {
    let value = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key).map(str::trim));
    let copies = value("data replication:").and_then(|value| value.split_whitespace().next());
    findings.redundancy = copies.and_then(|copies| copies.parse().ok()).map(copies_in_words);
    findings.add("pool", value("storage pool name:"));
    findings.add("fileset", value("fileset name:"));
}

/// Returns an extended attribute, if it exists and is text.
fn attribute(path: &Path, name: &str) -> Option<String> {
    let mut value = vec![0; 64 << 10];
    let length = rustix::fs::getxattr(path, name, &mut value).ok()?;
    let text = String::from_utf8_lossy(&value[..length]).trim_end_matches('\0').to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the profile with these findings.
pub(super) fn with_findings(profile: StorageProfile, findings: &SystemFindings) -> StorageProfile {
    StorageProfile { layout: findings.layout.clone(), redundancy: findings.redundancy.clone(), ..profile }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of the documentation: no such system was available.
    #[test]
    fn replay_of_attributes_of_gpfs() {
        let said = "file name:            /gpfs/fs1/f\nmetadata replication: 1 max 2\ndata replication:     2 max 2\n\
                    flags:\nstorage pool name:    data\nfileset name:         root\nsnapshot name:\n";
        let mut findings = SystemFindings::default();
        tell_gpfs(&mut findings, said);
        assert_eq!(findings.redundancy.as_deref(), Some("2 copies"));
        let facts = [("pool", "data"), ("fileset", "root")];
        assert_eq!(findings.facts, facts.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn versions_are_found_among_words() {
        assert_eq!(version_in("lfs 2.17.0\n").as_deref(), Some("2.17.0"));
        let said = "fusermount3 version: 3.14.0\nMFS version: 3.0.117-1 ; build: 1341\n";
        assert_eq!(moosefs_version(said).as_deref(), Some("3.0.117-1"));
        assert_eq!(version_in("no version"), None);
    }
}
