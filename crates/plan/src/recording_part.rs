//! The part of an instrument that each of several processes records.
//!
//! ```text
//! instruments   there are as many as processes, or more: whole ones are dealt out
//! streams       each has as many streams as there are processes, or more: streams are
//! frames        else each process takes every n-th frame, as the files of one recording are dealt to writers
//! ```
//!
//! Processes get blocks of neighbours, whose sizes differ by one at most. Memory and the space to keep are
//! shared alike, so that all parts together have as much as one recorder would.

use nilometer_model::{Burst, Bytes, Frequency, Goal, Instrument};

use super::{Fill, InstrumentTurn, RecordingRun, Route, USUAL_KEEP, ingest::LIMIT_DURATION};

/// The way in which the processes that record an instrument share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordingSplit {
    /// The whole recording: one process records all.
    #[default]
    Whole,
    /// Whole instruments, of several of one kind.
    Instruments,
    /// Streams of each.
    Streams,
    /// Frames of each, in turn.
    Frames,
}

/// Number of recordings that find the limit of the storage.
const LIMIT_REPEATS: u32 = 3;

impl RecordingRun {
    /// The recording at full speed, without a network, repeated often enough for an interval of the long-run
    /// rate. Unless the user set the space to keep, it is the default.
    #[must_use]
    pub fn at_full_speed(&self, keep_was_said: bool) -> Self {
        RecordingRun {
            goal: Goal::Limit,
            duration: LIMIT_DURATION.min(self.duration),
            repeats: LIMIT_REPEATS,
            route: Route::InPlace,
            recorders: Some(self.most_processes()).filter(|most| *most < u32::MAX),
            keep: if keep_was_said || self.fill.is_some() { self.keep } else { USUAL_KEEP },
            ..self.clone()
        }
    }

    /// True if all of its writers share one dataset of one HDF5 file.
    pub fn is_one_dataset(&self) -> bool {
        self.instrument.recording.is_one_dataset() && !self.route.has_packets()
    }

    /// The turn of this part, if its process and others write one dataset.
    pub fn dataset_turn(&self) -> Option<InstrumentTurn> {
        self.turn.filter(|_| self.is_one_dataset())
    }

    /// The way in which this many processes share it.
    pub fn split(&self, processes: u32) -> RecordingSplit {
        let processes = u64::from(processes);
        if processes < 2 {
            RecordingSplit::Whole
        } else if u64::from(self.count) >= processes {
            RecordingSplit::Instruments
        } else if self.instrument.streams >= processes {
            RecordingSplit::Streams
        } else {
            RecordingSplit::Frames
        }
    }

    /// True if several processes that record it write the same dataset, and can read it together.
    pub fn is_read_together(&self) -> bool {
        self.is_one_dataset() && self.count == 1 && self.instrument.streams == 1
    }

    /// The most processes that can record it together. A stream of packets goes to one place. One process makes
    /// copies, and reads files back that have no dataset of all processes.
    pub fn most_processes(&self) -> u32 {
        if self.readers.copy || self.read.is_some() && !self.is_read_together() {
            return 1;
        }
        let most = self.recorders.unwrap_or(u32::MAX);
        if self.route.has_packets() {
            return u32::try_from(self.instrument.streams).unwrap_or(u32::MAX).max(self.count).min(most);
        }
        most
    }

    /// The part of process `number` (from 0) of several.
    #[must_use]
    pub fn part(&self, number: u32, of: u32) -> RecordingRun {
        let dealt = |all: u64| {
            let first = |number: u32| all * u64::from(number) / u64::from(of);
            first(number + 1) - first(number)
        };
        match self.split(of) {
            RecordingSplit::Whole => self.clone(),
            RecordingSplit::Instruments => {
                RecordingRun { count: dealt(u64::from(self.count)) as u32, ..self.clone() }
            }
            RecordingSplit::Streams => {
                let streams = dealt(self.instrument.streams);
                let share = streams as f64 / self.instrument.streams as f64;
                self.with_share(share, Instrument { streams, ..self.instrument.clone() })
            }
            RecordingSplit::Frames => {
                let part = self.with_share(1.0 / f64::from(of), every_nth(&self.instrument, of));
                let turn = InstrumentTurn { first: number, of, schedule: self.instrument.schedule() };
                // In whole bytes, so that parts of a whole number of slots have whole numbers.
                RecordingRun { buffer: Bytes(self.buffer.0 / u64::from(of)), turn: Some(turn), ..part }
            }
        }
    }

    fn with_share(&self, share: f64, instrument: Instrument) -> RecordingRun {
        #[expect(clippy::cast_sign_loss, reason = "shares are no less than zero")]
        let of = |bytes: Bytes| Bytes((share * bytes.0 as f64) as u64);
        let fill = self.fill.map(|fill| Fill { share: share * fill.share, ..fill });
        RecordingRun { instrument, buffer: of(self.buffer), keep: of(self.keep), fill, ..self.clone() }
    }
}

