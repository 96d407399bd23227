//! `random`: reads, overwrites and both, anywhere or each block once.

use nilometer_campaign::workload::{WorkerPart, build};
use nilometer_model::{Bytes, Nanos, Phase, Seed};
use nilometer_plan::{Access, Coverage, Mode, RandomCell, WorkloadCell};
use nilometer_storage::{
    Engine, OpKind,
    clock::VirtualClock,
    testing::conformance::{Demands, workload_suite},
    testing::{Cost, Device, Simulated},
};

use crate::{buffers, content, offsets, part, run_phase, watched};

const READS: RandomCell = RandomCell {
    file_size: Bytes(20 * 1000),
    block_size: Bytes(500),
    access: Access::Buffered,
    operations: 60,
    mode: Mode::Read,
    reads: 50,
    coverage: Coverage::Uniform,
};

const MODES: [(Mode, Phase); 3] =
    [(Mode::Read, Phase::Read), (Mode::Write, Phase::Write), (Mode::Mix, Phase::Mix)];

/// What is done in the measured phase, at this depth.
fn done(cell: RandomCell, phase: Phase, depth: u64) -> Vec<(OpKind, u64, u32)> {
    let cell = WorkloadCell::Random(cell);
    let target = Simulated::new(Device::default(), VirtualClock::default());
    run_phase(&mut target.attach(1, 2), &cell, Phase::LayOut);
    let mut workload = build(&cell, phase, part(buffers(depth)));
    let done = watched(workload.as_mut(), &mut target.attach(depth as usize, 2));
    assert_eq!(content(&mut target.attach(1, 2), "n_w0", 20_000).len(), 20_000, "the file keeps its size");
    done
}

#[test]
fn all_phases_pass_the_suite() {
    for (mode, phase) in MODES {
        for coverage in [Coverage::Uniform, Coverage::Full] {
            let cell = WorkloadCell::Random(RandomCell { mode, coverage, ..READS });
            let written = |engine: &mut dyn Engine| run_phase(engine, &cell, Phase::LayOut);
            let demands = |bytes| Demands { buffers: 1, bytes, slots: 2 };
            workload_suite(demands(20_000), &|_| {}, &mut |buffers| {
                build(&cell, Phase::LayOut, part(buffers))
            });
            workload_suite(demands(500), &written, &mut |buffers| build(&cell, phase, part(buffers)));
        }
    }
}

#[test]
fn random_reads_stay_inside_and_are_the_same_again() {
    let offsets = || {
        let done = done(READS, Phase::Read, 1);
        let whole = |(kind, _, length): &(OpKind, u64, u32)| *kind != OpKind::Read || *length == 500;
        assert!(done.iter().all(whole), "a block is whole");
        offsets(&done, OpKind::Read)
    };
    let first = offsets();
    assert_eq!(first.len(), 60);
    assert!(first.iter().all(|offset| offset % 500 == 0 && *offset < 20_000));
    assert_eq!(first, offsets());
}

#[test]
fn full_coverage_moves_each_block_once_and_then_again() {
    for (mode, phase) in MODES {
        let cell = RandomCell { mode, coverage: Coverage::Full, operations: 80, ..READS };
        let mut all: Vec<u64> = done(cell, phase, 1)
            .into_iter()
            .filter(|(kind, ..)| kind.is_data())
            .map(|(_, offset, _)| offset)
            .collect();
        let second = all.split_off(40);
        assert_ne!(all, second, "the second time in another order");
        for mut round in [all, second] {
            round.sort_unstable();
            assert!(round.iter().copied().eq((0..40).map(|block| block * 500)), "{mode:?}: {round:?}");
        }
    }
}

#[test]
fn overwrites_are_durable_before_the_file_is_closed() {
    for depth in [1, 8] {
        let done = done(RandomCell { mode: Mode::Write, ..READS }, Phase::Write, depth);
        let kinds: Vec<_> = done.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(kinds.len(), 63);
        assert!(kinds[1..61].iter().all(|kind| *kind == OpKind::Write), "{kinds:?}");
        assert_eq!(kinds[61..], [OpKind::Sync, OpKind::Close]);
    }
}

/// Of 20 000 draws the share is within 4 standard deviations, 0.0141 at a half: once in 16 000 seeds it is not.
#[test]
fn a_mix_has_the_share_of_reads_that_was_asked_for() {
    for (reads, seed) in [(0, 3), (10, 3), (50, 3), (70, 4), (100, 4)] {
        let cell = RandomCell { mode: Mode::Mix, reads, operations: 20_000, ..READS };
        let cell = WorkloadCell::Random(cell);
        let target = Simulated::new(Device::default(), VirtualClock::default());
        run_phase(&mut target.attach(1, 2), &cell, Phase::LayOut);
        let part = WorkerPart { seed: Seed(seed), ..part(buffers(1)) };
        let done = watched(build(&cell, Phase::Mix, part).as_mut(), &mut target.attach(1, 2));
        let (reads_done, writes_done) =
            (offsets(&done, OpKind::Read).len(), offsets(&done, OpKind::Write).len());
        assert_eq!(reads_done + writes_done, 20_000);
        let (share, wanted) = (reads_done as f64 / 20_000.0, f64::from(reads) / 100.0);
        let bound = 4.0 * (wanted * (1.0 - wanted) / 20_000.0).sqrt();
        assert!((share - wanted).abs() <= bound, "{share} for {wanted}");
        assert_eq!(done[done.len() - 2].0, OpKind::Sync, "what was written is durable");
    }
}

#[test]
fn a_time_limit_ends_overwrites_which_are_still_synced() {
    let cell = WorkloadCell::Random(RandomCell { mode: Mode::Write, ..READS });
    let target = Simulated::new(Device::with_cost(Cost::fixed(Nanos(1000))), VirtualClock::default());
    run_phase(&mut target.attach(1, 2), &cell, Phase::LayOut);
    let mut engine = target.attach(1, 2);
    let stop_at = engine.tick() + Nanos(10_500);
    let part = WorkerPart { stop_at, ..part(buffers(1)) };
    let done = watched(build(&cell, Phase::Write, part).as_mut(), &mut engine);
    assert_eq!(offsets(&done, OpKind::Write).len(), 10);
    assert_eq!(done[done.len() - 2].0, OpKind::Sync);
}
