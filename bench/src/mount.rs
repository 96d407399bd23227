//! A recording read as one file through a mount, beside its files, read one after the other as `dd` reads files: in calls
//! of 1 MiB. It is scattered over two directories in chunks, or one file by itself.
//!
//! Cold: nothing of it is in memory. Again: as much of it as the kernel kept. Each round mounts anew. The processor time is
//! that of the reader and of all threads that answer the kernel.

use std::{ffi::OsStr, fs::File, path::PathBuf, sync::Arc};

use anyhow::Context;
use nilometer_acquisition::{
    EngineWish, Feed, Recorder, Setup,
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_model::{FileNames, Format, Nanos, Storing};
use nilometer_mount::{MountReaders, Mounted};
use nilometer_recording::{
    instrument::{Content, Pattern},
    journal::Head,
    view::PartLimits,
};
use nilometer_ring::{Delivery, Pace};
use nilometer_storage::{
    Buffer, Clock, Target,
    target::{Posix, probe},
};
use tempfile::TempDir;

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{GIB, MIB, SEED},
    place,
};

const FRAME: usize = 4 << 20;
/// Of a chunk, and in all.
const FRAMES_OF_CHUNK: u64 = 16;
const FRAMES: u64 = 512;
const SIZE: u64 = FRAMES * FRAME as u64;
const SLOTS: usize = 64;
const AT_MOST: Nanos = Nanos::from_millis(60_000);
/// The chunks in the cache, and half of what a mount keeps.
const TOUCHED: usize = 3 << 30;
const NAME: &str = "n_frames";

const FILES: &str = "its files, one after the other";
const OURS: &str = "nilometer, mounted";

/// In chunks.
pub(crate) fn chunks(stop: &Stop) -> anyhow::Result<Outcome> {
    run(stop, &Layout { title: "mount: 2 GiB in chunks of 64 MiB", storing: Storing::Scattered, lanes: 2 })
}

/// One file: as root, the kernel reads it by itself.
pub(crate) fn one_file(stop: &Stop) -> anyhow::Result<Outcome> {
    run(stop, &Layout { title: "mount-one: 2 GiB in one file", storing: Storing::Growing, lanes: 1 })
}

/// How it is stored.
struct Layout {
    title: &'static str,
    storing: Storing,
    lanes: u32,
}

fn run(stop: &Stop, layout: &Layout) -> anyhow::Result<Outcome> {
    let recording = Recorded::new(layout)?;
    let contest = Contest {
        title: format!("{}, read in calls of 1 MiB, on {}", layout.title, recording.file_system),
        quantity: Quantity::WallPerGib,
        phases: &["cold", "again"],
        rounds: 9,
        contestants: vec![
            Contestant::new(FILES, || recording.read_twice(&recording.files)),
            Contestant::new(OURS, || recording.mounted()),
        ],
        // 80 % of the rate.
        bounds: vec![Bound { subject: OURS, peer: FILES, limit: Limit::Times(1.25) }],
    };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, Vec::new()))
}

/// A recording, and where its files are.
struct Recorded {
    lanes: Vec<Arc<Posix>>,
    /// In the order of their numbers.
    files: Vec<PathBuf>,
    file_system: String,
    point: TempDir,
    // Dropped last: the lanes lie in it.
    _place: TempDir,
}

impl Recorded {
    fn new(layout: &Layout) -> anyhow::Result<Self> {
        let place = place::on_disk()?;
        let lane = |id| Ok(Arc::new(Posix::create(probe(place.path())?, id)?));
        let lanes = (1..=u64::from(layout.lanes)).map(lane).collect::<anyhow::Result<Vec<_>>>()?;
        let outcome = Recorder::start(setup(&lanes, layout)?)?.wait_to_end();
        let stored = outcome.stored();
        anyhow::ensure!(
            stored == FRAMES && !outcome.hung,
            "{stored} frames were stored: {:?}",
            outcome.faults
        );
        let mut files = Vec::new();
        for lane in &lanes {
            for entry in std::fs::read_dir(lane.directory())? {
                files.push(entry?.path());
            }
        }
        // One by its suffix, chunks by their numbers.
        let is_of_frames = |path: &PathBuf| {
            let suffix = path.extension().and_then(OsStr::to_str);
            suffix.is_some_and(|suffix| suffix == "raw" || suffix.parse::<u32>().is_ok())
        };
        files.retain(is_of_frames);
        files.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
        Ok(Recorded {
            file_system: lanes[0].description().file_system.clone(),
            files,
            lanes,
            point: tempfile::tempdir()?,
            _place: place,
        })
    }

    fn mounted(&self) -> anyhow::Result<Vec<Cost>> {
        let directories: Vec<_> = self.lanes.iter().map(|lane| lane.directory().to_owned()).collect();
        let mounted =
            Mounted::new(&directories, PartLimits::default(), self.point.path(), MountReaders::Owner)?;
        let name = mounted.names().pop().context("it shows the recording")?;
        let costs = self.read_twice(&[self.point.path().join(name)]);
        mounted.unmount()?;
        costs
    }

    /// These files one after the other, cold and again.
    fn read_twice(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Cost>> {
        for path in &self.files {
            let file = File::open(path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
        place::touch_memory(TOUCHED);
        Ok(vec![read(files)?, read(files)?])
    }
}

fn read(files: &[PathBuf]) -> anyhow::Result<Cost> {
    let mut buffer = Buffer::alone(MIB);
    measure::here(SIZE as f64 / GIB, || {
        let mut read = 0;
        for path in files {
            let file = File::open(path).with_context(|| path.display().to_string())?;
            let length = file.metadata()?.len();
            bare::read_file(&file.into(), &mut buffer, length)?;
            read += length;
        }
        anyhow::ensure!(read == SIZE, "{read} bytes were read instead of {SIZE}");
        Ok(())
    })
}

fn setup(lanes: &[Arc<Posix>], layout: &Layout) -> anyhow::Result<Setup> {
    let direct = lanes[0].description().direct_alignment().is_some();
    let raw = |lane| RawLayout::suited(NAME.into(), head(lane, layout), direct);
    let target = |posix: &Arc<Posix>| posix.clone() as Arc<dyn Target>;
    Ok(Setup {
        engine: suited_engine(lanes[0].as_ref(), EngineWish::usual(direct), Clock::start())?,
        lanes: lanes_of(
            (0..).zip(lanes).map(|(lane, posix)| (target(posix), raw(lane))).collect(),
            LaneOptions::default(),
        )?,
        slots: SLOTS,
        feed: Feed::Instrument {
            content: Content::Pattern(Pattern::new(SEED, FRAME)),
            delivery: Delivery { frames: FRAMES, ..Delivery::lasting(Pace::AsTaken, AT_MOST) },
        },
        stop: Arc::default(),
        allowance: Nanos::from_millis(10),
        hang_after: AT_MOST,
    })
}

fn head(lane: u32, layout: &Layout) -> Head {
    Head {
        recording: 1,
        lane,
        lanes: layout.lanes,
        frame_size: FRAME as u64,
        stride: FRAME as u64,
        frames_per_file: FRAMES_OF_CHUNK,
        storing: layout.storing,
        format: Format::Raw,
        names: FileNames::default(),
    }
}