/// An instrument with the rate of every n-th frame of each stream, and the largest number of them that a burst
/// brings. The due times of the frames come from [`InstrumentTurn`]: `n` need not divide the frames of a burst.
fn every_nth(instrument: &Instrument, n: u32) -> Instrument {
    let burst = instrument.burst.map(|burst| Burst { frames: burst.frames.div_ceil(n.into()), ..burst });
    Instrument { frame_rate: Frequency(instrument.frame_rate.0 / f64::from(n)), burst, ..instrument.clone() }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;
    use proptest::prelude::*;

    use super::super::Route;
    use super::*;

    fn run(count: u32, streams: u64) -> RecordingRun {
        let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\n\
                    frame_rate = \"60 Hz\"\nburst = { frames = 600, pause = \"1 s\" }\n";
        let instrument = Instrument::parse(text, "camera").expect("valid");
        RecordingRun { count, ..RecordingRun::new(Instrument { streams, ..instrument }) }
    }

    fn parts(run: &RecordingRun, of: u32) -> Vec<RecordingRun> {
        (0..of).map(|number| run.part(number, of)).collect()
    }

    #[test]
    fn instruments_then_streams_then_frames_are_dealt_out() {
        for (count, streams, of, split, dealt) in [
            (1, 1, 1, RecordingSplit::Whole, vec![(1, 1, 60.0)]),
            (3, 8, 2, RecordingSplit::Instruments, vec![(1, 8, 60.0), (2, 8, 60.0)]),
            (2, 4, 3, RecordingSplit::Streams, vec![(2, 1, 60.0), (2, 1, 60.0), (2, 2, 60.0)]),
            (1, 2, 3, RecordingSplit::Frames, vec![(1, 2, 20.0); 3]),
        ] {
            let whole = run(count, streams);
            let found: Vec<_> = parts(&whole, of)
                .iter()
                .map(|part| (part.count, part.instrument.streams, part.instrument.frame_rate.0))
                .collect();
            assert_eq!((whole.split(of), found), (split, dealt), "{count} of {streams} streams over {of}");
        }
    }

    #[test]
    fn parts_of_one_dataset_take_their_frames_of_the_whole() {
        use nilometer_model::{Format, Storing};
        let mut whole = run(1, 1);
        whole.instrument.recording.format = Format::Hdf5;
        assert!(parts(&whole, 3).iter().all(|part| part.dataset_turn().is_none()), "files apart");
        whole.instrument.recording.storing = Storing::Shared;
        let schedule = whole.instrument.schedule();
        let turns: Vec<_> = parts(&whole, 3).iter().filter_map(RecordingRun::dataset_turn).collect();
        assert_eq!(turns, [0, 1, 2].map(|first| InstrumentTurn { first, of: 3, schedule }));
        let packets = RecordingRun { route: Route::Loopback, ..whole };
        assert_eq!(packets.part(0, 3).dataset_turn(), None, "packets have another order");
    }

    #[test]
    fn processes_read_together_what_is_in_one_dataset() {
        use nilometer_model::{Format, ReadingWay, Storing};
        let most = |storing, count, streams| {
            let mut run = RecordingRun { read: Some(ReadingWay::Rows), ..run(count, streams) };
            run.instrument.recording.format = Format::Hdf5;
            run.instrument.recording.storing = storing;
            run.most_processes()
        };
        assert_eq!(most(Storing::Shared, 1, 1), u32::MAX);
        assert_eq!(most(Storing::Growing, 1, 1), 1, "files apart");
        assert_eq!(
            (most(Storing::Shared, 2, 1), most(Storing::Shared, 1, 2)),
            (1, 1),
            "processes may have whole ones"
        );
    }

    #[test]
    fn a_stream_of_packets_is_not_cut() {
        let over_network =
            |count, streams| RecordingRun { route: Route::Loopback, ..run(count, streams) }.most_processes();
        assert_eq!((over_network(1, 1), over_network(1, 8), over_network(9, 8)), (1, 8, 9));
        assert_eq!(run(1, 1).most_processes(), u32::MAX);
        let packets = RecordingRun { route: Route::Loopback, ..run(1, 2) };
        let limit = packets.at_full_speed(false);
        assert_eq!(
            (limit.route, limit.most_processes()),
            (Route::InPlace, 2),
            "as many as the packets come to"
        );
    }

    proptest! {
        #[test]
        fn frames_of_all_parts_are_due_when_the_instrument_delivers_them(
            frames in 1..20_u64, streams in 1..4_u64, of in 4..9_u32, format in 0..2,
        ) {
            use nilometer_model::{Format, Storing};
            let mut whole = run(1, streams);
            let pause = Nanos::from_millis(70);
            whole.instrument.burst = Some(Burst { frames, pause });
            if format == 1 {
                whole.instrument.recording.format = Format::Hdf5;
                whole.instrument.recording.storing = Storing::Shared;
            }
            let due = |part: &RecordingRun| -> Vec<Nanos> {
                let turn = part.turn.expect("they take frames in turn");
                let numbers = (0..10).map(|own| own * u64::from(turn.of) + u64::from(turn.first));
                let due: Vec<_> = numbers.map(|number| turn.schedule.due(number)).collect();
                assert_eq!(due[0], turn.first_due());
                due
            };
            let mut all: Vec<_> = parts(&whole, of).iter().flat_map(due).collect();
            all.sort_unstable();
            let schedule = whole.instrument.schedule();
            let expected: Vec<_> = (0..10 * u64::from(of)).map(|number| schedule.due(number)).collect();
            prop_assert_eq!(all, expected);
        }

        #[test]
        fn all_parts_together_are_the_whole(count in 1..20_u32, streams in 1..20_u64, of in 1..30_u32) {
            let whole = run(count, streams);
            let parts = parts(&whole, of);
            let sum = |of: &dyn Fn(&RecordingRun) -> f64| parts.iter().map(of).sum::<f64>();
            let near = |sum: f64, whole: f64| (sum / whole - 1.0).abs() < 1e-3;
            prop_assert!(near(sum(&|part| part.rate().0), whole.rate().0));
            let memory = |run: &RecordingRun| f64::from(run.count) * run.buffer.0 as f64;
            prop_assert!(near(sum(&memory), memory(&whole)));
            prop_assert!(parts.iter().all(|part| part.count > 0 && part.instrument.streams > 0));
        }
    }
}
