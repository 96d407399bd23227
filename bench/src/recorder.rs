//! The whole recorder, as fast as its frames are taken, beside what else writes as much: dd past the cache onto a disk,
//! and bare loops by two threads into memory.
//!
//! Frames of 4 MiB, 64 in a file. The recorder makes new files and syncs each; it is timed from the first frame until the
//! last lane has closed its files and its journal. Its processor time is that of all its threads and of the kernel's for
//! it; the thread that stands for the instrument is left out.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use nilometer_acquisition::{
    EngineWish, Feed, Recorder, Setup,
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_model::{FileNames, Format, Nanos, Storing};
use nilometer_recording::{
    instrument::{Content, Pattern},
    journal::Head,
};
use nilometer_ring::{Delivery, Pace};
use nilometer_storage::{
    Arena, Buffer, Clock, Target,
    target::{Posix, probe},
};

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{GIB, SEED},
    peers, place,
};

const FRAME: usize = 4 << 20;
const FRAMES_PER_FILE: u64 = 64;
const FILE: u64 = FRAMES_PER_FILE * FRAME as u64;
/// Of the ring: a quarter of a GiB, far more than the processor's cache.
const SLOTS: usize = 64;
/// Onto the disk, and into memory.
const DISK_FILES: u64 = 8;
const MEMORY_FILES: u64 = 16;
const MEMORY_LANES: u32 = 2;
/// A recording that takes longer is given up.
const AT_MOST: Nanos = Nanos::from_millis(60_000);

/// 90 % of the peer's rate.
const TIME: Limit = Limit::Times(1.0 / 0.9);
/// 0.15 s a GiB.
const PROCESSOR: Limit = Limit::AtMost(150.0);

const DD: &str = "dd oflag=direct bs=4M conv=fsync";
const BARE: &str = "bare pwrite loops, two threads";
const OURS: &str = "nilometer, the recorder";

/// Past the cache, one lane.
pub(crate) fn on_disk(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::on_disk()?;
    let disk = Lanes::at(place.path(), 1, DISK_FILES)?;
    let contest = Contest {
        title: format!("recorder-disk: 2 GiB in frames of 4 MiB, past the cache, on {}", disk.file_system()),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 7,
        contestants: vec![
            Contestant::new(DD, || disk.removed_after(dd)),
            Contestant::new(OURS, || disk.removed_after(|lanes| lanes.record(None))),
        ],
        bounds: vec![Bound { subject: OURS, peer: DD, limit: TIME }],
    };
    let outcome = contest.run(stop)?;
    Ok(outcome.also(Quantity::CpuPerGib, vec![Bound { subject: OURS, peer: DD, limit: PROCESSOR }]))
}

/// Into memory, two lanes. All keep one full file of each lane and remove the older ones as they go.
pub(crate) fn in_memory(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::in_memory()?;
    let memory = Lanes::at(place.path(), MEMORY_LANES, MEMORY_FILES)?;
    let frames = prepared();
    let contest = Contest {
        title: format!("recorder-memory: 4 GiB in frames of 4 MiB, two writers, on {}", memory.file_system()),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 7,
        contestants: vec![
            Contestant::new(BARE, || memory.removed_after(|lanes| bare(lanes, &frames))),
            Contestant::new(OURS, || memory.removed_after(|lanes| lanes.record(Some(1)))),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: TIME }],
    };
    contest.run(stop)
}

/// A run directory, and how much goes into it by how many lanes.
struct Lanes {
    target: Arc<Posix>,
    count: u32,
    /// In all lanes together.
    files: u64,
}

impl Lanes {
    fn at(path: &Path, count: u32, files: u64) -> anyhow::Result<Self> {
        Ok(Lanes { target: Arc::new(Posix::create(probe(path)?, 1)?), count, files })
    }

    fn file_system(&self) -> &str {
        &self.target.description().file_system
    }

    fn path(&self, name: &str) -> PathBuf {
        self.target.directory().join(name)
    }

    fn gib(&self) -> f64 {
        (self.files * FILE) as f64 / GIB
    }

