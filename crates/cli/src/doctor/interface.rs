//! An interface: the size and rate of its packets, its ring, its offloads, the processors that it wakes, and
//! its drops.

use nilometer_model::{ByteRate, LinkBond};
use nilometer_report::{MachineFinding, Sufficiency, WantedPackets};
use nilometer_storage::network::{
    counters::{LOST, NetworkCounters},
    interrupts::InterruptSpread,
    kernel_text,
    links::{ethtool, interface_folder, link},
};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// A card should hold the packets of this many seconds, or as many as it can.
const HELD: f64 = 0.002;
/// The wait for further packets that joined most in our measurements, in nanoseconds.
const JOIN_WAIT: u64 = 200_000;
/// The number of looks without an interrupt that goes with it.
const JOIN_LOOKS: u64 = 2;

pub(super) fn findings(name: &str, wanted: WantedPackets) -> Vec<MachineFinding> {
    let link = link(name);
    let mut findings = vec![speed(name, link.speed, wanted.rate)];
    findings.extend(link.mtu.map(|mtu| mtu_of(name, mtu.0, wanted.packet.0 + HEADERS)));
    findings.extend(link.bond.as_ref().map(|bond| bonding(name, bond)));
    if interface_folder(name).join("device").exists() {
        findings.push(ring(name, ethtool("-g", name).as_deref(), wanted.packets(HELD)));
        findings.push(offloads(name, link.offloads.as_deref()));
        findings.push(interrupts(name, InterruptSpread::of(name).as_ref()));
    }
    findings.extend(joining(name));
    findings.extend(filter(name));
    findings.push(drops(name, &NetworkCounters::now()));
    findings
}

fn speed(name: &str, found: Option<ByteRate>, rate: ByteRate) -> MachineFinding {
    let what = format!("{name} speed");
    match found {
        Some(link) => MachineFinding::holds(what, link.0 >= rate.0, link.bits())
            .by("another link, or several streams over several links"),
        None => MachineFinding::new(what, Sufficiency::Note, "its speed is unknown"),
    }
}

/// A bond carries the sum of its working members. One stream uses one member, and may need more than that
/// carries.
fn bonding(name: &str, bond: &LinkBond) -> MachineFinding {
    let is_whole = !bond.members.is_empty() && bond.members.iter().all(|member| member.is_up);
    let sufficiency = if is_whole { Sufficiency::Good } else { Sufficiency::Note };
    MachineFinding::new(format!("{name} bonding"), sufficiency, bond.to_string())
        .by(format!("cat /proc/net/bonding/{name}: which member has no carrier, and since when"))
}

fn mtu_of(name: &str, mtu: u64, needed: u64) -> MachineFinding {
    let found = format!("{mtu} B; a packet with its headers has {needed} B, else it comes in pieces");
    MachineFinding::holds(format!("{name} mtu"), mtu >= needed, found)
        .by(format!("ip link set dev {name} mtu {needed}"))
}

/// Reads the `RX:` lines of `ethtool -g`: first the largest ring, then the present one.
fn ring(name: &str, said: Option<&str>, needed: u64) -> MachineFinding {
    let what = format!("{name} ring");
    let lines = said.unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("RX:"));
    let numbers: Vec<u64> = lines.filter_map(|number| number.trim().parse().ok()).collect();
    let [most, now] = numbers[..] else {
        return MachineFinding::new(
            what,
            Sufficiency::Note,
            "not known: install ethtool; the driver must support it",
        );
    };
    let found = format!("{now} of {most} packets; 2 ms of them are {needed}");
    MachineFinding::holds(what, now >= needed.min(most), found).by(format!("ethtool -G {name} rx {most}"))
}

