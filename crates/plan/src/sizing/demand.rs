//! The inflow: the streams of a facility's instruments, and the most that they can bring in a time.

use nilometer_model::{
    Burst, ByteRate, Bytes, Facility, Format, Instrument, Member, Nanos, Readers, RecordingLayout, Schedule,
};

use super::Figure;

/// The demand of a facility on its storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// One for each kind of instrument, in the order of the file.
    pub kinds: Vec<Kind>,
    /// The rate of copying data to an archive.
    pub copy_out: Option<ByteRate>,
    /// The least time that data stay.
    pub retention: Option<Nanos>,
    /// The space that there is.
    pub capacity: Option<Bytes>,
}

/// The streams of instruments of one kind. They are all alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// The instrument's name.
    pub name: String,
    /// Streams of all instruments of the kind together. At least 1.
    pub streams: u64,
    /// Streams of one instrument: these deliver at the same moments.
    pub in_step: u64,
    /// Bytes of a frame, as it arrives.
    pub frame: Bytes,
    /// The factor by which the recorder makes it smaller: 1 without compression.
    pub packing: Figure<f64>,
    /// Processor seconds for a gigabyte (1e9 bytes) of frames that is recorded. May be zero.
    pub cost: Figure<f64>,
    /// The due times of the frames of one stream.
    pub schedule: Schedule,
    /// Share of each day in which they deliver.
    pub duty: f64,
    /// Keys of the instrument's file that the written rate depends on and that no source gives.
    pub assumed: Vec<String>,
    /// The total rate of all readers of the kind.
    pub reading: ByteRate,
}

impl Demand {
    /// The demand of a facility, given its instruments: one a member, in the same order.
    pub fn of(facility: &Facility, instruments: &[Instrument]) -> Self {
        let kinds =
            facility.instruments.iter().zip(instruments).map(|(member, found)| Kind::of(member, found));
        Demand {
            kinds: kinds.collect(),
            copy_out: facility.copy_out,
            retention: facility.retention,
            capacity: facility.capacity,
        }
    }

    /// The inflow when all instruments are in a burst.
    pub fn peak(&self) -> ByteRate {
        ByteRate(self.kinds.iter().map(|kind| kind.streams as f64 * kind.peak()).sum())
    }

    /// The inflow while all instruments deliver, including their pauses.
    pub fn mean(&self) -> ByteRate {
        ByteRate(self.kinds.iter().map(|kind| kind.streams as f64 * kind.mean()).sum())
    }

    /// The rate written of that: less if the recorder compresses frames.
    pub fn written(&self) -> ByteRate {
        ByteRate(self.kinds.iter().map(|kind| kind.streams as f64 * kind.written()).sum())
    }

    /// The rate read during the writing: by readers and by the copy to the archive.
    pub fn reading(&self) -> ByteRate {
        let readers: f64 = self.kinds.iter().map(|kind| kind.reading.0).sum();
        ByteRate(readers + self.copy_out.map_or(0.0, |rate| rate.0))
    }

    /// Streams of all instruments.
    pub fn streams(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.streams).sum()
    }
}

impl Kind {
    fn of(member: &Member, instrument: &Instrument) -> Self {
        let delivered = instrument.delivered();
        // A pause of nothing is none.
        let burst = delivered.burst.filter(|burst| burst.pause.0 > 0);
        let schedule = Schedule { streams: 1, burst, ..delivered.schedule() };
        let mut kind = Kind {
            name: instrument.name.clone(),
            streams: member.count * instrument.streams,
            in_step: instrument.streams,
            frame: delivered.frame_size(),
            packing: Figure::assumed(
                instrument.packing(),
                "a byte a pixel, which images with few photons allow",
            ),
            assumed: instrument.assumed_of_rate().into_iter().map(str::to_owned).collect(),
            cost: usual_cost(&instrument.recording),
            schedule,
            duty: member.duty,
            reading: ByteRate(0.0),
        };
        kind.read_by(&member.readers.unwrap_or(instrument.readers));
        kind
    }

    /// Adds the rate of each instrument's readers: each reads all that is written, or at its own limit.
    fn read_by(&mut self, readers: &Readers) {
        let written = self.written() * self.in_step as f64;
        let of_one = f64::from(readers.count) * readers.rate.map_or(written, |rate| rate.0);
        self.reading = ByteRate(of_one * (self.streams / self.in_step.max(1)) as f64);
    }

    /// Bytes a second of one stream that are written while the instrument delivers, its pauses included.
    pub fn written(&self) -> f64 {
        self.mean() / self.packing.value
    }

