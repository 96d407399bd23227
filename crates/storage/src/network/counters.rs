//! What the kernel counted of packets on their way to a socket: at the interface, on the processors that took them from
//! there, in UDP. Where one of them grows while packets are missing is where they were lost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{interfaces, kernel_text};

/// Counted since the machine was started, or between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NetworkCounters {
    /// By interface, and by name as in `/sys/class/net/*/statistics`.
    pub interfaces: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// By name as in `/proc/net/snmp`, of UDP on this machine.
    pub udp: BTreeMap<String, u64>,
    /// Packets that processors dropped because too many waited, and times that they were stopped with more to do
    /// (`/proc/net/softnet_stat`).
    pub softnet_dropped: u64,
    /// See `softnet_dropped`.
    pub softnet_squeezed: u64,
}

/// What came.
const CAME: [&str; 2] = ["rx_packets", "rx_bytes"];
/// What was lost at an interface.
pub const LOST: [&str; 7] = [
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_nohandler",
];
/// What was lost in UDP.
pub const UDP_LOST: [&str; 4] = ["RcvbufErrors", "InErrors", "InCsumErrors", "MemErrors"];

impl NetworkCounters {
    /// As they are now. What the kernel does not tell is not there.
    pub fn now() -> Self {
        let (softnet_dropped, softnet_squeezed) =
            softnet(&kernel_text("/proc/net/softnet_stat").unwrap_or_default());
        NetworkCounters {
            interfaces: interfaces().into_iter().map(|name| (name.clone(), of_interface(&name))).collect(),
            udp: udp(&kernel_text("/proc/net/snmp").unwrap_or_default()),
            softnet_dropped,
            softnet_squeezed,
        }
    }

    /// What was counted since `earlier`; interfaces by which nothing came are left out.
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
            softnet_dropped: self.softnet_dropped.saturating_sub(earlier.softnet_dropped),
            softnet_squeezed: self.softnet_squeezed.saturating_sub(earlier.softnet_squeezed),
        }
    }

    /// All that was lost on the way, by where; empty if nothing was.
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
        let udp = UDP_LOST.iter().filter_map(|what| Some((what, *self.udp.get(*what)?)));
        losses.extend(udp.filter(|(_, count)| *count > 0).map(|(what, count)| format!("udp {what} {count}")));
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

/// The two lines that begin with `Udp:`: names, and their values.
fn udp(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return BTreeMap::new() };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// A line a processor, in hexadecimal: the second number are packets dropped, the third times squeezed.
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
        let udp = udp(snmp);
        assert_eq!((udp["InDatagrams"], udp["RcvbufErrors"], udp.len()), (100, 5, 4));
        let text = "0000ff00 00000010 00000002 0\n00000001 00000001 00000000 0\n";
        assert_eq!(softnet(text), (17, 2));
        assert_eq!(softnet("nonsense\n"), (0, 0));
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
