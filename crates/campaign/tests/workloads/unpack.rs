//! `unpack` and `open_files`: what is made of a tree, in which order, and what of it is opened.

use std::{collections::BTreeSet, sync::Arc};

use nilometer_campaign::workload::{OpenFiles, SourceTree, Unpack, WalkTask, WorkerPart, build, counted};
use nilometer_model::{Bytes, Nanos, Phase, Sample, Seed};
use nilometer_plan::{
    DataSource, OpenFilesCell, Parameters, TreeLike, TreeShape, UnpackCell, WalkCommand, WorkloadCell,
};
use nilometer_storage::{
    Buffer, Drive, Engine, Errno, OpKind, Tally, Workload,
    clock::VirtualClock,
    testing::conformance::workload_suite,
    testing::{
        Device, Simulated,
        wrap::{FaultEffect, Faulty, Rule, When},
    },
};

use crate::{demands, part, run, run_phase, watched};

const SHAPE: TreeShape = TreeShape::Source { directories: 30, files: 200, size: Bytes(3_000_000) };
const CELL: UnpackCell = UnpackCell {
    like: TreeLike::None,
    directories: 30,
    files: 200,
    size: Bytes(3_000_000),
    durable: false,
    source: DataSource::Memory,
};

/// For who makes a workload without a campaign.
pub(crate) fn tree(shape: TreeShape) -> Arc<SourceTree> {
    Arc::new(SourceTree::of(shape))
}

fn target() -> Simulated {
    Simulated::new(Device::default(), VirtualClock::default())
}

#[test]
fn all_phases_pass_the_suite() {
    let slots = tree(SHAPE).levels() + 3;
    for durable in [false, true] {
        let cell = WorkloadCell::Unpack(UnpackCell { durable, ..CELL });
        workload_suite(demands(4096, slots), &|_| {}, &mut |buffers| {
            build(&cell, Phase::Unpack, part(buffers))
        });
    }
    let small = TreeShape::Source { directories: 1, files: 1, size: Bytes(0) };
    for shape in [SHAPE, small] {
        let lay_out = |engine: &mut dyn Engine| {
            run(
                &mut Unpack::new(tree(shape.clone()), "n_w0", false, part(vec![Buffer::alone(4096)])),
                engine,
            );
        };
        workload_suite(demands(64, slots), &lay_out, &mut |buffers| {
            Box::new(OpenFiles::new(tree(shape.clone()), "n_w0", 50, part(buffers)))
        });
    }
}

#[test]
fn everything_is_made_in_the_order_of_an_archive_and_a_walk_finds_it() {
    let target = target();
    let mut engine = target.attach(1, 64);
    let cell = WorkloadCell::Unpack(CELL);
    let done = watched(build(&cell, Phase::Unpack, part(crate::buffers(1))).as_mut(), &mut engine);
    let count = |kind| done.iter().filter(|(done, ..)| *done == kind).count();
    assert_eq!((count(OpKind::MakeDir), count(OpKind::OpenDir), count(OpKind::Sync)), (30, 30, 0));
    assert_eq!(count(OpKind::Close), 200 + 30);
    assert_eq!(
        done[..2].iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(),
        [OpKind::MakeDir, OpKind::OpenDir]
    );
    let buffers = vec![Buffer::alone(4096)];
    let mut walk = nilometer_campaign::workload::Walk::new(
        "n_w0",
        WalkTask::Look(WalkCommand::Du),
        64,
        Nanos::MAX,
        buffers,
    );
    run(&mut walk, &mut engine);
    let found = walk.found();
    assert_eq!((found.files, found.directories, found.bytes), (200, 30, 3_000_000));
}

#[test]
fn a_durable_file_is_synced_before_it_is_closed() {
    let cell = WorkloadCell::Unpack(UnpackCell { durable: true, ..CELL });
    let done =
        watched(build(&cell, Phase::Unpack, part(crate::buffers(1))).as_mut(), &mut target().attach(1, 64));
    let kinds: Vec<OpKind> = done.iter().map(|(kind, ..)| *kind).collect();
    let synced = kinds.windows(2).filter(|pair| pair[0] == OpKind::Sync && pair[1] == OpKind::Close).count();
    assert_eq!(synced, 200);
}

