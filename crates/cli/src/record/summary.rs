//! The results of a recording of packets, as text.

use std::sync::Arc;

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_intake::{
    Traffic,
    senders::{SenderCounts, ThreadCounts},
    transport::TransportCounts,
};
use nilometer_model::{Bytes, Nanos, packets::Station};
use nilometer_service::recording::thrown_away::thrown_away;
use nilometer_storage::target::KeptDirectory;
use nilometer_wire::Ignored;

use crate::recorded::{ring_and_lanes, storage_failed};

/// The fate of the packets, one line each.
pub(super) fn summary(outcome: &Recorded, status: &Status, targets: &[Arc<dyn KeptDirectory>]) -> String {
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let Traffic { tally, counted, .. } = &traffic;
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut lines = vec![
        format!(
            "received    {} packets, {}{}{}",
            counted.packets,
            Bytes(counted.bytes),
            rate(&traffic),
            per_message(counted)
        ),
        format!("in stream   {} packets, {}", tally.placed, Bytes(tally.bytes)),
        recorded(status, storage_failed(outcome)),
        format!("missing     {}", missing(&traffic)),
        format!("reordered   {}", reordered(&traffic)),
        format!("discarded   {}", dropped(&traffic)),
    ];
    lines.extend(senders(&traffic.senders));
    if tally.unchecked > 0 {
        lines.push(format!("headers     {} without a right checksum, recorded by number", tally.unchecked));
    }
    if tally.restarts > 0 {
        lines.push(format!("restarts    the packet counter restarted {} times", tally.restarts));
    }
    if tally.jumps > 0 {
        let (jumps, over) = (tally.jumps, tally.jumped);
        lines.push(format!(
            "jumps       the packet counter jumped ahead {jumps} times, by {over} in all, further than packets can be missing"
        ));
    }
    lines.push(format!("write       slowest block {longest}, from complete until acknowledged"));
    lines.extend(ring_and_lanes(outcome, targets, "blocks"));
    lines.join("\n") + "\n"
}

/// One line for each sender and each thread; empty if there is only one.
fn senders(senders: &[SenderCounts]) -> Vec<String> {
    let mut lines = Vec::new();
    for sender in senders {
        if senders.len() > 1 {
            lines.push(format!("sender      {}", sender_line(sender)));
        }
        if sender.threads.len() > 1 || sender.threads.iter().any(|thread| thread.silent.is_some()) {
            lines.extend(sender.threads.iter().map(thread_line));
        }
    }
    lines
}

fn sender_line(sender: &SenderCounts) -> String {
    let SenderCounts { placed, missing, losses, longest_loss, reordered, .. } = *sender;
    let name = sender.sender.map_or_else(|| "unknown".to_owned(), |sender| sender.to_string());
    let lost = match missing {
        0 => "none missing".to_owned(),
        _ => format!("{missing} missing in {losses} gaps, the longest of {longest_loss}"),
    };
    let causes = [
        (sender.refused, "found the buffer full"),
        (sender.late, "came too late"),
        (sender.duplicates, "came twice"),
        (reordered, "reordered"),
        (sender.restarts, "sequence restarts"),
    ];
    let causes = causes.into_iter().filter(|(count, _)| *count > 0);
    let causes: Vec<_> = causes.map(|(count, what)| format!(", {count} {what}")).collect();
    format!("{name}: {placed} packets, {lost}{}{}", causes.concat(), silence(sender.silent))
}

fn thread_line(thread: &ThreadCounts) -> String {
    let ThreadCounts { station, thread: number, came, missing, silent } = *thread;
    let lost = if missing == 0 { "none missing".to_owned() } else { format!("{missing} missing") };
    let name = match station {
        Some(station) => format!("thread      {number} of station {}", Station(station)),
        None => format!("stream      {number}"),
    };
    format!("{name}: {came} frames came, {lost}{}", silence(silent))
}

/// The time for which a source was silent up to the end while others sent.
fn silence(silent: Option<Nanos>) -> String {
    silent.map_or_else(String::new, |time| format!("; silent for the last {time}"))
}

/// The frames on the storage that survive the end of this program, and those among them that survive a loss
/// of power. If storage failed, the recorder does not know which survive.
pub(super) fn recorded(status: &Status, storage_failed: bool) -> String {
    let Status {
        acknowledged_packets: recorded,
        acknowledged_bytes: bytes,
        durable_packets: durable,
        counted_in: what,
        ..
    } = *status;
    let lasting = match durable {
        0 => "none of them known to survive a loss of power".to_owned(),
        durable if storage_failed => {
            format!("{durable} of them were durable, before the storage of a directory failed")
        }
        durable if durable == recorded => "all survive a loss of power".to_owned(),
        durable => format!("{durable} of them survive a loss of power"),
    };
    format!("recorded    {recorded} {what}, {}; {lasting}", Bytes(bytes))
}

/// The mean rate of packets, from the first to the last; empty if all came at once.
fn rate(traffic: &Traffic) -> String {
    traffic.mean_rate().map_or_else(String::new, |rate| format!(", {rate}"))
}

/// The mean number of packets in a message of the kernel; empty if the transport counts no messages. Each message
/// costs processor time, so packets that come one by one cost most.
fn per_message(counted: &TransportCounts) -> String {
    counted.packets_per_message().map_or_else(String::new, |mean| format!(", {mean:.1} a message"))
}

