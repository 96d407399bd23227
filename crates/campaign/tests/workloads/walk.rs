//! `walk` and `search`, and the trees that they go through.

use std::{collections::BTreeSet, fs, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use nilometer_campaign::workload::{FoundEntries, NEEDLE, Unpack, Walk, WalkTask, build};
use nilometer_model::{Bytes, EngineKind, Nanos, Phase};
use nilometer_plan::{SearchCell, Shift, TreeLike, TreeShape, WalkCell, WalkCommand, WorkloadCell};
use nilometer_storage::{
    Arena, Clock, Drive, Engine, Errno, OpKind, Open, Target,
    clock::VirtualClock,
    engine::Options,
    target::{Posix, probe},
    testing::conformance::workload_suite,
    testing::{
        Cost, Device, Simulated,
        wrap::{Meter, Metered},
    },
};
use tempfile::TempDir;

use crate::{demands, part, run, run_phase, unpack::tree};

const TREE: WalkCell = WalkCell {
    like: TreeLike::None,
    levels: 2,
    branching: 3,
    files: 7,
    directories: 0,
    total_files: 0,
    total_size: Bytes(0),
    command: WalkCommand::Ls,
    cold: false,
    shift: Shift::OWN,
};
const LIKE_SOURCES: WalkCell = WalkCell {
    like: TreeLike::None,
    levels: 0,
    branching: 1,
    files: 1,
    directories: 30,
    total_files: 200,
    total_size: Bytes(300_000),
    command: WalkCommand::Ls,
    cold: false,
    shift: Shift::OWN,
};
const TASKS: [WalkTask; 3] =
    [WalkTask::Look(WalkCommand::Ls), WalkTask::Look(WalkCommand::Du), WalkTask::Search];

fn walk(task: WalkTask, slots: u32, depth: usize) -> Walk {
    Walk::new("n_w0", task, slots, Nanos::MAX, Arena::shared_out(depth, 400).1)
}

#[test]
fn all_phases_pass_the_suite() {
    for cell in [TREE, LIKE_SOURCES] {
        let cell = WorkloadCell::Walk(cell);
        workload_suite(demands(512, 16), &|_| {}, &mut |buffers| build(&cell, Phase::LayOut, part(buffers)));
        for (slots, task) in [2, 4, 64].into_iter().flat_map(|slots| TASKS.map(|task| (slots, task))) {
            let lay_out = |engine: &mut dyn Engine| run_phase(engine, &cell, Phase::LayOut);
            workload_suite(demands(300, slots), &lay_out, &mut |buffers| {
                Box::new(Walk::new("n_w0", task, slots, Nanos::MAX, buffers))
            });
        }
    }
}

#[test]
fn all_that_was_made_is_found_at_any_depth_by_each_command() {
    for (cell, depth) in [1, 2, 7, 32].into_iter().flat_map(|depth| [(TREE, depth), (LIKE_SOURCES, depth)]) {
        let shape = cell.shape();
        for task in TASKS {
            let device = Device { parallel: 4, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
            let target = Simulated::new(device, VirtualClock::default());
            let mut engine = target.attach(depth, 64);
            run_phase(&mut target.attach(1, 64), &WorkloadCell::Walk(cell.clone()), Phase::LayOut);
            let mut walk = walk(task, 64, depth);
            run(&mut walk, &mut engine);
            let found = FoundEntries {
                files: shape.files(),
                directories: shape.directories(),
                bytes: shape.size().0,
                errors: 0,
                matches: 0,
            };
            assert_eq!(walk.found(), found, "{task:?} at depth {depth}");
        }
    }
}

/// A directory that is done with gives its slot back, and the walk leaves no descriptor open.
#[test]
fn every_directory_and_file_that_was_opened_is_closed() {
    for (task, depth) in TASKS.into_iter().flat_map(|task| [(task, 1), (task, 8)]) {
        let device = Device { parallel: 4, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
        let target = Simulated::new(device, VirtualClock::default());
        run_phase(&mut target.attach(1, 64), &WorkloadCell::Walk(TREE), Phase::LayOut);
        let meter = Arc::new(Meter::default());
        run(&mut walk(task, 64, depth), &mut Metered::new(Box::new(target.attach(depth, 64)), meter.clone()));
        let count = |kind| meter.of(kind).operations;
        let opened = count(OpKind::OpenDir) + count(OpKind::Open(Open::READ));
        assert!(opened >= TREE.shape().directories(), "{task:?} at depth {depth}: {opened}");
        assert_eq!(count(OpKind::Close), opened, "{task:?} at depth {depth}");
    }
}

/// `ls -lR` has looked at all of a directory before it enters one below; `du` enters it at once.
#[test]
fn the_order_is_that_of_the_command() {
    let order = |command| {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        let mut engine = target.attach(1, 64);
        run_phase(&mut engine, &WorkloadCell::Walk(TREE), Phase::LayOut);
        let mut walk = walk(WalkTask::Look(command), 64, 1);
        let mut kinds = Vec::new();
        Drive::new(&mut walk, &mut engine).run(|completion| kinds.push(completion.operation.kind));
        let second = kinds.iter().skip(1).position(|kind| *kind == OpKind::OpenDir).expect("levels") + 1;
        kinds[..second].iter().filter(|kind| **kind == OpKind::Stat).count()
    };
    assert_eq!(order(WalkCommand::Ls), 7 + 3, "the first directory has 7 files and 3 directories");
    assert!(order(WalkCommand::Du) < 7 + 3);
}

#[test]
fn a_walk_that_runs_out_of_slots_says_what_it_gave_up() {
    for command in [WalkCommand::Ls, WalkCommand::Du] {
        let target = Simulated::new(Device::default(), VirtualClock::default());
        let mut engine = target.attach(1, 64);
        run_phase(&mut engine, &WorkloadCell::Walk(TREE), Phase::LayOut);
        // Room for the first level only: its three directories can't be entered.
        let mut walk = walk(WalkTask::Look(command), 2, 1);
        run(&mut walk, &mut engine);
        let found = walk.found();
        assert_eq!((found.files, found.directories, found.errors), (7, 1, 3));
    }
}

/// A directory on the machine's own file system, with a run in it.
struct Real {
    _home: TempDir,
    target: Posix,
}

impl Real {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let target = Posix::create(probe(home.path()).expect("it is one"), 1).expect("a run directory");
        Real { _home: home, target }
    }

    fn engine(&self, kind: EngineKind) -> Box<dyn Engine> {
        let options = Options { kind, depth: 1, slots: 1024, clock: Clock::start() };
        self.target.engine(&options).expect("an engine")
    }

    fn root(&self) -> std::path::PathBuf {
        self.target.directory().join("n_w0")
    }
}

#[test]
fn a_search_finds_what_is_there_and_passes_by_what_is_no_file() {
    let real = Real::new();
    let shape = TreeShape::Source { directories: 5, files: 40, size: Bytes(2_000_000) };
    let mut unpack = Unpack::new(tree(shape), "n_w0", false, part(Arena::shared_out(1, 128 << 10).1));
    run(&mut unpack, real.engine(EngineKind::Sync).as_mut());
    // At the seam of two reads of 64 KiB, and at a file's end.
    let mut text = vec![b'.'; 64 << 10];
    text.truncate(text.len() - 5);
    text.extend_from_slice(NEEDLE);
    text.resize(100_000, b'.');
    text.extend_from_slice(NEEDLE);
    fs::write(real.root().join("n_d1/n_planted"), &text).expect("space");
    std::os::unix::fs::symlink("/etc/passwd", real.root().join("n_link")).expect("a symlink");
    for kind in [EngineKind::Sync, EngineKind::Pool] {
        let buffers = Arena::shared_out(1, 64 << 10).1;
        let mut search = Walk::new("n_w0", WalkTask::Search, 64, Nanos::MAX, buffers);
        run(&mut search, real.engine(kind).as_mut());
        let found = search.found();
        assert_eq!((found.files, found.directories, found.errors, found.matches), (41, 5, 0, 2), "{kind:?}");
        assert_eq!(found.bytes, 2_000_000 + text.len() as u64);
    }
}

#[test]
fn names_that_are_no_text_are_found_too() {
    let real = Real::new();
    let odd = [&b"n_\xff\xfe"[..], b"n_ \n", &[b'n'; 255]];
    fs::create_dir(real.root()).expect("a directory");
    for name in odd {
        let directory = real.root().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join(std::ffi::OsStr::from_bytes(b"n_\xc3\x28")), "four").expect("space");
    }
    for task in TASKS {
        let buffers = Arena::shared_out(1, 32 << 10).1;
        let mut walk = Walk::new("n_w0", task, 64, Nanos::MAX, buffers);
        run(&mut walk, real.engine(EngineKind::Sync).as_mut());
        let found = walk.found();
        assert_eq!((found.files, found.directories, found.bytes, found.errors), (3, 4, 12, 0), "{task:?}");
    }
}

/// Every name is looked up in its directory, so that no path is too long.
#[test]
fn a_tree_is_deeper_than_the_longest_path() {
    let real = Real::new();
    let shape = TreeShape::Regular { levels: 900, branching: 1, files: 1 };
    let path_of_last: usize = (1..=900).map(|number| format!("/n_d{number}").len()).sum();
    assert!(path_of_last > libc_path_max(), "{path_of_last}");
    let mut unpack = Unpack::new(tree(shape), "n_w0", false, part(Arena::shared_out(1, 512).1));
    run(&mut unpack, real.engine(EngineKind::Sync).as_mut());
    for task in TASKS {
        let buffers = Arena::shared_out(1, 32 << 10).1;
        let mut walk = Walk::new("n_w0", task, 1024, Nanos::MAX, buffers);
        run(&mut walk, real.engine(EngineKind::Sync).as_mut());
        assert_eq!((walk.found().files, walk.found().directories), (901, 901), "{task:?}");
    }
    real.target.clear().expect("what was made is removed");
    assert!(!Path::exists(&real.root()), "something is left");
}

/// `PATH_MAX` of Linux.
fn libc_path_max() -> usize {
    4096
}

/// Another process removes files between the listing and the look.
#[test]
fn files_that_vanish_while_they_are_walked_are_errors_and_the_rest_is_found() {
    for task in TASKS {
        let real = Real::new();
        fs::create_dir(real.root()).expect("a directory");
        let kept: BTreeSet<u32> = (0..10).filter(|number| number % 3 != 0).collect();
        for number in 0..10 {
            fs::write(real.root().join(format!("n_f{number}")), "x").expect("space");
        }
        let mut walk = Walk::new("n_w0", task, 64, Nanos::MAX, Arena::shared_out(1, 32 << 10).1);
        let mut errors = Vec::new();
        let mut engine = real.engine(EngineKind::Sync);
        Drive::new(&mut walk, engine.as_mut()).run(|completion| {
            errors.extend(completion.result.err());
            if completion.operation.kind == OpKind::List && completion.result.is_ok_and(|bytes| bytes > 0) {
                for number in (0..10).filter(|number| !kept.contains(number)) {
                    fs::remove_file(real.root().join(format!("n_f{number}"))).expect("it was there");
                }
            }
        });
        assert_eq!(errors, [Errno::ENOENT; 4], "{task:?}");
        assert_eq!((walk.found().files, walk.found().errors), (6, 4), "{task:?}");
    }
}

#[test]
fn the_phases_of_a_search_read_all_that_was_laid_out() {
    let cell =
        SearchCell { like: TreeLike::None, directories: 9, files: 50, size: Bytes(3_000_000), cold: false };
    let cell = WorkloadCell::Search(cell);
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let mut engine = target.attach(1, 64);
    run_phase(&mut engine, &cell, Phase::LayOut);
    let mut read = 0;
    let mut search = build(&cell, Phase::Search, part(crate::buffers(1)));
    Drive::new(search.as_mut(), &mut engine).run(|completion| {
        if completion.operation.kind == OpKind::Read {
            read += u64::from(completion.result.expect("a read"));
        }
    });
    assert_eq!(read, 3_000_000);
}
