//! A recording that several processes make together, each a part of it, is one sample.

use nilometer_model::{Ingest, Level, Nanos, RankSample, Sample};

use crate::{RecordingRun, RecordingSplit};

/// Joins the samples of the parts of a recording, in the order of their ranks; `run` is the whole.
///
/// Frames, bytes, packets and stalls add up; latencies merge; the longest stall is that of any part. Memory
/// and its fill level add up if an instrument was split. If whole instruments were dealt out, they are those
/// of the fullest.
///
/// A reason that makes one part INVALID makes the whole INVALID. Figures of processes and machines join as in
/// [`Sample::united`].
pub fn recorded_together(run: &RecordingRun, mut parts: Vec<RankSample>) -> Sample {
    let split = run.split(parts.len() as u32);
    let recorded: Vec<Ingest> = parts.iter_mut().filter_map(|part| part.sample.ingest.take()).collect();
    let mut whole = Sample::united(parts);
    let Some(mut ingest) = recorded.into_iter().reduce(|all, part| joined(all, part, split)) else {
        return whole;
    };
    ingest.count = run.count;
    ingest.period = Nanos(run.recorded().period().0 / u64::from(run.count.max(1)));
    whole.ingest = Some(ingest);
    whole
}

/// Adds the recording of another process at the same time. Count and period are those of the first one.
fn joined(mut all: Ingest, other: Ingest, split: RecordingSplit) -> Ingest {
    all.due += other.due;
    all.stored += other.stored;
    all.written.0 += other.written.0;
    all.lost += other.lost;
    if split == RecordingSplit::Instruments {
        all.slots = all.slots.max(other.slots);
        all.slots_high = all.slots_high.max(other.slots_high);
    } else {
        all.slots += other.slots;
        all.slots_high += other.slots_high;
    }
    all.longest_stall = all.longest_stall.max(other.longest_stall);
    all.allowance = all.allowance.max(other.allowance);
    all.late += other.late;
    all.stalls.extend(other.stalls);
    all.limit_stalls();
    all.stall_count += other.stall_count;
    all.stalled += other.stalled;
    let slowest = [all.slowest_second, other.slowest_second].into_iter().flatten();
    all.slowest_second = slowest.reduce(|one, another| nilometer_model::Bytes(one.0 + another.0));
    all.durable.merge(&other.durable);
    all.readable.merge(&other.readable);
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
        all.levels.merge_by(other.levels, fuller);
    } else {
        all.levels.merge_by(other.levels, both);
    }
    all.readers.extend(other.readers);
    all.read.merge(&other.read);
    let packets = [all.packets, other.packets].into_iter().flatten();
    all.packets = packets.reduce(nilometer_model::PacketTotals::and);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Bytes, Instrument, Invalid, Levels, Stall};

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
        // All values differ, so that a value of one part alone shows.
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
        let whole = recorded_together(&run(1, 1), parts);
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
        let ingest = recorded_together(&run(2, 1), parts).ingest.expect("it is a recording");
        assert_eq!((ingest.slots, ingest.count, ingest.period), (10, 2, Nanos(10_000_000)));
        assert_eq!(ingest.levels.bins()[0], Level { most: 7, last: 5, lost: 10 });
    }
}