#[test]
fn no_page_of_a_tree_comes_twice() {
    let target = target();
    let mut engine = target.attach(1, 64);
    let mut pages = BTreeSet::new();
    let mut all = 0;
    let cell = WorkloadCell::Unpack(CELL);
    let mut unpack = build(&cell, Phase::Unpack, part(crate::buffers(2)));
    Drive::new(unpack.as_mut(), &mut engine).run(|completion| {
        let operation = &completion.operation;
        if operation.kind == OpKind::Write {
            for page in
                operation.buffer[..operation.length as usize].chunks(4096).filter(|page| page.len() >= 8)
            {
                pages.insert(page.to_vec());
                all += 1;
            }
        }
    });
    assert!(all > 800 && pages.len() == all, "{} of {all} pages are different", pages.len());
}

/// What counts as an operation is a file, in all of these phases.
#[test]
fn files_and_bytes_are_those_of_the_plan() {
    let target = target();
    let opened = OpenFilesCell {
        like: TreeLike::None,
        directories: 30,
        files: 200,
        size: Bytes(3_000_000),
        operations: 500,
        cold: false,
    };
    for (cell, phase) in
        [(WorkloadCell::Unpack(CELL), Phase::Unpack), (WorkloadCell::OpenFiles(opened), Phase::OpenFiles)]
    {
        let mut engine = target.attach(1, 64);
        let mut workload = build(&cell, phase, part(crate::buffers(1)));
        let sample = tallied(workload.as_mut(), &mut engine, phase);
        let work = cell.parameters().work(phase, 1);
        assert_eq!(sample.operations, work.operations, "{cell}");
        let empty = (0..200).filter(|&file| tree(SHAPE).size(file) == 0).count();
        assert!(
            sample.bytes == work.bytes || phase == Phase::OpenFiles && empty > 0,
            "{cell}: {}",
            sample.bytes
        );
        assert!(sample.errors.is_empty(), "{cell}: {:?}", sample.errors);
    }
}

fn tallied(workload: &mut dyn Workload, engine: &mut dyn Engine, phase: Phase) -> Sample {
    let mut tally = Tally::counting(counted(phase), Nanos(0));
    Drive::new(workload, engine).run(|completion| tally.observe(completion));
    let mut sample = Sample::new(Nanos(0));
    tally.add_to(&mut sample);
    sample
}

#[test]
fn random_files_are_opened_each_by_its_ends() {
    let target = target();
    let cell = OpenFilesCell {
        like: TreeLike::None,
        directories: 30,
        files: 200,
        size: Bytes(3_000_000),
        operations: 300,
        cold: false,
    };
    let word = WorkloadCell::OpenFiles(cell.clone());
    assert_eq!(cell.phases(), [Phase::LayOut, Phase::OpenFiles]);
    let mut engine = target.attach(1, 64);
    run_phase(&mut engine, &word, Phase::LayOut);
    let done = watched(build(&word, Phase::OpenFiles, part(crate::buffers(1))).as_mut(), &mut engine);
    let reads: Vec<_> = done.iter().filter(|(kind, ..)| *kind == OpKind::Read).collect();
    assert!(reads.iter().all(|(.., length)| *length == 1));
    let first = reads.iter().filter(|(_, offset, _)| *offset == 0).count();
    assert!(first >= 290 && reads.len() > 550, "{first} of {} reads are of the first byte", reads.len());
    let limited = WorkerPart { stop_at: Nanos(0), ..part(crate::buffers(1)) };
    let done = watched(build(&word, Phase::OpenFiles, limited).as_mut(), &mut engine);
    assert_eq!(done.len(), 0, "the time is up");
}

/// A disk that is full, or a quota that is used up, in the middle: the sample says so, and nothing more is asked for.
#[test]
fn a_full_file_system_ends_an_unpack_with_one_error() {
    for (errno, kind) in [(Errno::ENOSPC, OpKind::MakeDir), (Errno::EDQUOT, OpKind::Write)] {
        let rules = vec![Rule { on: Some(kind), when: When::FromNth(7), effect: FaultEffect::Error(errno) }];
        let mut engine = Faulty::new(Box::new(target().attach(1, 64)), &rules, Seed(1));
        let cell = WorkloadCell::Unpack(CELL);
        let mut unpack = build(&cell, Phase::Unpack, part(crate::buffers(1)));
        let sample = tallied(unpack.as_mut(), &mut engine, Phase::Unpack);
        assert_eq!(sample.errors, [(errno.0, 1)].into(), "{errno}");
        assert!(sample.operations < 200, "{errno}");
    }
}
