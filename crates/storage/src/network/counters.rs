//! The kernel's counters of packets on their way to a socket: at the interface, on the processors that take
//! packets from there, and in UDP. If packets are missing, the counter that grows shows the place of the
//! loss.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{interfaces, kernel_text};

/// Counters since the machine started, or between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NetworkCounters {
    /// By interface, then by name as in `/sys/class/net/*/statistics`.
    pub interfaces: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// UDP counters of this machine, by name as in `/proc/net/snmp`.
    pub udp: BTreeMap<String, u64>,
    /// Counters of IP fragments, of both versions together, by name as in `/proc/net/snmp`.
    pub ip: BTreeMap<String, u64>,
    /// Packets that processors dropped because too many waited (`/proc/net/softnet_stat`).
    pub softnet_dropped: u64,
    /// Times that processors had to stop with packets left to process.
    pub softnet_squeezed: u64,
}

/// Counters of packets received.
const CAME: [&str; 2] = ["rx_packets", "rx_bytes"];
/// Counters of losses at an interface.
pub const LOST: [&str; 7] = [
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_nohandler",
];
/// Counters of losses in UDP.
pub const UDP_LOST: [&str; 4] = ["RcvbufErrors", "InErrors", "InCsumErrors", "MemErrors"];
/// Counters of losses in IP: packets with missing fragments.
pub const IP_LOST: [&str; 2] = ["ReasmFails", "ReasmTimeout"];

impl NetworkCounters {
    /// Reads the counters now. Counters that the kernel does not report are absent.
    pub fn now() -> Self {
        let (softnet_dropped, softnet_squeezed) =
            softnet(&kernel_text("/proc/net/softnet_stat").unwrap_or_default());
        let versions = SnmpTexts::now();
        NetworkCounters {
            interfaces: interfaces().into_iter().map(|name| (name.clone(), of_interface(&name))).collect(),
            udp: udp_of(&versions),
            ip: ip_of(&versions),
            softnet_dropped,
            softnet_squeezed,
        }
    }

    /// Returns the difference to `earlier`, without interfaces that received nothing.
    #[must_use]
    pub fn since(&self, earlier: &NetworkCounters) -> Self {
        let none = BTreeMap::new();
        let of = |(name, now): (&String, &BTreeMap<&'static str, u64>)| {
            let before = earlier.interfaces.get(name).unwrap_or(&none);
            (name.clone(), difference(now, before))
        };
        let mut interfaces: BTreeMap<_, _> = self.interfaces.iter().map(of).collect();
        interfaces.retain(|_, counts: &mut BTreeMap<_, u64>| counts.values().any(|count| *count > 0));
        NetworkCounters {
            interfaces,
            udp: difference(&self.udp, &earlier.udp),
            ip: difference(&self.ip, &earlier.ip),
            softnet_dropped: self.softnet_dropped.saturating_sub(earlier.softnet_dropped),
            softnet_squeezed: self.softnet_squeezed.saturating_sub(earlier.softnet_squeezed),
        }
    }

    /// Lists all losses with their places; empty if there were none.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for (name, counts) in &self.interfaces {
            let lost = LOST.iter().filter_map(|what| Some((*what, *counts.get(what)?)));
            losses.extend(
                lost.filter(|(_, count)| *count > 0).map(|(what, count)| format!("{name} {what} {count}")),
            );
        }
        if self.softnet_dropped > 0 {
            losses.push(format!("softnet dropped {}", self.softnet_dropped));
        }
        let udp = UDP_LOST.iter().filter_map(|what| Some(("udp", what, *self.udp.get(*what)?)));
        let ip = IP_LOST.iter().filter_map(|what| Some(("ip", what, *self.ip.get(*what)?)));
        let counted = udp.chain(ip).filter(|(_, _, count)| *count > 0);
        losses.extend(counted.map(|(layer, what, count)| format!("{layer} {what} {count}")));
        losses
    }
}

fn difference<K: Ord + Clone>(now: &BTreeMap<K, u64>, before: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let since = |(name, count): (&K, &u64)| {
        let before = before.get(name).copied().unwrap_or(0);
        (name.clone(), count.saturating_sub(before))
    };
    now.iter().map(since).collect()
}

fn of_interface(name: &str) -> BTreeMap<&'static str, u64> {
    let read = |what: &'static str| {
        let count = kernel_text(format!("/sys/class/net/{name}/statistics/{what}"))?.parse().ok()?;
        Some((what, count))
    };
    CAME.into_iter().chain(LOST).filter_map(read).collect()
}

/// Packets the kernel dropped on their way to some UDP socket of this network namespace, though the socket
/// had room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DatagramErrors {
    /// The UDP checksum was wrong (`InCsumErrors`). The socket counts these among its own drops.
    pub checksum: u64,
    /// Fragments are missing (`ReasmFails`), or have not arrived yet: the kernel gives up after 30 s.
    pub incomplete: u64,
}

impl DatagramErrors {
    /// Reads the counters since the machine started. A counter that the kernel does not report is 0.
    pub fn now() -> Self {
        let versions = SnmpTexts::now();
        let sockets =
            ["/proc/net/sockstat", "/proc/net/sockstat6"].map(|path| kernel_text(path).unwrap_or_default());
        let waiting: u64 = sockets.iter().map(|text| fragments_in_use(text)).sum();
        let count = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
        DatagramErrors {
            checksum: count(&udp_of(&versions), "InCsumErrors"),
            incomplete: count(&ip_of(&versions), "ReasmFails") + waiting,
        }
    }

