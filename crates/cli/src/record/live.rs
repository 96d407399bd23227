//! The progress of a recording, on stderr: on a terminal a line that is rewritten every second, elsewhere a
//! line every ten seconds.

use nilometer_acquisition::Status;
use nilometer_model::{ByteRate, Bytes, Moment, Nanos, packets::Station, rounded_down};
use nilometer_storage::Calendar;

use super::{
    disks::{failed_disks, failures},
    recording_screen::RecordingScreen,
};
use crate::{screen::Screen, status_line::StatusLine, tell};

/// The form of the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiveForm {
    /// None: only warnings.
    Quiet,
    Line,
    /// A view that fills the terminal; a line if there is no terminal.
    Screen,
}

/// Prints the progress of a recording.
#[derive(Debug)]
pub(super) struct Live {
    line: StatusLine,
    /// The view that fills the terminal, in place of the line.
    screen: Option<RecordingScreen>,
    every: Option<Nanos>,
    next: Nanos,
    /// The time of the last check for silence, and the sources that were silent then.
    looked: Nanos,
    silent: Vec<String>,
    /// The failures of directories that it has reported.
    reported: Vec<String>,
}

const ON_TERMINAL: Nanos = Nanos::from_millis(1000);
const ELSEWHERE: Nanos = Nanos::from_millis(10_000);
/// Rooms that last longer are shown in bytes only: three years.
const LONGEST_SECONDS: f64 = 1e8;
/// The time between two checks for silent sources.
const LOOK: Nanos = Nanos::from_millis(250);

impl Live {
    /// Begins to show the progress of the recording `name`.
    pub(super) fn new(name: &str, form: LiveForm, now: Nanos) -> Self {
        let every = if StatusLine::is_possible() { ON_TERMINAL } else { ELSEWHERE };
        let fills = form == LiveForm::Screen && Screen::is_possible();
        Live {
            line: StatusLine::default(),
            screen: fills.then(|| RecordingScreen::open(name)),
            every: (form != LiveForm::Quiet).then_some(every),
            next: now + every,
            looked: now,
            silent: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Reports at once, quiet or not, each directory that takes no more and each sender and thread that became silent.
    pub(super) fn warn(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        let status = status();
        self.report_failures(&status);
        let silent = silent(&status);
        let new: Vec<_> = silent.iter().filter(|one| !self.silent.contains(one)).cloned().collect();
        if !new.is_empty() {
            self.line.clear();
            tell::note(new.join("; "));
        }
        self.silent = silent;
    }

    fn report_failures(&mut self, status: &Status) {
        for failure in failures(&status.lanes) {
            let text = failure.to_string();
            if self.reported.contains(&text) {
                continue;
            }
            self.line.clear();
            let time = Moment(Calendar::now().time).time_of_day();
            let going_on = status.lanes.iter().filter(|lane| lane.state == "writing").count();
            tell::note(format_args!("{time} {text}, {going_on} of {} go on", status.lanes.len()));
            self.reported.push(text);
        }
    }

    /// Prints the progress, if it is due.
    pub(super) fn tell(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return };
        self.next = now + every;
        let status = status();
        if let Some(screen) = &mut self.screen {
            screen.show(&status);
            return;
        }
        let text = line(&status);
        if StatusLine::is_possible() {
            self.line.rewrite(|width| text.chars().take(width).collect());
        } else {
            tell::note(text);
        }
    }

    /// Removes the line, and reports failures since the last check.
    pub(super) fn end(&mut self, status: &Status) {
        self.screen = None;
        self.line.clear();
        self.report_failures(status);
    }
}

/// The line of the progress. The most important part comes first: a narrow terminal shows the beginning.
fn line(status: &Status) -> String {
    if status.came.packets == 0 { nothing_yet(status) } else { parts(status).join("; ") }
}

fn nothing_yet(status: &Status) -> String {
    if status.counted_in == "frames" { "no frame yet".into() } else { "no packet yet".into() }
}

/// The figures of this moment, the most important ones first.
pub(super) fn parts(status: &Status) -> Vec<String> {
    let Status { came, lost, ring, lanes, .. } = status;
    let rate = ByteRate(came.bytes_per_second).bits();
    let missing = lost.all().max(lost.kernel_dropped);
    let lost = if missing == 0 { "none missing".into() } else { format!("{missing} MISSING") };
    let full = |slots: usize| 100 * slots / ring.slots.max(1);
    let mut parts = failed_disks(lanes);
    parts.extend([
        format!("{rate}, {} in {:.0} s", Bytes(came.bytes), status.seconds),
        lost,
        format!("buffer {} %, at most {} %", full(ring.in_use), full(ring.high_water)),
    ]);
    parts.extend(others(status));
    parts.extend(silent(status));
    parts.extend(room(status));
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
        parts.push(format!("sequence restarted {anew} times"));
    }
    parts
}

/// Senders and threads that are silent while others send.
fn silent(status: &Status) -> Vec<String> {
    let mut silent = Vec::new();
    for sender in &status.senders {
        if sender.silent_seconds.is_some() {
            silent.push(format!("{} is SILENT", sender.name()));
        }
        let threads = sender.threads.iter().filter(|thread| thread.silent_seconds.is_some());
        silent.extend(threads.map(|thread| {
            format!("thread {} of station {} is SILENT", thread.thread, Station(thread.station))
        }));
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
        let text = "4 Gbit/s, 1.5 MB in 3 s; none missing; buffer 1 %, at most 50 %; 1 GB free";
        assert_eq!(line(&status), text);
        status.lost = Lost { packets: 3, kernel_dropped: 2, ..Lost::default() };
        status.lanes.push(lane("/b", "failed"));
        status.room_seconds = Some(83.9);
        let text = "DISK FAILED /b; 4 Gbit/s, 1.5 MB in 3 s; 3 MISSING; buffer 1 %, at most 50 %; room for 83 s (1 GB)";
        assert_eq!(line(&status), text);
        assert_eq!(line(&Status::default()), "no packet yet");
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
            text.ends_with("; 7 of OTHER SENDERS, such as 10.0.0.3; sequence restarted 3 times"),
            "{text}"
        );
    }
}
