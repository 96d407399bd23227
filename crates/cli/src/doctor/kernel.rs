//! The kernel's way of packets to their reader: the memory for waiting packets, and the drops so far.

use std::net::{Ipv4Addr, SocketAddr};

use nilometer_intake::transport::{
    Transport,
    udp::{Listening, UdpInlet},
};
use nilometer_model::Bytes;
use nilometer_report::{MachineFinding, Sufficiency, WantedPackets};
use nilometer_storage::network::{
    counters::{NetworkCounters, UDP_LOST},
    kernel_text,
};

/// A ready receiver may have to wait this many seconds for a processor.
const HELD_UP: f64 = 0.02;
/// The kernel counts a packet's whole memory, about twice its data.
const BOOKKEEPING: u64 = 2;
/// Packets may wait this many seconds between the interface and UDP.
const BACKLOG: f64 = 0.005;
const MAX: &str = "net.core.rmem_max";
const QUEUE: &str = "net.core.netdev_max_backlog";

pub(super) fn findings(wanted: WantedPackets) -> Vec<MachineFinding> {
    let needed = needed(wanted);
    let given = given(needed);
    let number = |key: &str| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        kernel_text(path).and_then(|text| text.parse::<u64>().ok())
    };
    let counters = NetworkCounters::now();
    let mut findings = vec![buffer(given, needed)];
    findings.extend(number(MAX).map(|most| limit(most, needed, given)));
    findings.extend(number(QUEUE).map(|most| backlog(most, wanted.packets(BACKLOG))));
    findings.push(dropped(&counters));
    findings.push(squeezed(counters.softnet_squeezed));
    findings
}

/// The memory for packets that come while the receiver waits for a processor.
fn needed(wanted: WantedPackets) -> Bytes {
    Bytes(wanted.packets(HELD_UP) * wanted.packet.0 * BOOKKEEPING)
}

/// The buffer that the kernel gives to this user if asked for `needed`; `None` without sockets.
fn given(needed: Bytes) -> Option<Bytes> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let inlet = UdpInlet::open(&Listening { room: needed, ..Listening::at(at) }).ok()?;
    Some(Bytes(inlet.room()))
}

fn buffer(given: Option<Bytes>, needed: Bytes) -> MachineFinding {
    let Some(given) = given else {
        return MachineFinding::new("socket buffer", Sufficiency::Bad, "can't open a UDP socket");
    };
    let found = format!("the kernel gives this user {given}; 20 ms without a processor need {needed}");
    MachineFinding::holds("socket buffer", given >= needed, found)
        .by("raise net.core.rmem_max, or let the recorder have CAP_NET_ADMIN")
}

/// The kernel doubles this limit for a user without `CAP_NET_ADMIN`, so half of the need is enough.
fn limit(most: u64, needed: Bytes, given: Option<Bytes>) -> MachineFinding {
    let half = needed.0.div_ceil(2);
    let enough = most >= half;
    let found = format!("{most}; a recorder without CAP_NET_ADMIN needs {half}");
    let finding = match (enough, given.is_some_and(|given| given >= needed)) {
        (true, _) => MachineFinding::new(MAX, Sufficiency::Good, found),
        (false, true) => MachineFinding::new(MAX, Sufficiency::Note, found),
        (false, false) => MachineFinding::new(MAX, Sufficiency::Bad, found),
    };
    finding.by(format!("sysctl -w {MAX}={half}"))
}

fn backlog(most: u64, needed: u64) -> MachineFinding {
    let found = format!("{most} packets; 5 ms of them are {needed}");
    MachineFinding::holds(QUEUE, most >= needed, found).by(format!("sysctl -w {QUEUE}={needed}"))
}

/// Earlier drops may be from another time and another program.
fn dropped(counters: &NetworkCounters) -> MachineFinding {
    let counts = UDP_LOST.iter().filter_map(|what| Some((*what, *counters.udp.get(*what)?)));
    let mut lost: Vec<_> =
        counts.filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what} {count}")).collect();
    if counters.softnet_dropped > 0 {
        lost.push(format!("softnet dropped {}", counters.softnet_dropped));
    }
    if lost.is_empty() {
        return MachineFinding::new("dropped", Sufficiency::Good, "nothing since the machine was started");
    }
    MachineFinding::new(
        "dropped",
        Sufficiency::Note,
        format!("since the machine was started, by all sockets: {}", lost.join(", ")),
    )
    .by("nstat -az UdpRcvbufErrors UdpInErrors: look again after a recording")
}

fn squeezed(count: u64) -> MachineFinding {
    let sufficiency = if count == 0 { Sufficiency::Good } else { Sufficiency::Note };
    let found = format!("the kernel stopped {count} times with packets left to take");
    MachineFinding::new("softnet squeezed", sufficiency, found)
        .by("sysctl -w net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000, if it grows while packets come")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::ByteRate;

    #[test]
    fn memory_is_needed_for_twenty_milliseconds() {
        let wanted = WantedPackets { rate: ByteRate(1e9), packet: Bytes(8000) };
        assert_eq!(needed(wanted), Bytes(40_000_000));
        assert_eq!(buffer(Some(Bytes(40_000_000)), needed(wanted)).sufficiency, Sufficiency::Good);
        let short = buffer(Some(Bytes(39_999_999)), needed(wanted));
        assert!(short.sufficiency == Sufficiency::Bad && short.command.is_some());
        assert_eq!(buffer(None, needed(wanted)).sufficiency, Sufficiency::Bad);
    }

    #[test]
    fn a_limit_matters_to_who_can_not_go_beyond_it() {
        let needed = Bytes(1000);
        assert_eq!(limit(500, needed, None).sufficiency, Sufficiency::Good);
        assert_eq!(limit(499, needed, Some(Bytes(1000))).sufficiency, Sufficiency::Note);
        let bad = limit(499, needed, Some(Bytes(998)));
        assert_eq!(
            (bad.sufficiency, bad.command.as_deref()),
            (Sufficiency::Bad, Some("sysctl -w net.core.rmem_max=500"))
        );
    }

    #[test]
    fn what_was_dropped_is_told_and_condemns_nobody() {
        let mut counters = NetworkCounters::default();
        assert_eq!(dropped(&counters).sufficiency, Sufficiency::Good);
        counters.udp.insert("RcvbufErrors".into(), 5);
        counters.softnet_dropped = 6;
        let found = dropped(&counters);
        assert_eq!(found.sufficiency, Sufficiency::Note);
        assert!(found.found.ends_with("RcvbufErrors 5, softnet dropped 6"), "{}", found.found);
        assert_eq!(backlog(1000, 1001).sufficiency, Sufficiency::Bad);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let found = findings(WantedPackets { rate: ByteRate(1.0), packet: Bytes(1000) });
        assert!(found.len() >= 4, "{found:?}");
        assert_eq!(
            found[0].sufficiency,
            Sufficiency::Good,
            "a packet a second fits everywhere: {:?}",
            found[0]
        );
    }
}