    /// Returns the difference to `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        DatagramErrors {
            checksum: self.checksum.saturating_sub(earlier.checksum),
            incomplete: self.incomplete.saturating_sub(earlier.incomplete),
        }
    }
}

/// The counters of both versions of IP, as the kernel writes them.
struct SnmpTexts {
    four: String,
    six: String,
}

impl SnmpTexts {
    fn now() -> Self {
        let text = |path| kernel_text(path).unwrap_or_default();
        SnmpTexts { four: text("/proc/net/snmp"), six: text("/proc/net/snmp6") }
    }
}

fn udp_of(texts: &SnmpTexts) -> BTreeMap<String, u64> {
    let mut counts = of_layer("Udp:", &texts.four);
    add_version_6("Udp6", &texts.six, &mut counts);
    counts
}

/// Keeps only the IP counters of fragments.
fn ip_of(texts: &SnmpTexts) -> BTreeMap<String, u64> {
    let mut counts = of_layer("Ip:", &texts.four);
    counts.retain(|name, _| name.starts_with("Reasm"));
    add_version_6("Ip6", &texts.six, &mut counts);
    counts
}

/// Adds the counters of version 6, one per line, to those of the same names.
fn add_version_6(prefix: &str, text: &str, counts: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().and_then(|name| name.strip_prefix(prefix));
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        if let (Some(count), Some(value)) = (name.and_then(|name| counts.get_mut(name)), value) {
            *count += value;
        }
    }
}

/// Counts packets of which fragments wait for others: `FRAG: inuse 3 memory 2448`, or `FRAG6:`.
fn fragments_in_use(text: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with("FRAG"));
    let number = line.and_then(|line| line.split_whitespace().nth(2));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Reads the two lines with this prefix: names, and their values.
pub(super) fn of_layer(layer: &str, text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(layer));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return BTreeMap::new() };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Sums lines of hexadecimal numbers, one per processor. The second number counts dropped packets, the third
/// squeezes.
fn softnet(text: &str) -> (u64, u64) {
    let lines = text.lines().map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let mut next = || fields.next().and_then(|field| u64::from_str_radix(field, 16).ok()).unwrap_or(0);
        (next(), next())
    });
    lines.fold((0, 0), |(dropped, squeezed), line| (dropped + line.0, squeezed + line.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let snmp = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors RcvbufErrors\nUdp: 100 1 7 5\nUdpLite: InDatagrams\nUdpLite: 9\n";
        let udp = of_layer("Udp:", snmp);
        assert_eq!((udp["InDatagrams"], udp["RcvbufErrors"], udp.len()), (100, 5, 4));
        let text = "0000ff00 00000010 00000002 0\n00000001 00000001 00000000 0\n";
        assert_eq!(softnet(text), (17, 2));
        assert_eq!(softnet("nonsense\n"), (0, 0));
    }

    #[test]
    fn both_versions_of_ip_are_counted_together() {
        let four = "Ip: InReceives ReasmTimeout ReasmReqds ReasmOKs ReasmFails\nIp: 900 2 30 10 5\n\
                    Udp: InDatagrams InErrors InCsumErrors\nUdp: 100 7 4\n";
        let six = "Ip6ReasmFails\t3\nIp6InReceives 8\nUdp6InCsumErrors                 \t2\nUdpLite6InCsumErrors 50\n";
        let texts = SnmpTexts { four: four.into(), six: six.into() };
        assert_eq!((udp_of(&texts)["InCsumErrors"], udp_of(&texts)["InErrors"]), (6, 7));
        let ip = ip_of(&texts);
        assert_eq!((ip["ReasmFails"], ip["ReasmTimeout"], ip.contains_key("InReceives")), (8, 2, false));
        assert_eq!(fragments_in_use("sockets: used 3\nUDP: inuse 1 mem 0\nFRAG: inuse 4 memory 300\n"), 4);
        assert_eq!(fragments_in_use("UDP6: inuse 1\nFRAG6: inuse 2 memory 0\n"), 2);
    }

    #[test]
    fn what_was_lost_is_named_by_where() {
        let counters = |dropped, errors| NetworkCounters {
            interfaces: [("eth0".to_owned(), [("rx_packets", 100), ("rx_dropped", dropped)].into())].into(),
            udp: [("RcvbufErrors".to_owned(), errors)].into(),
            softnet_dropped: errors,
            ..NetworkCounters::default()
        };
        let since = counters(5, 9).since(&counters(3, 9));
        assert_eq!(since.losses(), ["eth0 rx_dropped 2"]);
        let since = counters(5, 9).since(&counters(5, 2));
        assert_eq!(since.losses(), ["softnet dropped 7", "udp RcvbufErrors 7"]);
        assert!(since.interfaces.is_empty(), "nothing came by it");
    }

    #[test]
    fn this_machine_has_counters() {
        let now = NetworkCounters::now();
        assert!(now.interfaces.contains_key("lo") && now.udp.contains_key("RcvbufErrors"), "{now:?}");
    }
}
