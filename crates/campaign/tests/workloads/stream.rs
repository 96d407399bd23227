//! `stream`: many files, shared files, reserved space, syncs, limits.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_campaign::workload::{
    Direction, EVERY_BLOCK, Order, Transfer, WorkerPart, WorkerPlace, Writing, build, files_of,
};
use nilometer_model::{Bytes, Nanos, Phase, Seed};
use nilometer_plan::{
    Access, DataSource, FileLayout, Parameters, Shift, StreamCell, SyncPolicy, WorkloadCell,
};
use nilometer_storage::{
    Arena, Buffer, Drive, Engine, Errno, OpKind, Workload,
    clock::VirtualClock,
    interleave,
    testing::conformance::{Demands, workload_suite},
    testing::{Cost, Device, Simulated},
};

use crate::{buffers, content, offsets, part, run, run_phase, watched};

const FILE: Bytes = Bytes(20 * 1000);
const BLOCK: Bytes = Bytes(1000);

pub(crate) const PLAIN: StreamCell = StreamCell {
    file_size: FILE,
    block_size: BLOCK,
    access: Access::Buffered,
    sync: SyncPolicy::Close,
    files: 1,
    total_files: 0,
    layout: FileLayout::Own,
    preallocate: false,
    source: DataSource::Memory,
    rewrite: false,
    read_back: true,
    shift: Shift::OWN,
};

fn target() -> Simulated {
    Simulated::new(Device::with_cost(Cost::fixed(Nanos(1000))), VirtualClock::default())
}

#[test]
fn all_phases_pass_the_suite() {
    let cells = [
        PLAIN,
        StreamCell { files: 3, sync: SyncPolicy::Every(7), preallocate: true, ..PLAIN },
        StreamCell { sync: SyncPolicy::None, ..PLAIN },
        StreamCell { rewrite: true, files: 2, ..PLAIN },
        StreamCell { layout: FileLayout::Segmented, preallocate: true, ..PLAIN },
        StreamCell { layout: FileLayout::Strided, sync: SyncPolicy::Every(1), ..PLAIN },
    ];
    for cell in cells.map(WorkloadCell::Stream) {
        let demands = Demands { buffers: 1, bytes: 1000, slots: 2 };
        workload_suite(demands, &|_| {}, &mut |buffers| build(&cell, Phase::Write, part(buffers)));
        let written = |engine: &mut dyn Engine| run_phase(engine, &cell, Phase::Write);
        workload_suite(demands, &written, &mut |buffers| build(&cell, Phase::Read, part(buffers)));
    }
}

#[test]
fn files_are_written_one_after_the_other_and_all_read_back() {
    let cell = StreamCell { files: 3, ..PLAIN };
    let (target, stream) = (target(), WorkloadCell::Stream(cell));
    let mut engine = target.attach(1, 2);
    run_phase(&mut engine, &stream, Phase::Write);
    let names: Vec<_> = files_of(&stream, Phase::Read, WorkerPlace::of_rank(0, 1, 1)).collect();
    assert_eq!(names, ["n_w0_f0", "n_w0_f1", "n_w0_f2"]);
    for name in &names {
        assert_eq!(content(&mut engine, name, 20_000).len(), 20_000, "{name}");
    }
    let done = watched(build(&stream, Phase::Read, part(buffers(1))).as_mut(), &mut engine);
    let once: Vec<u64> = (0..20).map(|number| number * 1000).collect();
    assert_eq!(offsets(&done, OpKind::Read), once.repeat(3));
}

#[test]
fn a_rewrite_is_of_the_same_blocks_in_the_same_files_with_other_bytes() {
    for layout in [FileLayout::Own, FileLayout::Segmented, FileLayout::Strided] {
        let cell = StreamCell { layout, rewrite: true, ..PLAIN };
        assert_eq!(cell.phases(), [Phase::Write, Phase::Rewrite, Phase::Read]);
        let (target, cell) = (target(), WorkloadCell::Stream(cell));
        let mut engine = target.attach(1, 2);
        let name = if layout == FileLayout::Own { "n_w0" } else { "n_shared" };
        let mut phases = [Phase::Write, Phase::Rewrite].map(|phase| {
            let done = watched(build(&cell, phase, part(buffers(1))).as_mut(), &mut engine);
            (offsets(&done, OpKind::Write), content(&mut engine, name, 20_000))
        });
        let [(blocks, before), (again, after)] = &mut phases;
        assert_eq!(blocks, again, "{layout:?}");
        assert!(before.len() == 20_000 && after.len() == 20_000 && before != after, "{layout:?}");
    }
}

