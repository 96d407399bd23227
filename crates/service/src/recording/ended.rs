//! The end of a recording: its faults, and the end of each lane.

use nilometer_acquisition::{Ending, Outcome as Recorded};
use nilometer_intake::{
    Traffic,
    senders::{SenderCounts, ThreadCounts},
    series::SeriesTraffic,
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
    let mut faults: Vec<String> = nothing(&traffic).into_iter().map(Into::into).collect();
    let missing = traffic.tally.lost();
    if missing > 0 {
        faults.push(format!("{missing} packets are missing"));
    }
    let lost = outcome.due.saturating_sub(outcome.stored());
    if lost > 0 {
        faults.push(format!("{lost} of {} blocks were not stored", outcome.due));
    }
    faults.extend(thrown_away::causes(&traffic));
    faults.extend(silent(&traffic));
    faults.extend(traffic.fault.map(|why| format!("the network: {why}")));
    faults.extend(early_ends(outcome, "directories", false));
    (!faults.is_empty()).then(|| faults.join("; "))
}

fn fault_of_series(outcome: &Recorded, series: &SeriesTraffic) -> Option<String> {
    let mut faults = Vec::new();
    let missing = series.lost(outcome.due);
    if series.tally.frames == 0 {
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
fn nothing(Traffic { tally, counted, .. }: &Traffic) -> Option<&'static str> {
    match (counted.packets, tally.placed) {
        (0, _) => Some("no packet came"),
        (_, 0) => Some("no packet of the stream came: all that came were others"),
        _ => None,
    }
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
    use nilometer_intake::{assembly::PacketTally, transport::TransportCounts};

    #[test]
    fn a_recording_of_nothing_is_none() {
        let of = |packets, placed| {
            let (tally, counted) = (
                PacketTally { placed, ..PacketTally::default() },
                TransportCounts { packets, ..TransportCounts::default() },
            );
            nothing(&Traffic { tally, counted, ..Traffic::default() })
        };
        assert_eq!(of(0, 0), Some("no packet came"));
        assert!(of(5, 0).is_some_and(|why| why.starts_with("no packet of the stream came")));
        assert_eq!(of(5, 5), None);
    }
}
