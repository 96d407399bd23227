//! What users do, by the programs that they use: a cold tree of 100 000 files is listed, an archive is unpacked from memory, files
//! are searched, on fresh file systems on a loop device.

use std::{fs, path::Path, process::Command, sync::Arc};

use nilometer_campaign::workload::{
    NEEDLE, SLOTS, SourceTree, Unpack, Walk, WalkTask, WorkerPart, WorkerPlace,
};
use nilometer_model::{
    Bytes, Nanos,
    plan::{FILE_BLOCK, TreeShape, WalkCommand},
};
use nilometer_storage::{Buffer, Counted};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Crew, Driving, Ours, SEED},
    place::{self, Volume},
};

/// What is listed.
const LISTED: TreeShape = TreeShape::Source { directories: 6000, files: 100_000, size: Bytes(100_000_000) };
/// What is unpacked.
const UNPACKED: TreeShape = TreeShape::Source { directories: 1500, files: 30_000, size: Bytes(300_000_000) };
/// What each of two workers searches.
const SEARCHED: TreeShape = TreeShape::Source { directories: 800, files: 10_000, size: Bytes(250_000_000) };
/// Of a listing.
const LISTING: usize = 32 << 10;

const DU: &str = "du -s";
const LS: &str = "ls -lR";
const TAR: &str = "tar -x";
const GREP: &str = "grep -r";
const RIPGREP: &str = "rg";
const OURS: &str = "nilometer, engine sync, recorded";
const OURS_AS_DU: &str = "nilometer as du";
const OURS_AS_LS: &str = "nilometer as ls -lR";

/// A cold tree on ext4.
pub(crate) fn walk_ext4(stop: &Stop) -> anyhow::Result<Outcome> {
    walk("ext4", stop)
}

/// A cold tree on XFS.
pub(crate) fn walk_xfs(stop: &Stop) -> anyhow::Result<Outcome> {
    walk("xfs", stop)
}

/// An archive in memory onto ext4.
pub(crate) fn unpack_ext4(stop: &Stop) -> anyhow::Result<Outcome> {
    unpack("ext4", stop)
}

/// An archive in memory onto XFS.
pub(crate) fn unpack_xfs(stop: &Stop) -> anyhow::Result<Outcome> {
    unpack("xfs", stop)
}

/// Cold files on ext4.
pub(crate) fn search_ext4(stop: &Stop) -> anyhow::Result<Outcome> {
    search("ext4", stop)
}

/// Cold files on XFS.
pub(crate) fn search_xfs(stop: &Stop) -> anyhow::Result<Outcome> {
    search("xfs", stop)
}

fn walk(kind: &str, stop: &Stop) -> anyhow::Result<Outcome> {
    let volume = Volume::make(kind)?;
    let ours = Ours::at(volume.path(), 1)?;
    make(&ours, LISTED, "n_tree")?;
    let tree = ours.directory().join("n_tree");
    let ours = &ours;
    let walked = move |command| move || cold(|| walked(ours, command));
    Contest {
        title: format!("walk-{kind}: 100 000 files in 6000 directories, cold, an operation is a file"),
        quantity: Quantity::WallPerFile,
        phases: &["walk"],
        rounds: 5,
        contestants: vec![
            Contestant::new(DU, || cold(|| program("du", &["-s"], &[&tree], LISTED.files()))),
            Contestant::new(LS, || cold(|| program("ls", &["-lR"], &[&tree], LISTED.files()))),
            Contestant::new(OURS_AS_DU, walked(WalkCommand::Du)),
            Contestant::new(OURS_AS_LS, walked(WalkCommand::Ls)),
        ],
        bounds: vec![
            Bound { subject: OURS_AS_DU, peer: DU, limit: Limit::Times(1.0) },
            Bound { subject: OURS_AS_LS, peer: LS, limit: Limit::Times(0.5) },
        ],
    }
    .run(stop)
}

fn unpack(kind: &str, stop: &Stop) -> anyhow::Result<Outcome> {
    let memory = place::in_memory()?;
    let archive = memory.path().join("archive.tar");
    let source = Ours::at(memory.path(), 1)?;
    make(&source, UNPACKED, "n_tree")?;
    let mut pack = Command::new("tar");
    measure::child(1.0, pack.arg("-cf").arg(&archive).arg("-C").arg(source.directory()).arg("n_tree"))?;
    drop(source);
    let volume = Volume::make(kind)?;
    let ours = Ours::at(volume.path(), 1)?;
    let ours = &ours;
    Contest {
        title: format!("unpack-{kind}: 30 000 files of 300 MB in 1500 directories, an operation is a file"),
        quantity: Quantity::WallPerFile,
        phases: &["untar"],
        rounds: 5,
        contestants: vec![
            Contestant::new(TAR, move || afresh(ours, || untar(&archive, ours.directory()))),
            Contestant::new(OURS, move || afresh(ours, || make(ours, UNPACKED, "n_tree"))),
        ],
        bounds: vec![Bound { subject: OURS, peer: TAR, limit: Limit::Times(1.0) }],
    }
    .run(stop)
}

