//! `tree`: the right names come and go, whoever makes them.

use std::{collections::BTreeMap, fs, path::Path};

use nilometer_campaign::workload::{Tree, Walk, WalkTask, WorkerPlace, counted};
use nilometer_model::{Bytes, Nanos, Phase, Sample};
use nilometer_plan::{Directories, Items, Parameters, Shift, TreeCell, WalkCommand, WorkloadCell};
use nilometer_storage::{
    Arena, Drive, Engine, OpKind, Open, Tally, Target, testing::conformance::workload_suite,
};

use crate::{
    crew::{Real, Virtual},
    demands, part, run,
};

const CELL: TreeCell = TreeCell {
    levels: 2,
    branching: 2,
    items: 3,
    kind: Items::Both,
    directories: Directories::Unique,
    file_size: Bytes(0),
    shift: Shift::OWN,
};

fn word(cell: TreeCell) -> WorkloadCell {
    WorkloadCell::Tree(cell)
}

/// A tree of one directory, a chain, a bush, one for all, and with data.
fn variants() -> Vec<TreeCell> {
    let data = TreeCell { file_size: Bytes(5000), ..CELL };
    vec![
        CELL,
        data,
        TreeCell { levels: 0, ..data },
        TreeCell { levels: 3, branching: 1, ..CELL },
        TreeCell { levels: 3, branching: 0, ..CELL },
        TreeCell { levels: 1, branching: 12, items: 1, ..CELL },
        TreeCell { directories: Directories::Shared, ..data },
        TreeCell { directories: Directories::Shared, shift: Shift::Workers(1), ..data },
        TreeCell { shift: Shift::Workers(1), ..data },
        TreeCell { shift: Shift::Node, ..data },
        TreeCell { shift: Shift::Node, directories: Directories::Shared, ..CELL },
        TreeCell { shift: Shift::Workers(2), kind: Items::Files, ..CELL },
        TreeCell { shift: Shift::Workers(5), kind: Items::Directories, ..CELL },
        TreeCell { shift: Shift::Workers(1), kind: Items::Objects, ..data },
    ]
}

#[test]
fn all_phases_pass_the_suite() {
    let data = TreeCell { file_size: Bytes(5000), directories: Directories::Shared, ..CELL };
    for cell in [CELL, data, TreeCell { kind: Items::Objects, ..CELL }] {
        let phases = cell.phases();
        for (index, &phase) in phases.iter().enumerate() {
            let tree = |phase, slots, buffers| Tree::new(&cell, phase, slots, part(buffers));
            let lay_out = |engine: &mut dyn Engine| {
                for &before in &phases[..index] {
                    run(&mut tree(before, 64, Arena::shared_out(1, 5000).1), engine);
                }
            };
            // The run's directory, one a level, a file.
            for slots in [CELL.levels + 3, CELL.levels + 4, 64] {
                let bytes = (cell.file_size.0 as usize).max(64);
                workload_suite(demands(bytes, slots), &lay_out, &mut |buffers| {
                    Box::new(tree(phase, slots, buffers))
                });
            }
        }
    }
}

/// What a directory holds, by path: the size of each file, none for directories.
fn contents(top: &Path) -> BTreeMap<String, Option<u64>> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").map(|entry| entry.expect("an entry")) {
            let (path, data) = (entry.path(), entry.metadata().expect("it is there"));
            let name = path.strip_prefix(top).expect("below it").display().to_string();
            if name.starts_with("n_") {
                found.insert(name, data.is_file().then_some(data.len()));
            }
            if data.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

/// The directories of the tree that begins here.
fn directories(cell: &TreeCell, top: &str, level: u32) -> Vec<String> {
    let mut all = vec![top.to_owned()];
    for child in 0..if level < cell.levels { cell.branching } else { 0 } {
        all.extend(directories(cell, &format!("{top}/n_t{child}"), level + 1));
    }
    all
}

/// What must be there: the trees, and in each directory the items with this letter, if any.
fn expected(cell: &TreeCell, workers: u32, letter: &str) -> BTreeMap<String, Option<u64>> {
    let mut all = BTreeMap::new();
    for maker in 0..workers {
        let top = match cell.directories {
            Directories::Unique => {
                format!("n_w{}", WorkerPlace::alone(maker, workers).further(cell.shift, 1))
            }
            Directories::Shared => "n_tree".into(),
        };
        for directory in directories(cell, &top, 0) {
            for item in 0..if letter.is_empty() { 0 } else { cell.items } {
                let size = (letter != "d").then_some(cell.file_size.0);
                all.insert(format!("{directory}/n_{letter}{maker}_{item}"), size);
            }
            all.insert(directory, None);
        }
    }
    all
}

/// The letter of the items that are there after a phase, in their trees; none if there is nothing at all.
fn letter_after(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::MakeTree | Phase::RemoveDirectories | Phase::RemoveFiles => Some(""),
        Phase::MakeDirectories | Phase::StatDirectories => Some("d"),
        Phase::CreateFiles | Phase::StatFiles | Phase::ReadFiles => Some("f"),
        Phase::RenameFiles => Some("r"),
        _ => None,
    }
}

#[test]
fn every_phase_leaves_exactly_what_it_should() {
    for cell in variants() {
        for workers in [1, 3] {
            let real = Real::new();
            for phase in cell.phases() {
                real.run(&word(cell), phase, workers);
                let expected = letter_after(phase).map(|letter| expected(&cell, workers, letter));
                let found = contents(real.target.directory());
                assert_eq!(found, expected.unwrap_or_default(), "{cell:?}, {workers} workers, {phase:?}");
            }
        }
    }
}

