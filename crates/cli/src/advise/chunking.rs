//! `nilometer advise chunking`: measures the cost of chunk shapes when the recorder writes frames, and in
//! each way of reading them. It measures on the storage that will hold the data.
//!
//! ```text
//! rounds -> choices, shuffled in each round -> record -> each way of reading, from a cold cache -> clear
//! ```
//!
//! The recorder writes as always; frames come as fast as it takes them. One thread reads chunk by chunk, as
//! programs do that use the library.

mod table;

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};
use nilometer_acquisition::{
    EngineWish, Feed, LayoutOptions, Outcome as Recorded, Recorder, RecordingPlan, Setup, StoredFrames,
    sink::{Durability, LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_hdf5_recording::{Hdf5Contents, Hdf5FrameReader, ReadingWatch};
use nilometer_model::{
    Bytes, ChunkShape, FileSystemKind, Format, FrameCompression, Instrument, Nanos, ReaderPlace, ReadingWay,
    Seed, Storing, TargetDescription,
};
use nilometer_recording::instrument::Content;
use nilometer_remote::open;
use nilometer_ring::{Delivery, Pace};
use nilometer_service::recording::place::check_buffer;
use nilometer_storage::{Calendar, Clock, Target, target::run_id, user_file};

use crate::{Blame, Outcome, describe::described_directory, signals::stop_on_signal, tell};
use table::{ChunkTable, MeasuredChoice};

/// Measure how fast your storage writes and reads HDF5 chunks, for each shape and compression
///
/// It records frames of the instrument into its own directory on the storage, reads them in each way, and
/// removes them. Use the results to choose the chunks of your HDF5 datasets.
#[derive(Debug, Args)]
pub(super) struct ChunkingAdvice {
    /// A name of the catalogue, or the path of a .toml file: the source of the frames' shape and rate
    instrument: String,
    /// Measure on this storage
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    /// Read frames this way, and TIMES as often as they are written: line, or line:20. Repeat the option for
    /// more [default: each of the first five once]. Ways: `frames` (all in order), `frame` (any one), `region`
    /// (the middle of all), `line` (a row of all, as for sinograms), `pixel` (one of all). Two more read every
    /// chunk once: `rows` (a row of chunks after the other) and `blocks` (a chunk after the other)
    #[arg(long, value_name = "WAY[:TIMES]")]
    read: Vec<WeighedWay>,
    /// Try chunks of this many pixels, slowest dimension first. Repeat the option for more [default: a frame;
    /// a quarter and a sixteenth of its rows; a quarter and a sixteenth of each side]
    #[arg(long, value_name = "ROWSxCOLUMNS")]
    chunk: Vec<ChunkShape>,
    /// Compress chunks this way. Repeat the option for more [default: none and bslz4]
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(FrameCompression::ALL.map(FrameCompression::name)))]
    compression: Vec<String>,
    /// Write this many bytes of frames each time; more than the storage's caches hold gives a better answer
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    size: Bytes,
    /// Measure each combination this many times
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Begin frames at multiples of SIZE, as `nilometer record --align` does [default: the stripe size, if
    /// the storage states one]
    #[arg(long, value_name = "SIZE")]
    align: Option<Bytes>,
    /// Refuse a directory on another file system, such as the one below a missing mount (ext4, nfs, lustre
    /// and others; an unknown word lists them)
    #[arg(long, value_name = "TYPE")]
    expect: Option<FileSystemKind>,
}

/// A way of reading, and its weight: how often for each time that frames are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeighedWay {
    pub(super) way: ReadingWay,
    pub(super) times: f64,
}

impl FromStr for WeighedWay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((way, times)) = text.split_once(':') else {
            return Ok(WeighedWay { way: text.parse()?, times: 1.0 });
        };
        let way = way.parse()?;
        let times = times.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
        let times = times
            .ok_or_else(|| format!("`{text}`: write a number above 0 behind the colon, such as line:20"))?;
        Ok(WeighedWay { way, times })
    }
}

/// One combination of chunk shape and compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkChoice {
    /// The shape of a chunk; `None` is a whole frame.
    pub(super) chunk: Option<ChunkShape>,
    pub(super) compression: FrameCompression,
}

