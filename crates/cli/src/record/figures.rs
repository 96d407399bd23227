//! The figures of a recording in words, for the line and the view of its progress.

use nilometer_acquisition::{DataStreamStatus, Status};
use nilometer_model::{ByteRate, Bytes, packets::source_name, rounded_down};

use super::disks::failed_disks;

/// Rooms that last longer are shown in bytes only: three years.
const LONGEST_SECONDS: f64 = 1e8;

/// The line of the progress. The most important part comes first: a narrow terminal shows the beginning.
pub(super) fn line(status: &Status) -> String {
    line_with(status, usize::MAX)
}

/// The line in at most `width` columns. If it is too wide, the paths of failed directories lose their beginnings, so
/// that losses stay visible behind them.
pub(super) fn fitting_line(status: &Status, width: usize) -> String {
    let whole = line(status);
    let fits = whole.chars().count() <= width;
    let line = if fits { whole } else { line_with(status, PATH_WIDTH) };
    line.chars().take(width).collect()
}

/// The width of the path of a failed directory in a line that is too wide.
const PATH_WIDTH: usize = 20;

fn line_with(status: &Status, path_width: usize) -> String {
    if status.came.packets == 0 { nothing_yet(status) } else { parts(status, path_width).join("; ") }
}

fn nothing_yet(status: &Status) -> String {
    if status.counted_in == "frames" { "no frame yet".into() } else { "no packet yet".into() }
}

/// The figures of this moment, the most important ones first, with paths of at most `path_width` letters.
pub(super) fn parts(status: &Status, path_width: usize) -> Vec<String> {
    let Status { came, lost, ring, lanes, .. } = status;
    let rate = ByteRate(came.bytes_per_second).bits();
    let missing = lost.all().max(lost.kernel_dropped + lost.queue_full);
    let lost = if missing == 0 { "none missing".into() } else { format!("{missing} MISSING") };
    let full = |slots: usize| 100 * slots / ring.slots.max(1);
    let mut parts = failed_disks(lanes, path_width);
    parts.extend([format!("{rate}, {} in {:.0} s", Bytes(came.bytes), status.seconds), lost]);
    parts.extend(others(status));
    parts.extend(silent(status));
    // 80 columns show how long the storage lasts. The buffer may lie behind the edge.
    parts.extend(room(status));
    parts.push(format!("buffer {} %, at most {} %", full(ring.in_use), full(ring.high_water)));
    parts
}

/// The packets that differ from the first ones: of other senders, or after a restart of the numbers.
fn others(status: &Status) -> Vec<String> {
    let strangers = status.ignored_packets.iter().find(|(why, _)| *why == "not-allowed");
    let mut parts = Vec::new();
    if let Some((_, count @ 1..)) = strangers {
        let such = status.other_sender.map_or_else(String::new, |sender| format!(", such as {sender}"));
        parts.push(format!("{count} of OTHER SENDERS{such}"));
    }
    let refused: u64 = status.refused_connections.iter().map(|(_, count)| count).sum();
    if refused > 0 {
        let such =
            status.refused_peers.first().map_or_else(String::new, |peer| format!(", such as from {peer}"));
        parts.push(format!("{refused} connections REFUSED{such}"));
    }
    let anew = status.restarts + status.jumps;
    if anew > 0 {
        parts.push(format!("sequence restarted or jumped {anew} times"));
    }
    parts
}

/// Data streams, senders and threads that are silent while others send, and data streams that have ended.
pub(super) fn silent(status: &Status) -> Vec<String> {
    let mut silent: Vec<String> = status.data_streams.iter().flat_map(DataStreamStatus::warnings).collect();
    for sender in &status.senders {
        if sender.silent_seconds.is_some() {
            silent.push(format!("{} is SILENT", sender.name()));
        }
        let threads = sender.threads.iter().filter(|thread| thread.silent_seconds.is_some());
        silent.extend(
            threads.map(|thread| format!("{} is SILENT", source_name(thread.station, thread.thread))),
        );
    }
    silent
}

/// The time until the storage is full, and the bytes that it still takes; nothing if the recorder does not know them.
fn room(status: &Status) -> Option<String> {
    let usable = Bytes(status.usable_bytes?);
    Some(match status.room_seconds.filter(|seconds| *seconds < LONGEST_SECONDS) {
        Some(seconds) => format!("room for {} ({usable})", rounded_down(seconds)),
        None => format!("{usable} free"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_acquisition::{Came, LaneStatus, Lost, RingStatus};

    #[test]
    fn the_line_begins_with_what_matters_most() {
        let came = Came { packets: 5, bytes: 1_500_000, bytes_per_second: 5e8, ..Came::default() };
        let ring = RingStatus { slots: 200, in_use: 2, high_water: 100, ..RingStatus::default() };
        let lane = |path: &str, state| LaneStatus { path: path.into(), state, ..LaneStatus::default() };
        let lanes = vec![lane("/a", "writing")];
        let usable_bytes = Some(1_000_000_000);
        let mut status = Status { seconds: 3.2, came, ring, lanes, usable_bytes, ..Status::default() };
        let text = "4 Gbit/s, 1.5 MB in 3 s; none missing; 1 GB free; buffer 1 %, at most 50 %";
        assert_eq!(line(&status), text);
        status.lost = Lost { packets: 3, kernel_dropped: 2, ..Lost::default() };
        status.lanes.push(lane("/b", "failed"));
        status.room_seconds = Some(83.9);
        let text = "DISK FAILED /b; 4 Gbit/s, 1.5 MB in 3 s; 3 MISSING; room for 83 s (1 GB); buffer 1 %, at most 50 %";
        assert_eq!(line(&status), text);
        status.lanes[1].path = "/srv/recordings/of/the/station/b".into();
        let text = "DISK FAILED .../of/the/station/b; 4 Gbit/s, 1.5 MB in 3 s; 3 MISSING; room for 8";
        assert_eq!(fitting_line(&status, 80), text);
        assert_eq!(fitting_line(&status, 200), line(&status), "a wide terminal shows all");
        assert_eq!(line(&Status::default()), "no packet yet");
        let silent = DataStreamStatus {
            name: "s_dsA".into(),
            silent_seconds: Some(2.0),
            ..DataStreamStatus::default()
        };
        let data_streams = vec![DataStreamStatus::default(), silent];
        let several = line(&Status { data_streams, came, ..Status::default() });
        assert!(several.contains("; s_dsA is SILENT; buffer "), "{several}");
        let status = Status {
            came: Came { packets: 1, ..Came::default() },
            ignored_packets: vec![("not-allowed", 7)],
            other_sender: Some([10, 0, 0, 3].into()),
            jumps: 1,
            restarts: 2,
            ..Status::default()
        };
        let text = line(&status);
        assert!(text.contains("; none missing; "), "a jump is no loss: {text}");
        assert!(
            text.contains(
                "; 7 of OTHER SENDERS, such as 10.0.0.3; sequence restarted or jumped 3 times; buffer "
            ),
            "{text}"
        );
    }
}
