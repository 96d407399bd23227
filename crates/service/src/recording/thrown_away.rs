//! Discarded packets, or frames of a series, that a user may miss, and remedies for each cause.
//!
//! Anybody can send a few packets to a port, and networks deliver some twice. A recording therefore counts as
//! incomplete only if it discarded more than a few packets that may be data. Second copies, packets before the
//! recording began, and packets of senders that the user excluded do not count.

use nilometer_intake::{
    Traffic,
    assembly::PacketTally,
    series::{SeriesRefusal, SeriesTraffic},
    transport::{PortSenders, TransportCounts},
};
use nilometer_wire::Ignored;

/// The fewest packets that make a stream. Fewer may be anybody's.
const FEW: u64 = 8;
/// Discarded packets matter if they are at least one in `SHARE` of the recording's, however few these are.
const SHARE: u64 = 10;
/// This many matter too, if they are at least one in `TRACE` of the recording's.
const MANY: u64 = 4096;
/// Any network carries less than one foreign packet in `TRACE` beside a stream: discoveries, port scans,
/// broken packets.
const TRACE: u64 = 10_000;

/// The discarded packets that may be data; 0 if they are too few to matter beside the recorded ones.
pub fn thrown_away(traffic: &Traffic) -> u64 {
    let all = all_causes(traffic).iter().map(|(count, _)| count).sum();
    if matters(all, traffic.tally.placed) { all } else { 0 }
}

/// A line for each cause of discarded packets; empty if they are too few to matter.
pub(super) fn causes(traffic: &Traffic) -> Vec<String> {
    if thrown_away(traffic) == 0 {
        return Vec::new();
    }
    let causes = all_causes(traffic).into_iter().filter(|(count, _)| *count > 0);
    causes.map(|(count, why)| format!("{count} packets came and are not recorded: {why}")).collect()
}

/// Returns true if `count` discarded packets matter beside `placed` recorded ones.
fn matters(count: u64, placed: u64) -> bool {
    let is_share = count >= placed / SHARE;
    let is_many = count >= MANY && count >= placed / TRACE;
    count >= FEW && (is_share || is_many)
}

/// The packets of each cause, with a remedy.
fn all_causes(Traffic { tally, counted, .. }: &Traffic) -> Vec<(u64, String)> {
    let PacketTally { duplicates, copies, conflicts, stray, ref ignored, .. } = *tally;
    let TransportCounts { unnamed, stranger, senders, .. } = *counted;
    // Packets too late to compare count like the compared ones. If they come from a single sender, they are
    // copies.
    let are_others = senders.count > 1 && conflicts >= copies;
    let uncompared = if are_others { duplicates - copies - conflicts } else { 0 };
    let stranger = stranger.map_or_else(String::new, |stranger| format!(" such as {stranger}"));
    let ignored = |why: Ignored| ignored[why as usize];
    vec![
        (stray, format!("their numbers are far from those of the stream; {}", numbered(senders))),
        (
            conflicts + uncompared,
            format!("another packet came with the same number; {}", numbered(senders)),
        ),
        (
            ignored(Ignored::OtherStream),
            "they are of another station or module; record each at a port of its own, or use an instrument that has them"
                .into(),
        ),
        (
            ignored(Ignored::Size),
            "they are of another size than the packets of this instrument; check the mode (--mode) or the sender".into(),
        ),
        (
            ignored(Ignored::Corrupt),
            "their headers contradict the instrument; check the mode (--mode) or the sender".into(),
        ),
        (
            unnamed,
            format!("other senders{stranger} began later than the first; name all senders with --allow"),
        ),
    ]
}

/// The reason why numbers do not fit together.
fn numbered(senders: PortSenders) -> String {
    match senders.most {
        [Some(first), Some(second)] => format!(
            "{} senders, such as {first} and {second}, send to one port with their own numbers: give each its own \
             port, or name one with --allow",
            senders.count
        ),
        _ => {
            "the sender does not number packets one by one (a time stamp is no counter): name the counter as \
              `serial` in the instrument's file"
                .into()
        }
    }
}

/// The number of frames and messages of a series that arrived, are data, and are not recorded. The series may
/// still have all frames that it announced. A single one matters: nobody sends frames over TCP by accident.
pub fn frames_thrown_away(series: &SeriesTraffic) -> u64 {
    causes_by_refusal(series).iter().map(|(why, _)| series.tally.refused(*why)).sum()
}

/// A line about senders that the recorder ignored because it recorded the series of another address. `None` if
/// there were none, or the user named the senders and so excluded these.
pub fn senders_not_heard(series: &SeriesTraffic) -> Option<String> {
    let unheard = &series.counted.unheard;
    (unheard.connections > 0).then(|| {
        format!(
            "ignored {unheard} that wanted to send during the series of another address: name all senders with --allow"
        )
    })
}

/// A line for each cause of discarded frames.
pub(super) fn causes_of_frames(series: &SeriesTraffic) -> Vec<String> {
    let counted = causes_by_refusal(series).into_iter().map(|(why, text)| (series.tally.refused(why), text));
    let counted = counted.filter(|(count, _)| *count > 0);
    counted
        .map(|(count, text)| format!("{count} frames or messages came and are not recorded: {text}"))
        .chain(senders_not_heard(series))
        .collect()
}

