//! The room that storage has left for a recording: in bytes, and in time at the rate at which the lanes wrote so far.

use nilometer_model::TargetDescription;

use super::status::{LaneStatus, LaneWatch};
use crate::sink::Gauge;

/// The free space of a lane's storage.
#[derive(Debug)]
pub(super) struct LaneSpace {
    /// The readings while the lane writes. `None` if nothing is kept free.
    gauge: Option<Gauge>,
    at_start: u64,
    /// The recording keeps only the latest frames, in space that it reserved at its start.
    is_ring: bool,
}

impl LaneSpace {
    pub(super) fn new(gauge: Option<Gauge>, on: &TargetDescription, is_ring: bool) -> Self {
        LaneSpace { gauge, at_start: on.space.free.0, is_ring }
    }

    /// Free bytes at the last reading. `None` if there was none.
    pub(super) fn free(&self) -> Option<u64> {
        self.gauge.as_ref().and_then(Gauge::free)
    }

    /// Free bytes beyond the reserve: at the last reading, or before the first one at the start.
    fn usable(&self) -> u64 {
        let reserve = self.gauge.as_ref().map_or(0, Gauge::reserve);
        self.free().unwrap_or(self.at_start).saturating_sub(reserve)
    }

    fn shares_with(&self, other: &LaneSpace) -> bool {
        match (&self.gauge, &other.gauge) {
            (Some(one), Some(other)) => one.shares_with(other),
            _ => false,
        }
    }
}

/// The bytes that the lanes which still write may fill, each storage counted once. `None` for a ring, which never
/// fills up, and if no lane writes.
pub(super) fn usable(lanes: &[LaneWatch]) -> Option<u64> {
    let spaces: Vec<_> = lanes.iter().filter(|lane| lane.writes()).map(LaneWatch::space).collect();
    if spaces.is_empty() || spaces.iter().any(|space| space.is_ring) {
        return None;
    }
    let is_first = |at: &usize| !spaces[..*at].iter().any(|before| before.shares_with(spaces[*at]));
    let each = (0..spaces.len()).filter(is_first).map(|at| spaces[at].usable());
    Some(each.fold(0, u64::saturating_add))
}

/// Seconds until `usable` bytes are full at the mean rate at which the lanes wrote for `seconds`. `None` if the room is
/// unknown or the lanes wrote nothing yet.
pub(super) fn seconds_left(usable: Option<u64>, lanes: &[LaneStatus], seconds: f64) -> Option<f64> {
    let written: u64 = lanes.iter().map(|lane| lane.written_bytes).sum();
    let rate = written as f64 / seconds;
    (rate.is_finite() && rate > 0.0).then(|| usable.map(|usable| usable as f64 / rate)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(gauge: &Gauge, at_start: u64) -> LaneSpace {
        LaneSpace { gauge: Some(gauge.clone()), at_start, is_ring: false }
    }

    #[test]
    fn shared_storage_counts_once_and_its_reserve_too() {
        let one = Gauge::with_reserve(10);
        let lanes = [space(&one, 100), space(&one.beside(), 100), space(&Gauge::with_reserve(10), 50)];
        let watched = |ended: &[bool]| {
            let each = lanes.iter().zip(ended).map(|(lane, ended)| {
                let space = LaneSpace { gauge: lane.gauge.clone(), ..*lane };
                LaneWatch::of_space(space, *ended)
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(usable(&watched(&[false; 3])), Some(90 + 40));
        assert_eq!(usable(&watched(&[true, false, true])), Some(90), "a lane that failed fills nothing");
        assert_eq!(usable(&watched(&[true; 3])), None);
        one.read(|| Some(30));
        assert_eq!(usable(&watched(&[false; 3])), Some(20 + 40), "after a reading");
        let ring = LaneSpace { gauge: None, at_start: 100, is_ring: true };
        assert_eq!(usable(&[LaneWatch::of_space(ring, false)]), None);
    }

    #[test]
    fn time_left_follows_from_the_bytes_written() {
        let lane = |written_bytes| LaneStatus { written_bytes, ..LaneStatus::default() };
        assert_eq!(seconds_left(Some(600), &[lane(50), lane(100)], 10.0), Some(40.0));
        assert_eq!(seconds_left(Some(600), &[lane(0)], 10.0), None, "nothing is written yet");
        assert_eq!(seconds_left(Some(600), &[lane(5)], 0.0), None);
        assert_eq!(seconds_left(None, &[lane(5)], 1.0), None);
    }
}
