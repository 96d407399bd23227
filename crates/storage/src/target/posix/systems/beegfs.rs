//! `BeeGFS`: its client shows its servers and connections in `/proc/fs/beegfs`.

use std::fs;

use super::{super::tool::Tool, SystemFindings};

pub(super) fn ask(findings: &mut SystemFindings) {
    let clients = fs::read_dir("/proc/fs/beegfs").into_iter().flatten().flatten();
    let mut clients: Vec<_> = clients.map(|entry| entry.path()).collect();
    clients.sort();
    // Nothing shows which of several clients serves a mount, so the code does not guess.
    if let [client] = clients.as_slice() {
        let text = |file: &str| fs::read_to_string(client.join(file)).unwrap_or_default();
        tell(findings, &text("storage_nodes"), &text("meta_nodes"), &text("config"));
    }
    findings.add("version", version());
}

/// The client's module shows its version. The tool prints it and then exits with an error.
fn version() -> Option<String> {
    let module = fs::read_to_string("/sys/module/beegfs/version").ok();
    let tool = || Tool::new("beegfs", &["version"]).said().ok();
    module.or_else(tool).and_then(|text| Some(text.split_whitespace().last()?.to_owned()))
}

fn tell(findings: &mut SystemFindings, storage: &str, metadata: &str, config: &str) {
    let counted = |text: &str| text.lines().filter(|line| line.contains("[ID: ")).count();
    let servers = format!("{} of storage, {} of metadata", counted(storage), counted(metadata));
    findings.add("servers", (counted(storage) > 0).then_some(servers));
    let by = if storage.contains("RDMA: ") { "RDMA" } else { "TCP" };
    findings.add("connections", storage.contains("Connections: ").then_some(by));
    let cache = config.lines().find_map(|line| line.split_once("tuneFileCacheType")?.1.split_once('='));
    findings.add("client cache", cache.map(|(_, kind)| kind.trim().to_owned()));
}

#[cfg(test)]
mod tests {
    use super::{super::super::stripe::recordings::BEEGFS, *};

    /// The content of a client's file in the recording.
    fn file(name: &str) -> &'static str {
        let behind = BEEGFS.split_once(&format!("== {name}\n")).expect("it was recorded").1;
        behind.split("\n== ").next().unwrap_or_default()
    }

    #[test]
    fn replay_of_what_a_client_is_connected_to() {
        let mut findings = SystemFindings::default();
        tell(&mut findings, file("storage_nodes"), file("meta_nodes"), "tuneFileCacheType = buffered");
        let expected = [
            ("servers", "1 of storage, 1 of metadata"),
            ("connections", "TCP"),
            ("client cache", "buffered"),
        ];
        let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(findings.facts, expected);
        let mut nothing = SystemFindings::default();
        tell(&mut nothing, "", "", "");
        assert_eq!(nothing, SystemFindings::default());
    }
}
