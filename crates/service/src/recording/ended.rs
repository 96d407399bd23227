//! The end of a recording: its faults, and the end of each lane.

use nilometer_acquisition::{Ending, Outcome as Recorded};
use nilometer_intake::{
    ReceptionEnd, Traffic,
    assembly::PortTally,
    senders::{SenderCounts, ThreadCounts},
    series::SeriesTraffic,
    transport::TransportCounts,
};
use nilometer_model::{Nanos, packets::source_name};

use super::thrown_away;

/// The faults of a recording of packets or of a series, or `None` if there are none. Faults are losses, failed
/// storage, and a recording without data.
pub fn fault_of(outcome: &Recorded) -> Option<String> {
    if let Some(series) = &outcome.series {
        return fault_of_series(outcome, series);
    }
    let traffic = outcome.traffic.clone().unwrap_or_default();
    let mut faults: Vec<String> = nothing(&traffic).into_iter().collect();
    let missing = traffic.tally.lost();
    if missing > 0 {
        faults.push(format!("{missing} packets are missing"));
    }
    faults.extend(missing_by_port(&traffic.ports));
    let lost = outcome.due.saturating_sub(outcome.stored());
    if lost > 0 {
        faults.push(format!("{lost} of {} blocks were not stored", outcome.due));
    }
    faults.extend(queue_full(&traffic));
    faults.extend(behind_end(&traffic));
    faults.extend(thrown_away::causes(&traffic));
    faults.extend(silent(&traffic));
    faults.extend(traffic.fault.map(|why| format!("the network: {why}")));
    faults.extend(early_ends(outcome, "directories", false));
    (!faults.is_empty()).then(|| faults.join("; "))
}

