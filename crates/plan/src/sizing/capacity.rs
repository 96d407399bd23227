//! The buffer of days: the space that data need until they may go, and the time that a space lasts.

use nilometer_model::{ByteRate, Bytes, Nanos};

use super::Demand;

const DAY: f64 = 86_400.0;

/// The result for the buffer of days.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferCapacity {
    /// The mean inflow over days.
    pub inflow: ByteRate,
    /// The inflow that exceeds the copy to the archive. Zero if the copy keeps up, or if data go without.
    pub growth: ByteRate,
    /// The least space that never fills up; `None` if any space does in the end and there is no retention
    /// time.
    pub needed: Option<Bytes>,
    /// The earliest time at which the given space is full. `None` if never, or if no space is given.
    pub full_after: Option<Nanos>,
}

/// Sizes the buffer. Instruments may begin their day at the same moment, and the copy begins with them.
pub(super) fn buffer(demand: &Demand) -> BufferCapacity {
    let copied = demand.copy_out.map_or(0.0, |rate| rate.0);
    let inflow = brought(demand, DAY) / DAY;
    let deleted_unseen = demand.copy_out.is_none() && demand.retention.is_some();
    let growth = if deleted_unseen { 0.0 } else { rounded(inflow - copied, inflow) };
    let kept = demand.retention.map(|keep| brought(demand, keep.seconds()));
    let waiting = (growth == 0.0 && !deleted_unseen).then(|| highest(demand, copied));
    let needed = [kept, waiting].into_iter().flatten().reduce(f64::max);
    BufferCapacity {
        inflow: ByteRate(inflow),
        growth: ByteRate(growth),
        needed: needed.map(bytes),
        full_after: demand
            .capacity
            .and_then(|space| full(demand, growth, space.0 as f64))
            .map(Nanos::from_seconds),
    }
}

#[expect(clippy::cast_sign_loss, reason = "a volume is not negative")]
fn bytes(number: f64) -> Bytes {
    Bytes(number.ceil() as u64)
}

/// A copy that is slower by less than a millionth keeps up.
fn rounded(growth: f64, inflow: f64) -> f64 {
    if growth > 1e-6 * inflow { growth } else { 0.0 }
}

/// The most bytes that all instruments bring in this many seconds.
fn brought(demand: &Demand, time: f64) -> f64 {
    let days = (time / DAY).floor();
    let rest = time % DAY;
    let each = demand.kinds.iter().map(|kind| {
        let seconds = days * kind.duty * DAY + rest.min(kind.duty * DAY);
        kind.streams as f64 * kind.written() * seconds
    });
    each.sum()
}

/// Moments of a day, in seconds, between which the inflow is steady.
fn moments(demand: &Demand) -> Vec<f64> {
    let mut moments: Vec<f64> = demand.kinds.iter().map(|kind| kind.duty * DAY).chain([0.0, DAY]).collect();
    moments.sort_by(f64::total_cmp);
    moments
}

/// The most bytes that wait for the copy within a day.
fn highest(demand: &Demand, copied: f64) -> f64 {
    let waiting = |time: f64| brought(demand, time) - copied * time;
    moments(demand).into_iter().map(waiting).fold(0.0, f64::max)
}

/// The earliest time at which a space is full, in seconds. All data stay until the first may go; after that,
/// those not copied.
fn full(demand: &Demand, growth: f64, space: f64) -> Option<f64> {
    let untouched = first_above(demand, 0.0, space);
    match (demand.retention, demand.copy_out) {
        (None, None) => Some(untouched),
        (Some(keep), _) if untouched < keep.seconds() * (1.0 - 1e-9) => Some(untouched),
        (_, Some(rate)) if growth > 0.0 || highest(demand, rate.0) > space => {
            Some(first_above(demand, rate.0, space))
        }
        _ => None,
    }
}

