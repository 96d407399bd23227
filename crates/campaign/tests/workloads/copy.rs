//! Copies from another storage system: in virtual time, and with real files on every engine.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use nilometer_campaign::workload::{
    Copy, EVERY_BLOCK, Names, Order, WorkerPart, WorkerPlace, Writing, buffer_size, build, files_of,
};
use nilometer_model::{Bytes, EngineKind, Nanos, Phase};
use nilometer_plan::{DataSource, FileLayout, StreamCell, SyncPolicy, WorkloadCell};
use nilometer_storage::{
    Arena, Buffer, Clock, Engine, OpKind, Open, Operation, ROOT, Slot, Target,
    clock::VirtualClock,
    engine::Options,
    target::{Posix, probe},
    testing::conformance::{Demands, workload_suite},
    testing::{Cost, Device, Simulated},
};

use crate::{buffers, offsets, part, stream::PLAIN, watched};

const COPY: StreamCell = StreamCell { source: DataSource::Disk, ..PLAIN };

/// On a simulated target the source is this directory.
fn lay_out_source(engine: &mut dyn Engine, files: &[&str]) {
    let named =
        |kind, dir, file, name: &str| Operation::named(kind, dir, file, name.as_bytes(), Buffer::alone(64));
    let mut content = Buffer::alone(20_000);
    nilometer_model::Seed(8).stream().fill(&mut content);
    let (dir, file) = (Slot(1), Slot(2));
    let mut all =
        vec![named(OpKind::MakeDir, ROOT, ROOT, "n_source"), named(OpKind::OpenDir, ROOT, dir, "n_source")];
    for name in files {
        let mut block = Buffer::alone(20_000);
        block.copy_from_slice(&content);
        all.push(named(OpKind::Open(Open::CREATE), dir, file, name));
        all.push(Operation::write(file, 0, 20_000, block));
    }
    for operation in all {
        let mut done = Vec::new();
        engine.submit(operation, engine.now());
        engine.reap(nilometer_storage::Wait::ForOne, &mut done);
        assert!(done.iter().all(|completion| completion.result.is_ok()), "{done:?}");
    }
}

#[test]
fn copies_pass_the_suite() {
    let cells = [
        COPY,
        StreamCell { files: 2, sync: SyncPolicy::Every(7), preallocate: true, ..COPY },
        StreamCell { sync: SyncPolicy::None, layout: FileLayout::Strided, ..COPY },
    ];
    for cell in cells {
        let names: &[&str] = if cell.files == 2 { &["n_w0_f0", "n_w0_f1"] } else { &["n_w0"] };
        let cell = WorkloadCell::Stream(cell);
        let demands = Demands { buffers: 1, bytes: 1000, slots: 3 };
        let lay_out = |engine: &mut dyn Engine| lay_out_source(engine, names);
        workload_suite(demands, &lay_out, &mut |buffers| build(&cell, Phase::Write, part(buffers)));
    }
}

#[test]
fn a_block_is_read_and_then_written() {
    let target = Simulated::new(Device::with_cost(Cost::fixed(Nanos(1000))), VirtualClock::default());
    lay_out_source(&mut target.attach(1, 3), &["n_w0"]);
    let copy = |part| {
        let order = Order::sequential(Bytes(20_000), Bytes(1000));
        Copy::new(Names::from("n_w0"), Names::from("n_copy"), order, Writing::NEW, part)
    };
    let done = watched(&mut copy(part(buffers(1))), &mut target.attach(1, 3));
    let moves: Vec<_> = done.iter().filter(|(kind, ..)| kind.is_data()).collect();
    assert_eq!(moves.len(), 40);
    for pair in moves.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0, pair[0].1), (OpKind::Read, OpKind::Write, pair[1].1));
    }
}

