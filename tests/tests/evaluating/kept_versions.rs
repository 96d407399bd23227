//! Versions of files that stay readable: `tests/data` has a small record of each schema and a small recording of each version of
//! journals, by name (`record-9.sql`, `journal-8`). The program opens each, and refuses the versions before and behind them.
//! `network-10.sql` adds the rows of a stage of the network to the record of schema 10, and so do those of later schemas.
//!
//! A new version gets a file of its own there, and those of older versions stay (CONTRIBUTING.md).

use std::{
    fs,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
};

use nilometer_record::SCHEMA_VERSION;
use nilometer_recording::journal::{JOURNAL_VERSION, RECORD};
use nilometer_tests::{Ended, root, run};
use rusqlite::Connection;
use tempfile::TempDir;

/// The oldest schema and the oldest version of journals that must stay readable.
const OLDEST_SCHEMA: i64 = 9;
const OLDEST_JOURNAL: i64 = 8;

/// A rate and a verdict of each record in `tests/data`.
const KNOWN_FIGURES: [&str; 3] =
    ["A 500 MB/s ", "A 1.25 GB/s ", "all of it fitted into the buffer of 1.05 MB"];
/// The state of two machines before a sample, which records have from schema 10 on.
const KNOWN_STARTS: &str = "load average 1.82 (standard error 1.00, most node1: 2.82) and disks at 3 MB/s (standard error 1 MB/s, most node2: 4 MB/s) a machine just before";
/// The first schema with it.
const STARTS_SINCE: i64 = 10;
/// Rates of the network in `tests/data`.
const KNOWN_NETWORK: [&str; 4] = [
    "node1 to node2 8 Gbit/s",
    "2 clients to 1 server, one flow, 1 process, reno, buffer 64 KiB: 60.0 % of the servers' links (10 Gbit/s), the slower side; 30.0 % of the clients' links (20 Gbit/s)",
    "clients: node1 2 Gbit/s, node2 4 Gbit/s; servers: node3 6 Gbit/s",
    "UDP, node1 to node2: no packet lost at 4 Gbit/s, the highest rate sent",
];
/// The first schema with a file of such rows.
const NETWORK_SINCE: i64 = 10;
/// The traffic over time of a trial of the network, which records have from schema 11 on.
const KNOWN_TRAFFIC: &str = "Over time, node1 to node2, TCP, one flow, intervals of 500 ms: least even node1 eth0, 4 Gbit/s to 12 \
                             Gbit/s sent; all TCP connections of these machines sent 7 segments again, at most 7 in an \
                             interval (node1)";
/// The first schema with it.
const TRAFFIC_SINCE: i64 = 11;
/// Frames of each recording in `tests/data`.
const KNOWN_FRAMES: &str =
    "right       4 frames, 512 B, compared with the frames of the simulated instrument";

/// Where the version stands in the head of a journal, and behind its end.
const VERSION_AT: Range<usize> = 56..60;

/// A file or directory of `tests/data`.
struct KeptFile {
    path: PathBuf,
    version: i64,
}

/// The records, one of each schema.
fn kept_records() -> Vec<KeptFile> {
    kept_files("record-", ".sql", OLDEST_SCHEMA..=SCHEMA_VERSION)
}

/// The recordings, one of each version of journals.
fn kept_recordings() -> Vec<KeptFile> {
    kept_files("journal-", "", OLDEST_JOURNAL..=JOURNAL_VERSION.into())
}

/// The files whose names begin and end like this, the oldest version first. Each of these versions must be there.
fn kept_files(prefix: &str, suffix: &str, expected: RangeInclusive<i64>) -> Vec<KeptFile> {
    let entries = fs::read_dir(root().join("tests/data")).expect("it is in the repository");
    let mut kept: Vec<KeptFile> = entries
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name()?.to_str()?;
            let version = name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()?;
            Some(KeptFile { path, version })
        })
        .collect();
    kept.sort_by_key(|kept| kept.version);
    let versions: Vec<i64> = kept.iter().map(|kept| kept.version).collect();
    assert_eq!(versions, expected.collect::<Vec<_>>(), "tests/data has each version once");
    kept
}

/// Makes a record of the statements in a file.
fn make_record(kept: &KeptFile, directory: &TempDir) -> PathBuf {
    let path = directory.path().join("kept.sqlite");
    let statements = fs::read_to_string(&kept.path).expect("it can be read");
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch(&statements).expect("valid statements");
    path
}

/// Copies a recording, since its reader must own the files.
fn copy_recording(kept: &KeptFile, directory: &TempDir) -> PathBuf {
    let to = directory.path().join("kept");
    fs::create_dir(&to).expect("space");
    for entry in fs::read_dir(&kept.path).expect("it can be listed") {
        let entry = entry.expect("an entry");
        fs::write(to.join(entry.file_name()), fs::read(entry.path()).expect("a file")).expect("space");
    }
    to
}

