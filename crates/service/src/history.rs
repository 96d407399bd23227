//! The last minutes of a recorder, one sample a second, for a page opened late. The history has a fixed size,
//! and callers pass the time.

use std::collections::VecDeque;

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// The samples of the last minutes, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct StatusHistory {
    samples: VecDeque<HistorySample>,
    /// The figures at the last sample, from which the next computes differences.
    before: Option<(Nanos, Status)>,
    /// The most blocks seen in the ring since the last sample.
    in_use: usize,
}

/// The figures of about one second.
#[derive(Debug, Clone, PartialEq)]
struct HistorySample {
    /// The end of the second.
    at: Moment,
    came: u64,
    acknowledged: u64,
    ring: f64,
    lost: [u64; LOSSES.len()],
    lanes: Vec<LaneSample>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LaneSample {
    written: u64,
    free: Option<u64>,
}

/// The history as columns, one for each curve; this keeps the JSON short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct HistoryColumns {
    /// Milliseconds since 1970.
    at_ms: Vec<u64>,
    came_bytes_per_second: Vec<u64>,
    acknowledged_bytes_per_second: Vec<u64>,
    /// The largest share of the ring's slots seen in use.
    ring_share: Vec<f64>,
    /// The losses, one column for each cause.
    lost: Vec<LossColumn>,
    lanes: Vec<LaneColumns>,
}

/// The losses by one cause in each second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct LossColumn {
    cause: &'static str,
    count: Vec<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
struct LaneColumns {
    written_bytes_per_second: Vec<u64>,
    free_bytes: Vec<Option<u64>>,
}

/// The most samples: five minutes.
const SAMPLES: usize = 300;
const EVERY: Nanos = Nanos::from_millis(1000);
/// After a longer gap the history takes no sample: a mean over it would fit none of its seconds.
const LONG: Nanos = Nanos::from_millis(10_000);
/// The most lanes in a sample. A recorder has fewer disks; more lanes would take more memory than the page is
/// worth.
const LANES: usize = 64;

/// Causes of lost packets, or of lost blocks of them.
const LOSSES: [&str; 8] =
    ["missing", "kernel", "checksum", "queue_full", "ring_full", "late", "unexplained", "blocks_not_stored"];

/// Missing packets that nothing on this machine accounts for: the network lost them, or nobody sent them.
pub(crate) fn unexplained(status: &Status) -> u64 {
    let lost = &status.lost;
    let known = lost.kernel_dropped + lost.bad_checksums + lost.queue_full + lost.ring_full + lost.late;
    lost.all().saturating_sub(known)
}

fn losses(status: &Status) -> [u64; LOSSES.len()] {
    let lost = &status.lost;
    let unexplained = unexplained(status);
    [
        lost.all(),
        lost.kernel_dropped,
        lost.bad_checksums,
        lost.queue_full,
        lost.ring_full,
        lost.late,
        unexplained,
        lost.blocks_not_stored,
    ]
}

impl StatusHistory {
    /// Takes in the current figures, and makes a sample of them every second.
    pub(crate) fn see(&mut self, now: Nanos, at: Moment, status: &Status) {
        self.in_use = self.in_use.max(status.ring.in_use);
        let is_known = |(then, before): &&(Nanos, Status)| now.since(*then) < LONG && follows(before, status);
        let Some((then, before)) = self.before.as_ref().filter(is_known) else {
            self.begin(now, status);
            return;
        };
        let passed = now.since(*then);
        if passed < EVERY {
            return;
        }
        let sample = HistorySample::between(before, status, passed.seconds(), at, self.in_use);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.before = Some((now, status.clone()));
        self.in_use = status.ring.in_use;
    }

    /// Begins a recording. Earlier samples stay, unless they are from other disks.
    fn begin(&mut self, now: Nanos, status: &Status) {
        let is_other = |(_, before): &(Nanos, Status)| !same_disks(before, status);
        if self.before.as_ref().is_some_and(is_other) {
            self.samples.clear();
        }
        self.before = Some((now, status.clone()));
        self.in_use = status.ring.in_use;
    }

    pub(crate) fn columns(&self) -> HistoryColumns {
        let each = |value: fn(&HistorySample) -> u64| self.samples.iter().map(value).collect();
        let lanes = self.samples.back().map_or(0, |sample| sample.lanes.len());
        let lost = LOSSES.iter().enumerate().map(|(cause, name)| LossColumn {
            cause: name,
            count: self.samples.iter().map(|sample| sample.lost[cause]).collect(),
        });
        HistoryColumns {
            at_ms: each(|sample| sample.at.0.0 / 1_000_000),
            came_bytes_per_second: each(|sample| sample.came),
            acknowledged_bytes_per_second: each(|sample| sample.acknowledged),
            ring_share: self.samples.iter().map(|sample| sample.ring).collect(),
            lost: lost.collect(),
            lanes: (0..lanes).map(|lane| self.lane(lane)).collect(),
        }
    }

    fn lane(&self, lane: usize) -> LaneColumns {
        let samples = self.samples.iter().map(|sample| sample.lanes[lane]);
        LaneColumns {
            written_bytes_per_second: samples.clone().map(|sample| sample.written).collect(),
            free_bytes: samples.map(|sample| sample.free).collect(),
        }
    }
}

/// Returns true if both are from one recording: counts only grow, and each recording starts them at zero.
fn follows(before: &Status, status: &Status) -> bool {
    before.came.packets <= status.came.packets
        && before.acknowledged_packets <= status.acknowledged_packets
        && same_disks(before, status)
}

