//! All built-in plans in one campaign on four real file systems, at a small scale: every cell is measured everywhere, and
//! nothing is left behind.

use std::{collections::BTreeSet, time::Duration};

use nilometer_plan::{Cell, Volumes, WorkloadRun};
use nilometer_tests::{FileSystem, may_mount, run_directories, start};

const PLANS: [&str; 7] = ["quick", "nus", "pandata", "evlbi", "wa105", "uci", "elements"];

/// Over how many groups of the targets a recording is made, beside one on each.
fn over_several(cell: &Cell) -> usize {
    let volumes = cell.as_recording().map_or(&[][..], |run| &run.volumes);
    volumes.iter().filter(|volumes| **volumes != Volumes::Alone).count()
}

#[test]
fn the_studies_run_on_four_file_systems_in_one_campaign() {
    if !may_mount() {
        return;
    }
    let systems = [
        FileSystem::ext4(3000),
        FileSystem::xfs(3000),
        FileSystem::btrfs(3000),
        FileSystem::tmpfs("size=3g"),
    ];
    let home = tempfile::tempdir().expect("a temporary directory");
    let source = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = vec!["evaluate".to_owned()];
    arguments.extend(systems.iter().map(|system| system.path().display().to_string()));
    arguments.extend(PLANS.iter().flat_map(|plan| ["--plan".to_owned(), (*plan).to_owned()]));
    arguments.extend(["--scale", "1/2000", "--repeats", "1", "--record", "r.sqlite"].map(str::to_owned));
    arguments.extend(["--source".to_owned(), source.path().display().to_string()]);
    let ended = start(home.path(), &arguments).end(Duration::from_mins(10));
    assert!(ended.has_answered(), "{}\n{}", ended.stdout, ended.stderr);

    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    let measured: BTreeSet<_> = results.samples.iter().map(|measured| measured.key.group()).collect();
    // Recordings are made as often as their plan says.
    let made = |cell: usize| results.cells[cell].as_recording().map_or(1, |run| run.repeats as usize);
    let expected: usize = measured.iter().map(|group| made(group.cell)).sum();
    assert_eq!(results.samples.len(), expected, "one repeat of each workload");
    for (index, cell) in results.cells.iter().enumerate() {
        let another_layout = |run: &WorkloadRun| {
            run.stripe_count.is_some_and(|count| count > 1)
                || run.stripe_size.is_some_and(|size| size.0 > 1 << 20)
        };
        let stripes_everywhere_the_same = cell.as_workload().is_some_and(another_layout);
        let at_once = cell.as_workload().map_or(Volumes::Alone, |run| run.volumes);
        for phase in cell.measured_phases() {
            let on = measured.iter().filter(|group| (group.cell, group.phase) == (index, phase)).count();
            let expected = match at_once {
                _ if stripes_everywhere_the_same => 0,
                Volumes::First(count) if (count as usize) < systems.len() => count as usize,
                // All of them are what the cell for all measures.
                Volumes::First(_) => 0,
                Volumes::Alone | Volumes::Together => systems.len() + over_several(cell),
            };
            assert_eq!(on, expected, "{}: {cell} of {}", phase.name(), cell.stage);
        }
    }
    for plan in PLANS {
        assert!(results.cells.iter().any(|cell| cell.stage.starts_with(&format!("{plan}: "))), "{plan}");
    }
    for directory in systems.iter().map(FileSystem::path).chain([source.path()]) {
        assert_eq!(run_directories(directory), Vec::<std::path::PathBuf>::new(), "something is left behind");
    }
}
