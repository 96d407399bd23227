//! Files of HDF5 that a stranger made: whatever is in them, `verify` and `export` come to an end, with an answer, and leave
//! nothing behind.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use nilometer_fuzz::{SECONDS, tell, with_changed_metadata};
use nilometer_tests::{Ended, Running, await_some, root, start};
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

/// The program gives up a file that keeps the library busy after 20 s of a processor, of which a busy machine gives it a part.
const LIMIT: Duration = Duration::from_mins(20);
/// Changed files in a run of the tests.
const FILES: u64 = 40;

fn corpus() -> PathBuf {
    root().join("crates/fuzz/corpus/hdf5")
}

/// A directory with a copy of a file of the corpus, in which some bytes may be others.
fn with_file(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut bytes = fs::read(corpus().join(name)).expect("a file of the repository");
    change(&mut bytes);
    fs::write(home.path().join("x.h5"), bytes).expect("space");
    home
}

fn running(home: &Path, arguments: &[&str]) -> Running {
    start(home, arguments)
}

fn ended(home: &Path, arguments: &[&str]) -> Ended {
    running(home, arguments).end(LIMIT)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().into_string().expect("plain names")).collect();
    names.sort();
    names
}

fn place_of(bytes: &[u8], signature: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(signature)).collect()
}

