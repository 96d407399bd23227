//! An interface: how long and how fast its packets may be, how many it holds, what the card does itself, which processors
//! it wakes, what it dropped.

use std::fs;

use nilometer_model::{ByteRate, LinkBond};

use super::{Finding, Verdict, Wish};
use nilometer_storage::network::{
    counters::{LOST, NetworkCounters},
    kernel_text,
    links::{ethtool, interface_folder, link},
};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// A card should hold packets for so long, or as many as it can.
const HELD: f64 = 0.002;

pub(super) fn findings(name: &str, wish: Wish) -> Vec<Finding> {
    let link = link(name);
    let mut findings = vec![speed(name, link.speed, wish.rate)];
    findings.extend(link.mtu.map(|mtu| mtu_of(name, mtu.0, wish.packet.0 + HEADERS)));
    findings.extend(link.bond.as_ref().map(|bond| bonding(name, bond)));
    if interface_folder(name).join("device").exists() {
        findings.push(ring(name, ethtool("-g", name).as_deref(), wish.packets(HELD)));
        findings.push(offloads(name, link.offloads.as_deref()));
        findings.push(interrupts(name));
    }
    findings.extend(filter(name));
    findings.push(drops(name, &NetworkCounters::now()));
    findings
}

fn speed(name: &str, found: Option<ByteRate>, rate: ByteRate) -> Finding {
    let what = format!("{name} speed");
    match found {
        Some(link) => Finding::holds(what, link.0 >= rate.0, link.bits())
            .by("another link, or several streams over several links"),
        None => Finding::new(what, Verdict::Note, "it does not say how fast it is"),
    }
}

/// A bond carries what its members that are up carry, and less than a stream may need: one stream has one member.
fn bonding(name: &str, bond: &LinkBond) -> Finding {
    let is_whole = !bond.members.is_empty() && bond.members.iter().all(|member| member.is_up);
    let verdict = if is_whole { Verdict::Good } else { Verdict::Note };
    Finding::new(format!("{name} bonding"), verdict, bond.to_string())
        .by(format!("cat /proc/net/bonding/{name}: which member has no carrier, and since when"))
}

fn mtu_of(name: &str, mtu: u64, needed: u64) -> Finding {
    let found = format!("{mtu} B; a packet with its headers has {needed} B, else it comes in pieces");
    Finding::holds(format!("{name} mtu"), mtu >= needed, found)
        .by(format!("ip link set dev {name} mtu {needed}"))
}

/// The `RX:` lines of `ethtool -g`: what it could be, then what it is.
fn ring(name: &str, said: Option<&str>, needed: u64) -> Finding {
    let what = format!("{name} ring");
    let lines = said.unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("RX:"));
    let numbers: Vec<u64> = lines.filter_map(|number| number.trim().parse().ok()).collect();
    let [most, now] = numbers[..] else {
        return Finding::new(what, Verdict::Note, "not known: it needs ethtool, and a driver that tells");
    };
    let found = format!("{now} of {most} packets; 2 ms of them are {needed}");
    Finding::holds(what, now >= needed.min(most), found).by(format!("ethtool -G {name} rx {most}"))
}

/// Those that are on.
fn offloads(name: &str, on: Option<&[String]>) -> Finding {
    let what = format!("{name} offloads");
    let Some(on) = on else { return Finding::new(what, Verdict::Note, "not known: it needs ethtool") };
    let is_off = |short: &str| !on.iter().any(|on| on == short);
    let off: Vec<_> = [("generic-receive-offload", "gro"), ("rx-checksumming", "rx")]
        .into_iter()
        .filter(|(_, short)| is_off(short))
        .collect();
    if off.is_empty() {
        return Finding::new(what, Verdict::Good, "packets are joined (GRO), checksums are made by the card");
    }
    let (features, options): (Vec<_>, Vec<_>) =
        off.into_iter().map(|(feature, short)| (feature, format!("{short} on"))).unzip();
    let found = format!("off: {}; it costs processor time a packet", features.join(", "));
    Finding::new(what, Verdict::Bad, found).by(format!("ethtool -K {name} {}", options.join(" ")))
}