    /// Replaces the assumed compression with a measured one. The rate of readers changes as much.
    pub fn pack(&mut self, packing: Figure<f64>) {
        self.reading.0 *= self.packing.value / packing.value;
        self.packing = packing;
    }

    /// The recorder makes its frames smaller.
    pub fn is_packed(&self) -> bool {
        self.packing.value > 1.0
    }

    /// Bytes of a frame as it is written.
    pub(super) fn packed(&self) -> f64 {
        self.frame.0 as f64 / self.packing.value
    }

    /// Bytes a second of one stream within a burst.
    pub fn peak(&self) -> f64 {
        self.frame.0 as f64 / self.schedule.period.seconds()
    }

    /// Bytes a second of one stream while the instrument delivers, its pauses included.
    pub fn mean(&self) -> f64 {
        self.burst().map_or(self.peak(), |length| self.peak() * length / self.cycle())
    }

    /// Seconds of a burst; `None` without pauses.
    pub fn burst(&self) -> Option<f64> {
        self.schedule.burst.map(|Burst { frames, .. }| frames as f64 * self.schedule.period.seconds())
    }

    /// Seconds from the beginning of a burst to that of the next; of a frame, if there are no pauses.
    pub fn cycle(&self) -> f64 {
        let period = self.schedule.period.seconds();
        self.schedule.burst.map_or(period, |burst| burst.frames as f64 * period + burst.pause.seconds())
    }

    /// The most bytes that one stream brings in any `time` seconds: a frame that has just arrived whole, plus
    /// the smaller of two terms. Within a burst it is `peak * time`, over bursts `(peak - mean) * burst +
    /// mean * time`.
    pub fn most_in(&self, time: f64) -> f64 {
        let peak = self.peak();
        let mean = self.mean();
        let beyond = self.burst().map_or(0.0, |burst| (peak - mean) * burst);
        self.frame.0 as f64 + (peak * time).min(beyond + mean * time)
    }
}

/// The usual processor time to record a gigabyte, network included.
///
/// It was measured on a shared virtual machine with two processors (bench/README.md). Packets of 8 kB took
/// 2.7 us each, 0.34 s for a gigabyte, with all work for the storage. CBF takes 1.2 s more; bit transposition
/// with LZ4 0.5 s.
fn usual_cost(recording: &RecordingLayout) -> Figure<f64> {
    let seconds = match recording.format {
        Format::Cbf => 1.6,
        _ if recording.packs() => 0.9,
        _ => 0.4,
    };
    Figure::assumed(seconds, "typical of a virtual machine of 2026, receiving from a network included")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(period: u64, burst: Option<(u64, u64)>) -> Kind {
        let burst = burst.map(|(frames, pause)| Burst { frames, pause: Nanos::from_millis(pause) });
        Kind {
            name: "camera".into(),
            streams: 1,
            in_step: 1,
            frame: Bytes(1000),
            packing: Figure::assumed(1.0, ""),
            cost: Figure::assumed(0.5, ""),
            schedule: Schedule { period: Nanos::from_millis(period), streams: 1, burst },
            duty: 1.0,
            assumed: Vec::new(),
            reading: ByteRate(0.0),
        }
    }

    #[expect(clippy::float_cmp, reason = "these numbers are exact in binary")]
    #[test]
    fn rates_follow_from_bursts_and_pauses() {
        let steady = kind(10, None);
        assert_eq!((steady.peak(), steady.mean(), steady.burst()), (1e5, 1e5, None));
        let bursts = kind(10, Some((50, 1500)));
        assert_eq!((bursts.peak(), bursts.mean(), bursts.cycle()), (1e5, 25e3, 2.0));
        assert_eq!(bursts.most_in(0.5), 1000.0 + 50e3);
        assert_eq!(bursts.most_in(2.0), 1000.0 + 50e3 + 1.5 * 25e3);
    }

    proptest! {
        /// Counted from every frame on, no time brings more than `most_in` says; from a burst's first to its last frame
        /// it brings exactly that.
        #[test]
        fn no_time_brings_more(period in 1..20_u64, frames in 1..20_u64, pause in 1..300_u64, from in 0..40_u64) {
            let kind = kind(period, Some((frames, pause)));
            let start = kind.schedule.due(from);
            for number in from..from + 60 {
                let brought = (number - from + 1) as f64 * 1000.0;
                let time = kind.schedule.due(number).since(start).seconds();
                prop_assert!(brought <= kind.most_in(time) * (1.0 + 1e-9), "{brought} in {time} s");
            }
            let burst = kind.schedule.due(frames - 1).seconds();
            prop_assert!((frames as f64 * 1000.0 - kind.most_in(burst)).abs() < 1e-3);
        }
    }
}