/// The packets that are missing.
fn missing(traffic: &Traffic) -> String {
    let tally = &traffic.tally;
    let dropped = traffic.kernel_dropped();
    let bad = traffic.bad_checksums();
    let full = traffic.counted.queue_full;
    if tally.lost() == 0 && dropped == 0 && bad == 0 && full == 0 {
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
    cause(dropped, "found no room in the socket buffer");
    cause(bad, "had a wrong UDP checksum, and the kernel dropped them: look at the sender");
    cause(full, "found the queue of this data stream full");
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

/// The packets that came out of order.
fn reordered(Traffic { tally, .. }: &Traffic) -> String {
    match tally.reordered {
        0 => "none".into(),
        count => format!("{count} packets, overtaken by {} others at the most", tally.extents.max()),
    }
}

/// The packets that did not belong to the stream.
fn dropped(Traffic { tally, counted, ended, behind_end, .. }: &Traffic) -> String {
    let ignored = Ignored::ALL.into_iter().map(|why| (tally.ignored[why as usize], why.name()));
    let strangers = match counted.stranger {
        Some(stranger) => {
            format!(
                "from other senders, such as {stranger}: if they belong to the stream, name them with --allow or \
                 --data-stream"
            )
        }
        None => "of other senders".into(),
    };
    let ended = ended.map_or_else(String::new, |ended| format!("after its end ({})", ended.name()));
    let others = [
        (*behind_end, &*ended),
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
    use nilometer_intake::{ReceptionEnd, Span, assembly::PacketTally};

    #[test]
    fn the_rate_of_what_came_leaves_out_the_silence_behind_it() {
        let span = Span { time: Nanos::from_millis(2000), bytes: 256_000_000 };
        assert_eq!(rate(&Traffic { span, ..Traffic::default() }), ", 128 MB/s");
        assert_eq!(rate(&Traffic::default()), "");
    }

    #[test]
    fn each_sender_and_each_thread_has_a_line_if_there_are_several() {
        let thread =
            |thread, silent| ThreadCounts { station: Some(0x4d63), thread, came: 50, missing: 0, silent };
        let one = SenderCounts {
            sender: Some(([10, 0, 0, 2], 4000).into()),
            placed: 50,
            threads: vec![thread(0, None)],
            ..SenderCounts::default()
        };
        assert!(senders(std::slice::from_ref(&one)).is_empty());
        let silent = Some(Nanos::from_millis(1500));
        let two = SenderCounts {
            missing: 7,
            losses: 2,
            longest_loss: 5,
            late: 1,
            silent,
            threads: vec![thread(1, None), thread(2, silent)],
            ..one.clone()
        };
        let expected = [
            "sender      10.0.0.2:4000: 50 packets, none missing",
            "sender      10.0.0.2:4000: 50 packets, 7 missing in 2 gaps, the longest of 5, 1 came too late; silent for the last 1.5 s",
            "thread      1 of station Mc: 50 frames came, none missing",
            "thread      2 of station Mc: 50 frames came, none missing; silent for the last 1.5 s",
        ];
        assert_eq!(senders(&[one, two]), expected);
    }

    #[test]
    fn what_the_kernel_dropped_is_said_in_packets() {
        let tally =
            PacketTally { missing: 60, placed: 940, losses: 3, longest_loss: 20, ..PacketTally::default() };
        let counted = TransportCounts { packets: 940, dropped: 10, joined: 6, ..TransportCounts::default() };
        let text = missing(&Traffic { tally, counted, ..Traffic::default() });
        assert_eq!(
            text,
            "60 packets, 6.0000 %, in 3 gaps, the longest of 20; 60 found no room in the socket buffer"
        );
    }

    #[test]
    fn packets_of_a_message_are_a_mean() {
        let of = |packets, messages| {
            per_message(&TransportCounts { packets, messages, ..TransportCounts::default() })
        };
        assert_eq!([of(7, 7), of(78, 10), of(5, 0)], [", 1.0 a message", ", 7.8 a message", ""]);
    }

    #[test]
    fn packets_of_a_full_queue_and_behind_the_end_have_their_causes() {
        let tally =
            PacketTally { missing: 40, placed: 960, losses: 1, longest_loss: 40, ..PacketTally::default() };
        let counted = TransportCounts { packets: 1000, queue_full: 40, ..TransportCounts::default() };
        let ended = Some(ReceptionEnd::Silence);
        let traffic = Traffic { tally, counted, ended, behind_end: 7, ..Traffic::default() };
        let said = missing(&traffic);
        assert!(said.ends_with("the longest of 40; 40 found the queue of this data stream full"), "{said}");
        assert_eq!(dropped(&traffic), "packets: 7 after its end (silence)");
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
            .map(|(recorded_packets, durable)| recorded(&status(recorded_packets, durable), false));
        let expected = [
            "recorded    5 packets, 40 kB; all survive a loss of power",
            "recorded    5 packets, 40 kB; 2 of them survive a loss of power",
            "recorded    5 packets, 40 kB; none of them known to survive a loss of power",
        ];
        assert_eq!(texts, expected);
        assert_eq!(
            recorded(&status(5, 5), true),
            "recorded    5 packets, 40 kB; 5 of them were durable, before the storage of a directory failed"
        );
    }
}