#[test]
fn the_death_of_the_reader_is_a_message_that_names_what_it_read() {
    let home = with_file("new_extensible.h5", |_| {});
    let arguments = ["export", "x.h5", "--dataset", "/entry/data/data", "--to", "x.raw", "--rate", "1 B/s"];
    let export = running(home.path(), &arguments);
    await_some("the temporary file", || {
        names(home.path()).into_iter().find(|name| name.ends_with(".partial"))
    });
    kill_process(export.worker(), Signal::ABORT).expect("it is ours");
    let ended = export.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["x.h5: the process that read it was ended by signal 6 (SIGABRT), at ", "/entry/data/data"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert_eq!(names(home.path()), ["x.h5"], "what was begun is removed");
}

#[test]
fn a_chunk_too_short_for_its_checksum_is_damaged_and_ends_nothing() {
    for bytes in [0_u32, 3] {
        // The first entry in the leaf of an index of chunks, which is of kind 1: its first number is the size.
        let home = with_file("old_checked.h5", |file| {
            let leaf = place_of(file, b"TREE").into_iter().find(|at| file[at + 4] == 1).expect("an index");
            file[leaf + 24..leaf + 28].copy_from_slice(&bytes.to_le_bytes());
        });
        let verified = ended(home.path(), &["verify", "x.h5"]);
        assert_eq!(verified.code, Some(1), "{verified:?}");
        assert!(verified.stdout.contains("too few to be unpacked"), "{verified:?}");
        let exported = ended(home.path(), &["export", "x.h5", "--to", "x.raw"]);
        assert_eq!(exported.code, Some(1), "{exported:?}");
        assert_eq!(fs::metadata(home.path().join("x.raw")).expect("it is written").len(), 4 * 128);
    }
}

#[test]
fn rows_that_a_file_only_claims_cost_nothing() {
    let home = with_file("old_claims.h5", |_| {});
    let verified = ended(home.path(), &["verify", "x.h5"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains("missing     1099511627776 frames"), "{verified:?}");
    for format in ["plain", "hdf5"] {
        let exported = ended(home.path(), &["export", "x.h5", "--to", "copy", "--format", format]);
        assert_eq!(exported.code, Some(2), "{exported:?}");
        for part in ["claims 1099511627776 frames", "0 B of them are there", "--fill-missing"] {
            assert!(exported.stderr.contains(part), "{part}: {exported:?}");
        }
    }
    assert_eq!(names(home.path()), ["x.h5"]);
    // Who asks for it gets what is claimed, until the file is as large as this process may make one.
    let script = "ulimit -f 2000; exec \"$0\" export x.h5 --to copy --fill-missing";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(nilometer_tests::nilometer()).current_dir(home.path());
    let filled = Running::of(command).end(LIMIT);
    assert!(filled.code == Some(1) && filled.stderr.contains("can't write it"), "{filled:?}");
    assert_eq!(names(home.path()), ["x.h5"]);
}

#[test]
fn a_file_of_a_newer_version_is_called_that_and_not_damaged() {
    let home = with_file("newest.h5", |_| {});
    for arguments in [&["verify", "x.h5"][..], &["export", "x.h5", "--to", "x.raw"]] {
        let ended = ended(home.path(), arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("it is newer than this library, HDF5 1.14.6"), "{ended:?}");
    }
    assert_eq!(names(home.path()), ["x.h5"]);
}

/// An object of no size in a heap keeps the library in a loop. It takes 20 s of a processor until that is clear.
#[test]
fn a_reader_that_does_not_go_on_is_ended() {
    if std::env::var_os("NILOMETER_LONG").is_none() {
        return;
    }
    let home = with_file("old_checked.h5", |file| {
        for heap in place_of(file, b"GCOL") {
            file[heap + 24..heap + 32].fill(0);
        }
    });
    let exported = ended(
        home.path(),
        &["export", "x.h5", "--to", "copy.h5", "--format", "hdf5", "--compression", "lz4"],
    );
    assert_eq!(exported.code, Some(1), "{exported:?}");
    let part = "x.h5: reading it did not go on for 20 s of processor time, at ";
    assert!(exported.stderr.contains(part), "{exported:?}");
    assert_eq!(names(home.path()), ["x.h5"]);
}

/// What came of a changed file.
#[derive(Debug, Default)]
struct Answers {
    files: u64,
    /// Deaths of the reader, each a fault of the library that the parent survived.
    deaths: Vec<u64>,
}

/// Verifies and exports a changed file: both end with an answer.
fn tried(file: &[u8], seed: u64, answers: &mut Answers) {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("x.h5"), with_changed_metadata(file, seed)).expect("space");
    let commands: [&[&str]; 3] = [
        &["verify", "x.h5"],
        &["export", "x.h5", "--to", "copy"],
        &["export", "x.h5", "--to", "copy", "--format", "hdf5", "--compression", "bslz4"],
    ];
    for arguments in
        commands.into_iter().enumerate().filter(|(at, _)| *at as u64 != seed % 3).map(|(_, of)| of)
    {
        let ended = ended(home.path(), arguments);
        let is_answer = matches!(ended.code, Some(0..=2 | 5)) && !ended.stderr.contains("panicked");
        assert!(is_answer, "seed {seed}, {arguments:?}: {ended:?}");
        let bytes = fs::metadata(home.path().join("copy")).map_or(0, |copy| copy.len());
        assert!(bytes < 200 << 20, "seed {seed}, {arguments:?}: {bytes} B of {} B", file.len());
        fs::remove_file(home.path().join("copy")).ok();
        assert_eq!(names(home.path()), ["x.h5"], "seed {seed}, {arguments:?}");
        let is_death = ["was ended by signal", "did not go on for", "was given up"];
        if is_death.iter().any(|part| ended.stderr.contains(part)) {
            answers.deaths.push(seed);
        }
    }
    answers.files += 1;
}

#[test]
fn changed_metadata_are_read_or_refused_and_the_program_survives_the_library() {
    let corpus = nilometer_fuzz::corpus(&corpus());
    let seconds: Option<u64> = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    let begun = SystemTime::now();
    let is_over = |answers: &Answers| match seconds {
        Some(seconds) => begun.elapsed().is_ok_and(|elapsed| elapsed.as_secs() >= seconds),
        None => answers.files >= FILES,
    };
    // A long run begins elsewhere each time, and says with which seed.
    let first = seconds.map_or(0, |_| u64::from(std::process::id()) << 32);
    let mut answers = Answers::default();
    for seed in first.. {
        if is_over(&answers) {
            break;
        }
        tried(&corpus[(seed % corpus.len() as u64) as usize], seed, &mut answers);
    }
    if seconds.is_some() {
        let Answers { files, deaths } = answers;
        tell(&format!("HDF5 metadata from seed {first}, with deaths of the reader at {deaths:?}"), files);
    }
}