/// The offloads that are on.
fn offloads(name: &str, on: Option<&[String]>) -> MachineFinding {
    let what = format!("{name} offloads");
    let Some(on) = on else {
        return MachineFinding::new(what, Sufficiency::Note, "not known: install ethtool");
    };
    let is_off = |short: &str| !on.iter().any(|on| on == short);
    let off: Vec<_> = [("generic-receive-offload", "gro"), ("rx-checksumming", "rx")]
        .into_iter()
        .filter(|(_, short)| is_off(short))
        .collect();
    if off.is_empty() {
        return MachineFinding::new(
            what,
            Sufficiency::Good,
            "packets are joined (GRO), checksums are made by the card",
        );
    }
    let (features, options): (Vec<_>, Vec<_>) =
        off.into_iter().map(|(feature, short)| (feature, format!("{short} on"))).unzip();
    let found = format!("off: {}; it costs processor time a packet", features.join(", "));
    MachineFinding::new(what, Sufficiency::Bad, found).by(format!("ethtool -K {name} {}", options.join(" ")))
}

/// The settings that let the kernel wait a moment for further packets, so that it joins those that come singly. `None`
/// for loopback, which never waits, and for a kernel without them (before 5.8).
fn joining(name: &str) -> Option<MachineFinding> {
    let is_loopback = kernel_text(interface_folder(name).join("type")).as_deref() == Some("772");
    let read = |what: &str| kernel_text(interface_folder(name).join(what))?.parse::<u64>().ok();
    let wait = read("gro_flush_timeout")?;
    let deferred = read("napi_defer_hard_irqs")?;
    (!is_loopback).then(|| joining_of(name, wait, deferred))
}

/// The finding for a wait in nanoseconds, and for the number of times that the kernel looks without an interrupt.
fn joining_of(name: &str, wait: u64, deferred: u64) -> MachineFinding {
    let what = format!("{name} joining");
    let set = format!("gro_flush_timeout {wait} ns, napi_defer_hard_irqs {deferred}");
    if wait > 0 && deferred > 0 {
        let found = format!("{set}: packets that come singly are joined too");
        return MachineFinding::new(what, Sufficiency::Good, found);
    }
    let found = format!(
        "{set}: packets that come singly stay single, and each costs a message; `record` says how many come in one"
    );
    let folder = interface_folder(name);
    let folder = folder.display();
    MachineFinding::new(what, Sufficiency::Note, found).by(format!(
        "echo {JOIN_WAIT} > {folder}/gro_flush_timeout; echo {JOIN_LOOKS} > {folder}/napi_defer_hard_irqs"
    ))
}

/// The processors that its queues wake.
fn interrupts(name: &str, spread: Option<&InterruptSpread>) -> MachineFinding {
    let what = format!("{name} interrupts");
    let Some(spread) = spread else {
        return MachineFinding::new(what, Sufficiency::Note, "none found in /proc/interrupts");
    };
    let is_crowded = spread.processors.len() == 1 && spread.queues > 1;
    let sufficiency = if is_crowded { Sufficiency::Note } else { Sufficiency::Good };
    MachineFinding::new(what, sufficiency, spread.to_string())
        .by("spread them: irqbalance, or /proc/irq/*/smp_affinity_list; one stream has one queue anyhow")
}