/// The least frames to write: one may be late.
const FRAMES_LEAST: u64 = 16;
/// The most frames to write.
const FRAMES_MOST: u64 = 100_000;
/// The least bytes of a chunk by default: smaller ones cost more than they save.
const CHUNK_LEAST: u64 = 4 << 10;
/// The space that stays free on the storage.
const RESERVE: Bytes = Bytes(1 << 30);
/// The bytes of the buffer between the instrument and the storage.
const BUFFER: u64 = 256 << 20;
/// The longest silence of storage before the trial gives it up.
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// More time than any trial takes to write.
const LONG: Nanos = Nanos::from_millis(86_400_000);
/// The first part of the names of files, as for all files in a run directory.
const NAME: &str = "n_chunks";
/// The ways of reading by default. If one process reads all rows or all blocks, it reads the chunks of all frames.
const USUAL_WAYS: [ReadingWay; 5] =
    [ReadingWay::Frames, ReadingWay::Frame, ReadingWay::Region, ReadingWay::Line, ReadingWay::Pixel];

impl ChunkingAdvice {
    pub(super) fn execute(&self) -> Outcome {
        let instrument = user_file::instrument(&self.instrument).input()?;
        let choices = self.choices(&instrument).input()?;
        let description = described_directory(&self.to).input()?;
        self.expect.map_or(Ok(()), |kind| description.expect_kind(kind)).input()?;
        let trial = self.trial(instrument, &description).input()?;
        let stop = stop_on_signal().run()?;
        let run = run_id().0;
        let target = open(&description, run, None).input()?;
        let directory = target.directory().map(Path::to_owned).context("it is no directory").input()?;
        tell::result_line(trial.head(&self.to, self.repeats));
        let storage = TrialStorage { target: &target, directory, stop };
        let measured = self.measure(&trial, &choices, &storage);
        // After success and after failure, nothing stays.
        let removed = target.remove();
        let removed = removed.context("can't remove the files of this measurement: run `nilometer clean`");
        if let (Err(left), Err(_)) = (&removed, &measured) {
            tell::note(format_args!("{left:#}"));
        }
        tell::result(measured.run()?.text());
        removed.run()
    }

    /// The combinations to measure.
    fn choices(&self, instrument: &Instrument) -> anyhow::Result<Vec<ChunkChoice>> {
        let written = &self.compression;
        let named =
            FrameCompression::ALL.into_iter().filter(|how| written.iter().any(|word| word == how.name()));
        let mut compressions: Vec<_> = named.collect();
        if compressions.is_empty() {
            compressions = vec![FrameCompression::None, FrameCompression::Bslz4];
        }
        let chunks = if self.chunk.is_empty() {
            usual_chunks(instrument)
        } else {
            self.chunk.iter().copied().map(Some).collect()
        };
        let mut choices = Vec::new();
        for chunk in chunks {
            for &compression in &compressions {
                let choice = ChunkChoice { chunk, compression };
                choice.of(instrument).check().map_err(|why| anyhow!("{}: {why}", instrument.name))?;
                choices.push(choice);
            }
        }
        Ok(choices)
    }

    /// The frames to write, and the ways to read them, each time.
    fn trial(&self, instrument: Instrument, to: &TargetDescription) -> anyhow::Result<ChunkTrial> {
        let frame = instrument.frame_size();
        let frames = (self.size.0 / frame.0).clamp(FRAMES_LEAST, FRAMES_MOST);
        let needed = (frames * frame.0).max(self.size.0).saturating_add(RESERVE.0);
        let free = to.space.free;
        ensure!(
            free.0 >= needed,
            "{}: {frames} frames of {frame} and {RESERVE} beside them need {}, and {free} are free; write a smaller --size, \
             or name larger storage",
            self.to.display(),
            Bytes(needed)
        );
        if let Some(align) = self.align {
            nilometer_service::recording::place::check_align(align)?;
        }
        let buffer = Bytes(BUFFER.max(4 * frame.0));
        check_buffer(buffer, frame)?;
        let mut ways = self.read.clone();
        if ways.is_empty() {
            ways = USUAL_WAYS.map(|way| WeighedWay { way, times: 1.0 }).to_vec();
        }
        if let Some(twice) =
            (1..ways.len()).find(|at| ways[..*at].iter().any(|other| other.way == ways[*at].way))
        {
            bail!("--read {}: it is there twice; write how often behind it, such as line:2", ways[twice].way);
        }
        let options = LayoutOptions { align: self.align, ..LayoutOptions::with_buffer(buffer) };
        Ok(ChunkTrial { instrument, frames, ways, options, seed: run_id() })
    }

