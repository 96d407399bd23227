//! Several processes share a cell as so many more workers of one would: the same names, the same bytes, the same parts.

use nilometer_campaign::workload::{SLOTS, WorkerPart, WorkerPlace, build, files_of, stamp};
use nilometer_model::{Phase, Seed};
use nilometer_plan::{Measurement, WorkloadCell, parse};
use nilometer_storage::{
    Drive, OpKind,
    clock::VirtualClock,
    testing::{Device, Simulated},
};

use crate::{buffers, content, part};

const PLAN: &str = r#"
title = "each workload"
[[stage]]
name = "files"
workers = 2
[stage.workload.stream]
file_size = "64 KiB"
block_size = "16 KiB"
access = "buffered"
layout = ["own", "segmented", "strided"]
preallocate = true
[[stage]]
name = "random"
[stage.workload.random]
file_size = "64 KiB"
block_size = "4 KiB"
access = "buffered"
operations = 20
mode = ["read", "write", "mix"]
coverage = ["uniform", "full"]
[[stage]]
name = "small"
[stage.workload.small_writes]
total = "10 kB"
[[stage]]
name = "frames"
workers = 2
[stage.workload.frames]
frames = 7
rows = 4
row_size = "100 B"
access = "buffered"
file = "one"
split = ["turns", "blocks", "module"]
[[stage]]
name = "tree"
[stage.workload.tree]
items = 3
levels = 1
branching = 2
shift = 1
directories = ["unique", "shared"]
[[stage]]
name = "walk"
[stage.workload.walk]
levels = 1
branching = 2
files = 3
command = ["ls", "du"]
[[stage]]
name = "unpack"
[stage.workload.unpack]
directories = 4
files = 9
size = "40 kB"
[[stage]]
name = "search"
[stage.workload.search]
directories = 4
files = 9
size = "400 kB"
[[stage]]
name = "open"
[stage.workload.open_files]
directories = 4
files = 9
size = "40 kB"
operations = 20
"#;

fn cells() -> Vec<WorkloadCell> {
    let plan = parse(PLAN, "p.toml", 1.0).expect("a valid plan");
    let workload = |cell: nilometer_plan::Cell| match cell.measurement {
        Measurement::Workload(run) => run.workload,
        Measurement::Recording(_) | Measurement::Imported(_) => unreachable!("there is none"),
    };
    plan.cells.into_iter().map(workload).collect()
}

/// Everything that a worker asks for in all phases, with the bytes that it gives or gets.
fn asked(cell: &WorkloadCell, place: WorkerPlace) -> Vec<(OpKind, u64, Vec<u8>)> {
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let mut asked = Vec::new();
    for phase in cell.parameters().phases() {
        let part = WorkerPart { place, ..part(buffers(2)) };
        let mut workload = build(cell, phase, part);
        Drive::new(workload.as_mut(), &mut target.attach(1, SLOTS)).run(|completion| {
            let operation = &completion.operation;
            let bytes = operation.buffer[..operation.length as usize].to_vec();
            asked.push((operation.kind, operation.offset, bytes));
        });
    }
    asked
}

#[test]
fn a_worker_of_another_process_does_what_it_would_do_in_one_process() {
    let mut checked = 0;
    for cell in cells() {
        for (rank, worker, workers) in [(1, 0, 1), (0, 1, 2), (1, 1, 2)] {
            let place = WorkerPlace { rank, ranks: 2, worker, workers, attempt: 0, next_node: 1 };
            let alone = WorkerPlace::alone(place.number(), place.total());
            let asked = [place, alone].map(|place| asked(&cell, place));
            assert!(asked[0] == asked[1], "{cell}: {place:?} is not {alone:?}");
            checked += asked[0].len();
        }
    }
    assert!(checked > 500, "there is something to compare: {checked}");
}

/// What a campaign of one process wrote before there could be several: the same to the byte.
#[test]
fn alone_names_and_bytes_are_those_that_they_always_were() {
    let cell = &cells()[0];
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let part = WorkerPart { place: WorkerPlace::alone(1, 3), ..part(buffers(1)) };
    let mut workload = build(cell, Phase::Write, part);
    Drive::new(workload.as_mut(), &mut target.attach(1, 2)).run(|_| {});
    let written = content(&mut target.attach(1, 2), "n_w1", 64 << 10);
    let mut expected = buffers(1)[0][..16 << 10].repeat(4);
    stamp(&mut expected, Seed(3).named("content").part(1), 0);
    assert!(written == expected, "n_w1 has other bytes");
    assert_eq!(Seed(3).named("content").part(1), Seed(GOLDEN), "seeds are drawn in another way");
}

/// As seeds were drawn before there were several processes.
const GOLDEN: u64 = 14_020_883_898_126_653_270;

#[test]
fn each_process_drops_its_own_files_from_the_cache_of_its_node_and_what_is_shared_once() {
    let cells = cells();
    let of = |cell: &WorkloadCell, rank| {
        files_of(cell, Phase::Read, WorkerPlace::of_rank(rank, 2, 2)).collect::<Vec<_>>()
    };
    assert_eq!([0, 1].map(|rank| of(&cells[0], rank)), [["n_w0", "n_w1"], ["n_w2", "n_w3"]]);
    assert_eq!([0, 1].map(|rank| of(&cells[1], rank)), [["n_shared"], ["n_shared"]]);
    let again = |cell| files_of(cell, Phase::Read, [WorkerPlace::alone(1, 2).in_attempt(3)].into_iter());
    assert!(again(&cells[0]).eq(["n_w1_a3"]), "a repeat has names of its own");
}
