//! Four processes that compress frames: into one dataset by parallel HDF5, and as the recorder does it. That is a file of each
//! process below one virtual dataset, or one dataset of all. In memory: what a program does is compared, and no disk.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use nilometer_plan::Measured;
use nilometer_tests::python;
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place, ranks,
};

const PARALLEL: &str = "parallel HDF5, 4 processes";
const OURS: &str = "nilometer, 4 processes";
const ONE_DATASET: &str = "nilometer, 4 processes, one dataset";

/// Frames of 4 MiB.
const CAMERA: &str = "name = \"camera\"\ntitle = \"for the bench\"\nsource = \"none\"\nshape = [1024, 1024]\n\
                      pixel = \"uint32\"\nframe_rate = \"100 Hz\"\ndata = \"diffraction\"\n";
/// How they are recorded: each process compresses them by one thread, as its peer does.
const RECORDED: &str = "[recording]\nformat = \"hdf5\"\ncompression = \"bslz4\"\nencoders = 1\n";
const SIDE: &str = "1024";
const FRAME: f64 = 4_194_304.0;
/// Of them so many are other ones.
const DISTINCT: u32 = 32;
/// As many as take some seconds.
const FRAMES: u32 = 512;

const PLAN: &str = r#"
title = "ranks"
repeats = 1
reserve = "0 B"
[[stage]]
name = "frames"
[stage.ingest]
instrument = "recorded.toml"
goal = "limit"
duration = "5 s"
keep = "KEEP"
buffer = "256 MiB"
"#;

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let home = place::in_memory()?;
    let peer = Parallel::prepare(&home)?;
    let contest = Contest {
        title: format!(
            "ranks: {FRAMES} frames of 4 MiB by 4 processes into HDF5, bitshuffle and LZ4; in memory"
        ),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 5,
        contestants: vec![
            Contestant::new(PARALLEL, || peer.write()),
            Contestant::new(OURS, || recorded(&home, "files", "1 GB")),
            // As many frames as the peer writes: none are removed. The time until the file is complete counts.
            Contestant::new(ONE_DATASET, || recorded(&home, "shared", "2 GiB")),
        ],
        bounds: vec![
            Bound { subject: OURS, peer: PARALLEL, limit: Limit::Times(1.0 / 3.0) },
            Bound { subject: ONE_DATASET, peer: PARALLEL, limit: Limit::Times(1.0 / 3.0) },
        ],
    };
    contest.run(stop)
}

/// The peer, compiled, and frames for it.
struct Parallel {
    program: PathBuf,
    frames: PathBuf,
    plugin: String,
    file: PathBuf,
}

impl Parallel {
    fn prepare(home: &TempDir) -> anyhow::Result<Self> {
        let at = |name: &str| home.path().join(name);
        let (source, program) = (at("parallel.c"), at("parallel"));
        std::fs::write(&source, include_str!("parallel.c"))?;
        let mut compiler = Command::new("h5pcc.openmpi");
        compiler.current_dir(home.path()).args(["-O2", "-o"]).arg(&program).arg(&source).arg("-ldl");
        measure::child(1.0, &mut compiler).context("it takes libhdf5-openmpi-dev of Debian")?;
        let mut python =
            python(&["hdf5plugin"]).context("no Python with hdf5plugin: scripts/bootstrap test")?;
        python.args(["-c", "import hdf5plugin; print(hdf5plugin.PLUGIN_PATH, end='/libh5bshuf.so')"]);
        let (_, said) = measure::child(1.0, &mut python)?;
        let plugin = String::from_utf8(said.stdout)?;
        let frames = frames(home.path())?;
        Ok(Parallel { program, frames, plugin, file: at("parallel.h5") })
    }

    fn write(&self) -> anyhow::Result<Vec<Cost>> {
        let mut command = ranks::mpirun(&self.program);
        command.arg(&self.file).args([&FRAMES.to_string(), SIDE, SIDE]).arg(&self.frames).arg(&self.plugin);
        let gib = f64::from(FRAMES) * FRAME / f64::from(1 << 30);
        let (cost, output) = measure::child(gib, &mut command)?;
        let said = String::from_utf8(output.stdout)?;
        let seconds: f64 = said.trim().parse().with_context(|| format!("it said {said:?}"))?;
        std::fs::remove_file(&self.file)?;
        Ok(vec![Cost { wall: seconds, ..cost }])
    }
}

/// The frames of the camera in one file.
fn frames(home: &Path) -> anyhow::Result<PathBuf> {
    std::fs::write(home.join("camera.toml"), CAMERA)?;
    let program = place::program()?;
    let count = DISTINCT.to_string();
    let simulate = ["simulate", "camera.toml", "--to", ".", "--name", "frames", "--frames", &count];
    measure::child(1.0, Command::new(&program).current_dir(home).args(simulate))?;
    let export = ["export", "frames", "--to", "frames.raw"];
    measure::child(1.0, Command::new(&program).current_dir(home).args(export))?;
    Ok(home.join("frames.raw"))
}

/// As fast as frames are taken, whoever makes them, into such files of which this much is kept.
fn recorded(home: &TempDir, storing: &str, keep: &str) -> anyhow::Result<Vec<Cost>> {
    let instrument = home.path().join("recorded.toml");
    std::fs::write(&instrument, format!("{CAMERA}{RECORDED}storing = \"{storing}\"\n"))?;
    let plan = PLAN.replace("recorded.toml", &instrument.display().to_string()).replace("KEEP", keep);
    let samples = ranks::evaluated(home, &plan)?;
    ensure!(samples.len() == 1, "{} samples of one recording", samples.len());
    let stored = |measured: &Measured| measured.sample.ingest.as_ref().map_or(0, |ingest| ingest.stored);
    Ok(vec![ranks::spent(samples.iter(), |measured| stored(measured) as f64 * FRAME / f64::from(1 << 30))])
}