/// Finds a filter that drops packets if the way back to their sender leads over another interface.
fn filter(name: &str) -> Option<MachineFinding> {
    let read =
        |which: &str| kernel_text(format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"))?.parse::<u8>().ok();
    let mode = read("all")?.max(read(name)?);
    let what = format!("{name} rp_filter");
    Some(if mode == 1 {
        let found = "strict: the kernel drops packets of senders that this interface does not reach, such as those to groups";
        MachineFinding::new(what, Sufficiency::Note, found)
            .by(format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2"))
    } else {
        MachineFinding::new(what, Sufficiency::Good, if mode == 0 { "off" } else { "loose" })
    })
}

fn drops(name: &str, counters: &NetworkCounters) -> MachineFinding {
    let what = format!("{name} dropped");
    let counts = counters.interfaces.get(name);
    let lost = LOST.iter().filter_map(|what| Some((what, counts?.get(what)?)));
    let lost: Vec<_> =
        lost.filter(|(_, count)| **count > 0).map(|(what, count)| format!("{what} {count}")).collect();
    if lost.is_empty() {
        return MachineFinding::new(what, Sufficiency::Good, "nothing since the machine was started");
    }
    MachineFinding::new(
        what,
        Sufficiency::Note,
        format!("since the machine was started: {}", lost.join(", ")),
    )
    .by(format!("ip -s -s link show {name}: look again after a recording"))
}

#[cfg(test)]
mod tests {
    use nilometer_model::BondMember;

    use super::*;

    const RING: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
                        Current hardware settings:\nRX:\t\t512\nTX:\t\t512\n";

    #[test]
    fn a_ring_is_large_enough_or_as_large_as_it_can_be() {
        assert_eq!(ring("eth0", Some(RING), 512).sufficiency, Sufficiency::Good);
        let small = ring("eth0", Some(RING), 513);
        assert_eq!(
            (small.sufficiency, small.command.as_deref()),
            (Sufficiency::Bad, Some("ethtool -G eth0 rx 4096"))
        );
        assert_eq!(ring("eth0", Some(&RING.replace("512", "4096")), 99_999).sufficiency, Sufficiency::Good);
        assert_eq!(ring("eth0", None, 1).sufficiency, Sufficiency::Note);
    }

    #[test]
    fn offloads_that_are_off_are_named() {
        let on = ["rx", "tso", "gro"].map(String::from);
        let found = offloads("eth0", Some(&on[..2]));
        assert_eq!(
            (found.sufficiency, found.command.as_deref()),
            (Sufficiency::Bad, Some("ethtool -K eth0 gro on"))
        );
        assert_eq!(offloads("eth0", Some(&on)).sufficiency, Sufficiency::Good);
        assert_eq!(offloads("eth0", None).sufficiency, Sufficiency::Note);
    }

    #[test]
    fn packets_that_come_singly_are_noted_unless_both_settings_are_on() {
        for (wait, deferred) in [(0, 0), (200_000, 0), (0, 2)] {
            let found = joining_of("eth0", wait, deferred);
            assert_eq!(found.sufficiency, Sufficiency::Note);
            let command = found.command.expect("a command");
            assert!(command.contains("200000 > /sys/class/net/eth0/gro_flush_timeout"), "{command}");
        }
        assert_eq!(joining_of("eth0", 50_000, 1).sufficiency, Sufficiency::Good);
        assert!(joining("lo").is_none(), "loopback never waits");
    }

    #[test]
    fn a_member_of_a_bond_without_a_carrier_is_named() {
        let member = |name: &str, is_up| BondMember { name: name.into(), is_up, speed: None };
        let of = |members: Vec<BondMember>| bonding("bond0", &LinkBond { mode: "802.3ad".into(), members });
        assert_eq!(of(vec![member("eth0", true)]).sufficiency, Sufficiency::Good);
        let found = of(vec![member("eth0", true), member("eth1", false)]);
        assert_eq!(found.sufficiency, Sufficiency::Note);
        assert!(found.found.ends_with("of eth0 and eth1 (DOWN)"), "{}", found.found);
    }

    #[test]
    fn queues_that_wake_one_processor_are_noted() {
        let spread =
            |queues, processors: &[(usize, u64)]| InterruptSpread { queues, processors: processors.into() };
        let sufficiency = |spread: Option<&InterruptSpread>| interrupts("eth0", spread).sufficiency;
        assert_eq!(sufficiency(Some(&spread(1, &[(0, 90), (1, 10)]))), Sufficiency::Good);
        assert_eq!(sufficiency(Some(&spread(1, &[(1, 100)]))), Sufficiency::Good, "one queue wakes one");
        assert_eq!(sufficiency(Some(&spread(2, &[(1, 100)]))), Sufficiency::Note);
        assert_eq!(sufficiency(None), Sufficiency::Note);
    }

    #[test]
    fn a_link_is_as_fast_and_as_wide_as_needed() {
        let rate = ByteRate(1e9);
        assert_eq!(speed("e", Some(ByteRate(1e9)), rate).sufficiency, Sufficiency::Good);
        assert_eq!(speed("e", Some(ByteRate(0.9e9)), rate).sufficiency, Sufficiency::Bad);
        assert_eq!(speed("e", None, rate).sufficiency, Sufficiency::Note);
        assert_eq!(mtu_of("e", 8068, 8068).sufficiency, Sufficiency::Good);
        assert_eq!(mtu_of("e", 1500, 8068).command.as_deref(), Some("ip link set dev e mtu 8068"));
    }
}
