//! The room that storage has left for a recording: in bytes, and in time at the rate at which the lanes wrote so far.

use nilometer_model::TargetDescription;

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

/// The bytes that lanes with these spaces may fill, each storage counted once. `None` for a ring, which never fills up,
/// and without a lane.
pub(super) fn usable(spaces: &[&LaneSpace]) -> Option<u64> {
    if spaces.is_empty() || spaces.iter().any(|space| space.is_ring) {
        return None;
    }
    let is_first = |at: &usize| !spaces[..*at].iter().any(|before| before.shares_with(spaces[*at]));
    let each = (0..spaces.len()).filter(is_first).map(|at| spaces[at].usable());
    Some(each.fold(0, u64::saturating_add))
}

/// Seconds until `usable` bytes are full at the mean rate at which the lanes wrote `written` bytes in `seconds`. `None` if
/// the room is unknown or the lanes wrote nothing yet.
pub(super) fn seconds_left(usable: Option<u64>, written: u64, seconds: f64) -> Option<f64> {
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
        let all: Vec<_> = lanes.iter().collect();
        assert_eq!(usable(&all), Some(90 + 40));
        assert_eq!(usable(&all[1..2]), Some(90), "a lane that failed fills nothing");
        assert_eq!(usable(&[]), None);
        one.read(|| Some(30));
        assert_eq!(usable(&all), Some(20 + 40), "after a reading");
        let ring = LaneSpace { gauge: None, at_start: 100, is_ring: true };
        assert_eq!(usable(&[&ring]), None);
    }

    #[test]
    fn time_left_follows_from_the_bytes_written() {
        assert_eq!(seconds_left(Some(600), 150, 10.0), Some(40.0));
        assert_eq!(seconds_left(Some(600), 0, 10.0), None, "nothing is written yet");
        assert_eq!(seconds_left(Some(600), 5, 0.0), None);
        assert_eq!(seconds_left(None, 5, 1.0), None);
    }
}
