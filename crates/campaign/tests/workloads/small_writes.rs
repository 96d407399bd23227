//! `small_writes`: the same amount in three ways.

use nilometer_campaign::workload::build;
use nilometer_model::{Bytes, Phase};
use nilometer_plan::{SmallWritesCell, Way, WorkloadCell};
use nilometer_storage::{
    OpKind,
    clock::VirtualClock,
    testing::conformance::{Demands, workload_suite},
    testing::{Device, Simulated},
};

use crate::{buffers, content, offsets, part, watched};

const TOTAL: usize = 200_000;

fn cell(way: Way, write_size: u64) -> WorkloadCell {
    WorkloadCell::SmallWrites(SmallWritesCell {
        total: Bytes(TOTAL as u64),
        write_size: Bytes(write_size),
        way,
        buffer: Bytes(65_536),
    })
}

#[test]
fn all_ways_pass_the_suite() {
    for (way, buffers, bytes) in [(Way::Each, 2, 1000), (Way::Collected, 2, 65_536), (Way::AtOnce, 1, TOTAL)]
    {
        let demands = Demands { buffers, bytes, slots: 2 };
        let cell = cell(way, 1000);
        workload_suite(demands, &|_| {}, &mut |buffers| build(&cell, Phase::Write, part(buffers)));
    }
}

/// What is done, and what is in the file.
fn written(way: Way, write_size: u64, depth: u64) -> (Vec<(OpKind, u64, u32)>, Vec<u8>) {
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let mut workload = build(&cell(way, write_size), Phase::Write, part(buffers(depth + 1)));
    let done = watched(workload.as_mut(), &mut target.attach(depth as usize, 2));
    (done, content(&mut target.attach(1, 2), "n_w0", TOTAL))
}

#[test]
fn each_way_writes_all_in_its_own_number_of_writes() {
    for depth in [1, 4] {
        for (way, writes, last) in [
            (Way::Each, 2000, 100),
            (Way::Collected, 4, TOTAL as u32 - 3 * 65_536),
            (Way::AtOnce, 1, TOTAL as u32),
        ] {
            let (done, content) = written(way, 100, depth);
            assert_eq!(offsets(&done, OpKind::Write).len(), writes, "{way:?}");
            let moved = done.iter().filter(|(kind, ..)| *kind == OpKind::Write);
            let (_, at, length) = moved.max_by_key(|(_, offset, _)| *offset).expect("writes");
            assert_eq!((*length, *at), (last, (TOTAL as u64) - u64::from(last)), "{way:?}: the last write");
            assert_eq!(content.len(), TOTAL, "{way:?}");
            let kinds: Vec<_> = done.iter().map(|(kind, ..)| *kind).collect();
            assert_eq!(kinds[kinds.len() - 2..], [OpKind::Sync, OpKind::Close], "{way:?}");
        }
    }
}

#[test]
fn pieces_are_the_same_collected_or_not_and_none_comes_twice() {
    for size in [100, 1000, 8, 50_000] {
        let (each, collected) = (written(Way::Each, size, 1).1, written(Way::Collected, size, 1).1);
        assert!(each == collected, "pieces of {size} bytes");
        let pieces: std::collections::BTreeSet<_> = each.chunks(size as usize).collect();
        assert_eq!(pieces.len(), TOTAL / size as usize, "pieces of {size} bytes");
    }
}
