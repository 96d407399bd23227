//! Copies by several processes, each from a source of its own, and the search for the smallest buffer of all of them.

use std::{fs, time::Duration};

use nilometer_model::{Goal, Phase};
use nilometer_tests::{Mpi, MpiKind, Running, camera, may_mount, nilometer, run_directories};

use super::ranks::{EVALUATE, RankLab};

const RANKS: u32 = 3;

const COPIES: &str = r#"
title = "copies"
repeats = 2
reserve = "0 B"
source = "source"
[[stage]]
name = "copies"
workers = 2
[stage.workload.stream]
file_size = "1 MiB"
block_size = "256 KiB"
access = "buffered"
source = "disk"
layout = ["own", "strided"]
"#;

#[test]
fn each_process_copies_from_a_source_of_its_own_and_leaves_nothing_there() {
    for mpi in Mpi::all() {
        let lab = RankLab::new(COPIES);
        let source = lab.at().join("source");
        fs::create_dir(&source).expect("space");
        let ended = mpi.run(RANKS, lab.at(), &EVALUATE);
        assert!(ended.has_answered(), "{ended:?}");
        lab.assert_target_is_empty();
        assert!(run_directories(&source).is_empty(), "{ended:?}");
        let results = lab.results();
        for phase in [Phase::Source, Phase::Write] {
            let of = results
                .samples
                .iter()
                .filter(|measured| (measured.key.target, measured.key.phase) == (0, phase));
            let bytes: Vec<u64> = of.clone().map(|measured| measured.sample.bytes).collect();
            assert_eq!(bytes.len(), 4, "two repeats of two layouts: {ended:?}");
            for measured in of {
                let sample = &measured.sample;
                assert!(sample.errors.is_empty(), "{phase:?}: {:?}", sample.errors);
                assert_eq!(sample.parts.len() as u32, RANKS, "{phase:?}");
                assert!(
                    sample.parts.iter().all(|part| part.bytes == sample.bytes / u64::from(RANKS)),
                    "{phase:?}"
                );
            }
        }
    }
}

/// A program that hides the disk with the source from one process: as a machine on which it is not mounted.
fn without_the_disk(mpi: &Mpi) -> String {
    let variable = mpi.kind().rank_variable();
    let program = nilometer().display();
    format!(
        "if [ \"${variable}\" = 1 ]; then exec unshare --mount --uts sh -c 'hostname lost; mount -t tmpfs none disk; \
         exec \"$0\" \"$@\"' {program} \"$@\"; fi; exec {program} \"$@\""
    )
}

#[test]
fn a_machine_without_the_source_is_named_and_nothing_begins() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = RankLab::new(&COPIES.replace("source = \"source\"", "source = \"disk/source\""));
        let source = lab.at().join("disk/source");
        fs::create_dir_all(&source).expect("space");
        let script = without_the_disk(&mpi);
        let command = mpi.command(RANKS, lab.at(), &[&["sh", "-c", &script, "sh"], &EVALUATE[..]].concat());
        let ended = Running::of(command).end(Duration::from_mins(1));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said = "lost: the source of copies: ";
        assert!(ended.stderr.contains(said) && ended.stderr.contains("disk/source"), "{ended:?}");
        lab.assert_nothing_made(&ended);
        assert!(run_directories(&source).is_empty(), "{ended:?}");
    }
}

#[test]
fn processes_that_take_frames_in_turn_find_the_smallest_buffer_together() {
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let lab = RankLab::new("");
    fs::write(lab.at().join("camera.toml"), camera(40)).expect("space");
    let options = [
        "evaluate",
        "target",
        "--plan",
        "none",
        "--for",
        "./camera.toml",
        "--duration",
        "500 ms",
        "--find-limit",
        "--trial",
        "500 ms",
        "--buffer",
        "32 MB",
        "--keep",
        "64 MB",
        "--record",
        "r.sqlite",
    ];
    let ended = mpi.start(2, lab.at(), &options).end(Duration::from_mins(9));
    assert!(ended.has_answered(), "{ended:?}");
    let results = lab.results();
    let trials = results.samples.iter().filter_map(|measured| {
        let ingest = measured.sample.ingest.as_ref()?;
        (ingest.goal == Goal::Buffer).then_some((measured.sample.parts.len(), ingest.slots))
    });
    let trials: Vec<_> = trials.collect();
    assert!(trials.len() >= 3 && trials.iter().all(|(parts, _)| *parts == 2), "{trials:?}");
    assert!(ended.stdout.contains("the smallest buffer: "), "{ended:?}");
    lab.assert_target_is_empty();
}
