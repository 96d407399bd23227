//! The room that storage has for a recording, in bytes and in time: "room for 23 s at 507 MB/s (11.7 GB)".

use std::fmt;

use crate::{ByteRate, Bytes, Instrument, Nanos, TargetDescription};

/// The bytes that a recording may fill, and the rate at which it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StorageRoom {
    /// Free bytes beyond the reserve, each storage counted once.
    pub usable: Bytes,
    /// The rate written, over all streams.
    pub rate: ByteRate,
}

/// Times from here on say nothing: no storage is that large.
const LONGEST_SECONDS: f64 = 1e9;
const DAY: u64 = 24 * 60;

impl StorageRoom {
    /// The room in these directories, where `reserve` bytes of each storage stay free.
    pub fn on<'a>(
        targets: impl IntoIterator<Item = &'a TargetDescription>,
        reserve: Bytes,
        rate: ByteRate,
    ) -> Self {
        let mut seen: Vec<&TargetDescription> = Vec::new();
        let mut usable = Bytes(0);
        for target in targets {
            if !seen.iter().any(|other| other.shares_space_with(target)) {
                usable.0 = usable.0.saturating_add(target.space.free.0.saturating_sub(reserve.0));
            }
            seen.push(target);
        }
        StorageRoom { usable, rate }
    }

    /// The room for `times` recordings of this instrument. It fills at the mean rate, pauses included, if it outlasts a
    /// burst.
    pub fn for_instrument<'a>(
        instrument: &Instrument,
        times: u64,
        targets: impl IntoIterator<Item = &'a TargetDescription>,
        reserve: Bytes,
    ) -> Self {
        let rate = ByteRate(instrument.written_rate().0 * times as f64);
        let room = StorageRoom::on(targets, reserve, rate);
        let Some(burst) = instrument.burst else { return room };
        let outlasts =
            room.seconds().is_none_or(|seconds| seconds > burst.frames as f64 / instrument.frame_rate.0);
        let share = if outlasts { instrument.mean_rate().0 / instrument.rate().0 } else { 1.0 };
        StorageRoom { rate: ByteRate(rate.0 * share), ..room }
    }

    /// A warning if a recording takes longer than the room lasts.
    pub fn shortage(&self, duration: Nanos) -> Option<String> {
        let fits = self.seconds().is_none_or(|seconds| seconds >= duration.seconds());
        (!fits).then(|| format!("warning: {duration} does NOT fit: {self}"))
    }

    /// Seconds until the room is full. `None` without a rate, and beyond thirty years.
    pub fn seconds(&self) -> Option<f64> {
        let seconds = self.usable.0 as f64 / self.rate.0;
        (self.rate.0 > 0.0 && seconds < LONGEST_SECONDS).then_some(seconds)
    }
}

impl fmt::Display for StorageRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds() {
            Some(seconds) => {
                write!(f, "room for {} at {} ({})", rounded_down(seconds), self.rate, self.usable)
            }
            None => write!(f, "{} free", self.usable),
        }
    }
}

/// A time in one or two units, rounded down: a recording that takes longer does not fit.
pub fn rounded_down(seconds: f64) -> String {
    #[expect(clippy::cast_sign_loss, reason = "a time is never negative")]
    let whole = seconds as u64;
    let minutes = whole / 60;
    match whole {
        0..10 => format!("{:.1} s", (seconds * 10.0).floor() / 10.0),
        10..100 => format!("{whole} s"),
        100..600 if !whole.is_multiple_of(60) => format!("{minutes} min {} s", whole % 60),
        100..6000 => format!("{minutes} min"),
        _ if minutes < 2 * DAY => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} days", minutes / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_a_time_at_the_rate() {
        let room = |usable, rate| StorageRoom { usable: Bytes(usable), rate: ByteRate(rate) };
        assert_eq!(room(11_700_000_000, 507e6).to_string(), "room for 23 s at 507 MB/s (11.7 GB)");
        assert_eq!(room(1000, 10.0).shortage(Nanos::from_millis(100_000)), None);
        let shortage = room(1000, 10.0).shortage(Nanos::from_millis(100_001)).expect("it is too long");
        assert!(shortage.ends_with("does NOT fit: room for 1 min 40 s at 10 B/s (1 kB)"), "{shortage}");
        assert_eq!(room(5, 0.0).to_string(), "5 B free");
        assert_eq!(room(u64::MAX, 1.0).seconds(), None, "storage that keeps nothing has no end");
    }

    #[test]
    fn times_are_rounded_down() {
        let texts = [0.19, 9.99, 99.9, 119.0, 5999.0, 6000.0, 172_799.0, 172_800.0].map(rounded_down);
        assert_eq!(
            texts,
            ["0.1 s", "9.9 s", "99 s", "1 min 59 s", "99 min", "1 h 40 min", "47 h 59 min", "2 days"]
        );
    }
}