/// The reasons why received frames are not recorded, with remedies.
fn causes_by_refusal(series: &SeriesTraffic) -> Vec<(SeriesRefusal, String)> {
    let announced = series.frames.unwrap_or(0);
    let beyond = format!(
        "they are beyond the {announced} that the scan has, or far beyond those that came; have the sender count its images \
         from 0"
    );
    let others = [
        (
            SeriesRefusal::Foreign,
            "they are of another series, which began behind this one, or whose start did not come; record --series every, or \
             arm before a series begins",
        ),
        (
            SeriesRefusal::Channel,
            "the series did not announce their channel; have the sender announce all channels",
        ),
        (SeriesRefusal::Shape, "their shape or type differs from the announced one; check the sender"),
        (SeriesRefusal::Packing, "they can't be unpacked; check the detector's compression and the network"),
        (SeriesRefusal::Start, "the start of their series can't be read or recorded; check the sender"),
        (SeriesRefusal::TooLong, "they are longer than an image of the series can be; check the sender"),
    ];
    let others = others.map(|(why, text)| (why, text.to_owned()));
    [(SeriesRefusal::Number, beyond)].into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(tally: PacketTally) -> Traffic {
        Traffic { tally, ..Traffic::default() }
    }

    fn two_senders() -> PortSenders {
        let sender = |text: &str| Some(text.parse().expect("an address"));
        PortSenders { count: 2, most: [sender("127.0.0.2:40000"), sender("127.0.0.3:40001")] }
    }

    #[test]
    fn a_few_packets_of_others_are_no_loss_and_as_many_as_the_stream_are() {
        let thrown =
            |placed, stray| thrown_away(&traffic(PacketTally { placed, stray, ..PacketTally::default() }));
        assert_eq!(thrown(2000, 2000), 2000, "a second sender");
        assert_eq!(thrown(1, 4996), 4996, "numbers that are times");
        assert_eq!((thrown(10, 7), thrown(10, 8)), (0, 8));
        assert_eq!((thrown(15_000, 480), thrown(15_000, 1500)), (0, 1500));
        assert_eq!((thrown(40_000_000, 3999), thrown(40_000_000, 4096)), (0, 4096));
        assert_eq!(thrown(1_000_000_000, 50_000), 0, "one in 20 000");
    }

    #[test]
    fn copies_are_no_loss_and_other_packets_with_the_same_number_are() {
        let tally = |copies, conflicts| PacketTally {
            placed: 1000,
            duplicates: 1000,
            copies,
            conflicts,
            ..PacketTally::default()
        };
        assert_eq!(thrown_away(&traffic(tally(1000, 0))), 0);
        assert_eq!(thrown_away(&traffic(tally(0, 0))), 0, "of one sender, after their place was closed");
        assert_eq!(thrown_away(&traffic(tally(0, 900))), 900);
        let counted = TransportCounts { senders: two_senders(), ..TransportCounts::default() };
        let of_two =
            |copies, conflicts| thrown_away(&Traffic { counted, ..traffic(tally(copies, conflicts)) });
        assert_eq!((of_two(0, 900), of_two(0, 0), of_two(700, 0)), (1000, 1000, 0));
    }

    #[test]
    fn the_cause_is_named_with_what_to_do() {
        let stray = traffic(PacketTally { placed: 5, stray: 9, ..PacketTally::default() });
        let [said] = causes(&stray).try_into().expect("one cause");
        assert!(said.starts_with("9 packets came and are not recorded: their numbers are far"), "{said}");
        assert!(said.contains("time stamp") && said.contains("`serial`"), "{said}");
        let counted = TransportCounts { senders: two_senders(), ..TransportCounts::default() };
        let [said] = causes(&Traffic { counted, ..stray }).try_into().expect("one cause");
        assert!(said.contains("2 senders, such as 127.0.0.2:40000 and 127.0.0.3:40001"), "{said}");
        let mut other = PacketTally { placed: 100, ..PacketTally::default() };
        other.ignored[Ignored::OtherStream as usize] = 50;
        other.ignored[Ignored::Foreign as usize] = 5000;
        let said = causes(&traffic(other));
        assert!(
            said.len() == 1 && said[0].starts_with("50 packets") && said[0].contains("station"),
            "{said:?}"
        );
    }

    #[test]
    fn senders_that_the_user_left_out_are_no_loss() {
        let tally = PacketTally { placed: 100, ..PacketTally::default() };
        let of = |unnamed| {
            let stranger = Some([10, 0, 0, 9].into());
            let counted = TransportCounts { strangers: 500, unnamed, stranger, ..TransportCounts::default() };
            causes(&Traffic { counted, ..traffic(tally.clone()) })
        };
        assert!(of(0).is_empty());
        let [said] = of(500).try_into().expect("one cause");
        assert!(
            said.starts_with("500 packets") && said.contains("10.0.0.9") && said.contains("--allow"),
            "{said}"
        );
    }
}