    /// Measures all combinations, `--repeats` times.
    fn measure(
        &self,
        trial: &ChunkTrial,
        choices: &[ChunkChoice],
        storage: &TrialStorage<'_>,
    ) -> anyhow::Result<ChunkTable> {
        let mut table = ChunkTable::new(trial, choices);
        for round in 0..self.repeats {
            let mut order: Vec<usize> = (0..choices.len()).collect();
            order.sort_by_key(|choice| trial.seed.part(round.into()).part(*choice as u64).0);
            for (turn, choice) in order.into_iter().enumerate() {
                let done = round as usize * choices.len() + turn + 1;
                let all = self.repeats as usize * choices.len();
                tell::note(format_args!("{done} of {all}: {}", choices[choice]));
                trial.measure(choices[choice], round, storage, &mut table.measured[choice])?;
            }
        }
        Ok(table)
    }
}

impl ChunkChoice {
    /// The instrument with frames that are stored this way, in one file.
    fn of(self, instrument: &Instrument) -> Instrument {
        let mut instrument = Instrument { compressed: false, ..instrument.clone() };
        instrument.packets = None;
        let recording = &mut instrument.recording;
        recording.write_as(Format::Hdf5);
        recording.store(Storing::Growing);
        recording.compression = Some(self.compression);
        recording.chunk = self.chunk;
        recording.scan = None;
        instrument
    }
}

/// The storage of trials.
struct TrialStorage<'a> {
    target: &'a Arc<dyn Target>,
    /// The target's directory.
    directory: PathBuf,
    stop: Arc<AtomicBool>,
}

/// The frames to write, and the ways to read them, each time.
pub(super) struct ChunkTrial {
    pub(super) instrument: Instrument,
    pub(super) frames: u64,
    pub(super) ways: Vec<WeighedWay>,
    options: LayoutOptions,
    seed: Seed,
}

impl ChunkTrial {
    /// The description of the trial, on one line.
    fn head(&self, to: &Path, repeats: u32) -> String {
        let Instrument { name, pixel, .. } = &self.instrument;
        let size = self.instrument.frame_size();
        let plural = if repeats == 1 { "" } else { "s" };
        format!(
            "{} frames of {name}, {size} of {} each, into {}; {repeats} repeat{plural} in rounds",
            self.frames,
            pixel.name(),
            to.display()
        )
    }

    /// Writes and reads the frames once.
    fn measure(
        &self,
        choice: ChunkChoice,
        round: u32,
        storage: &TrialStorage<'_>,
        into: &mut MeasuredChoice,
    ) -> anyhow::Result<()> {
        let (outcome, contents) = self.record(choice, storage)?;
        into.wrote(&outcome, self.instrument.frame_size());
        let file = format!("{NAME}.h5");
        let path = storage.directory.join(&file);
        for (at, WeighedWay { way, .. }) in self.ways.iter().enumerate() {
            let mut reader = Hdf5FrameReader::open(&path, &contents)?;
            let cold = storage.target.chill(&file)?;
            let seed = self.seed.named("read").part(round.into());
            let watch = ReadingWatch { stop: storage.stop.clone(), ..ReadingWatch::default() };
            let totals = reader.read(*way, ReaderPlace::ALONE, seed, Clock::start(), &watch)?;
            not_stopped(storage)?;
            into.read(at, totals, cold, *way == ReadingWay::Frame);
        }
        storage.target.clear()?;
        Ok(())
    }

