//! The kernel's way of packets to their reader: the memory for waiting packets, and the drops so far.

use std::net::{Ipv4Addr, SocketAddr};

use nilometer_intake::transport::{
    Transport,
    udp::{Listening, UdpInlet},
};
use nilometer_model::Bytes;

use super::{Finding, Verdict, Wish};
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

pub(super) fn findings(wish: Wish) -> Vec<Finding> {
    let needed = needed(wish);
    let given = given(needed);
    let number = |key: &str| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        kernel_text(path).and_then(|text| text.parse::<u64>().ok())
    };
    let counters = NetworkCounters::now();
    let mut findings = vec![buffer(given, needed)];
    findings.extend(number(MAX).map(|most| limit(most, needed, given)));
    findings.extend(number(QUEUE).map(|most| backlog(most, wish.packets(BACKLOG))));
    findings.push(dropped(&counters));
    findings.push(squeezed(counters.softnet_squeezed));
    findings
}

/// The memory for packets that come while the receiver waits for a processor.
fn needed(wish: Wish) -> Bytes {
    Bytes(wish.packets(HELD_UP) * wish.packet.0 * BOOKKEEPING)
}

/// The buffer that the kernel gives to this user if asked for `needed`; `None` without sockets.
fn given(needed: Bytes) -> Option<Bytes> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let inlet = UdpInlet::open(&Listening { room: needed, ..Listening::at(at) }).ok()?;
    Some(Bytes(inlet.room()))
}

fn buffer(given: Option<Bytes>, needed: Bytes) -> Finding {
    let Some(given) = given else {
        return Finding::new("socket buffer", Verdict::Bad, "can't open a UDP socket");
    };
    let found = format!("the kernel gives this user {given}; 20 ms without a processor need {needed}");
    Finding::holds("socket buffer", given >= needed, found)
        .by("raise net.core.rmem_max, or let the recorder have CAP_NET_ADMIN")
}

/// The kernel doubles this limit for a user without `CAP_NET_ADMIN`, so half of the need is enough.
fn limit(most: u64, needed: Bytes, given: Option<Bytes>) -> Finding {
    let half = needed.0.div_ceil(2);
    let enough = most >= half;
    let found = format!("{most}; a recorder without CAP_NET_ADMIN needs {half}");
    let finding = match (enough, given.is_some_and(|given| given >= needed)) {
        (true, _) => Finding::new(MAX, Verdict::Good, found),
        (false, true) => Finding::new(MAX, Verdict::Note, found),
        (false, false) => Finding::new(MAX, Verdict::Bad, found),
    };
    finding.by(format!("sysctl -w {MAX}={half}"))
}

fn backlog(most: u64, needed: u64) -> Finding {
    let found = format!("{most} packets; 5 ms of them are {needed}");
    Finding::holds(QUEUE, most >= needed, found).by(format!("sysctl -w {QUEUE}={needed}"))
}

/// Earlier drops may be from another time and another program.
fn dropped(counters: &NetworkCounters) -> Finding {
    let counts = UDP_LOST.iter().filter_map(|what| Some((*what, *counters.udp.get(*what)?)));
    let mut lost: Vec<_> =
        counts.filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what} {count}")).collect();
    if counters.softnet_dropped > 0 {
        lost.push(format!("softnet dropped {}", counters.softnet_dropped));
    }
    if lost.is_empty() {
        return Finding::new("dropped", Verdict::Good, "nothing since the machine was started");
    }
    Finding::new(
        "dropped",
        Verdict::Note,
        format!("since the machine was started, by all sockets: {}", lost.join(", ")),
    )
    .by("nstat -az UdpRcvbufErrors UdpInErrors: look again after a recording")
}

fn squeezed(count: u64) -> Finding {
    let verdict = if count == 0 { Verdict::Good } else { Verdict::Note };
    let found = format!("the kernel stopped {count} times with packets left to take");
    Finding::new("softnet squeezed", verdict, found)
        .by("sysctl -w net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000, if it grows while packets come")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::ByteRate;

    #[test]
    fn memory_is_needed_for_twenty_milliseconds() {
        let wish = Wish { rate: ByteRate(1e9), packet: Bytes(8000) };
        assert_eq!(needed(wish), Bytes(40_000_000));
        assert_eq!(buffer(Some(Bytes(40_000_000)), needed(wish)).verdict, Verdict::Good);
        let short = buffer(Some(Bytes(39_999_999)), needed(wish));
        assert!(short.verdict == Verdict::Bad && short.command.is_some());
        assert_eq!(buffer(None, needed(wish)).verdict, Verdict::Bad);
    }

    #[test]
    fn a_limit_matters_to_who_can_not_go_beyond_it() {
        let needed = Bytes(1000);
        assert_eq!(limit(500, needed, None).verdict, Verdict::Good);
        assert_eq!(limit(499, needed, Some(Bytes(1000))).verdict, Verdict::Note);
        let bad = limit(499, needed, Some(Bytes(998)));
        assert_eq!(
            (bad.verdict, bad.command.as_deref()),
            (Verdict::Bad, Some("sysctl -w net.core.rmem_max=500"))
        );
    }

    #[test]
    fn what_was_dropped_is_told_and_condemns_nobody() {
        let mut counters = NetworkCounters::default();
        assert_eq!(dropped(&counters).verdict, Verdict::Good);
        counters.udp.insert("RcvbufErrors".into(), 5);
        counters.softnet_dropped = 6;
        let found = dropped(&counters);
        assert_eq!(found.verdict, Verdict::Note);
        assert!(found.found.ends_with("RcvbufErrors 5, softnet dropped 6"), "{}", found.found);
        assert_eq!(backlog(1000, 1001).verdict, Verdict::Bad);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let found = findings(Wish { rate: ByteRate(1.0), packet: Bytes(1000) });
        assert!(found.len() >= 4, "{found:?}");
        assert_eq!(found[0].verdict, Verdict::Good, "a packet a second fits everywhere: {:?}", found[0]);
    }
}