    /// What a contestant wrote is gone, and the disk at rest, before the next begins. See [`place::touch_memory`] for
    /// what comes before.
    fn removed_after(&self, run: impl FnOnce(&Self) -> anyhow::Result<Cost>) -> anyhow::Result<Vec<Cost>> {
        place::touch_memory(SLOTS * FRAME + 6 * FILE as usize);
        let cost = run(self)?;
        self.target.clear()?;
        rustix::fs::syncfs(std::fs::File::open(self.target.directory())?)?;
        Ok(vec![cost])
    }

    /// By the recorder, of whose full files so many stay in a lane.
    fn record(&self, keep: Option<u64>) -> anyhow::Result<Cost> {
        let outcome = Recorder::start(self.setup(keep)?)?.wait_to_end();
        let (stored, wanted) = (outcome.stored(), self.files * FRAMES_PER_FILE);
        anyhow::ensure!(
            stored == wanted && !outcome.hung,
            "{stored} of {wanted} frames were stored: {:?}",
            outcome.faults
        );
        let (cpu, wall) = (outcome.usage.total().seconds(), outcome.wall.seconds());
        Ok(Cost { amount: self.gib(), cpu, wall })
    }

    fn setup(&self, keep: Option<u64>) -> anyhow::Result<Setup> {
        let direct = self.target.description().direct_alignment().is_some();
        let target: Arc<dyn Target> = self.target.clone();
        let layout =
            |lane| RawLayout { keep, ..RawLayout::suited("n_frames".into(), self.head(lane), direct) };
        let frames = self.files * FRAMES_PER_FILE;
        Ok(Setup {
            engine: suited_engine(target.as_ref(), EngineWish::usual(direct), Clock::start())?,
            lanes: lanes_of(
                (0..self.count).map(|lane| (target.clone(), layout(lane))).collect(),
                LaneOptions::default(),
            )?,
            slots: SLOTS,
            feed: Feed::Instrument {
                content: Content::Pattern(Pattern::new(SEED, FRAME)),
                delivery: Delivery { frames, ..Delivery::lasting(Pace::AsTaken, AT_MOST) },
            },
            stop: Arc::default(),
            allowance: Nanos::from_millis(10),
            hang_after: AT_MOST,
        })
    }

    fn head(&self, lane: u32) -> Head {
        Head {
            recording: 1,
            lane,
            lanes: self.count,
            frame_size: FRAME as u64,
            stride: FRAME as u64,
            frames_per_file: FRAMES_PER_FILE,
            storing: Storing::Files,
            format: Format::Raw,
            names: FileNames::default(),
        }
    }
}

/// One file of zeroes.
fn dd(lanes: &Lanes) -> anyhow::Result<Cost> {
    let (amount, options) = ((lanes.gib(), 4), ["oflag=direct", "conv=fsync"]);
    peers::dd(amount, Path::new("/dev/zero"), &lanes.path("n_dd"), &options)
}

/// As many frames as the ring has slots.
fn prepared() -> Vec<Buffer> {
    let pattern = Pattern::new(SEED, FRAME);
    let mut frames = Arena::shared_out(SLOTS, FRAME).1;
    for (number, frame) in (0..).zip(&mut frames) {
        pattern.prepare(frame);
        pattern.stamp(number, frame);
    }
    frames
}

/// A thread a lane, each with its share of the frames.
fn bare(lanes: &Lanes, frames: &[Buffer]) -> anyhow::Result<Cost> {
    let (count, files) = (lanes.count as usize, lanes.files / u64::from(lanes.count));
    measure::here(lanes.gib(), || {
        thread::scope(|scope| {
            let shares = frames.chunks(frames.len() / count).enumerate();
            let write = |(lane, share)| scope.spawn(move || bare_lane(lanes, (lane, files), share));
            let threads: Vec<_> = shares.map(write).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
        })?;
        Ok(())
    })
}

/// New files one after the other; when one is full, that before it is removed.
fn bare_lane(lanes: &Lanes, (lane, files): (usize, u64), frames: &[Buffer]) -> std::io::Result<()> {
    let path = |file| lanes.path(&format!("n_bare_{lane}_{file}"));
    for file in 0..files {
        let new = OpenOptions::new().write(true).create_new(true).open(path(file))?;
        bare::write_file(&new.into(), frames, FILE)?;
        file.checked_sub(1).map_or(Ok(()), |old| std::fs::remove_file(path(old)))?;
    }
    Ok(())
}