/// A time limit ended the write: the rewrite goes no further, so that it makes nothing new.
#[test]
fn a_rewrite_goes_as_far_as_the_write_came() {
    let cell = WorkloadCell::Stream(StreamCell { rewrite: true, ..PLAIN });
    let target = target();
    let mut engine = target.attach(1, 2);
    let limited = WorkerPart { stop_at: Nanos(5500), ..part(buffers(1)) };
    let reached = limited.reached.clone();
    let written = watched(build(&cell, Phase::Write, limited).as_mut(), &mut engine);
    let again = WorkerPart { reached, ..part(buffers(1)) };
    let again = watched(build(&cell, Phase::Rewrite, again).as_mut(), &mut engine);
    let blocks = offsets(&written, OpKind::Write);
    assert!(!blocks.is_empty() && blocks.len() < 20, "{blocks:?}");
    assert_eq!(blocks, offsets(&again, OpKind::Write));
}

#[test]
fn files_in_all_are_shared_out_among_workers() {
    let cell = StreamCell { total_files: 5, ..PLAIN };
    let (target, stream) = (target(), WorkloadCell::Stream(cell));
    let names: Vec<_> = files_of(&stream, Phase::Read, WorkerPlace::of_rank(0, 1, 2)).collect();
    assert_eq!(names, ["n_w0_f0", "n_w0_f1", "n_w0_f2", "n_w1_f0", "n_w1_f1"]);
    let mut engine = target.attach(1, 2);
    for place in WorkerPlace::of_rank(0, 1, 2) {
        let part = WorkerPart::new(place, nilometer_model::Seed(1), buffers(1));
        watched(build(&stream, Phase::Write, part).as_mut(), &mut engine);
    }
    for name in &names {
        assert_eq!(content(&mut engine, name, 20_000).len(), 20_000, "{name}");
    }
    // One that has none is done at once.
    let none = WorkerPart::new(WorkerPlace::alone(5, 6), nilometer_model::Seed(1), buffers(1));
    assert_eq!(watched(build(&stream, Phase::Write, none).as_mut(), &mut engine).len(), 0);
}

/// What each worker writes into a shared file, and what is then in it.
fn shared(layout: FileLayout, workers: u32, depth: usize) -> (Vec<Vec<u64>>, Vec<u8>) {
    let (target, cell) = (target(), WorkloadCell::Stream(StreamCell { layout, ..PLAIN }));
    let mut each = Vec::new();
    for worker in 0..workers {
        let part = WorkerPart { place: WorkerPlace::alone(worker, workers), ..part(buffers(depth as u64)) };
        let mut workload = build(&cell, Phase::Write, part);
        each.push(offsets(&watched(workload.as_mut(), &mut target.attach(depth, 2)), OpKind::Write));
    }
    for worker in 0..workers {
        let part = WorkerPart { place: WorkerPlace::alone(worker, workers), ..part(buffers(1)) };
        let done = watched(build(&cell, Phase::Read, part).as_mut(), &mut target.attach(1, 2));
        let mut written = each[worker as usize].clone();
        written.sort_unstable();
        assert_eq!(offsets(&done, OpKind::Read), written, "each reads what it wrote");
    }
    let whole = content(&mut target.attach(1, 2), "n_shared", 20_000 * workers as usize);
    (each, whole)
}

#[test]
fn workers_cover_a_shared_file_exactly_once() {
    for depth in [1, 4] {
        for (layout, second) in
            [(FileLayout::Segmented, [20_000, 21_000]), (FileLayout::Strided, [1000, 4000])]
        {
            let (each, whole) = shared(layout, 3, depth);
            if depth == 1 {
                assert_eq!(each[1][..2], second, "{layout:?}: where the second worker begins");
            }
            let mut all = each.concat();
            all.sort_unstable();
            assert!(all.iter().copied().eq((0..60).map(|number| number * 1000)), "{layout:?}: {all:?}");
            // A block that was written twice in place of another leaves a hole, which is zeros.
            assert_eq!(whole.len(), 60_000);
            for block in whole.chunks(1000) {
                assert!(block.iter().any(|&byte| byte != 0), "{layout:?}: a hole");
            }
        }
    }
}

#[test]
fn a_shared_file_is_dropped_from_the_cache_once() {
    let cell = WorkloadCell::Stream(StreamCell { layout: FileLayout::Strided, ..PLAIN });
    let names: Vec<_> = files_of(&cell, Phase::Read, WorkerPlace::of_rank(0, 1, 3)).collect();
    assert_eq!(names, ["n_shared"]);
    assert_eq!(
        files_of(&cell, Phase::Write, WorkerPlace::of_rank(0, 1, 3)).count(),
        0,
        "what is written need not be cold"
    );
}

