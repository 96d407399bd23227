//! Frames of an EIGER 4M into HDF5 and out of it, beside h5py as pip installs it: frames that are assigned to a dataset, and
//! `H5Dwrite_chunk` through the library's own driver, which is the fastest that a program does with the library alone.

mod frames;
mod index;
mod parallel;
mod peer;
mod received;

use std::path::Path;

use anyhow::Context;
use nilometer_hdf5::{Hdf5File, Hdf5FileOptions};
use nilometer_hdf5_recording::{FRAMES_IN_FILE, Hdf5Contents};
use nilometer_model::{FrameCompression, PixelType};
use nilometer_storage::Clock;

use crate::contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop};
use frames::{Disk, EigerFrames, SHAPE};
pub(crate) use index::run as index;
pub(crate) use parallel::run as parallel;
use peer::{H5py, H5pyAnswer, H5pyOrder};
pub(crate) use received::run as received;

const CHUNKS: &str = "H5Dwrite_chunk by h5py";
const H5PY: &str = "h5py";
const OURS: &str = "nilometer";
const NOWHERE: &str = "nilometer, onto nothing";

/// What the peer's file is called in the run directory.
const PEER_FILE: &str = "n_h5py";
const PEER_DATASET: &str = "data";

/// Uncompressed, until it is synced.
pub(crate) fn plain(pixel: PixelType, stop: &Stop) -> anyhow::Result<Outcome> {
    let frames = EigerFrames::prepare(pixel)?;
    let disk = Disk::make()?;
    let peer = H5py::start(&frames)?;
    let path = disk.path(PEER_FILE);
    let path = path.as_path();
    let count = frames.count();
    let none = FrameCompression::None;
    let asked = |order: H5pyOrder| disk.removed_after(|| Ok(cost(&frames, &peer.ask(&order)?)));
    let contest = Contest {
        title: format!("hdf5-plain: {count} EIGER 4M frames of {pixel:?} on {}", disk.file_system()),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 7,
        contestants: vec![
            Contestant::new(CHUNKS, || asked(H5pyOrder::Chunks { path, count })),
            Contestant::new(H5PY, || asked(H5pyOrder::Frames { path, count, filter: None })),
            Contestant::new(OURS, || disk.removed_after(|| disk.record(&frames, none))),
            Contestant::new(NOWHERE, || disk.removed_after(|| disk.record_nowhere(&frames, none))),
        ],
        bounds: vec![Bound { subject: OURS, peer: CHUNKS, limit: Limit::Times(1.0 / 1.3) }],
    };
    let fifth = Bound { subject: OURS, peer: CHUNKS, limit: Limit::Times(0.2) };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, vec![fifth]))
}

/// With bitshuffle and LZ4, encoded by two threads, until it is synced.
pub(crate) fn compressed(pixel: PixelType, stop: &Stop) -> anyhow::Result<Outcome> {
    let frames = EigerFrames::prepare(pixel)?;
    let disk = Disk::make()?;
    let peer = H5py::start(&frames)?;
    let path = disk.path(PEER_FILE);
    let order = H5pyOrder::Frames { path: &path, count: frames.count(), filter: Some("bslz4") };
    let contest = Contest {
        title: format!(
            "hdf5-bslz4: {} EIGER 4M frames of {pixel:?} on {}",
            frames.count(),
            disk.file_system()
        ),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 7,
        contestants: vec![
            Contestant::new(H5PY, || disk.removed_after(|| Ok(cost(&frames, &peer.ask(&order)?)))),
            Contestant::new(OURS, || disk.removed_after(|| disk.record(&frames, FrameCompression::Bslz4))),
        ],
        bounds: vec![Bound { subject: OURS, peer: H5PY, limit: Limit::Times(1.0 / 3.0) }],
    };
    let less = Bound { subject: OURS, peer: H5PY, limit: Limit::Times(0.45) };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, vec![less]))
}