fn search(kind: &str, stop: &Stop) -> anyhow::Result<Outcome> {
    let volume = Volume::make(kind)?;
    let ours = Ours::at(volume.path(), 1)?;
    for worker in 0..SEARCHERS {
        make(&ours, SEARCHED, &searched(worker))?;
    }
    let trees = [0, 1].map(|worker| ours.directory().join(searched(worker)));
    // Programs that find nothing end with an exit code of 1.
    fs::write(trees[0].join("n_planted"), NEEDLE)?;
    let needle = str::from_utf8(NEEDLE)?;
    let ours = &ours;
    let files = SEARCHED.files() * u64::from(SEARCHERS);
    let places = [trees[0].as_path(), trees[1].as_path()];
    Contest {
        title: format!(
            "search-{kind}: 20 000 files of 500 MB, cold, by two threads where a program has them"
        ),
        quantity: Quantity::WallPerFile,
        phases: &["grep"],
        rounds: 5,
        contestants: vec![
            Contestant::new(GREP, move || cold(|| program("grep", &["-raF", needle], &places, files))),
            Contestant::new(RIPGREP, move || cold(|| program("rg", &["-uuuaF", needle], &places, files))),
            Contestant::new(OURS, move || cold(|| searched_by_two(ours))),
        ],
        bounds: vec![
            Bound { subject: OURS, peer: GREP, limit: Limit::Times(1.1) },
            Bound { subject: OURS, peer: RIPGREP, limit: Limit::Times(1.1) },
        ],
    }
    .run(stop)
}

const SEARCHERS: u32 = 2;

/// The tree of a worker.
fn searched(worker: u32) -> String {
    format!("n_w{worker}")
}

/// Caches are dropped first.
fn cold(run: impl FnOnce() -> anyhow::Result<Cost>) -> anyhow::Result<Vec<Cost>> {
    rustix::fs::sync();
    for _ in 0..2 {
        fs::write("/proc/sys/vm/drop_caches", "3")?;
    }
    Ok(vec![run()?])
}

/// The same after what the last one made is removed.
fn afresh(ours: &Ours, run: impl FnOnce() -> anyhow::Result<Cost>) -> anyhow::Result<Vec<Cost>> {
    let tree = ours.directory().join("n_tree");
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    cold(run)
}

/// A program, whose output nobody reads.
fn program(name: &str, options: &[&str], places: &[&Path], files: u64) -> anyhow::Result<Cost> {
    let mut command = Command::new(name);
    // A file and not `/dev/null`, at which grep would stop early.
    let output = tempfile::tempfile_in("/dev/shm")?;
    command.args(options).args(places).stdout(output);
    measure::child(files as f64, &mut command).map(|(cost, _)| cost)
}

/// Owners, modes and times are left as they come, as we leave them.
fn untar(archive: &Path, into: &Path) -> anyhow::Result<Cost> {
    let mut command = Command::new("tar");
    command.args(["--touch", "--no-same-owner", "--no-same-permissions", "-xf"]);
    command.arg(archive).arg("-C").arg(into);
    measure::child(UNPACKED.files() as f64, &mut command).map(|(cost, _)| cost)
}

fn make(ours: &Ours, shape: TreeShape, root: &str) -> anyhow::Result<Cost> {
    let tree = Arc::new(SourceTree::of(shape));
    let part = |buffers| WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers);
    let unpack = |buffers| Unpack::new(tree, root, false, part(buffers));
    let driving = Driving::sync(FILE_BLOCK.0 as usize);
    ours.drive(shape.files() as f64, driving, unpack).map(|(cost, _)| cost)
}

fn walked(ours: &Ours, command: WalkCommand) -> anyhow::Result<Cost> {
    let walk = |buffers| Walk::new("n_tree", WalkTask::Look(command), SLOTS, Nanos::MAX, buffers);
    let (cost, walk) = ours.drive(LISTED.files() as f64, Driving::sync(LISTING), walk)?;
    assert_eq!(walk.found().files, LISTED.files(), "the tree was laid out whole");
    Ok(cost)
}

fn searched_by_two(ours: &Ours) -> anyhow::Result<Cost> {
    let crew = Crew { workers: SEARCHERS, counted: Counted::Files, block: FILE_BLOCK.0 as usize };
    let files = SEARCHED.files() * u64::from(SEARCHERS);
    let search = |worker, buffers: Vec<Buffer>| -> Box<dyn nilometer_storage::Workload> {
        Box::new(Walk::new(&searched(worker), WalkTask::Search, SLOTS, Nanos::MAX, buffers))
    };
    let (cost, sample) = ours.drive_all(files as f64, &crew, &search)?;
    assert_eq!(sample.operations, files + 1, "every file, and the one that has the string");
    Ok(cost)
}