#[test]
fn syncs_come_every_so_many_blocks_with_nothing_in_flight() {
    for depth in [1, 3, 8] {
        let cell = WorkloadCell::Stream(StreamCell { sync: SyncPolicy::Every(6), ..PLAIN });
        let mut write = build(&cell, Phase::Write, part(buffers(depth)));
        let done = watched(write.as_mut(), &mut target().attach(depth as usize, 2));
        let kinds: Vec<_> = done.iter().map(|(kind, ..)| *kind).collect();
        let between = |kind| {
            let counts: Vec<_> = kinds
                .split(|other| *other == kind)
                .map(|part| part.iter().filter(|k| k.is_data()).count())
                .collect();
            counts
        };
        assert_eq!(between(OpKind::SyncData), [6, 6, 6, 2], "at depth {depth}");
        assert_eq!(kinds[kinds.len() - 2..], [OpKind::Sync, OpKind::Close]);
    }
    let never = WorkloadCell::Stream(StreamCell { sync: SyncPolicy::None, ..PLAIN });
    let done = watched(build(&never, Phase::Write, part(buffers(1))).as_mut(), &mut target().attach(1, 2));
    assert!(done.iter().all(|(kind, ..)| !matches!(kind, OpKind::Sync | OpKind::SyncData)), "{done:?}");
}

#[test]
fn space_is_reserved_once_for_a_shared_file_and_for_each_other() {
    let reserved = |layout, worker| {
        let cell = WorkloadCell::Stream(StreamCell { layout, preallocate: true, files: 1, ..PLAIN });
        let part = WorkerPart { place: WorkerPlace::alone(worker, 4), ..part(buffers(1)) };
        offsets(
            &watched(build(&cell, Phase::Write, part).as_mut(), &mut target().attach(1, 2)),
            OpKind::Allocate,
        )
    };
    assert_eq!(reserved(FileLayout::Own, 2), [20_000]);
    assert_eq!(reserved(FileLayout::Segmented, 0), [80_000]);
    assert_eq!(reserved(FileLayout::Strided, 1), Vec::<u64>::new());
}

/// Refuses to reserve space, with this error.
struct CanNotReserve<E>(E, Errno);

impl<E: Engine> Engine for CanNotReserve<E> {
    fn depth(&self) -> usize {
        self.0.depth()
    }
    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn tick(&mut self) -> Nanos {
        self.0.tick()
    }
    fn submit(&mut self, operation: nilometer_storage::Operation, due: Nanos) {
        self.0.submit(operation, due);
    }
    fn reap(&mut self, wait: nilometer_storage::Wait, done: &mut Vec<nilometer_storage::Completion>) {
        self.0.reap(wait, done);
        for completion in done.iter_mut().filter(|done| done.operation.kind == OpKind::Allocate) {
            completion.result = Err(self.1);
        }
    }
    fn waker(&self) -> Arc<dyn nilometer_storage::Wake> {
        self.0.waker()
    }
    fn register(&mut self, arena: &Arc<Arena>) -> Result<(), nilometer_storage::EngineError> {
        self.0.register(arena)
    }
}

#[test]
fn who_can_not_reserve_space_writes_all_the_same_and_says_so() {
    for (errno, blocks) in [(Errno::EOPNOTSUPP, 20), (Errno::ENOSYS, 20), (Errno::ENOSPC, 0)] {
        let cell = WorkloadCell::Stream(StreamCell { preallocate: true, ..PLAIN });
        let mut engine = CanNotReserve(target().attach(1, 2), errno);
        let mut tally = nilometer_storage::Tally::new(Nanos(0));
        let mut writes = 0;
        let mut workload = build(&cell, Phase::Write, part(buffers(1)));
        Drive::new(workload.as_mut(), &mut engine).run(|completion| {
            writes += u32::from(completion.operation.kind == OpKind::Write);
            tally.observe(completion);
        });
        let mut sample = nilometer_model::Sample::new(Nanos(0));
        tally.add_to(&mut sample);
        assert_eq!(writes, blocks, "{errno}");
        let (errors, invalid) = (sample.errors.len(), sample.invalid);
        if errno.is_refusal() {
            assert_eq!((errors, invalid), (0, Some(nilometer_model::Invalid::NotPreallocated)), "{errno}");
        } else {
            assert_eq!((errors, invalid), (1, None), "{errno}");
        }
    }
}

