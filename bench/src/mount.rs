//! A recording that is scattered over two directories, read as one file through a mount, beside its chunks, read one after
//! the other as `dd` reads files: in calls of 1 MiB.
//!
//! Cold: nothing of it is in memory. Again: as much of it as the kernel kept. Each round mounts anew. The processor time is
//! that of the reader and of all threads that answer the kernel.

use std::{fs::File, path::PathBuf, sync::Arc};

use anyhow::Context;
use nilometer_acquisition::{
    Delivery, Feed, Pace, Recorder, Setup,
    instrument::{Content, Pattern},
    journal::Head,
    sink::RawLayout,
    suited_engine,
};
use nilometer_model::{Format, Nanos, Storing};
use nilometer_mount::{Mounted, Readers};
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
const LANES: u32 = 2;
const SLOTS: usize = 64;
const AT_MOST: Nanos = Nanos::from_millis(60_000);
/// The chunks in the cache, and half of what a mount keeps.
const TOUCHED: usize = 3 << 30;
const NAME: &str = "n_frames";

const CHUNKS: &str = "the chunks, one after the other";
const OURS: &str = "nilometer, mounted";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let recording = Scattered::record()?;
    let contest = Contest {
        title: format!(
            "mount: 2 GiB in chunks of 64 MiB, read in calls of 1 MiB, on {}",
            recording.file_system
        ),
        quantity: Quantity::WallPerGib,
        phases: &["cold", "again"],
        rounds: 9,
        contestants: vec![
            Contestant::new(CHUNKS, || recording.read_twice(&recording.chunks)),
            Contestant::new(OURS, || recording.mounted()),
        ],
        // 80 % of the rate.
        bounds: vec![Bound { subject: OURS, peer: CHUNKS, limit: Limit::Times(1.25) }],
    };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, Vec::new()))
}

/// A recording, and where its chunks are.
struct Scattered {
    lanes: Vec<Arc<Posix>>,
    /// In the order of their numbers.
    chunks: Vec<PathBuf>,
    file_system: String,
    point: TempDir,
    // Dropped last: the lanes lie in it.
    _place: TempDir,
}

impl Scattered {
    fn record() -> anyhow::Result<Self> {
        let place = place::on_disk()?;
        let lane = |id| Ok(Arc::new(Posix::create(probe(place.path())?, id)?));
        let lanes = (1..=u64::from(LANES)).map(lane).collect::<anyhow::Result<Vec<_>>>()?;
        let outcome = Recorder::start(setup(&lanes)?)?.wait_to_end();
        let stored = outcome.stored();
        anyhow::ensure!(
            stored == FRAMES && !outcome.hung,
            "{stored} frames were stored: {:?}",
            outcome.faults
        );
        let mut chunks = Vec::new();
        for lane in &lanes {
            for entry in std::fs::read_dir(lane.directory())? {
                let path = entry?.path();
                let number = path.extension().and_then(|number| number.to_str()?.parse::<u32>().ok());
                chunks.extend(number.map(|number| (number, path)));
            }
        }
        chunks.sort();
        Ok(Scattered {
            file_system: lanes[0].description().file_system.clone(),
            chunks: chunks.into_iter().map(|(_, path)| path).collect(),
            lanes,
            point: tempfile::tempdir()?,
            _place: place,
        })
    }

    fn mounted(&self) -> anyhow::Result<Vec<Cost>> {
        let directories: Vec<_> = self.lanes.iter().map(|lane| lane.directory().to_owned()).collect();
        let mounted = Mounted::new(&directories, self.point.path(), Readers::Owner)?;
        let name = mounted.names().pop().context("it shows the recording")?;
        let costs = self.read_twice(&[self.point.path().join(name)]);
        mounted.unmount()?;
        costs
    }

    /// These files one after the other, cold and again.
    fn read_twice(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Cost>> {
        for chunk in &self.chunks {
            let file = File::open(chunk)?;
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

fn setup(lanes: &[Arc<Posix>]) -> anyhow::Result<Setup> {
    let direct = lanes[0].description().direct_alignment().is_some();
    let layout = |lane| RawLayout::suited(NAME.into(), head(lane), direct);
    let target = |posix: &Arc<Posix>| posix.clone() as Arc<dyn Target>;
    Ok(Setup {
        engine: suited_engine(lanes[0].as_ref(), direct, Clock::start())?,
        lanes: (0..).zip(lanes).map(|(lane, posix)| (target(posix), layout(lane))).collect(),
        slots: SLOTS,
        feed: Feed::Instrument {
            content: Content::Pattern(Pattern::new(SEED, FRAME)),
            delivery: Delivery { frames: FRAMES, ..Delivery::lasting(Pace::AsTaken, AT_MOST) },
        },
        reserve: None,
        stop: Arc::default(),
        allowance: Nanos::from_millis(10),
        hang_after: AT_MOST,
    })
}

fn head(lane: u32) -> Head {
    Head {
        recording: 1,
        lane,
        lanes: LANES,
        frame_size: FRAME as u64,
        stride: FRAME as u64,
        frames_per_file: FRAMES_OF_CHUNK,
        storing: Storing::Scattered,
        format: Format::Raw,
    }
}
