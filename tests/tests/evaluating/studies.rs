//! All built-in plans in one campaign on four real file systems, at a small scale: every cell is measured everywhere, and
//! nothing is left behind.

use std::{collections::BTreeSet, path::Path, time::Duration};

use nilometer_plan::{Cell, Volumes, WorkloadRun};
use nilometer_tests::{FileSystem, may_mount, run_directories, start};

use crate::study_tables::{run_in, table_of, tables_of};

const PLANS: [&str; 7] = ["quick", "nus", "pandata", "evlbi", "wa105", "uci", "elements"];

/// UCI's tables have a line for each run of the paper, and one for each target.
fn assert_uci_has_its_tables(report: &str) {
    let tables = tables_of(report, "UC Irvine: FhGFS and Gluster");
    let names = [
        "dd write",
        "untar",
        "recursive grep",
        "untar single node",
        "small writes",
        "recursion",
        "kernel make",
    ];
    for name in names {
        let runs = table_of(&tables, name);
        runs.assert_has_published("uci-2014", name, "");
        assert_eq!(runs.columns[1..3], ["on", "time ± SEM [s]"]);
        for letter in ["A", "B", "C", "D"] {
            assert!(runs.has_line_on(&format!("{letter}, run 1")), "{letter} in {name}: {runs:#?}");
        }
    }
    let dd = table_of(&tables, "dd write");
    assert_eq!(dd.columns[2..], ["time ± SEM [s]", "load ± SEM", "background I/O ± SEM"]);
    assert_eq!(dd.rows.len(), 15 + 4, "15 published runs, and one on each target");
    assert!(!report.contains("not measured: the record has no"), "every line found its cell");
}

/// The report has the tables of the papers: their lines, columns and units, with the figures of four targets.
fn assert_tables_of_papers(home: &Path) {
    let report = run_in(home, &["report", "r.sqlite", "--all", "--format", "markdown"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    let of = |study: &str| tables_of(&report.stdout, study);

    let tables = of("PaN-data ODI, D8.2");
    let mdtest = table_of(&tables, "2");
    assert_eq!(mdtest.columns, ["operation", "on", "max [op/s]", "min [op/s]", "mean [op/s]"]);
    mdtest.assert_has_published("pandata-2012", "2", "mdtest");
    assert_eq!(
        mdtest.rows.len(),
        8 * (2 + 4 * 2),
        "eight operations on two systems, and by 1 and 4 workers on four"
    );

    let tables = of("e-VLBI: INAF");
    let volumes = table_of(&tables, "2");
    assert_eq!(volumes.columns, ["test", "on", "rate [MB/s]"]);
    volumes.assert_has_published("evlbi-2013", "2", "dd write");
    assert_eq!(volumes.rows.len(), 6 + 4);
    let files = table_of(&tables, "4");
    let own = ["A", "B", "C", "D"].map(|target| format!("{target} [Mbit/s]"));
    assert_eq!(files.columns[..2], ["file size", "XFS on RAID5 [Mbit/s]"]);
    assert_eq!(files.columns[2..], own, "no column for what only recordings are made over");
    let sizes: Vec<[&str; 2]> = files.rows.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    assert_eq!(sizes, [["256 MB", "5250"], ["512 MB", "5606"], ["1 GB", "5819"], ["2 GB", "5841"]]);

    let tables = of("NUS: dd copies");
    let times = table_of(&tables, "2");
    let columns = ["size", "figure", "GPFS (InfiniBand)", "local disk", "NFS (1 GbE)", "A", "B", "C", "D"];
    assert_eq!(times.columns, columns);
    times.assert_has_published("nus-gpfs", "2", "dd copy");
    let figures: Vec<&str> = times.rows.iter().take(4).map(|row| row[1].as_str()).collect();
    assert_eq!((times.rows.len(), figures), (16, vec!["real [s]", "user [s]", "sys [s]", "wait [s]"]));

    let tables = of("WA105: storage for protoDUNE");
    let matrix = table_of(&tables, "matrix");
    assert_eq!(matrix.columns, ["file size", "on", "rate [MB/s]", "CPU [%]", "CPU of the machine [%]"]);
    assert_eq!(
        matrix.rows.len(),
        4 * 3 * 4,
        "four sizes and three numbers of streams; no target has stripes"
    );
    let dd = table_of(&tables, "3");
    assert_eq!(dd.columns, ["test", "on", "rate [MB/s]"]);
    for test in ["dd write bs=1M count=10000", "fio randwrite"] {
        dd.assert_has_published("wa105-2016", "3", test);
    }
    assert_uci_has_its_tables(&report.stdout);
}

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
    assert_tables_of_papers(home.path());
    for plan in PLANS {
        assert!(results.cells.iter().any(|cell| cell.stage.starts_with(&format!("{plan}: "))), "{plan}");
    }
    for directory in systems.iter().map(FileSystem::path).chain([source.path()]) {
        assert_eq!(run_directories(directory), Vec::<std::path::PathBuf>::new(), "something is left behind");
    }
}