/// The earliest time at which more than `space` is used, if data go as they are copied. This must happen at
/// some time.
fn first_above(demand: &Demand, copied: f64, space: f64) -> f64 {
    let growth = brought(demand, DAY) - copied * DAY;
    let days = if growth > 0.0 { ((space - highest(demand, copied)) / growth).ceil().max(0.0) } else { 0.0 };
    let there = |moment: f64| days * growth + brought(demand, moment) - copied * moment;
    let moments = moments(demand);
    let crossing = moments.windows(2).find(|pair| there(pair[1]) >= space && pair[1] > pair[0]);
    crossing.map_or(days * DAY, |pair| {
        let before = there(pair[0]);
        let after = there(pair[1]);
        let share = if after > before { (space - before) / (after - before) } else { 0.0 };
        days * DAY + pair[0] + share.max(0.0) * (pair[1] - pair[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::{Figure, Kind};
    use nilometer_model::Schedule;

    const GB: f64 = 1e9;

    /// One stream of 1 GB/s, so that a whole day of it is 86.4 TB.
    fn demand(duty: f64, copy_out: Option<f64>, keep_days: Option<u64>, space_tb: Option<u64>) -> Demand {
        let kind = Kind {
            name: "camera".into(),
            streams: 1,
            in_step: 1,
            frame: Bytes(1_000_000),
            packing: Figure::assumed(1.0, ""),
            cost: Figure::assumed(0.5, ""),
            schedule: Schedule::every(Nanos::from_millis(1)),
            duty,
            assumed: Vec::new(),
            reading: ByteRate(0.0),
        };
        Demand {
            kinds: vec![kind],
            copy_out: copy_out.map(|gigabytes| ByteRate(gigabytes * GB)),
            retention: keep_days.map(|days| Nanos(days * 86_400_000_000_000)),
            capacity: space_tb.map(|terabytes| Bytes(terabytes * 1_000_000_000_000)),
        }
    }

    /// The needed space in GB.
    fn needed(duty: f64, copy_out: Option<f64>, keep_days: Option<u64>) -> Option<u64> {
        let needed = buffer(&demand(duty, copy_out, keep_days, None)).needed;
        needed.map(|bytes| (bytes.0 + 500_000_000) / 1_000_000_000)
    }

    #[test]
    fn data_that_are_kept_need_what_comes_meanwhile() {
        assert_eq!(needed(1.0, None, Some(3)), Some(3 * 86_400));
        assert_eq!(needed(0.25, None, Some(3)), Some(3 * 21_600));
        assert_eq!(needed(0.25, Some(0.5), Some(3)), Some(3 * 21_600), "the copy keeps up");
        assert_eq!(needed(1.0, Some(0.5), Some(3)), Some(3 * 86_400), "for three days of it");
    }

    #[test]
    fn data_that_go_when_copied_need_what_waits_for_the_copy() {
        // Six hours come at 1 GB/s and are copied at 0.5 GB/s: half of them wait at the end.
        assert_eq!(needed(0.25, Some(0.5), None), Some(10_800));
        assert_eq!(needed(0.25, Some(0.25), None), Some(16_200));
        assert_eq!(needed(1.0, Some(1.0), None), Some(0));
        assert_eq!(needed(1.0, Some(0.5), None), None, "no space is enough");
        assert_eq!(needed(1.0, None, None), None);
        // The data that wait longer than their retention decide.
        let late =
            Demand { retention: Some(Nanos(3_600_000_000_000)), ..demand(0.25, Some(0.25), None, None) };
        assert_eq!(buffer(&late).needed, Some(Bytes(16_200_000_000_000)));
    }

    #[test]
    fn a_space_that_is_too_small_is_full_at_a_time() {
        let hours = |duty, copy_out, keep, space| {
            let full = buffer(&demand(duty, copy_out, keep, Some(space))).full_after;
            full.map(|time| (time.seconds() / 36.0).round() / 100.0)
        };
        assert_eq!(hours(1.0, None, Some(1), 36), Some(10.0));
        assert_eq!(hours(1.0, None, Some(1), 87), None);
        assert_eq!(hours(1.0, None, None, 87), Some(24.17), "nothing ever goes");
        assert_eq!(hours(1.0, Some(0.5), None, 36), Some(20.0));
        assert_eq!(hours(1.0, Some(0.5), Some(1), 36), Some(10.0), "nothing goes on the first day");
        assert_eq!(hours(1.0, Some(0.5), Some(1), 90), Some(50.0));
        // In a quarter of the day 21.6 TB arrive, and in all of it 8.64 TB are copied: 12.96 TB a day stay.
        // Most wait at the end of the sixth hour, 19.44 TB. The second day begins with 12.96 TB, and gains
        // 0.9 GB/s.
        assert_eq!(hours(0.25, Some(0.1), None, 29), Some(28.95));
        assert_eq!(hours(0.25, Some(0.25), None, 17), None);
        assert_eq!(hours(0.25, Some(0.25), None, 10), Some(3.7));
    }
}