#[test]
fn a_time_limit_ends_a_copy_which_still_writes_what_it_read() {
    for depth in [1, 5] {
        let device = Device { parallel: 8, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
        let target = Simulated::new(device, VirtualClock::default());
        lay_out_source(&mut target.attach(1, 3), &["n_w0"]);
        let mut engine = target.attach(depth as usize, 3);
        let stop_at = engine.tick() + Nanos(6500);
        let part = WorkerPart { stop_at, ..part(buffers(depth)) };
        let cell = WorkloadCell::Stream(COPY);
        let reached = part.reached.clone();
        let done = watched(build(&cell, Phase::Write, part).as_mut(), &mut engine);
        let (read, written) = (offsets(&done, OpKind::Read), offsets(&done, OpKind::Write));
        assert!((3..20).contains(&written.len()), "{} blocks at depth {depth}", written.len());
        assert_eq!(read.len(), written.len());
        assert_eq!(reached.load(std::sync::atomic::Ordering::Relaxed), written.len() as u64);
        let kinds: Vec<_> = done.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(kinds[kinds.len() - 3..], [OpKind::Sync, OpKind::Close, OpKind::Close]);
    }
}

/// A target on a real directory with its source beside it, which lies where the second path says.
fn real(directory: &Path, source: &Path) -> Posix {
    let create = |path: &Path, id| Posix::create(probe(path).expect("a directory"), id).expect("writable");
    create(directory, 1).with_source(create(source, 2)).expect("it can be opened")
}

/// How far each worker came in the phase before.
type Reached = [Arc<AtomicU64>; 2];

fn everything() -> Reached {
    [(); 2].map(|()| Arc::new(AtomicU64::new(EVERY_BLOCK)))
}

/// Runs a phase of both workers where it belongs, one after the other; each moves all of its files.
fn phase(target: &dyn Target, cell: &StreamCell, phase: Phase, engine: (EngineKind, u32), reached: &Reached) {
    for worker in 0..2 {
        phase_of(target, cell, phase, engine, (worker, &reached[worker as usize]));
    }
}

fn phase_of(
    target: &dyn Target,
    cell: &StreamCell,
    phase: Phase,
    engine: (EngineKind, u32),
    (worker, reached): (u32, &Arc<AtomicU64>),
) {
    let at = if matches!(phase, Phase::LayOut | Phase::Source) {
        &**target.source().expect("one")
    } else {
        target
    };
    let options = Options { kind: engine.0, depth: engine.1, slots: 3, clock: Clock::start() };
    let mut made = at.engine(&options).expect("permitted here");
    let (files, cell) = (cell.files, WorkloadCell::Stream(*cell));
    let (arena, mut buffers) = Arena::shared_out(engine.1 as usize, buffer_size(&cell, phase));
    for (buffer, number) in buffers.iter_mut().zip(0..) {
        nilometer_model::Seed(number).stream().fill(buffer);
    }
    made.register(&arena).ok();
    let part = WorkerPart { place: WorkerPlace::alone(worker, 2), reached: reached.clone(), ..part(buffers) };
    let done = watched(build(&cell, phase, part).as_mut(), made.as_mut());
    let moved = |of: OpKind| -> u64 {
        let lengths = done.iter().filter(|(kind, ..)| *kind == of).map(|(.., length)| u64::from(*length));
        lengths.sum()
    };
    let all = 20_000 * u64::from(files);
    match phase {
        Phase::LayOut => assert_eq!(moved(OpKind::Write), all),
        Phase::Write => assert_eq!((moved(OpKind::Read), moved(OpKind::Write)), (all, all)),
        _ => assert_eq!(moved(OpKind::Read), all, "{phase:?}"),
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn a_copy_equals_its_source_on_every_engine_and_nothing_else_is_written() {
    for (kind, depth) in
        [(EngineKind::Sync, 1), (EngineKind::IoUring, 1), (EngineKind::IoUring, 7), (EngineKind::Pool, 4)]
    {
        let places = tempfile::tempdir().expect("a temporary directory");
        let (to, from) = (places.path().join("to"), places.path().join("from"));
        for path in [&to, &from] {
            std::fs::create_dir(path).expect("a directory");
        }
        let target = real(&to, &from);
        let (cell, reached) = (StreamCell { files: 2, preallocate: true, ..COPY }, everything());
        for of in [Phase::LayOut, Phase::Source, Phase::Write, Phase::Read] {
            phase(&target, &cell, of, (kind, depth), &reached);
        }
        let source =
            names_in(&from).into_iter().map(|name| from.join(name)).next().expect("its run directory");
        let expected = ["n_w0_f0", "n_w0_f1", "n_w1_f0", "n_w1_f1"];
        assert_eq!(
            (names_in(target.directory()), names_in(&source)),
            (expected.map(str::to_owned).into(), expected.map(str::to_owned).into())
        );
        for name in expected {
            let [copy, original] = [target.directory().join(name), source.join(name)]
                .map(|path| std::fs::read(path).expect("readable"));
            assert!(copy == original && copy.len() == 20_000, "{name} with {kind:?} at depth {depth}");
        }
        let both = [source.join("n_w0_f0"), source.join("n_w1_f0")]
            .map(|path| std::fs::read(path).expect("readable"));
        assert!(both[0] != both[1], "two sources are alike");
        target.clear().expect("all is ours");
        assert_eq!(names_in(&source), Vec::<String>::new(), "the source is cleared with its copy");
        target.remove().expect("all is ours");
        assert_eq!((names_in(&to), names_in(&from)), (Vec::new(), Vec::new()));
    }
}

#[test]
fn copies_into_a_shared_file_lie_where_each_worker_s_part_is() {
    let places = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let target = real(places[0].path(), places[1].path());
    let cell = StreamCell { layout: FileLayout::Segmented, ..COPY };
    for of in [Phase::LayOut, Phase::Write] {
        phase(&target, &cell, of, (EngineKind::Sync, 1), &everything());
    }
    let source = places[1].path().join(&names_in(places[1].path())[0]);
    let parts = ["n_w0", "n_w1"].map(|name| std::fs::read(source.join(name)).expect("readable"));
    let whole = std::fs::read(target.directory().join("n_shared")).expect("readable");
    assert!(whole == parts.concat());
}

#[test]
fn the_source_must_be_cold_when_it_is_read_and_when_it_is_copied() {
    let cell = WorkloadCell::Stream(StreamCell { layout: FileLayout::Strided, ..COPY });
    let names = |phase| files_of(&cell, phase, WorkerPlace::of_rank(0, 1, 2)).collect::<Vec<_>>();
    assert_eq!(names(Phase::LayOut), Vec::<String>::new());
    assert_eq!(names(Phase::Source), ["n_w0", "n_w1"]);
    assert_eq!(names(Phase::Write), ["n_w0", "n_w1"]);
    assert_eq!(names(Phase::Read), ["n_shared"]);
}