    /// Records all frames as fast as the recorder takes them, until they are durable.
    fn record(
        &self,
        choice: ChunkChoice,
        storage: &TrialStorage<'_>,
    ) -> anyhow::Result<(Recorded, Hdf5Contents)> {
        let instrument = choice.of(&self.instrument);
        let Instrument { data, shape, pixel, .. } = &instrument;
        let content = Content::prepare(data, shape, *pixel, self.seed.named("content"))?;
        let target = storage.target;
        let frames = StoredFrames { packets: false, ..StoredFrames::of(&instrument) };
        let plan = RecordingPlan::of(frames, std::slice::from_ref(target.description()), &self.options);
        let clock = Clock::start();
        let contents = Hdf5Contents::of(&instrument, Calendar::start_of(clock));
        let contents = contents.context("frames of whole bytes can be in HDF5")?;
        let layout = RawLayout {
            hdf5: Some(contents.clone()),
            durability: Durability::EachFile,
            ..plan.layout(NAME, self.seed.0, 0)
        };
        let delivery = Delivery { frames: self.frames, ..Delivery::lasting(Pace::AsTaken, LONG) };
        let encoders = instrument.recording.encoders.map(|count| count as usize);
        let setup = Setup {
            engine: suited_engine(target.as_ref(), EngineWish::usual(layout.is_deep()), clock)?,
            slots: plan.slots(),
            feed: Feed::Instrument { content, delivery },
            lanes: lanes_of(
                vec![(target.clone(), layout)],
                LaneOptions { reserve: Some(RESERVE), encoders },
            )?,
            stop: storage.stop.clone(),
            allowance: instrument.allowance(),
            hang_after: HANG_AFTER,
        };
        let outcome = Recorder::start(setup)?.wait_to_end();
        not_stopped(storage)?;
        let stored = outcome.stored();
        ensure!(
            stored == self.frames && !outcome.hung,
            "{choice}: {stored} of {} frames were written; {}",
            self.frames,
            outcome.faults.join("; ")
        );
        Ok((outcome, contents))
    }
}

fn not_stopped(storage: &TrialStorage<'_>) -> anyhow::Result<()> {
    ensure!(!storage.stop.load(Ordering::Relaxed), "stopped before all was measured: nothing is advised");
    Ok(())
}

/// A frame, parts of its rows, and tiles: those of them that are chunks of such frames.
fn usual_chunks(instrument: &Instrument) -> Vec<Option<ChunkShape>> {
    let frame = &instrument.shape;
    let rows = |parts: u64| -> Vec<u64> {
        let parts = std::iter::once(parts).chain(std::iter::repeat(1));
        frame.iter().zip(parts).map(|(side, parts)| side.div_ceil(parts)).collect()
    };
    let tiles = |parts: u64| -> Vec<u64> { frame.iter().map(|side| side.div_ceil(parts)).collect() };
    let mut chunks: Vec<Option<ChunkShape>> = vec![None];
    for sides in [rows(4), rows(16), tiles(4), tiles(16)] {
        let chunk = ChunkShape::of(&sides);
        let can_be =
            ChunkChoice { chunk, compression: FrameCompression::None }.of(instrument).check().is_ok();
        let bytes = sides.iter().product::<u64>() * instrument.pixel.bits() / 8;
        if can_be && bytes >= CHUNK_LEAST && chunk.is_some() && sides != *frame && !chunks.contains(&chunk) {
            chunks.push(chunk);
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_with_how_often() {
        let way = |text: &str| text.parse::<WeighedWay>();
        assert_eq!(way("line:20"), Ok(WeighedWay { way: ReadingWay::Line, times: 20.0 }));
        assert_eq!(way("pixel"), Ok(WeighedWay { way: ReadingWay::Pixel, times: 1.0 }));
        for wrong in ["line:0", "line:", "line:-1", "line:inf", "lines", ":3"] {
            assert!(way(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn usual_chunks_suit_frames_of_any_shape() {
        for shape in ["[2167, 2070]", "[1]", "[7]", "[3, 17, 41]", "[64, 96]"] {
            let text = format!(
                "name = \"d\"\ntitle = \"t\"\nsource = \"s\"\nshape = {shape}\npixel = \"uint16\"\nframe_rate = \"5 Hz\"\n"
            );
            let instrument = Instrument::parse(&text, "d.toml").expect("valid");
            let chunks = usual_chunks(&instrument);
            assert_eq!(chunks[0], None, "a frame is always one of them");
            for chunk in chunks.into_iter().flatten() {
                let choice = ChunkChoice { chunk: Some(chunk), compression: FrameCompression::Bslz4 };
                assert_eq!(choice.of(&instrument).check(), Ok(()), "{shape}: {chunk}");
            }
        }
    }
}
