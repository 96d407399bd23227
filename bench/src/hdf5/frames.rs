//! Frames of an EIGER 4M, a few distinct ones made before the clock starts, and where a contestant writes them.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use nilometer_acquisition::{
    EngineWish, Feed, LayoutOptions, Recorder, RecordingPlan, Setup, StoredFrames,
    sink::{LaneOptions, lanes_of},
    suited_engine,
};
use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::{
    Bytes, Data, DataKind, FileNames, Format, FrameCompression, Nanos, PixelType, Seed, Storing,
};
use nilometer_recording::instrument::Content;
use nilometer_ring::{Delivery, Pace};
use nilometer_storage::{
    Clock, Target,
    target::{NullTarget, Posix, probe},
};
use tempfile::TempDir;

use crate::{contest::Cost, ours::GIB, place};

/// An EIGER 4M.
pub(super) const SHAPE: [u64; 2] = [2167, 2070];
const DISTINCT: usize = 8;
/// What a contestant writes: about 2 GiB.
const WRITTEN: u64 = 2 << 30;
/// Memory between the instrument and the storage.
const RING: Bytes = Bytes(512 << 20);
/// A recording that takes longer is given up.
const AT_MOST: Nanos = Nanos::from_millis(60_000);

/// Prepared frames, in memory and in a file in memory.
#[derive(Debug)]
pub(super) struct EigerFrames {
    pub(super) pixel: PixelType,
    content: Content,
    home: TempDir,
}

impl EigerFrames {
    pub(super) fn prepare(pixel: PixelType) -> anyhow::Result<Self> {
        let data = Data { distinct: Some(DISTINCT as u64), ..DataKind::Diffraction.into() };
        let content = Content::prepare(&data, &SHAPE, pixel, Seed(1))?;
        let mut all = vec![0; DISTINCT * content.frame_size()];
        for (number, frame) in (0..).zip(all.chunks_mut(content.frame_size())) {
            content.prepare_slot(frame);
            content.fill(number, frame);
        }
        let home = place::in_memory()?;
        let frames = EigerFrames { pixel, content, home };
        std::fs::write(frames.file(), all)?;
        Ok(frames)
    }

    /// All distinct frames, one behind the other.
    pub(super) fn file(&self) -> PathBuf {
        self.home.path().join("frames")
    }

    pub(super) fn numpy_type(&self) -> String {
        format!("<u{}", self.pixel.bits() / 8)
    }

    /// How many are written.
    pub(super) fn count(&self) -> u64 {
        WRITTEN / self.content.frame_size() as u64
    }

    /// What these are in GiB.
    pub(super) fn gib(&self) -> f64 {
        (self.count() * self.content.frame_size() as u64) as f64 / GIB
    }

    fn stored(&self) -> StoredFrames {
        StoredFrames {
            size: self.content.frame_size() as u64,
            format: Format::Hdf5,
            names: FileNames::default(),
            storing: Storing::Growing,
            per_file: None,
            together: 1,
            picture: None,
            packets: false,
            padded: true,
            slot_min: 0,
        }
    }
}

/// A run directory on the disk.
#[derive(Debug)]
pub(super) struct Disk {
    target: Arc<Posix>,
    _home: TempDir,
}

impl Disk {
    pub(super) fn make() -> anyhow::Result<Self> {
        let home = place::on_disk()?;
        let target = Arc::new(Posix::create(probe(home.path())?, 1)?);
        Ok(Disk { target, _home: home })
    }

    pub(super) fn file_system(&self) -> &str {
        &self.target.description().file_system
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.target.directory().join(name)
    }

    /// What a contestant wrote is gone, and the disk at rest, before the next begins. See [`place::touch_memory`] for what
    /// comes before.
    pub(super) fn removed_after(
        &self,
        run: impl FnOnce() -> anyhow::Result<Cost>,
    ) -> anyhow::Result<Vec<Cost>> {
        place::touch_memory((WRITTEN + RING.0) as usize);
        let cost = run()?;
        self.target.clear()?;
        self.settle()?;
        Ok(vec![cost])
    }

    pub(super) fn settle(&self) -> anyhow::Result<()> {
        Ok(rustix::fs::syncfs(std::fs::File::open(self.target.directory())?)?)
    }

    /// The file that the recorder wrote.
    pub(super) fn recorded(&self) -> anyhow::Result<PathBuf> {
        let entries = std::fs::read_dir(self.target.directory())?.collect::<Result<Vec<_>, _>>()?;
        let is_hdf5 = |path: &PathBuf| path.extension().is_some_and(|it| it == "h5" || it == "nxs");
        let found = entries.iter().map(std::fs::DirEntry::path).find(is_hdf5);
        found.with_context(|| format!("{}: no HDF5 file", self.target.directory().display()))
    }

    /// By the recorder onto the disk, encoded by two threads if they are compressed.
    pub(super) fn record(&self, frames: &EigerFrames, how: FrameCompression) -> anyhow::Result<Cost> {
        record(self.target.clone(), frames, how)
    }

    /// The same with all that is written taken at once and kept nowhere.
    pub(super) fn record_nowhere(&self, frames: &EigerFrames, how: FrameCompression) -> anyhow::Result<Cost> {
        record(Arc::new(NullTarget::in_place_of(self.target.description())), frames, how)
    }
}

fn record(target: Arc<dyn Target>, frames: &EigerFrames, how: FrameCompression) -> anyhow::Result<Cost> {
    let setup = setup(target, frames, how)?;
    let outcome = Recorder::start(setup)?.wait_to_end();
    let stored = outcome.stored();
    let wanted = frames.count();
    anyhow::ensure!(
        stored == wanted && !outcome.hung,
        "{stored} of {wanted} frames were stored: {:?}",
        outcome.faults
    );
    Ok(Cost { amount: frames.gib(), cpu: outcome.usage.total().seconds(), wall: outcome.wall.seconds() })
}

fn setup(target: Arc<dyn Target>, frames: &EigerFrames, how: FrameCompression) -> anyhow::Result<Setup> {
    let description = std::slice::from_ref(target.description());
    let plan = RecordingPlan::of(frames.stored(), description, &LayoutOptions::with_buffer(RING));
    let mut layout = plan.layout("n_frames", 1, 0);
    layout.origin = frames.content.origin();
    layout.hdf5 = Hdf5Contents::of_frames(frames.pixel, &SHAPE, how);
    let engine = suited_engine(target.as_ref(), EngineWish::usual(layout.is_deep()), Clock::start())?;
    let options = LaneOptions { encoders: Some(2), ..LaneOptions::default() };
    let delivery = Delivery { frames: frames.count(), ..Delivery::lasting(Pace::AsTaken, AT_MOST) };
    Ok(Setup {
        engine,
        lanes: lanes_of(vec![(target, layout)], options)?,
        slots: plan.slots(),
        feed: Feed::Instrument { content: frames.content.clone(), delivery },
        stop: Arc::default(),
        allowance: Nanos::from_millis(10),
        hang_after: AT_MOST,
    })
}
