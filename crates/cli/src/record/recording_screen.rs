//! The progress of a recording as a view that fills the terminal.

use nilometer_acquisition::{LaneStatus, Status};
use nilometer_model::Bytes;

use super::figures::parts;
use crate::screen::{Screen, ScreenContent};

/// A view of a recording: the figures of this moment, the fill level of the buffer, the rate as a curve, and the
/// directories.
#[derive(Debug)]
pub(super) struct RecordingScreen {
    screen: Screen,
    title: String,
}

impl RecordingScreen {
    pub(super) fn open(name: &str) -> Self {
        RecordingScreen { screen: Screen::open(), title: format!("recording {name}") }
    }

    pub(super) fn show(&mut self, status: &Status) {
        self.screen.draw(&content(&self.title, status));
    }
}

fn content(title: &str, status: &Status) -> ScreenContent {
    let ring = &status.ring;
    let share = ring.in_use as f64 / ring.slots.max(1) as f64;
    let most = 100 * ring.high_water / ring.slots.max(1);
    let is_alarm = status.lost.all() > 0 || status.lanes.iter().any(|lane| lane.state == "failed");
    #[expect(clippy::cast_sign_loss, reason = "no rate is negative")]
    let rate = status.came.bytes_per_second as u64;
    ScreenContent {
        title: title.into(),
        gauge: Some((share, format!("buffer {:.0} %, at most {most} %", 100.0 * share))),
        figures: parts(status, usize::MAX),
        is_alarm,
        curve: Some(("bytes a second".into(), rate)),
        list: status.lanes.iter().map(lane_line).collect(),
    }
}

fn lane_line(lane: &LaneStatus) -> String {
    let free = lane.free_bytes.map_or_else(String::new, |free| format!(", {} free", Bytes(free)));
    let written = Bytes(lane.written_bytes);
    format!("{:<8} {}: {written} written{free}", lane.state, lane.path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_acquisition::{Came, Lost, RingStatus};

    #[test]
    fn losses_are_an_alarm_and_every_directory_has_a_line() {
        let lane = |path: &str, state| LaneStatus { path: path.into(), state, ..LaneStatus::default() };
        let status = Status {
            came: Came { packets: 5, bytes_per_second: 1e6, ..Came::default() },
            ring: RingStatus { slots: 100, in_use: 25, high_water: 50, ..RingStatus::default() },
            lanes: vec![lane("/a", "writing"), lane("/b", "full")],
            ..Status::default()
        };
        let shown = content("recording n", &status);
        assert_eq!(shown.gauge, Some((0.25, "buffer 25 %, at most 50 %".into())));
        assert_eq!(shown.curve.map(|(_, rate)| rate), Some(1_000_000));
        assert_eq!(shown.list, ["writing  /a: 0 B written", "full     /b: 0 B written"]);
        assert!(!shown.is_alarm && shown.figures[0].starts_with("DISK FULL /b"), "{:?}", shown.figures);
        let lost = Status { lost: Lost { packets: 1, ..Lost::default() }, ..status };
        assert!(content("recording n", &lost).is_alarm);
    }
}
