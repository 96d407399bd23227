//! A recording that several processes make together, each a part of it, is one sample.

use crate::{
    Ingest, Level, Nanos, RankSample, Sample,
    plan::{RecordingRun, RecordingSplit},
};

impl Sample {
    /// One sample of the parts of a recording, in the order of their ranks; `run` is the whole of it.
    ///
    /// Frames, bytes, packets and stalls add up, latencies are those of all, and the longest stall is that of any. Memory, and
    /// how full it was, adds up where an instrument was dealt out; where whole instruments were, it is that of the fullest. What makes one
    /// part INVALID makes the whole so. What is of processes and machines is joined as [`Sample::united`] says.
    pub fn recorded_together(run: &RecordingRun, mut parts: Vec<RankSample>) -> Sample {
        let split = run.split(parts.len() as u32);
        let recorded: Vec<Ingest> = parts.iter_mut().filter_map(|part| part.sample.ingest.take()).collect();
        let mut whole = Sample::united(parts);
        let Some(mut ingest) = recorded.into_iter().reduce(|all, part| all.and(part, split)) else {
            return whole;
        };
        ingest.count = run.count;
        ingest.period = Nanos(run.recorded().period().0 / u64::from(run.count.max(1)));
        whole.ingest = Some(ingest);
        whole
    }
}

/// Of more stalls than this the longest are kept.
pub const STALLS_MOST: usize = 200;

impl Ingest {
    /// The longest of its stalls, in the order of time.
    pub fn limit_stalls(&mut self) {
        self.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
        self.stalls.truncate(STALLS_MOST);
        self.stalls.sort_by_key(|stall| stall.at);
    }

    /// What another process recorded at the same time, too. Count and period are those of this one.
    fn and(mut self, other: Ingest, split: RecordingSplit) -> Ingest {
        self.due += other.due;
        self.stored += other.stored;
        self.written.0 += other.written.0;
        self.lost += other.lost;
        if split == RecordingSplit::Instruments {
            self.slots = self.slots.max(other.slots);
            self.slots_high = self.slots_high.max(other.slots_high);
        } else {
            self.slots += other.slots;
            self.slots_high += other.slots_high;
        }
        self.longest_stall = self.longest_stall.max(other.longest_stall);
        self.allowance = self.allowance.max(other.allowance);
        self.late += other.late;
        self.stalls.extend(other.stalls);
        self.limit_stalls();
        self.stall_count += other.stall_count;
        self.stalled += other.stalled;
        let slowest = [self.slowest_second, other.slowest_second].into_iter().flatten();
        self.slowest_second = slowest.reduce(|one, another| crate::Bytes(one.0 + another.0));
        self.durable.merge(&other.durable);
        self.readable.merge(&other.readable);
        let fuller = |one: Level, other: Level| Level {
            most: one.most.max(other.most),
            last: one.last.max(other.last),
            lost: one.lost + other.lost,
        };
        let both = |one: Level, other: Level| Level {
            most: one.most + other.most,
            last: one.last + other.last,
            lost: one.lost + other.lost,
        };
        if split == RecordingSplit::Instruments {
            self.levels.merge_by(other.levels, fuller);
        } else {
            self.levels.merge_by(other.levels, both);
        }
        self.readers.extend(other.readers);
        self.read.merge(&other.read);
        let packets = [self.packets, other.packets].into_iter().flatten();
        self.packets = packets.reduce(crate::PacketTotals::and);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Instrument, Invalid, Levels, Stall};

    fn part(rank: u32, ingest: Ingest, invalid: Option<Invalid>) -> RankSample {
        let sample = Sample {
            bytes: ingest.stored * ingest.frame_size.0,
            operations: ingest.stored,
            ingest: Some(ingest),
            invalid,
            ..Sample::new(Nanos(0))
        };
        let node = format!("node{rank}");
        RankSample { rank, node, clock_offset: 0, clock_uncertainty: 0, began: Nanos(0), sample }
    }

    fn run(count: u32, streams: u64) -> RecordingRun {
        let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\n\
                    frame_rate = \"50 Hz\"\n";
        let instrument = Instrument::parse(text, "camera").expect("valid");
        RecordingRun { count, ..RecordingRun::new(Instrument { streams, ..instrument }) }
    }

    fn recorded(stored: u64, lost: u64, stall: u64) -> Ingest {
        // Each another, so that what is taken of one alone shows.
        let level = Level { most: stall, last: stall - 2, lost };
        Ingest {
            frame_size: Bytes(800),
            due: stored + lost,
            stored,
            lost,
            slots: 10,
            slots_high: 4,
            longest_stall: Nanos(stall),
            stalls: vec![Stall { at: Nanos(0), length: Nanos(stall) }],
            slowest_second: Some(Bytes(stored)),
            levels: Levels::from_bins(Nanos(1000), vec![level]),
            ..Ingest::default()
        }
    }

    #[test]
    fn parts_of_an_instrument_are_one_recording() {
        let parts =
            vec![part(0, recorded(90, 10, 5), None), part(1, recorded(100, 0, 7), Some(Invalid::Wrong))];
        let whole = Sample::recorded_together(&run(1, 1), parts);
        let ingest = whole.ingest.expect("it is a recording");
        assert_eq!((ingest.due, ingest.stored, ingest.lost), (200, 190, 10));
        assert_eq!((ingest.slots, ingest.slots_high), (20, 8), "each has a part of the memory");
        assert_eq!((ingest.longest_stall, ingest.stalls.len()), (Nanos(7), 2));
        assert_eq!(ingest.slowest_second, Some(Bytes(190)));
        assert_eq!(ingest.levels.bins()[0], Level { most: 12, last: 8, lost: 10 });
        assert_eq!(ingest.period, Nanos(20_000_000), "of the whole");
        assert_eq!((whole.bytes, whole.invalid), (190 * 800, Some(Invalid::Wrong)));
        assert_eq!(whole.parts.len(), 2, "what each process did is known");
    }

    #[test]
    fn whole_instruments_have_memory_of_their_own() {
        let parts = vec![part(0, recorded(90, 10, 5), None), part(1, recorded(100, 0, 7), None)];
        let ingest = Sample::recorded_together(&run(2, 1), parts).ingest.expect("it is a recording");
        assert_eq!((ingest.slots, ingest.count, ingest.period), (10, 2, Nanos(10_000_000)));
        assert_eq!(ingest.levels.bins()[0], Level { most: 7, last: 5, lost: 10 });
    }
}
