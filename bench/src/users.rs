//! What users do, by the programs that they use: a cold tree of 100 000 files is listed, an archive is unpacked from memory, files
//! are searched, on fresh file systems on a loop device.

use std::{fs, path::Path, process::Command, sync::Arc};

use nilometer_campaign::workload::{
    NEEDLE, SLOTS, SourceTree, Unpack, Walk, WalkTask, WorkerPart, WorkerPlace,
};
use nilometer_model::{Bytes, Nanos};
use nilometer_plan::{FILE_BLOCK, TreeShape, WalkCommand};
use nilometer_storage::{Buffer, Counted, OpKind};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Crew, Driving, Ours, SEED},
    place::{self, Volume},
};

/// What is listed: two trees of it.
const LISTED: TreeShape = TreeShape::Source { directories: 3000, files: 50_000, size: Bytes(50_000_000) };
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
const BOTH_AS_DU: &str = "nilometer as du, 2 workers";
const BOTH_AS_LS: &str = "nilometer as ls -lR, 2 workers";

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
    for worker in 0..WORKERS {
        make(&ours, LISTED, &tree_of(worker))?;
    }
    let trees = [0, 1].map(|worker| ours.directory().join(tree_of(worker)));
    let places = [trees[0].as_path(), trees[1].as_path()];
    let files = LISTED.files() * u64::from(WORKERS);
    let ours = &ours;
    let one_by_one = move |command| move || cold(|| walked_one_by_one(ours, command));
    let by_two = move |command| move || cold(|| walked_by_two(ours, command));
    Contest {
        title: format!(
            "walk-{kind}: 100 000 files in 6000 directories, cold, an operation is a file; the programs have one thread"
        ),
        quantity: Quantity::WallPerFile,
        phases: &["walk"],
        rounds: 5,
        contestants: vec![
            Contestant::new(DU, move || cold(|| program("du", &["-s"], &places, files))),
            Contestant::new(LS, move || cold(|| program("ls", &["-lR"], &places, files))),
            Contestant::new(OURS_AS_DU, one_by_one(WalkCommand::Du)),
            Contestant::new(OURS_AS_LS, one_by_one(WalkCommand::Ls)),
            Contestant::new(BOTH_AS_DU, by_two(WalkCommand::Du)),
            Contestant::new(BOTH_AS_LS, by_two(WalkCommand::Ls)),
        ],
        // By one thread all of it is the kernel's time, of which `ls` has more only for what it asks besides.
        bounds: vec![
            Bound { subject: OURS_AS_DU, peer: DU, limit: Limit::Times(1.1) },
            Bound { subject: OURS_AS_LS, peer: LS, limit: Limit::Times(1.0) },
            Bound { subject: BOTH_AS_DU, peer: DU, limit: Limit::Times(1.0) },
            Bound { subject: BOTH_AS_LS, peer: LS, limit: Limit::Times(0.5) },
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
    for worker in 0..WORKERS {
        make(&ours, SEARCHED, &tree_of(worker))?;
    }
    let trees = [0, 1].map(|worker| ours.directory().join(tree_of(worker)));
    // Programs that find nothing end with an exit code of 1.
    fs::write(trees[0].join("n_planted"), NEEDLE)?;
    let needle = str::from_utf8(NEEDLE)?;
    let ours = &ours;
    let files = SEARCHED.files() * u64::from(WORKERS);
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

/// Where there is more than one.
const WORKERS: u32 = 2;

/// The tree of a worker.
fn tree_of(worker: u32) -> String {
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
    let files = shape.files() as f64;
    let tree = Arc::new(SourceTree::of(shape));
    let part = |buffers| WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers);
    let unpack = |buffers| Unpack::new(tree, root, false, part(buffers));
    let driving = Driving::sync(FILE_BLOCK.0 as usize);
    ours.drive(files, driving, unpack).map(|(cost, _)| cost)
}

/// Both trees by one thread.
fn walked_one_by_one(ours: &Ours, command: WalkCommand) -> anyhow::Result<Cost> {
    let mut all = Cost { amount: 0.0, cpu: 0.0, wall: 0.0 };
    for worker in 0..WORKERS {
        let walk = |buffers| Walk::new(&tree_of(worker), WalkTask::Look(command), SLOTS, Nanos::MAX, buffers);
        let (cost, walk) = ours.drive(LISTED.files() as f64, Driving::sync(LISTING), walk)?;
        assert_eq!(walk.found().files, LISTED.files(), "the tree was laid out whole");
        all.amount += cost.amount;
        all.cpu += cost.cpu;
        all.wall += cost.wall;
    }
    Ok(all)
}

/// A tree by each of two threads.
fn walked_by_two(ours: &Ours, command: WalkCommand) -> anyhow::Result<Cost> {
    let crew = Crew { workers: WORKERS, counted: Counted::Kind(OpKind::Stat), block: LISTING };
    let files = LISTED.files() * u64::from(WORKERS);
    let walk = |worker, buffers: Vec<Buffer>| -> Box<dyn nilometer_storage::Workload> {
        Box::new(Walk::new(&tree_of(worker), WalkTask::Look(command), SLOTS, Nanos::MAX, buffers))
    };
    let (cost, sample) = ours.drive_all(files as f64, &crew, &walk)?;
    anyhow::ensure!(sample.operations >= files, "{} of {files} files were looked at", sample.operations);
    Ok(cost)
}

fn searched_by_two(ours: &Ours) -> anyhow::Result<Cost> {
    let crew = Crew { workers: WORKERS, counted: Counted::Files, block: FILE_BLOCK.0 as usize };
    let files = SEARCHED.files() * u64::from(WORKERS);
    let search = |worker, buffers: Vec<Buffer>| -> Box<dyn nilometer_storage::Workload> {
        Box::new(Walk::new(&tree_of(worker), WalkTask::Search, SLOTS, Nanos::MAX, buffers))
    };
    let (cost, sample) = ours.drive_all(files as f64, &crew, &search)?;
    assert_eq!(sample.operations, files + 1, "every file, and the one that has the string");
    Ok(cost)
}
