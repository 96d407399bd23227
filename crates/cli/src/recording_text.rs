//! Texts about recordings that several commands print: lanes, and missing parts.

use std::{fmt::Display, path::PathBuf};

use nilometer_model::{observed::ClockReading, packets::source_name};
use nilometer_recording::{
    reader::Recording,
    view::{Hole, Scan, SourceLoss},
};
use nilometer_report::{NamedFact, Tone, in_line};

/// The most ranges in one text.
const NAMED: usize = 20;
/// The most gaps in one text.
const GAPS: usize = 10;

/// The unit of a recording: frames or blocks.
pub(crate) fn what(recording: &Recording) -> &'static str {
    if recording.index.stream.is_some() { "blocks" } else { "frames" }
}

/// The recording machine's clock at the start.
pub(crate) fn clock_fact(clock: ClockReading) -> NamedFact {
    NamedFact::new("clock", format_args!("{clock}, at the start"))
}

/// The lanes whose journals are not here, as first numbers and counts.
pub(crate) fn absent_lanes(recording: &Recording) -> Vec<(u64, u64)> {
    let mut here: Vec<u64> = recording.index.heads.iter().map(|head| head.lane.into()).collect();
    here.sort_unstable();
    let mut absent = Vec::new();
    let mut next = 0;
    for lane in here.into_iter().chain([recording.head().lanes.into()]) {
        if lane > next {
            absent.push((next, lane - next));
        }
        next = next.max(lane + 1);
    }
    absent
}

/// Names the journals that are not here: their lanes' frames are missing, unless other lanes have them. Empty if all
/// are here.
pub(crate) fn absent_journals(recording: &Recording) -> String {
    journals_not_here(recording.name(), &absent_lanes(recording))
}

