//! `tree` and `frames` through the real program: every item and every byte is in the record.

use std::{fs, time::Duration};

use nilometer_model::{Invalid, Phase};
use nilometer_plan::{Cell, Measured, Results, WorkloadCell, WorkloadRun, parse};
use nilometer_tests::{run_directories, start};

const PLAN: &str = r#"
title = "items and frames"
repeats = 1
reserve = "0 B"

[[stage]]
name = "items"
workers = 3
[stage.workload.tree]
levels = 2
branching = 2
items = 4
directories = ["unique", "shared"]
file_size = "5000 B"
shift = 1

[[stage]]
name = "items, many at once"
workers = 2
engine = "pool"
depth = 8
[stage.workload.tree]
levels = 1
branching = 3
items = 20
kind = ["files", "directories"]

[[stage]]
name = "frames"
workers = 3
[stage.workload.frames]
rows = 12
row_size = "1000 B"
frames = 7
access = "buffered"
file = ["one", "each"]
read = ["frame", "row", "region"]

[[stage]]
name = "modules of frames"
workers = 3
engine = "io_uring"
depth = 4
[stage.workload.frames]
rows = 12
row_size = "1000 B"
frames = 7
access = "buffered"
split = "module"
align = "4 KiB"
read = "row"
"#;

/// A phase of a cell as it should have been measured.
fn check(cell: &WorkloadRun, phase: Phase, Measured { sample, .. }: &Measured) {
    let place = format!("{cell}, {}: {sample:?}", phase.name());
    let work = cell.workload.parameters().work(phase, cell.workers);
    assert!(matches!(sample.invalid, None | Some(Invalid::Starved(_))), "{place}");
    assert_eq!(sample.bytes, work.bytes, "{place}");
    assert_eq!(sample.workers.len(), cell.workers as usize, "{place}");
    if matches!(cell.workload, WorkloadCell::Tree(_)) {
        assert_eq!(sample.operations, work.operations, "{place}");
        assert_eq!(sample.coldness, None, "{place}");
    } else {
        assert!(sample.operations > work.operations, "files are opened and closed besides: {place}");
        assert_eq!(sample.coldness.is_some(), phase == Phase::Read, "{place}");
    }
}

fn check_all(cells: &[Cell], results: &Results) {
    let expected: Vec<_> = cells
        .iter()
        .enumerate()
        .flat_map(|(at, cell)| cell.measured_phases().into_iter().map(move |phase| (at, phase)))
        .collect();
    for &(at, phase) in &expected {
        let found: Vec<_> =
            results.samples.iter().filter(|m| (m.key.cell, m.key.phase) == (at, phase)).collect();
        let [measured] = found[..] else {
            panic!("{} samples of {}, {}", found.len(), cells[at], phase.name())
        };
        check(cells[at].as_workload().expect("a workload"), phase, measured);
        let items: u64 = results
            .latencies
            .iter()
            .filter(|(g, _)| (g.cell, g.phase) == (at, phase))
            .map(|(_, h)| h.count())
            .sum();
        if measured.sample.invalid.is_none() {
            assert_eq!(items, measured.sample.operations, "{}, {}", cells[at], phase.name());
        }
    }
    assert_eq!(results.samples.len(), expected.len());
}

#[test]
fn all_cells_are_measured_whole_and_leave_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let target = directory.path().join("target");
    fs::create_dir(&target).expect("a directory");
    fs::write(directory.path().join("plan.toml"), PLAN).expect("a file");
    let arguments = ["evaluate", "--plan", "plan.toml", "--record", "r.sqlite", "target"];
    // Before each phase the program waits for a machine that others keep busy.
    let ended = start(directory.path(), &arguments).end(Duration::from_mins(10));
    let cells = parse(PLAN, "plan.toml", 1.0).expect("a plan").cells;
    assert_eq!(cells.len(), 2 + 2 + 6 + 1);
    check_all(&cells, &nilometer_record::read(&directory.path().join("r.sqlite")).expect("a record"));
    assert!(ended.has_answered() && run_directories(&target).is_empty(), "{ended:?}");
}
