//! The results of a series of frames, as text.

use std::sync::Arc;

use nilometer_acquisition::{Outcome as Recorded, Status};
use nilometer_intake::series::{SeriesEnding, SeriesRefusal, SeriesTraffic};
use nilometer_model::Bytes;
use nilometer_service::recording::thrown_away::frames_thrown_away;
use nilometer_storage::target::KeptDirectory;

use super::summary::recorded;
use crate::recorded::{ring_and_lanes, storage_failed};

/// The fate of the frames, one line each.
pub(super) fn series_summary(
    outcome: &Recorded,
    series: &SeriesTraffic,
    status: &Status,
    targets: &[Arc<dyn KeptDirectory>],
) -> String {
    let SeriesTraffic { tally, .. } = series;
    let rate = series.mean_rate().map_or_else(String::new, |rate| format!(", {rate}"));
    let longest = outcome.lanes.iter().flatten().map(|lane| lane.totals.longest).max().unwrap_or_default();
    let mut lines = vec![
        format!("received    {} frames, {}{rate}", tally.frames, Bytes(tally.bytes)),
        format!("series      {}", series_line(series)),
        recorded(status, storage_failed(outcome)),
    ];
    // Process 0 reports the frames that no process got.
    lines.extend((!series.is_share).then(|| format!("missing     {}", missing(series, outcome.due))));
    lines.push(format!("discarded   {}", discarded(series)));
    lines.extend(not_taken(series).map(|connections| format!("connections {connections}")));
    lines.extend(damaged(outcome));
    if let (unread @ 1.., Some(fault)) = (series.tally.unread, &series.tally.unread_fault) {
        lines.push(format!(
            "unread      {unread} values beside pixels are not in their place in the file; the last: {fault}"
        ));
    }
    lines.push(format!("write       slowest frame {longest}, from complete until acknowledged"));
    lines.extend(ring_and_lanes(outcome, targets, "frames"));
    lines.join("\n") + "\n"
}

/// The frames that came damaged, a line for each kind of damage.
fn damaged(outcome: &Recorded) -> Vec<String> {
    let altered = outcome.altered();
    let kinds = [
        (outcome.damaged() - altered, "can't be unpacked"),
        (altered, "differ from the MD5 that the detector sent"),
    ];
    let there = kinds.into_iter().filter(|(frames, _)| *frames > 0);
    let line =
        |(frames, damage)| format!("damaged     {frames} frames {damage}; stored as they came, with flag 2");
    there.map(line).collect()
}

/// The number of its frames, and its end.
fn series_line(series: &SeriesTraffic) -> String {
    let announced = match series.frames {
        Some(frames) if frames < series.tally.frames => {
            format!("{frames} frames announced, {} more came", series.tally.frames - frames)
        }
        Some(frames) => format!("{frames} frames announced"),
        None => "no number of frames announced".to_owned(),
    };
    let ended = match series.ending {
        Some(SeriesEnding::Complete | SeriesEnding::Ended) if series.is_share => "ended by its sender",
        Some(SeriesEnding::Complete) => "complete",
        Some(SeriesEnding::Ended) => "ended by its sender before all came",
        Some(SeriesEnding::Followed) => "ended by the start of another series before all came",
        Some(SeriesEnding::Silent) => "given up, as nothing more came",
        Some(SeriesEnding::Stopped) => "ended here",
        Some(SeriesEnding::NoSeries) | None => "not begun",
    };
    let connections = match series.counted.ended {
        0 => String::new(),
        many => format!("; connections ended {many} times"),
    };
    format!("{announced}, {ended}{connections}")
}

/// The frames that are missing.
fn missing(series: &SeriesTraffic, due: u64) -> String {
    let missing = series.lost(due);
    if missing == 0 {
        return match frames_thrown_away(series) {
            0 => "none".into(),
            thrown => format!("0 of those announced; {thrown} others came and were discarded"),
        };
    }
    let share = missing as f64 / series.expected(due).max(1) as f64 * 100.0;
    let no_room = match series.tally.refused(SeriesRefusal::NoRoom) {
        0 => String::new(),
        many => format!(", {many} of which found no room"),
    };
    let behind = missing.saturating_sub(series.missing);
    let behind = if behind > 0 { format!("; {behind} behind the last that came") } else { String::new() };
    format!("{missing} frames, {share:.4} %{no_room}{behind}")
}

/// Frames that arrived and are not recorded.
fn discarded(series: &SeriesTraffic) -> String {
    let counted = SeriesRefusal::ALL.into_iter().filter(|why| *why != SeriesRefusal::NoRoom);
    let counted = counted.map(|why| (series.tally.refused(why), why.name()));
    let links = [
        (series.counted.too_large, "beyond the limits"),
        (series.counted.no_memory, "without memory for data other than pixels"),
        (series.counted.cut_off, "cut off"),
    ];
    let all: Vec<_> = counted
        .chain(links)
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let Some(fault) = series.tally.fault.as_ref().filter(|_| !all.is_empty()) else {
        return if all.is_empty() {
            "none".into()
        } else {
            format!("frames or messages: {}", all.join(", "))
        };
    };
    format!("frames or messages: {}; the last: {fault}", all.join(", "))
}

/// The connections that were refused or ignored. `None` if there were none.
fn not_taken(series: &SeriesTraffic) -> Option<String> {
    let counts = series.counted.refused_connections().into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(why, count)| format!("{count} {why}")).collect();
    let addresses: Vec<_> = series.counted.not_heard().iter().map(ToString::to_string).collect();
    let from =
        if addresses.is_empty() { String::new() } else { format!("; not heard: {}", addresses.join(", ")) };
    (!counts.is_empty()).then(|| format!("refused: {}{from}", counts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_intake::transport::zeromq::RefusedPeers;

    #[test]
    fn what_is_missing_is_said_with_what_is_known_of_it() {
        let mut series = SeriesTraffic { frames: Some(100), missing: 4, ..SeriesTraffic::default() };
        series.tally.frames = 90;
        assert_eq!(missing(&series, 100), "10 frames, 10.0000 %; 6 behind the last that came");
        let stopped = SeriesTraffic { ending: Some(SeriesEnding::Stopped), ..series.clone() };
        assert_eq!((missing(&stopped, 90), discarded(&stopped)), ("none".into(), "none".into()));
        assert_eq!(series_line(&series), "100 frames announced, not begun");
        assert_eq!(not_taken(&series), None);
        series.counted.refused = RefusedPeers { connections: 3, addresses: vec![[10, 0, 0, 9].into()] };
        series.counted.stalled = 2;
        let told = "refused: 3 not allowed, 2 stood still; not heard: 10.0.0.9";
        assert_eq!(not_taken(&series).as_deref(), Some(told));
    }
}
