//! The links of this machine to others, from its kernel.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use nilometer_model::{BondMember, ByteRate, Bytes, LinkBond, NetworkLink};

use super::{interfaces, kernel_text};

/// Returns the kernel's folder of an interface.
pub fn interface_folder(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

/// Returns true if the interface receives packets from other machines.
pub fn is_up(name: &str) -> bool {
    let is = |what: &str| kernel_text(interface_folder(name).join(what));
    // ARPHRD_ETHER and its like; loopback is 772.
    is("operstate").as_deref() == Some("up") && is("type").as_deref() != Some("772")
}

/// Returns the output of `ethtool`, which changes nothing; `None` if it is not installed or reports an error.
pub fn ethtool(option: &str, name: &str) -> Option<String> {
    let output = Command::new("ethtool").arg(option).arg(name).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns all links that are up, except members of bonds, ordered by name. Empty if `/sys` shows another
/// network, as in a container that sees its host's.
pub fn links() -> Vec<NetworkLink> {
    names_up().iter().map(|name| link(name)).collect()
}

/// Does the same from the kernel's files alone, without `ethtool`.
pub fn links_by_kernel() -> Vec<NetworkLink> {
    names_up().iter().map(|name| link_by_kernel(name)).collect()
}

fn names_up() -> Vec<String> {
    let ours = kernel_text("/proc/self/net/dev").unwrap_or_default();
    if device_names(&ours) != interfaces() {
        return Vec::new();
    }
    interfaces().into_iter().filter(|name| is_up(name) && !is_member(name)).collect()
}

/// Returns the sorted names in `/proc/net/dev`, which shows the network of this process.
fn device_names(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = lines.map(|(name, _)| name.trim().to_owned()).collect();
    names.sort();
    names
}

fn is_member(name: &str) -> bool {
    interface_folder(name).join("bonding_slave").exists()
}

/// Returns the link of this name.
pub fn link(name: &str) -> NetworkLink {
    let offloads = ethtool("-k", name).map(|said| offloads(&said));
    NetworkLink { offloads, ..link_by_kernel(name) }
}

fn link_by_kernel(name: &str) -> NetworkLink {
    let folder = interface_folder(name);
    let bond = bond(name);
    let members: Vec<&str> = bond.iter().flat_map(|bond| &bond.members).map(|of| of.name.as_str()).collect();
    let is_device = |name: &str| interface_folder(name).join("device").exists();
    NetworkLink {
        name: name.into(),
        is_card: is_device(name) || !members.is_empty() && members.iter().all(|member| is_device(member)),
        speed: speed(name),
        mtu: kernel_text(folder.join("mtu")).and_then(|text| text.parse().ok()).map(Bytes),
        offloads: None,
        bond,
    }
}

/// Reads the speed. The kernel reports -1 if a driver does not know it.
fn speed(name: &str) -> Option<ByteRate> {
    let megabits = kernel_text(interface_folder(name).join("speed"))?.parse::<i64>().ok()?;
    (megabits > 0).then_some(ByteRate(megabits as f64 * 125e3))
}

/// Returns the members of a bond, and its mode (Documentation/networking/bonding.rst).
fn bond(name: &str) -> Option<LinkBond> {
    let bonding = interface_folder(name).join("bonding");
    let mode = kernel_text(bonding.join("mode"))?;
    let mut members: Vec<String> =
        kernel_text(bonding.join("slaves"))?.split_whitespace().map(str::to_owned).collect();
    members.sort_unstable();
    let members = members.into_iter().map(|name| BondMember {
        is_up: kernel_text(interface_folder(&name).join("operstate")).as_deref() == Some("up"),
        speed: speed(&name),
        name,
    });
    Some(LinkBond { mode: first_word(&mode), members: members.collect() })
}

/// Returns the mode's name from `802.3ad 4`; the number follows it.
fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Names in the output of `ethtool -k`, with the short words that set them.
const OFFLOADS: [(&str, &str); 6] = [
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
    ("large-receive-offload", "lro"),
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
];

/// Returns the short words of the offloads that are on in the output of `ethtool -k`.
pub fn offloads(said: &str) -> Vec<String> {
    let is_on = |feature: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(feature)?.strip_prefix(':'));
        line.is_some_and(|state| state.trim().starts_with("on"))
    };
    OFFLOADS.into_iter().filter(|(feature, _)| is_on(feature)).map(|(_, short)| short.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_that_are_on_are_told_by_their_short_words() {
        let said = "Features for eth0:\nrx-checksumming: on [fixed]\ntcp-segmentation-offload: on\n\
                    \ttx-tcp-segmentation: on\ngeneric-receive-offload: off\n";
        assert_eq!(offloads(said), ["tso", "rx"]);
        assert!(offloads("nothing of it").is_empty());
        assert_eq!(first_word("802.3ad 4"), "802.3ad");
    }

    #[test]
    fn the_devices_of_this_network_are_known_by_name() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes    packets\n  eth0: 1 2 3\n    lo: 4 5 6\n";
        assert_eq!(device_names(text), ["eth0", "lo"]);
        let ours = kernel_text("/proc/self/net/dev").expect("it is there");
        assert_eq!(device_names(&ours), interfaces(), "/sys is of the same network");
    }

    #[test]
    fn the_links_of_this_machine_are_those_that_are_up() {
        let found = links();
        assert!(found.iter().all(|link| link.name != "lo"), "{found:?}");
        assert!(found.iter().all(|link| link.mtu.is_some_and(|mtu| mtu.0 >= 68)), "{found:?}");
    }
}