/// Which processors its queues wake.
fn interrupts(name: &str) -> Finding {
    let device = interface_folder(name).join("device");
    // A virtual card's interrupts belong to the device above it.
    let numbers = [device.join("msi_irqs"), device.join("../msi_irqs")].into_iter().find_map(|folder| {
        let entries = fs::read_dir(folder).ok()?.flatten();
        Some(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
    });
    let table = kernel_text("/proc/interrupts").unwrap_or_default();
    spread(name, &table, &numbers.unwrap_or_default())
}

/// The lines of these interrupts, or those that name the interface.
fn spread(name: &str, table: &str, numbers: &[String]) -> Finding {
    let what = format!("{name} interrupts");
    let processors = table.lines().next().map_or(0, |line| line.split_whitespace().count());
    let mut by_processor = vec![0_u64; processors];
    let mut queues = 0;
    for line in table.lines().skip(1) {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let own = numbers.iter().any(|own| own == number.trim())
            || rest.split_whitespace().any(|word| word == name || word.starts_with(&format!("{name}-")));
        let counts: Vec<u64> =
            rest.split_whitespace().take(processors).filter_map(|count| count.parse().ok()).collect();
        if own && counts.iter().any(|count| *count > 0) {
            queues += 1;
            counts.iter().zip(&mut by_processor).for_each(|(count, sum)| *sum += count);
        }
    }
    let all: u64 = by_processor.iter().sum();
    if all == 0 {
        return Finding::new(what, Verdict::Note, "none found in /proc/interrupts");
    }
    let shares = by_processor.iter().enumerate().filter(|(_, count)| **count > 0);
    let shares: Vec<_> = shares.map(|(cpu, count)| format!("cpu{cpu} {} %", 100 * count / all)).collect();
    let verdict = if shares.len() == 1 && queues > 1 { Verdict::Note } else { Verdict::Good };
    Finding::new(what, verdict, format!("{queues} queues wake {}", shares.join(", ")))
        .by("spread them: irqbalance, or /proc/irq/*/smp_affinity_list; one stream has one queue anyhow")
}

/// Whether packets are dropped whose sender would not be reached by the same way.
fn filter(name: &str) -> Option<Finding> {
    let read =
        |which: &str| kernel_text(format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"))?.parse::<u8>().ok();
    let mode = read("all")?.max(read(name)?);
    let what = format!("{name} rp_filter");
    Some(if mode == 1 {
        let found = "strict: packets of a sender that is not reached by this interface are dropped, such as those to groups";
        Finding::new(what, Verdict::Note, found).by(format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2"))
    } else {
        Finding::new(what, Verdict::Good, if mode == 0 { "off" } else { "loose" })
    })
}

fn drops(name: &str, counters: &NetworkCounters) -> Finding {
    let what = format!("{name} dropped");
    let counts = counters.interfaces.get(name);
    let lost = LOST.iter().filter_map(|what| Some((what, counts?.get(what)?)));
    let lost: Vec<_> =
        lost.filter(|(_, count)| **count > 0).map(|(what, count)| format!("{what} {count}")).collect();
    if lost.is_empty() {
        return Finding::new(what, Verdict::Good, "nothing since the machine was started");
    }
    Finding::new(what, Verdict::Note, format!("since the machine was started: {}", lost.join(", ")))
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
        assert_eq!(ring("eth0", Some(RING), 512).verdict, Verdict::Good);
        let small = ring("eth0", Some(RING), 513);
        assert_eq!(
            (small.verdict, small.command.as_deref()),
            (Verdict::Bad, Some("ethtool -G eth0 rx 4096"))
        );
        assert_eq!(ring("eth0", Some(&RING.replace("512", "4096")), 99_999).verdict, Verdict::Good);
        assert_eq!(ring("eth0", None, 1).verdict, Verdict::Note);
    }

    #[test]
    fn offloads_that_are_off_are_named() {
        let on = ["rx", "tso", "gro"].map(String::from);
        let found = offloads("eth0", Some(&on[..2]));
        assert_eq!((found.verdict, found.command.as_deref()), (Verdict::Bad, Some("ethtool -K eth0 gro on")));
        assert_eq!(offloads("eth0", Some(&on)).verdict, Verdict::Good);
        assert_eq!(offloads("eth0", None).verdict, Verdict::Note);
    }

    #[test]
    fn a_member_of_a_bond_without_a_carrier_is_named() {
        let member = |name: &str, is_up| BondMember { name: name.into(), is_up, speed: None };
        let of = |members: Vec<BondMember>| bonding("bond0", &LinkBond { mode: "802.3ad".into(), members });
        assert_eq!(of(vec![member("eth0", true)]).verdict, Verdict::Good);
        let found = of(vec![member("eth0", true), member("eth1", false)]);
        assert_eq!(found.verdict, Verdict::Note);
        assert!(found.found.ends_with("of eth0 and eth1 (DOWN)"), "{}", found.found);
    }

    #[test]
    fn interrupts_are_found_by_number_or_name() {
        let table = "           CPU0       CPU1\n 24:  90  10  PCI-MSI 1-edge  virtio0-input.0\n 25:  0  100  PCI-MSI 2-edge  eth1-TxRx-0\n\
                     NMI:  5  5  Non-maskable interrupts\n";
        let found = spread("eth0", table, &["24".into()]);
        assert_eq!(
            (found.verdict, found.found.as_str()),
            (Verdict::Good, "1 queues wake cpu0 90 %, cpu1 10 %")
        );
        assert_eq!(spread("eth1", table, &[]).found, "1 queues wake cpu1 100 %");
        assert_eq!(spread("eth2", table, &[]).verdict, Verdict::Note);
        let two = table.replace("90  10", "0  10").replace("virtio0-input.0", "eth1-TxRx-1");
        assert_eq!(spread("eth1", &two, &[]).verdict, Verdict::Note, "two queues and one processor");
    }

    #[test]
    fn a_link_is_as_fast_and_as_wide_as_needed() {
        let rate = ByteRate(1e9);
        assert_eq!(speed("e", Some(ByteRate(1e9)), rate).verdict, Verdict::Good);
        assert_eq!(speed("e", Some(ByteRate(0.9e9)), rate).verdict, Verdict::Bad);
        assert_eq!(speed("e", None, rate).verdict, Verdict::Note);
        assert_eq!(mtu_of("e", 8068, 8068).verdict, Verdict::Good);
        assert_eq!(mtu_of("e", 1500, 8068).command.as_deref(), Some("ip link set dev e mtu 8068"));
    }
}