/// How long the thread that calls the library stays in it for a frame of 32 bits.
pub(crate) fn blocked(stop: &Stop) -> anyhow::Result<Outcome> {
    let frames = EigerFrames::prepare(PixelType::Uint32)?;
    let disk = Disk::make()?;
    let peer = H5py::start(&frames)?;
    let path = disk.path(PEER_FILE);
    let order = H5pyOrder::Chunks { path: &path, count: frames.count() };
    let theirs = || -> anyhow::Result<Vec<Cost>> {
        let answer = peer.ask(&order)?;
        std::fs::remove_file(&path)?;
        disk.settle()?;
        Ok(by_frame([answer.median, answer.high]))
    };
    let contest = Contest {
        title: format!("hdf5-blocked: the thread that calls HDF5, for each of {} frames", frames.count()),
        quantity: Quantity::WallPerFrame,
        phases: &["median", "99th percentile"],
        rounds: 7,
        contestants: vec![
            Contestant::new(CHUNKS, theirs),
            Contestant::new(OURS, || Ok(by_frame(calls(frames.count())?))),
        ],
        bounds: vec![Bound { subject: OURS, peer: CHUNKS, limit: Limit::Times(0.1) }],
    };
    contest.run(stop)
}

/// h5py reads all frames of a recording, and of a file that it wrote.
pub(crate) fn reading(how: FrameCompression, stop: &Stop) -> anyhow::Result<Outcome> {
    let frames = EigerFrames::prepare(PixelType::Uint32)?;
    let disk = Disk::make()?;
    let peer = H5py::start(&frames)?;
    let theirs = disk.path(PEER_FILE);
    let filter = (how != FrameCompression::None).then_some("bslz4");
    peer.ask(&H5pyOrder::Frames { path: &theirs, count: frames.count(), filter })?;
    disk.record(&frames, how)?;
    let ours = disk.recorded()?;
    disk.settle()?;
    let read = |path: &Path, dataset| -> anyhow::Result<Vec<Cost>> {
        let turn = |cold| Ok(cost(&frames, &peer.ask(&H5pyOrder::Read { path, dataset, cold })?));
        [true, false].into_iter().map(turn).collect()
    };
    let contest = Contest {
        title: format!("hdf5-read: {} EIGER 4M frames, {}, by h5py", frames.count(), how.name()),
        quantity: Quantity::WallPerGib,
        phases: &["cold", "again"],
        rounds: 11,
        contestants: vec![
            Contestant::new("h5py's file", || read(&theirs, PEER_DATASET)),
            Contestant::new(OURS, || read(&ours, FRAMES_IN_FILE)),
        ],
        bounds: vec![Bound { subject: OURS, peer: "h5py's file", limit: Limit::Times(1.0) }],
    };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, Vec::new()))
}

fn cost(frames: &EigerFrames, answer: &H5pyAnswer) -> Cost {
    Cost { amount: frames.gib(), cpu: answer.cpu, wall: answer.wall }
}

/// Seconds of one frame each.
fn by_frame(seconds: [f64; 2]) -> Vec<Cost> {
    seconds.map(|wall| Cost { amount: 1.0, cpu: wall, wall }).to_vec()
}

/// Median and 99th percentile of the seconds that a frame takes of the thread: put into the index and flushed, with all that
/// the recorder says of it, and what is to be written taken. The recorder does it for several at once.
fn calls(frames: u64) -> anyhow::Result<[f64; 2]> {
    let contents = Hdf5Contents::of_frames(PixelType::Uint32, &SHAPE, FrameCompression::None);
    let contents = contents.context("whole bytes")?;
    let mut file = Hdf5File::create("bench", &contents.tree, Hdf5FileOptions::default())?;
    index::drop_writes(&mut file);
    let clock = Clock::start();
    let mut taken = Vec::new();
    for frame in 0..frames {
        let begin = clock.now();
        index::stored(&mut file, frame, contents.frame_size as u32);
        file.flush()?;
        index::drop_writes(&mut file);
        taken.push(clock.now().since(begin).seconds());
    }
    taken.sort_by(f64::total_cmp);
    Ok([50, 99].map(|percent| taken[(taken.len() - 1) * percent / 100]))
}