/// Writes another version into the heads of all journals of a recording.
fn set_journal_version(directory: &Path, version: i64) {
    for entry in fs::read_dir(directory).expect("it can be listed") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "journal") {
            let mut bytes = fs::read(&path).expect("a journal");
            bytes[VERSION_AT].copy_from_slice(&u32::try_from(version).expect("it is small").to_le_bytes());
            let checksum = crc32fast::hash(&bytes[4..RECORD]);
            bytes[..4].copy_from_slice(&checksum.to_le_bytes());
            fs::write(&path, bytes).expect("space");
        }
    }
}

fn on_path(command: &str, path: &Path) -> Ended {
    run(&[Path::new(command), path])
}

/// The program refused a file with this sentence alone, and did nothing.
fn assert_refused_with(sentence: &str, command: &str, path: &Path) {
    let refused = on_path(command, path);
    assert_eq!(refused.code, Some(2), "{command}: {refused:?}");
    assert!(refused.stdout.is_empty(), "{command}: {refused:?}");
    assert_eq!(refused.stderr, format!("nilometer: {sentence}\n"), "{command}");
}

#[test]
fn a_record_of_every_kept_schema_is_reported() {
    for kept in kept_records() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let reported = on_path("report", &make_record(&kept, &directory));
        assert_eq!(reported.code, Some(0), "schema {}: {reported:?}", kept.version);
        let spaced = reported.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for figure in KNOWN_FIGURES {
            assert!(spaced.contains(figure), "schema {}, {figure}: {reported:?}", kept.version);
        }
        let has_starts = spaced.contains(KNOWN_STARTS);
        assert_eq!(has_starts, kept.version >= STARTS_SINCE, "schema {}: {reported:?}", kept.version);
    }
}

#[test]
fn the_network_in_a_record_of_every_kept_schema_is_reported() {
    let records = kept_records();
    for rows in kept_files("network-", ".sql", NETWORK_SINCE..=SCHEMA_VERSION) {
        let kept = records.iter().find(|kept| kept.version == rows.version).expect("each schema has one");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = make_record(kept, &directory);
        let connection = Connection::open(&path).expect("a database");
        let statements = fs::read_to_string(&rows.path).expect("it can be read");
        connection.execute_batch(&statements).expect("valid statements");
        drop(connection);
        let reported = on_path("report", &path);
        assert_eq!(reported.code, Some(0), "schema {}: {reported:?}", kept.version);
        let spaced = reported.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for figure in KNOWN_NETWORK {
            assert!(spaced.contains(figure), "schema {}, {figure}: {reported:?}", kept.version);
        }
        let has_traffic = spaced.contains(KNOWN_TRAFFIC);
        assert_eq!(has_traffic, kept.version >= TRAFFIC_SINCE, "schema {}: {reported:?}", kept.version);
    }
}

#[test]
fn a_record_keeps_its_bytes_until_its_campaign_goes_on() {
    for kept in kept_records() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = make_record(&kept, &directory);
        let before = fs::read(&path).expect("a record");
        let record = path.to_str().expect("a plain name");
        let other = directory.path().to_str().expect("a plain name");
        let refused = run(&["evaluate", other, "--plan", "quick", "--resume", "--record", record]);
        assert_eq!(refused.code, Some(2), "schema {}: {refused:?}", kept.version);
        let cleaned = run(&["clean", other, "--record", record]);
        assert_eq!(cleaned.code, Some(0), "schema {}: {cleaned:?}", kept.version);
        assert!(fs::read(&path).expect("a record") == before, "schema {}: it was changed", kept.version);
    }
}

#[test]
fn records_of_other_schemas_are_refused_in_one_sentence() {
    let kept = kept_records();
    for version in [OLDEST_SCHEMA - 1, SCHEMA_VERSION + 1] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = make_record(&kept[0], &directory);
        let connection = Connection::open(&path).expect("a database");
        connection.pragma_update(None, "user_version", version).expect("space");
        drop(connection);
        let sentence = format!(
            "{} has schema {version}; this program reads schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION}: measure again, or use the \
             program that wrote it (nilometer 0.1.0)",
            path.display()
        );
        assert_refused_with(&sentence, "report", &path);
        assert_refused_with(&sentence, "check", &path);
    }
}

#[test]
fn a_recording_of_every_kept_journal_version_is_whole() {
    for kept in kept_recordings() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let verified = on_path("verify", &copy_recording(&kept, &directory));
        assert_eq!(verified.code, Some(0), "version {}: {verified:?}", kept.version);
        for line in [KNOWN_FRAMES, "missing     none"] {
            assert!(verified.stdout.contains(line), "version {}: {verified:?}", kept.version);
        }
    }
}

#[test]
fn recordings_of_other_journal_versions_are_refused_in_one_sentence() {
    let kept = kept_recordings();
    for version in [OLDEST_JOURNAL - 1, i64::from(JOURNAL_VERSION) + 1] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = copy_recording(&kept[0], &directory);
        set_journal_version(&path, version);
        let sentence = format!(
            "{}: has journal version {version}; this program reads version {JOURNAL_VERSION}: record again, or use the program \
             that wrote it",
            path.join("kept.0.journal").display()
        );
        for command in ["verify", "scan", "repair"] {
            assert_refused_with(&sentence, command, &path);
        }
    }
}
