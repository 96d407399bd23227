//! When an instrument's frames are due.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Frames in step with the clock, whether or not storage is ready. They count from 0 over all streams: with
/// three streams, frames 0, 1 and 2 are due at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The time between two frames of a stream.
    pub period: Nanos,
    /// Streams that deliver at the same time. At least 1.
    pub streams: u64,
    /// The bursts of frames, if there are any.
    pub burst: Option<Burst>,
}

/// Repeated bursts: frames, then none for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Frames in a burst, of each stream. At least 1.
    pub frames: u64,
    /// The pause after a burst, in addition to the frame period.
    pub pause: Nanos,
}

impl Schedule {
    /// One stream, without pauses.
    pub const fn every(period: Nanos) -> Self {
        Schedule { period, streams: 1, burst: None }
    }

    /// The due time of a frame, counted from the first one.
    #[inline]
    pub fn due(&self, number: u64) -> Nanos {
        let of_stream = if self.streams == 1 { number } else { number / self.streams };
        let pauses = self.burst.map_or(0, |Burst { frames, pause }| (of_stream / frames) * pause.0);
        Nanos(of_stream.saturating_mul(self.period.0).saturating_add(pauses))
    }

    /// Number of frames due in a time that begins with the first.
    pub fn frames_in(&self, duration: Nanos) -> u64 {
        let periods = |time: u64| time.div_ceil(self.period.0.max(1));
        let of_stream = self.burst.map_or_else(
            || periods(duration.0),
            |Burst { frames, pause }| {
                let cycle = frames.saturating_mul(self.period.0).saturating_add(pause.0).max(1);
                let cycles = duration.0 / cycle;
                let rest = duration.0 % cycle;
                cycles.saturating_mul(frames).saturating_add(periods(rest).min(frames))
            },
        );
        of_stream.saturating_mul(self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(schedule: Schedule) -> Vec<u64> {
        (0..8).map(|number| schedule.due(number).0).collect()
    }

    #[test]
    fn streams_are_in_step_and_bursts_pause() {
        let plain = Schedule::every(Nanos(10));
        assert_eq!(due(plain), [0, 10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(due(Schedule { streams: 3, ..plain }), [0, 0, 0, 10, 10, 10, 20, 20]);
        let burst = Some(Burst { frames: 2, pause: Nanos(100) });
        assert_eq!(due(Schedule { burst, ..plain }), [0, 10, 120, 130, 240, 250, 360, 370]);
        assert_eq!(due(Schedule { streams: 2, burst, ..plain }), [0, 0, 10, 10, 120, 120, 130, 130]);
    }

    proptest! {
        #[test]
        fn as_many_frames_are_due_in_a_time_as_have_come_by_then(
            period in 1..50_u64, streams in 1..4_u64, frames in 1..5_u64, pause in 0..200_u64, bursts: bool,
            duration in 1..2000_u64,
        ) {
            let burst = bursts.then_some(Burst { frames, pause: Nanos(pause) });
            let schedule = Schedule { period: Nanos(period), streams, burst };
            let came = (0..100_000).take_while(|&number| schedule.due(number).0 < duration).count() as u64;
            prop_assert_eq!(schedule.frames_in(Nanos(duration)), came);
        }
    }
}