fn fault_of_series(outcome: &Recorded, series: &SeriesTraffic) -> Option<String> {
    let mut faults = Vec::new();
    let missing = series.lost(outcome.due);
    if series.tally.frames == 0 && !series.is_share {
        faults.push("no frame came".into());
    } else if missing > 0 {
        faults.push(format!("{missing} of {} frames did not come", series.expected(outcome.due)));
    }
    let lost = series.tally.frames.saturating_sub(outcome.stored());
    if lost > 0 {
        faults.push(format!("{lost} of {} frames that came were not stored", series.tally.frames));
    }
    faults.extend(thrown_away::causes_of_frames(series));
    let altered = outcome.altered();
    if altered > 0 {
        faults.push(format!(
            "{altered} frames differ from the MD5 that the detector sent; they are stored as received, with flag 2: \
             check the network"
        ));
    }
    let damaged = outcome.damaged() - altered;
    if damaged > 0 {
        faults.push(format!(
            "{damaged} frames have damaged blocks that can't be unpacked; they are stored as received, with flag 2: \
             check the detector's compression and the network"
        ));
    }
    faults.extend(series.fault.iter().map(|why| format!("the network: {why}")));
    faults.extend(early_ends(outcome, "directories", false));
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// The number of ports that a fault names.
const PORTS_NAMED: usize = 16;

/// The parts of an instrument of which packets are missing, if each sends to a port of its own.
fn missing_by_port(ports: &[PortTally]) -> Vec<String> {
    if ports.iter().all(|port| port.came == 0) {
        return Vec::new();
    }
    let lacking: Vec<&PortTally> = ports.iter().filter(|port| port.missing > 0 || port.came == 0).collect();
    let named = lacking.iter().take(PORTS_NAMED).map(|PortTally { name, came, missing }| match came {
        0 => format!("{name} never came"),
        _ => format!("{missing} packets of {name} are missing"),
    });
    let more = lacking.len().saturating_sub(PORTS_NAMED);
    named.chain((more > 0).then(|| format!("packets of {more} other ports are missing"))).collect()
}

/// Senders and threads that stopped before the others, or never sent.
fn silent(traffic: &Traffic) -> Vec<String> {
    let mut silent = Vec::new();
    for SenderCounts { sender, silent: time, threads, .. } in &traffic.senders {
        let name = sender.map_or_else(|| "a sender".to_owned(), |sender| sender.to_string());
        silent.extend(time.map(|time| format!("{name} was silent for the last {time} while others sent")));
        for ThreadCounts { station, thread, came, silent: time, .. } in threads {
            let Some(time) = time else { continue };
            let thread = source_name(*station, *thread);
            silent.push(match came {
                0 => format!("{thread} never came"),
                _ => format!("{thread} was silent for the last {time} while others came"),
            });
        }
    }
    silent
}

/// The reason why a recording is empty, or `None` if it has packets.
fn nothing(Traffic { tally, counted, .. }: &Traffic) -> Option<String> {
    let TransportCounts { packets, strangers, stranger, .. } = *counted;
    if tally.placed > 0 {
        return None;
    }
    let such = stranger.map_or_else(String::new, |stranger| format!(", such as {stranger}"));
    Some(match (packets, strangers) {
        (0, 0) => "no packet came".into(),
        (_, 0) => "no packet of the stream came: all that came were others".into(),
        _ => format!(
            "no packet of the stream came: {strangers} packets came from other senders{such}; name the right senders \
             with --allow or --data-stream"
        ),
    })
}

/// The packets of a data stream that came after it had ended, unless the user set this end.
fn behind_end(Traffic { ended, behind_end, .. }: &Traffic) -> Option<String> {
    let ended = ended.filter(|ended| !ended.is_planned() && *behind_end > 0)?;
    let why = match ended {
        ReceptionEnd::Silence => "it had been silent for the time of --silence; write a longer one",
        ReceptionEnd::NothingCame => {
            "no packet came in the time from its start; write a longer --silence and --duration"
        }
        ReceptionEnd::NoDirectory => "no directory was left for it",
        _ => "the network gave up",
    };
    Some(format!("{behind_end} packets came after this data stream had ended, and are not recorded: {why}"))
}

/// The packets that the recorder was too slow to take from the queue of their data stream.
fn queue_full(Traffic { counted, .. }: &Traffic) -> Option<String> {
    let count = counted.queue_full;
    (count > 0).then(|| {
        format!(
            "{count} packets found the queue of this data stream full; give the recorder more processors, or each \
             sender a port of its own"
        )
    })
}

/// The faults of lanes, which `what` names, and a line if the user interrupted the recording.
pub fn early_ends(outcome: &Recorded, what: &str, interrupted: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let early = outcome.endings().filter(|(ending, _)| *ending != Ending::InOrder).count();
    if early > 0 {
        faults.push(format!("{early} of {} {what} dropped out", outcome.lanes.len()));
    }
    if early == outcome.lanes.len() {
        faults.push("no directory was left, and the recording ended there".into());
    }
    if interrupted {
        faults.push("interrupted: the recording is whole up to there".into());
    }
    faults
}

/// The end of a lane in words, with its time in the recording if it ended early.
pub fn ended_how(ending: Ending, ended: Option<Nanos>) -> String {
    let after = ended.map_or_else(String::new, |ended| format!(" after {ended}"));
    match ending {
        Ending::InOrder => "ended in order".into(),
        Ending::Full => format!("full up to the reserve{after}, ended in order"),
        Ending::Failed(errno) => format!("failed{after}: {errno}"),
        Ending::Hung => "hangs".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_intake::assembly::PacketTally;

    #[test]
    fn a_recording_of_nothing_is_none() {
        let of = |packets, placed| {
            let (tally, counted) = (
                PacketTally { placed, ..PacketTally::default() },
                TransportCounts { packets, ..TransportCounts::default() },
            );
            nothing(&Traffic { tally, counted, ..Traffic::default() })
        };
        assert_eq!(of(0, 0).as_deref(), Some("no packet came"));
        assert!(of(5, 0).is_some_and(|why| why.starts_with("no packet of the stream came: all")));
        assert_eq!(of(5, 5), None);
    }

    #[test]
    fn a_recording_without_packets_names_the_senders_of_those_that_came() {
        let of = |packets, placed| {
            let tally = PacketTally { placed, ..PacketTally::default() };
            let stranger = Some([10, 0, 0, 9].into());
            let counted = TransportCounts { packets, strangers: 300, stranger, ..TransportCounts::default() };
            nothing(&Traffic { tally, counted, ..Traffic::default() })
        };
        for packets in [0, 300] {
            let why = of(packets, 0).expect("nothing is recorded");
            let expected =
                "no packet of the stream came: 300 packets came from other senders, such as 10.0.0.9; ";
            assert!(why.starts_with(expected), "{why}");
        }
        assert_eq!(of(310, 10), None);
    }

    #[test]
    fn a_part_that_never_came_is_named() {
        let port = |name: &str, came, missing| PortTally { name: name.into(), came, missing };
        let ports = [port("module 0", 99, 0), port("module 1", 0, 99), port("module 2", 90, 9)];
        let expected = ["module 1 never came", "9 packets of module 2 are missing"];
        assert_eq!(missing_by_port(&ports), expected);
        assert!(missing_by_port(&ports[..1]).is_empty());
        assert!(
            missing_by_port(&[port("module 0", 0, 0), port("module 1", 0, 0)]).is_empty(),
            "nothing came"
        );
        let many: Vec<_> = (0..20).map(|number| port(&format!("module {number}"), 5, 1)).collect();
        let named = missing_by_port(&many);
        assert_eq!(named.len(), PORTS_NAMED + 1);
        assert!(named.last().is_some_and(|last| last.contains("4 other ports")), "{named:?}");
    }

    #[test]
    fn packets_behind_an_end_are_a_fault_unless_the_user_set_it() {
        let of = |ended, behind_end| super::behind_end(&Traffic { ended, behind_end, ..Traffic::default() });
        for (ended, option) in [
            (ReceptionEnd::Silence, "of --silence"),
            (ReceptionEnd::NothingCame, "--duration"),
            (ReceptionEnd::NoDirectory, "no directory"),
            (ReceptionEnd::Network, "the network"),
        ] {
            let why = of(Some(ended), 7).expect("a loss");
            let begin = "7 packets came after this data stream had ended";
            assert!(why.starts_with(begin) && why.contains(option), "{why}");
            assert_eq!(of(Some(ended), 0), None);
        }
        for planned in [ReceptionEnd::Stopped, ReceptionEnd::Duration, ReceptionEnd::Packets] {
            assert_eq!(of(Some(planned), 7), None);
        }
    }

    #[test]
    fn packets_that_found_a_full_queue_are_a_fault() {
        let of = |queue_full| {
            let counted = TransportCounts { queue_full, ..TransportCounts::default() };
            super::queue_full(&Traffic { counted, ..Traffic::default() })
        };
        assert_eq!(of(0), None);
        assert!(
            of(3).is_some_and(|why| why.starts_with("3 packets found the queue of this data stream full"))
        );
    }
}