#[test]
fn no_two_files_are_alike() {
    let (real, cell) = (Real::new(), TreeCell { file_size: Bytes(5000), kind: Items::Files, ..CELL });
    for phase in [Phase::MakeTree, Phase::CreateFiles] {
        real.run(&word(cell), phase, 2);
    }
    let files: Vec<_> =
        contents(real.target.directory()).into_iter().filter(|(_, size)| size.is_some()).collect();
    let pages = files.iter().flat_map(|(name, _)| {
        let bytes = fs::read(real.target.directory().join(name)).expect("it was written");
        bytes.chunks(4096).map(|page| page[..8].to_vec()).collect::<Vec<_>>()
    });
    let mut pages: Vec<_> = pages.collect();
    let all = pages.len();
    pages.sort();
    pages.dedup();
    assert_eq!((all, pages.len()), (2 * 2 * 21, 2 * 2 * 21));
}

const LOOK: WalkTask = WalkTask::Look(WalkCommand::Ls);

/// How many files and directories a walk from here comes upon.
fn walked(simulated: &Virtual, top: &str) -> (u64, u64) {
    let mut walk = Walk::new(top, LOOK, 64, Nanos::MAX, Arena::shared_out(1, 4096).1);
    run(&mut walk, &mut simulated.target.attach(1, 64));
    (walk.found().files, walk.found().directories)
}

/// What is free on it.
fn free(simulated: &Virtual) -> Bytes {
    simulated.target.space().expect("it knows").free
}

/// Runs all phases and checks what counts, and that nothing is left.
fn check_at(cell: TreeCell, workers: u32, depth: usize) {
    let simulated = Virtual::new();
    let empty = free(&simulated);
    for phase in cell.phases() {
        let place = format!("{cell:?}, {workers} workers, depth {depth}, {phase:?}");
        let mut tallies = vec![Tally::counting(counted(phase), Nanos(0)); workers as usize];
        simulated.run((&word(cell), phase), (workers, depth), &mut |worker, completion| {
            tallies[worker].observe(completion);
        });
        let mut sample = Sample::new(Nanos(0));
        for tally in tallies {
            tally.add_to(&mut sample);
        }
        let work = cell.work(phase, workers);
        assert_eq!((sample.operations, sample.bytes), (work.operations, work.bytes), "{place}");
        assert_eq!(sample.latency.count(), work.operations, "{place}");
        if phase == Phase::CreateFiles && cell.directories == Directories::Shared {
            let files = cell.worker_items() * u64::from(workers);
            assert_eq!(walked(&simulated, "n_tree"), (files, cell.tree_directories()), "{place}");
        }
    }
    let mut nothing = Walk::new(".", LOOK, 64, Nanos::MAX, Arena::shared_out(1, 4096).1);
    run(&mut nothing, &mut simulated.target.attach(1, 64));
    assert_eq!(
        (nothing.found().files, nothing.found().directories, free(&simulated)),
        (0, 1, empty),
        "{cell:?}"
    );
}

#[test]
fn workers_at_once_do_each_item_once_at_any_depth() {
    for cell in variants() {
        for (workers, depth) in [(1, 1), (3, 1), (2, 5), (3, 32)] {
            check_at(cell, workers, depth);
        }
    }
}

#[test]
fn a_shift_leads_to_what_others_made() {
    let cell = word(TreeCell { shift: Shift::Workers(1), directories: Directories::Shared, ..CELL });
    let simulated = Virtual::new();
    let mut makers = BTreeMap::new();
    for phase in cell.parameters().phases() {
        simulated.run((&cell, phase), (5, 1), &mut |worker, completion| {
            let name = String::from_utf8_lossy(completion.operation.name()).into_owned();
            let maker = name.get(3..).and_then(|rest| rest.split('_').next()?.parse::<usize>().ok());
            let named = matches!(
                completion.operation.kind,
                OpKind::Open(_) | OpKind::Rename | OpKind::Unlink | OpKind::MakeDir | OpKind::RemoveDir
            );
            if let Some(maker) = maker.filter(|_| named && !name.starts_with("n_t")) {
                makers.entry(phase).or_insert_with(Vec::new).push((maker + 5 - worker) % 5);
            }
        });
    }
    let further = makers.iter().map(|(phase, further)| {
        assert_eq!(further.len(), 5 * 21, "{phase:?}");
        assert!(further.iter().all(|places| *places == further[0]), "{phase:?}");
        (*phase, further[0])
    });
    assert_eq!(
        further.collect::<Vec<_>>(),
        [
            (Phase::MakeDirectories, 0),
            (Phase::RemoveDirectories, 3),
            (Phase::CreateFiles, 0),
            (Phase::ReadFiles, 2),
            (Phase::RenameFiles, 1),
            (Phase::RemoveFiles, 3),
        ]
    );
}

#[test]
fn a_failure_ends_the_part_and_closes_what_is_open() {
    let simulated = Virtual::new();
    simulated.run((&word(CELL), Phase::MakeTree), (1, 1), &mut |_, _| {});
    let mut engine = simulated.target.attach(1, 64);
    // The same files again: the first open fails, two directories deep at most.
    run(&mut Tree::new(&CELL, Phase::CreateFiles, 64, part(Arena::shared_out(1, 512).1)), &mut engine);
    let mut again = Tree::new(&CELL, Phase::CreateFiles, 64, part(Arena::shared_out(1, 512).1));
    let mut done = Vec::new();
    Drive::new(&mut again, &mut engine)
        .run(|completion| done.push((completion.operation.kind, completion.result.is_ok())));
    let open = OpKind::Open(Open::CREATE);
    assert_eq!(done, [(OpKind::OpenDir, true), (open, false), (OpKind::Close, true)]);
}
