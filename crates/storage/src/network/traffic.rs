//! The kernel's counters of traffic: bytes of each interface (`/proc/net/dev`), and segments of TCP sent again
//! (`RetransSegs` in `/proc/net/snmp`, which counts both versions of IP).

use std::collections::BTreeMap;

use nilometer_model::{LinkTraffic, observed::LinkCounters};

use super::{counters::of_layer, kernel_text};
use crate::process::proc_text;

/// The counters of this machine's interfaces and of its TCP connections, since the machine started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficCounters {
    links: BTreeMap<String, LinkCounters>,
    retransmitted: Option<u64>,
}

impl TrafficCounters {
    /// Reads the counters now. Counters that the kernel does not report are absent.
    pub fn now() -> Self {
        let text = |path| kernel_text(path).unwrap_or_default();
        TrafficCounters::of(&text("/proc/net/dev"), &text("/proc/net/snmp"))
    }

    fn of(interfaces: &str, snmp: &str) -> Self {
        let links = proc_text::interfaces(interfaces).map(|(name, counts)| (name.to_owned(), counts));
        let retransmitted = of_layer("Tcp:", snmp).get("RetransSegs").copied();
        TrafficCounters { links: links.collect(), retransmitted }
    }

    /// The traffic of each interface since `earlier`. An interface that is new since then is absent.
    pub fn links_since(&self, earlier: &TrafficCounters) -> Vec<LinkTraffic> {
        let since = |(name, now): (&String, &LinkCounters)| {
            Some(between(name.clone(), *earlier.links.get(name)?, *now))
        };
        self.links.iter().filter_map(since).collect()
    }

    /// Segments sent again since `earlier`; `None` if the kernel does not count them.
    pub fn retransmitted_since(&self, earlier: &TrafficCounters) -> Option<u64> {
        Some(self.retransmitted?.saturating_sub(earlier.retransmitted?))
    }
}

fn between(name: String, before: LinkCounters, now: LinkCounters) -> LinkTraffic {
    LinkTraffic {
        name,
        received_bytes: now.received_bytes.saturating_sub(before.received_bytes),
        sent_bytes: now.sent_bytes.saturating_sub(before.sent_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs |bytes packets\n";

    fn counters(received: u64, sent: u64, again: u64) -> TrafficCounters {
        let line = |name: &str| format!("  {name}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n");
        let snmp = format!("Tcp: ActiveOpens RetransSegs InErrs\nTcp: 9 {again} 3\n");
        TrafficCounters::of(&format!("{HEAD}{}{}", line("lo"), line("eth0")), &snmp)
    }

    #[test]
    fn each_interface_but_the_loopback_has_its_bytes_since_the_earlier_reading() {
        let (before, after) = (counters(100, 20, 5), counters(400, 90, 7));
        let link = LinkTraffic { name: "eth0".into(), received_bytes: 300, sent_bytes: 70 };
        assert_eq!(after.links_since(&before), [link]);
        assert_eq!(after.retransmitted_since(&before), Some(2));
        assert_eq!(after.links_since(&TrafficCounters::default()), [], "nobody knows what was before");
        assert_eq!(TrafficCounters::of(HEAD, "").retransmitted_since(&before), None);
    }

    #[test]
    fn this_kernel_counts_the_segments_that_are_sent_again() {
        let now = TrafficCounters::now();
        assert!(now.retransmitted.is_some(), "{now:?}");
    }
}