#[test]
fn a_time_limit_ends_a_transfer_which_still_syncs_and_closes() {
    let device = Device { write: Cost::fixed(Nanos(1000)), ..Device::default() };
    let target = Simulated::new(device, VirtualClock::default());
    let order = Order::sequential(FILE, BLOCK);
    let limited = WorkerPart { stop_at: Nanos(5500), ..part(vec![Buffer::alone(1000)]) };
    let mut transfer = Transfer::new("n_w0", order, Direction::Write(Writing::NEW), limited);
    let done = watched(&mut transfer, &mut target.attach(1, 2));
    assert_eq!(offsets(&done, OpKind::Write).len(), 6);
    let kinds: Vec<_> = done.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds[done.len() - 2..], [OpKind::Sync, OpKind::Close]);
}

#[test]
fn what_a_time_limit_left_unwritten_is_not_read() {
    for layout in [FileLayout::Own, FileLayout::Segmented, FileLayout::Strided] {
        // Within a file, between two and before the first block; each operation takes a microsecond.
        for (limit, written) in [(12_500, 12), (23_000, 20), (31_500, 28), (0, 0)] {
            let files = if layout == FileLayout::Own { 3 } else { 1 };
            let cell = WorkloadCell::Stream(StreamCell { layout, files, ..PLAIN });
            let (target, reached) = (target(), Arc::new(AtomicU64::new(EVERY_BLOCK)));
            let part = |stop_at| WorkerPart {
                stop_at,
                reached: reached.clone(),
                place: WorkerPlace::alone(1, 2),
                ..part(buffers(1))
            };
            let mut write = build(&cell, Phase::Write, part(Nanos(limit)));
            let done = watched(write.as_mut(), &mut target.attach(1, 2));
            let written = if files == 1 { written.min(20) } else { written };
            assert_eq!(offsets(&done, OpKind::Write).len(), written, "{layout:?} until {limit}");
            assert_eq!(reached.load(Ordering::Relaxed), written as u64);
            let mut read = build(&cell, Phase::Read, part(Nanos::MAX));
            let again = watched(read.as_mut(), &mut target.attach(1, 2));
            assert_eq!(offsets(&again, OpKind::Read), offsets(&done, OpKind::Write));
        }
    }
}

#[test]
fn workers_that_run_at_the_same_time_open_one_shared_file() {
    let clock = VirtualClock::default();
    let target = Simulated::new(Device::with_cost(Cost::fixed(Nanos(700))), clock.clone());
    let cell = WorkloadCell::Stream(StreamCell { layout: FileLayout::Strided, ..PLAIN });
    let mut workers: Vec<_> = (0..5)
        .map(|worker| {
            build(
                &cell,
                Phase::Write,
                WorkerPart { place: WorkerPlace::alone(worker, 5), ..part(buffers(2)) },
            )
        })
        .collect();
    let mut engines: Vec<_> = (0..5).map(|_| target.attach(2, 2)).collect();
    let pairs = workers.iter_mut().zip(&mut engines);
    let mut drives: Vec<_> =
        pairs.map(|(workload, engine)| Drive::new(workload.as_mut() as &mut dyn Workload, engine)).collect();
    interleave(&clock, &mut drives, Nanos::MAX, &mut |_, completion| {
        assert!(completion.result.is_ok(), "{completion:?}");
    });
    drop(drives);
    let whole = content(&mut target.attach(1, 2), "n_shared", 100_000);
    assert_eq!(whole.len(), 100_000);
}

#[test]
fn what_is_written_is_the_seed_s_and_no_page_comes_twice() {
    let write = |seed| {
        let target = target();
        let order = Order::sequential(Bytes(1 << 20), Bytes(4096));
        let part = WorkerPart { seed: Seed(seed), ..part(buffers(4)) };
        run(
            &mut Transfer::new("n_w0", order, Direction::Write(Writing::NEW), part),
            &mut target.attach(1, 2),
        );
        content(&mut target.attach(1, 2), "n_w0", 1 << 20)
    };
    let first = write(1);
    assert!(first == write(1) && first != write(2));
    let pages: std::collections::BTreeSet<_> = first.chunks(4096).collect();
    assert_eq!(pages.len(), 256);
    // Buffers take turns: neighbours differ in more than their stamps.
    let alike = |pair: &[&[u8]]| pair[0].iter().zip(pair[1]).filter(|(one, other)| one == other).count();
    let most = first.chunks(4096).collect::<Vec<_>>().windows(2).map(alike).max();
    assert!(most < Some(200), "{most:?} bytes of neighbouring pages are alike");
}
