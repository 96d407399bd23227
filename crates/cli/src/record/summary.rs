//! What became of a recording of packets, in words.

use std::sync::Arc;

use nilometer_acquisition::{Outcome as Recorded, Status, Traffic};
use nilometer_model::Bytes;
use nilometer_service::recording::thrown_away::thrown_away;
use nilometer_storage::target::KeptDirectory;
use nilometer_wire::Ignored;

use crate::recorded::ring_and_lanes;

/// What became of the packets, a line each.
pub(super) fn summary(outcome: &Recorded, status: &Status, targets: &[Arc<dyn KeptDirectory>]) -> String {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let Traffic { tally, counted, .. } = &traffic;
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut lines = vec![
        format!("received    {} packets, {}{}", counted.packets, Bytes(counted.bytes), rate(&traffic)),
        format!("in stream   {} packets, {}", tally.placed, Bytes(tally.bytes)),
        recorded(status),
        format!("missing     {}", missing(&traffic)),
        format!("reordered   {}", reordered(&traffic)),
        format!("discarded   {}", dropped(&traffic)),
    ];
    if tally.restarts > 0 {
        lines.push(format!("restarts    the packet counter began anew {} times", tally.restarts));
    }
    if tally.jumps > 0 {
        let (jumps, over) = (tally.jumps, tally.jumped);
        lines.push(format!(
            "jumps       the packet counter jumped ahead {jumps} times, by {over} in all, further than packets can be missing"
        ));
    }
    lines
        .push(format!("write       worst latency {longest}, from a complete block until it is acknowledged"));
    lines.extend(ring_and_lanes(outcome, targets, "blocks"));
    lines.join("\n") + "\n"
}

/// What is on the storage, whatever becomes of this program, and what of that whatever becomes of the machine.
pub(super) fn recorded(status: &Status) -> String {
    let Status {
        acknowledged_packets: recorded,
        acknowledged_bytes: bytes,
        durable_packets: durable,
        counted_in: what,
        ..
    } = *status;
    let lasting = match durable {
        0 => "none of them known to survive a loss of power".to_owned(),
        durable if durable == recorded => "all survive a loss of power".to_owned(),
        durable => format!("{durable} of them survive a loss of power"),
    };
    format!("recorded    {recorded} {what}, {}; {lasting}", Bytes(bytes))
}

/// At which rate packets came, from the first to the last; nothing if all came at once.
fn rate(traffic: &Traffic) -> String {
    traffic.mean_rate().map_or_else(String::new, |rate| format!(", {rate}"))
}

/// Which packets should be there and are not.
fn missing(traffic: &Traffic) -> String {
    let tally = &traffic.tally;
    let dropped = traffic.kernel_dropped();
    let bad = traffic.bad_checksums();
    if tally.lost() == 0 && dropped == 0 && bad == 0 {
        return match thrown_away(traffic) {
            0 => "none".into(),
            thrown => {
                format!("0 between the packets that are recorded; {thrown} others came and were discarded")
            }
        };
    }
    let share = tally.lost() as f64 / (tally.lost() + tally.placed).max(1) as f64 * 100.0;
    let mut causes = Vec::new();
    let mut cause = |count: u64, why: &str| {
        if count > 0 {
            causes.push(format!("{count} {why}"));
        }
    };
    cause(dropped, "found no room in the kernel");
    cause(bad, "had a wrong UDP checksum, and the kernel dropped them: look at the sender");
    cause(tally.refused, "found the buffer full");
    cause(tally.late, "came too late");
    let incomplete = traffic.incomplete();
    if incomplete > 0 {
        causes.push(format!(
            "at most {incomplete} lost an IP fragment on the way: let the network carry whole packets (MTU)"
        ));
    }
    let causes = if causes.is_empty() { String::new() } else { format!("; {}", causes.join(", ")) };
    format!(
        "{} packets, {share:.4} %, in {} gaps, the longest of {}{causes}",
        tally.lost(),
        tally.losses,
        tally.longest_loss
    )
}

/// Which packets came out of order.
fn reordered(Traffic { tally, .. }: &Traffic) -> String {
    match tally.reordered {
        0 => "none".into(),
        count => format!("{count} packets, overtaken by {} others at the most", tally.extents.max()),
    }
}

/// Which packets were none of the stream.
fn dropped(Traffic { tally, counted, .. }: &Traffic) -> String {
    let ignored = Ignored::ALL.into_iter().map(|why| (tally.ignored[why as usize], why.name()));
    let strangers = match counted.stranger {
        Some(stranger) => {
            format!("of other senders, such as {stranger}: name them with --allow if they are of the stream")
        }
        None => "of other senders".into(),
    };
    let others = [
        (tally.duplicates - tally.conflicts, "twice"),
        (tally.conflicts, "with the number of a packet that was there, and other bytes"),
        (tally.late, "too late"),
        (tally.stray, "with a number far from all others"),
    ];
    let all: Vec<_> = ignored
        .chain(others)
        .chain([(counted.early, "before it began"), (counted.strangers, strangers.as_str())])
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if all.is_empty() { "none".into() } else { format!("packets: {}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_acquisition::{Span, assembly::PacketTally, transport::TransportCounts};
    use nilometer_model::Nanos;

    #[test]
    fn the_rate_of_what_came_leaves_out_the_silence_behind_it() {
        let span = Span { time: Nanos::from_millis(2000), bytes: 256_000_000 };
        assert_eq!(rate(&Traffic { span, ..Traffic::default() }), ", 128 MB/s");
        assert_eq!(rate(&Traffic::default()), "");
    }

    #[test]
    fn what_the_kernel_dropped_is_said_in_packets() {
        let tally =
            PacketTally { missing: 60, placed: 940, losses: 3, longest_loss: 20, ..PacketTally::default() };
        let counted = TransportCounts { packets: 940, dropped: 10, joined: 6, ..TransportCounts::default() };
        let text = missing(&Traffic { tally, counted, ..Traffic::default() });
        assert_eq!(
            text,
            "60 packets, 6.0000 %, in 3 gaps, the longest of 20; 60 found no room in the kernel"
        );
    }

    #[test]
    fn what_was_thrown_away_leaves_no_line_that_says_none() {
        let tally = PacketTally { placed: 100, stray: 100, ..PacketTally::default() };
        let traffic = Traffic { tally, ..Traffic::default() };
        let said = missing(&traffic);
        assert_eq!(said, "0 between the packets that are recorded; 100 others came and were discarded");
        let few = PacketTally { stray: 7, ..traffic.tally.clone() };
        assert_eq!(missing(&Traffic { tally: few, ..traffic }), "none");
    }

    #[test]
    fn what_is_in_memory_only_is_not_called_recorded() {
        let status = |recorded, durable| Status {
            counted_in: "packets",
            received_packets: 9000,
            acknowledged_packets: recorded,
            acknowledged_bytes: 8000 * recorded,
            durable_packets: durable,
            ..Status::default()
        };
        let texts = [(5, 5), (5, 2), (5, 0)]
            .map(|(recorded_packets, durable)| recorded(&status(recorded_packets, durable)));
        let expected = [
            "recorded    5 packets, 40 kB; all survive a loss of power",
            "recorded    5 packets, 40 kB; 2 of them survive a loss of power",
            "recorded    5 packets, 40 kB; none of them known to survive a loss of power",
        ];
        assert_eq!(texts, expected);
    }
}