fn same_disks(before: &Status, status: &Status) -> bool {
    before.lanes.iter().map(|lane| &lane.path).eq(status.lanes.iter().map(|lane| &lane.path))
}

impl HistorySample {
    fn between(before: &Status, status: &Status, seconds: f64, at: Moment, in_use: usize) -> Self {
        let rate = |before: u64, now: u64| a_second(now.saturating_sub(before), seconds);
        let mut lost = losses(status);
        for (now, then) in lost.iter_mut().zip(losses(before)) {
            *now = now.saturating_sub(then);
        }
        let lanes = status.lanes.iter().zip(&before.lanes).take(LANES);
        let share = in_use as f64 / status.ring.slots.max(1) as f64;
        HistorySample {
            at,
            came: rate(before.came.bytes, status.came.bytes),
            acknowledged: rate(before.acknowledged_bytes, status.acknowledged_bytes),
            ring: (share * 1000.0).round() / 1000.0,
            lost,
            lanes: lanes
                .map(|(lane, before)| LaneSample {
                    written: rate(before.written_bytes, lane.written_bytes),
                    free: lane.free_bytes,
                })
                .collect(),
        }
    }
}

#[expect(clippy::cast_sign_loss, reason = "neither is negative")]
fn a_second(count: u64, seconds: f64) -> u64 {
    (count as f64 / seconds).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_acquisition::{Came, LaneStatus, Lost, RingStatus};

    fn status(packets: u64, in_use: usize) -> Status {
        let bytes = 1000 * packets;
        let lane = LaneStatus {
            path: "/data".into(),
            written_bytes: bytes / 2,
            free_bytes: Some(1_000_000 - bytes),
            ..LaneStatus::default()
        };
        Status {
            came: Came { packets, bytes, ..Came::default() },
            acknowledged_packets: packets / 2,
            acknowledged_bytes: bytes / 2,
            ring: RingStatus { slots: 8, in_use, ..RingStatus::default() },
            lanes: vec![lane],
            ..Status::default()
        }
    }

    fn at(millis: u64) -> (Nanos, Moment) {
        (Nanos::from_millis(millis), Moment(Nanos::from_millis(1_000_000 + millis)))
    }

    fn see(history: &mut StatusHistory, millis: u64, status: &Status) {
        let (now, moment) = at(millis);
        history.see(now, moment, status);
    }

    #[test]
    fn a_sample_has_what_happened_in_its_second() {
        let mut history = StatusHistory::default();
        see(&mut history, 0, &status(100, 0));
        see(&mut history, 500, &status(110, 6));
        see(&mut history, 1250, &status(150, 2));
        let lost = Lost {
            packets: 9,
            kernel_dropped: 4,
            bad_checksums: 1,
            queue_full: 1,
            late: 2,
            blocks_not_stored: 1,
            ..Lost::default()
        };
        see(&mut history, 2250, &Status { lost, ..status(160, 1) });
        let columns = history.columns();
        assert_eq!(columns.at_ms, [1_001_250, 1_002_250]);
        assert_eq!(columns.came_bytes_per_second, [40_000, 10_000], "50 packets in 1.25 s");
        assert_eq!(columns.acknowledged_bytes_per_second, [20_000, 5000]);
        assert_eq!(columns.ring_share, [0.75, 0.25], "the most in the second, not its end");
        assert_eq!(columns.lanes[0].written_bytes_per_second, [20_000, 5000]);
        assert_eq!(columns.lanes[0].free_bytes, [Some(850_000), Some(840_000)]);
        let lost: Vec<_> = columns.lost.iter().map(|column| (column.cause, column.count[1])).collect();
        let expected = [
            ("missing", 9),
            ("kernel", 4),
            ("checksum", 1),
            ("queue_full", 1),
            ("ring_full", 0),
            ("late", 2),
            ("unexplained", 1),
            ("blocks_not_stored", 1),
        ];
        assert_eq!(lost, expected);
        assert!(columns.lost.iter().all(|column| column.count[0] == 0), "none before");
    }

    #[test]
    fn it_has_the_last_minutes_and_no_more() {
        let mut history = StatusHistory::default();
        for second in 0..=2 * SAMPLES as u64 {
            see(&mut history, 1000 * second, &status(second, 0));
        }
        let columns = history.columns();
        assert_eq!(columns.at_ms.len(), SAMPLES);
        assert_eq!(columns.at_ms.last(), Some(&(1_000_000 + 2000 * SAMPLES as u64)));
        assert!(columns.came_bytes_per_second.iter().all(|rate| *rate == 1000));
    }

    #[test]
    fn counts_that_begin_anew_are_no_rate() {
        let mut history = StatusHistory::default();
        see(&mut history, 0, &status(100, 0));
        see(&mut history, 1000, &status(200, 0));
        see(&mut history, 2000, &status(5, 0));
        see(&mut history, 3000, &status(15, 0));
        assert_eq!(history.columns().came_bytes_per_second, [100_000, 10_000], "of one disk, two recordings");
        let mut other = status(20, 0);
        other.lanes[0].path = "/other".into();
        see(&mut history, 4000, &other);
        assert_eq!(history.columns().at_ms, [0; 0], "curves of other disks mean nothing beside these");
    }

    #[test]
    fn no_more_lanes_are_kept_than_it_has_room_for() {
        let mut many = status(1, 0);
        many.lanes = vec![LaneStatus::default(); 3 * LANES];
        let mut history = StatusHistory::default();
        see(&mut history, 0, &many);
        see(&mut history, 1000, &many);
        assert_eq!(history.columns().lanes.len(), LANES);
    }
}
