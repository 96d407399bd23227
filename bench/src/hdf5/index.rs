//! What libhdf5 takes for a chunk: a dataset of a million, beside a bare loop in C that does the least of what a file needs
//! whose frames are written by somebody else.
//!
//! Nothing is written by either: what would be is made and dropped. Frames are put into the index a thousand at a time.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use nilometer_hdf5::{
    Hdf5File, Hdf5FileOptions, StoredChunk,
    tree::{DatasetContent, FramesShape, NumberType, TreeDataset, TreeGroup, TreeNode},
};
use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_model::{FrameCompression, PixelType};
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};

const CHUNKS: u64 = 1_000_000;
/// Chunks for one flush.
const TURN: u64 = 1000;
/// 16 KiB with 16 bits a pixel.
const SHAPE: [u64; 2] = [64, 128];
const BYTES: u32 = 16 << 10;

const BARE: &str = "bare loop in C";
const OURS: &str = "nilometer";
const UNWATCHED: &str = "nilometer, no readers";
const WHOLE: &str = "nilometer, with what the recorder says of each frame";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let home = place::in_memory()?;
    let bare_loop = compiled(&home)?;
    let frames = only_frames();
    let contents = Hdf5Contents::of_frames(PixelType::Uint16, &SHAPE, FrameCompression::None);
    let whole = contents.context("whole bytes")?.tree;
    let [watched, unwatched] =
        [true, false].map(|watched| Hdf5FileOptions { watched, ..Hdf5FileOptions::default() });
    let contest = Contest {
        title: "hdf5-index: a dataset of a million chunks of 16 KiB, flushed each thousand, nothing written"
            .into(),
        quantity: Quantity::CpuPerOperation,
        phases: &["index"],
        rounds: 7,
        contestants: vec![
            Contestant::new(BARE, || bare(&bare_loop)),
            Contestant::new(OURS, || ours(&frames, watched)),
            Contestant::new(UNWATCHED, || ours(&frames, unwatched)),
            Contestant::new(WHOLE, || ours(&whole, watched)),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.2) }],
    };
    contest.run(stop)
}

/// The loop, linked with the library that this program is linked with.
fn compiled(home: &TempDir) -> anyhow::Result<PathBuf> {
    let [source, program] = ["index.c", "index"].map(|name| home.path().join(name));
    std::fs::write(&source, include_str!("index.c"))?;
    let include = Path::new(env!("HDF5_INCLUDE"));
    let library = include.with_file_name("lib").join("libhdf5.a");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(&source).arg("-I").arg(include).arg(&library);
    compiler.args(["-lz", "-lm", "-ldl", "-lpthread"]);
    measure::child(1.0, &mut compiler).context("it takes cc and zlib1g-dev of Debian")?;
    Ok(program)
}

fn bare(program: &Path) -> anyhow::Result<Vec<Cost>> {
    let mut command = Command::new(program);
    command.args([CHUNKS, TURN, SHAPE[0], SHAPE[1]].map(|number| number.to_string()));
    let (_, output) = measure::child(1.0, &mut command)?;
    let said = String::from_utf8(output.stdout)?;
    let figures: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [wall, cpu] = figures[..] else { anyhow::bail!("two figures, not {said}") };
    Ok(vec![Cost { amount: CHUNKS as f64, cpu, wall }])
}

/// A file with the frames and nothing else.
fn only_frames() -> TreeGroup {
    let frame = SHAPE.to_vec();
    let shape = FramesShape {
        element: NumberType::Uint16,
        frame,
        scan: Vec::new(),
        first_max: None,
        chunk: Vec::new(),
        stack: 1,
        packed_12: false,
        filter: None,
        fill: None,
    };
    let dataset = TreeDataset::of(DatasetContent::Frames(shape));
    TreeGroup::default().with("data", TreeNode::Dataset(dataset))
}

fn ours(tree: &TreeGroup, options: Hdf5FileOptions) -> anyhow::Result<Vec<Cost>> {
    let mut file = Hdf5File::create("bench", tree, options)?;
    drop_writes(&mut file);
    let cost = measure::thread(CHUNKS as f64, || {
        for frame in 0..CHUNKS {
            stored(&mut file, frame, BYTES);
            if frame % TURN == TURN - 1 {
                file.flush()?;
                drop_writes(&mut file);
            }
        }
        Ok(())
    })?;
    Ok(vec![cost])
}

/// A frame is where there is room for it, and what is known of it is set.
pub(super) fn stored(file: &mut Hdf5File, frame: u64, bytes: u32) {
    let offset = file.allocate(bytes.into(), 4096);
    file.insert(StoredChunk { dataset: 0, frame, tile: 0, offset, bytes, unfiltered: true });
    for column in 0..file.columns().count() {
        file.set(column, frame, frame.cast_signed());
    }
}

pub(super) fn drop_writes(file: &mut Hdf5File) {
    while let Some(write) = file.next_write() {
        std::hint::black_box(&write);
    }
}