/// The names of journals, from first numbers and counts of lanes. Names of files count lanes from 0.
pub(crate) fn journals_not_here(name: &str, absent: &[(u64, u64)]) -> String {
    let named = absent.iter().take(NAMED).map(|&(first, count)| match count {
        1 => format!("{name}.{first}.journal"),
        _ => format!("{name}.{first}.journal to {name}.{}.journal", first + count - 1),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more: u64 = absent.iter().skip(NAMED).map(|(_, count)| count).sum();
    match (absent.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("; not here: {}", in_line(named)),
        (false, more) => format!("; not here: {} and {more} more", in_line(named)),
    }
}

/// `3, 5-7 and 12 more`, of first numbers and counts.
pub(crate) fn ranges(ranges: &[(u64, u64)]) -> String {
    let text = ranges.iter().take(NAMED).map(|&(first, count)| match count {
        1 => first.to_string(),
        _ => format!("{first}-{}", first + count - 1),
    });
    let text = text.collect::<Vec<_>>().join(", ");
    let more: u64 = ranges.iter().skip(NAMED).map(|(_, count)| count).sum();
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// The number of frames that did not come over the network, by the journals, and the fate of their places.
/// Empty if all came.
pub(crate) fn not_come(scan: &Scan) -> Vec<String> {
    let counts = [(scan.filled, "are marked as invalid"), (scan.left_out, "are left out")];
    let there = counts.into_iter().filter(|(count, _)| *count > 0);
    there.map(|(count, how)| format!("{count} frames did not come and {how}")).collect()
}

/// The gaps in the packets by the journals, the first ones. `more` is the option that names all.
pub(crate) fn gaps(scan: &Scan, more: &str) -> Vec<NamedFact> {
    let gap = |Hole { frame, packets, filled, .. }: &Hole| {
        let how = if *filled { "from" } else { "left out before" };
        let plural = if *packets == 1 { "" } else { "s" };
        NamedFact::toned(Tone::Bad, "gap", format_args!("{packets} packet{plural} {how} frame {frame}"))
    };
    let mut facts: Vec<_> = scan.gaps.iter().take(GAPS).map(gap).collect();
    let unnamed = scan.gaps.len() - facts.len();
    if unnamed > 0 {
        let text = format!("and {unnamed} more gaps: {more} names all");
        facts.push(NamedFact::toned(Tone::Bad, "", text));
    }
    facts
}

/// The packets of each sender and thread that did not come. Empty if the recording has one source.
pub(crate) fn sources(scan: &Scan) -> Vec<NamedFact> {
    let is_thread_of_one = |source: &SourceLoss| {
        source.sender.is_none() && source.thread.is_none_or(|(station, _)| station.is_some())
    };
    let is_one = scan.survey.lanes.len() < 2 && scan.sources.iter().all(is_thread_of_one);
    if is_one || scan.sources.iter().all(|source| source.sender.is_none() && source.thread.is_none()) {
        return Vec::new();
    }
    let fact = |source: &SourceLoss| {
        let text = format!("{}: {} packets did not come", named(source), source.packets);
        NamedFact::toned(Tone::Bad, "from", text)
    };
    scan.sources.iter().map(fact).collect()
}

/// A sender and a thread in words.
fn named(SourceLoss { sender, thread, .. }: &SourceLoss) -> String {
    let thread = thread.map(|(station, thread)| source_name(station, thread));
    match (sender, thread) {
        (Some(sender), Some(thread)) => format!("{sender}, {thread}"),
        (Some(sender), None) => sender.to_string(),
        (None, Some(thread)) => thread,
        (None, None) => "threads that Nilometer did not examine".into(),
    }
}

/// Directories and journals that could not be read.
pub(crate) fn unreadable<Error: Display>(unreadable: &[(PathBuf, Error)]) -> Vec<NamedFact> {
    let fact = |(path, error): &(PathBuf, Error)| {
        NamedFact::toned(Tone::Bad, "unreadable", format_args!("{}: {error}", path.display()))
    };
    unreadable.iter().map(fact).collect()
}

/// The facts as lines.
pub(crate) fn facts_lines(facts: Vec<NamedFact>) -> impl Iterator<Item = String> {
    facts.into_iter().map(|fact| fact.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_recording::GapSender;

    #[test]
    fn absent_lanes_are_told_by_their_journals() {
        assert_eq!(journals_not_here("r", &[]), "");
        assert_eq!(
            journals_not_here("r", &[(1, 1), (4, 3)]),
            "; not here: r.1.journal, r.4.journal to r.6.journal"
        );
        let many: Vec<(u64, u64)> = (0..22).map(|lane| (2 * lane, 1)).collect();
        assert!(journals_not_here("r", &many).ends_with("r.38.journal and 2 more"));
    }

    #[test]
    fn ranges_are_named_by_their_ends_and_not_all() {
        assert_eq!(ranges(&[(3, 1), (5, 3), (10, 2)]), "3, 5-7, 10-11");
        let many: Vec<_> = (0..30).map(|number| (10 * number, 2)).collect();
        let text = ranges(&many);
        assert!(text.starts_with("0-1, 10-11, ") && text.ends_with(", 190-191 and 20 more"), "{text}");
    }

    #[test]
    fn losses_are_said_by_source_where_there_are_several() {
        let loss = |sender, thread, packets| SourceLoss { sender, thread, packets };
        let sender = |number, text: &str| Some(GapSender::new(number, text.parse().ok()));
        let one = Scan { sources: vec![loss(None, Some((Some(0x4d63), 3)), 5)], ..Scan::default() };
        assert_eq!(sources(&one).len(), 0, "all is lost of the only one");
        let scan = Scan {
            sources: vec![
                loss(None, Some((Some(0x4d63), 3)), 5),
                loss(sender(1, "10.0.0.2:4000"), None, 7),
                loss(sender(2, ""), Some((Some(0x4d63), 1)), 1),
            ],
            ..one
        };
        let expected = [
            "from        thread 3 of station Mc: 5 packets did not come",
            "from        10.0.0.2:4000: 7 packets did not come",
            "from        sender 2, thread 1 of station Mc: 1 packets did not come",
        ];
        assert_eq!(facts_lines(sources(&scan)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_did_not_come_is_counted_and_the_first_gaps_are_named() {
        assert_eq!((not_come(&Scan::default()).len(), gaps(&Scan::default(), "it").len()), (0, 0));
        let gap = |frame| Hole { frame, packets: 2, filled: frame > 0, sender: None };
        let scan = Scan { filled: 22, left_out: 2, gaps: (0..12).map(gap).collect(), ..Scan::default() };
        assert_eq!(
            not_come(&scan),
            ["22 frames did not come and are marked as invalid", "2 frames did not come and are left out"]
        );
        let lines: Vec<_> = facts_lines(gaps(&scan, "--json")).collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "gap         2 packets left out before frame 0");
        assert_eq!(lines[9], "gap         2 packets from frame 9");
        assert_eq!(lines[10], "            and 2 more gaps: --json names all");
    }
}
