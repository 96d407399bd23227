//! `unpack` from a disk: a tree copied from another storage system, with real files on every engine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_campaign::workload::{WorkerPlace, build, counted_of, files_of};
use nilometer_model::{Bytes, EngineKind, Nanos, Phase, Sample, Seed};
use nilometer_plan::{DataSource, Parameters, TreeLike, UnpackCell, WorkloadCell};
use nilometer_storage::{
    Clock, Drive, Engine, Errno, OpKind, Tally, Target,
    engine::Options,
    target::{Posix, probe},
    testing::wrap::{FaultEffect, Faulty, Rule, When},
};

use crate::{buffers, part, watched};

const COPIED: UnpackCell = UnpackCell {
    like: TreeLike::None,
    directories: 12,
    files: 60,
    size: Bytes(3_000_000),
    durable: false,
    source: DataSource::Disk,
};

/// A target in one directory whose source lies in another.
fn with_source(to: &Path, from: &Path) -> Posix {
    let create = |path: &Path, id| Posix::create(probe(path).expect("a directory"), id).expect("writable");
    create(to, 1).with_source(create(from, 2)).expect("it can be opened")
}

fn engine(target: &dyn Target, kind: EngineKind, depth: u32) -> Box<dyn Engine> {
    let options = Options { kind, depth, slots: 64, clock: Clock::start() };
    target.engine(&options).expect("permitted here")
}

/// The files below a directory, by their paths from it, with their bytes.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below").to_string_lossy().into_owned();
                found.push((name, fs::read(&path).expect("readable")));
            }
        }
    }
    found.sort();
    found
}

/// The run's directory on the source.
fn source_of(target: &dyn Target) -> PathBuf {
    target.source().and_then(|source| source.directory().map(Path::to_path_buf)).expect("a directory")
}

#[test]
fn a_copied_tree_equals_its_source_on_every_engine() {
    let cell = WorkloadCell::Unpack(COPIED);
    for (kind, depth) in [(EngineKind::Sync, 1), (EngineKind::IoUring, 3), (EngineKind::Pool, 2)] {
        let [to, from] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
        let target = with_source(to.path(), from.path());
        let source = target.source().expect("one");
        watched(
            build(&cell, Phase::LayOut, part(buffers(2))).as_mut(),
            engine(source.as_ref(), kind, depth).as_mut(),
        );
        let done = watched(
            build(&cell, Phase::Unpack, part(buffers(2))).as_mut(),
            engine(&target, kind, depth).as_mut(),
        );
        let moved = |of: OpKind| -> u64 {
            let all = done.iter().filter(|(kind, ..)| *kind == of);
            all.map(|(.., length)| u64::from(*length)).sum()
        };
        assert_eq!((moved(OpKind::Read), moved(OpKind::Write)), (3_000_000, 3_000_000), "{kind:?}");
        let there = fs::read_dir(target.directory()).expect("readable");
        assert!(there.count() > 0, "{kind:?}");
        let root = |directory: &Path| contents(&directory.join("n_w0"));
        let copy = root(target.directory());
        assert!(copy == root(&source_of(&target)) && copy.len() == 60, "{kind:?}");
        target.clear_copies().expect("all is ours");
        assert!(!target.directory().join("n_w0").exists(), "{kind:?}: the copy is gone");
        assert_eq!(root(&source_of(&target)).len(), 60, "{kind:?}: the source stays");
        target.remove().expect("all is ours");
    }
}

#[test]
fn the_files_that_must_be_cold_are_those_that_are_read() {
    let [to, from] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let target = with_source(to.path(), from.path());
    let cell = WorkloadCell::Unpack(COPIED);
    let source = target.source().expect("one");
    watched(
        build(&cell, Phase::LayOut, part(buffers(2))).as_mut(),
        engine(source.as_ref(), EngineKind::Sync, 1).as_mut(),
    );
    let place = WorkerPlace::alone(0, 1);
    let mut cold: Vec<String> = files_of(&cell, Phase::Unpack, std::iter::once(place)).collect();
    cold.sort();
    let run = source_of(&target);
    let there = contents(&run).into_iter().map(|(name, _)| name).filter(|name| name.starts_with("n_w0/"));
    assert_eq!(cold, there.collect::<Vec<_>>());
    assert_eq!(files_of(&cell, Phase::LayOut, std::iter::once(place)).count(), 0);
    assert!(cold.iter().all(|name| source.chill(name).is_ok()), "each can be dropped from the cache");
}

fn tallied(target: &dyn Target, rules: &[Rule]) -> Sample {
    let cell = WorkloadCell::Unpack(COPIED);
    let mut faulty = Faulty::new(engine(target, EngineKind::Sync, 1), rules, Seed(1));
    let mut workload = build(&cell, Phase::Unpack, part(buffers(1)));
    let mut tally = Tally::counting(counted_of(&cell, Phase::Unpack), Nanos(0));
    Drive::new(workload.as_mut(), &mut faulty).run(|completion| tally.observe(completion));
    let mut sample = Sample::new(Nanos(0));
    tally.add_to(&mut sample);
    sample
}

#[test]
fn files_and_bytes_of_the_copy_count_and_an_error_ends_it() {
    let [to, from] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let target = with_source(to.path(), from.path());
    let source = target.source().expect("one");
    watched(
        build(&WorkloadCell::Unpack(COPIED), Phase::LayOut, part(buffers(1))).as_mut(),
        engine(source.as_ref(), EngineKind::Sync, 1).as_mut(),
    );
    let whole = tallied(&target, &[]);
    let work = COPIED.work(Phase::Unpack, 1);
    assert_eq!((whole.operations, whole.bytes), (work.operations, work.bytes));
    assert!(whole.errors.is_empty(), "{:?}", whole.errors);
    target.clear_copies().expect("all is ours");
    let full =
        Rule { on: Some(OpKind::Write), when: When::FromNth(5), effect: FaultEffect::Error(Errno::ENOSPC) };
    let cut = tallied(&target, &[full]);
    assert_eq!(cut.errors, [(Errno::ENOSPC.0, 1)].into());
    assert!(cut.operations < 60 && cut.bytes < 3_000_000, "{cut:?}");
}
