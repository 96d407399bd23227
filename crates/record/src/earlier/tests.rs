//! Records of earlier schemas, as they are read and gone on with.

use std::path::{Path, PathBuf};

use nilometer_model::{
    Event, Invalid, Nanos, RankPart, Sample,
    plan::{Goal, Phase},
};
use tempfile::TempDir;

use super::*;
use crate::{OLDEST_SCHEMA, Record, read};

/// The rows of a record that version 0.1.0 wrote: five cells of two workloads, and recordings at two rates.
const ROWS_OF_SCHEMA_3: &str = include_str!("record_3.sql");
/// The rows of a record of a workload and of recordings at two rates, on a directory and onto nothing.
const ROWS_OF_SCHEMA_4: &str = include_str!("record_4.sql");

/// The rows of a record of two processes: a stream into a shared file, and a tree.
const ROWS_OF_SCHEMA_5: &str = include_str!("record_5.sql");

/// The rows of a record of one process: a stream, and a tree.
const ROWS_OF_SCHEMA_6: &str = include_str!("record_6.sql");
/// The same of the version that followed, sealed.
const ROWS_OF_SCHEMA_7: &str = include_str!("record_7.sql");
/// A stream and a recording, each with and without a load beside it, sealed.
const ROWS_OF_SCHEMA_8: &str = include_str!("record_8.sql");

fn record_of(version: i64, rows: &str, directory: &TempDir) -> PathBuf {
    let path = directory.path().join(format!("{version}.sqlite"));
    let connection = Connection::open(&path).expect("a database");
    let schema = EarlierSchema::of(version).expect("one of them");
    connection.execute_batch(schema.statements).expect("the tables that it made");
    connection.execute_batch(rows).expect("what it wrote");
    path
}

fn record_3(directory: &TempDir) -> PathBuf {
    record_of(3, ROWS_OF_SCHEMA_3, directory)
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).expect("a database");
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
}

#[test]
fn a_record_of_schema_3_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = record_3(&directory);
    let before = std::fs::read(&path).expect("a file");
    let results = read(&path).expect("readable");
    assert_eq!(std::fs::read(&path).expect("a file"), before, "who reads changes nothing");
    let stages: Vec<&str> = results.cells.iter().map(|cell| cell.stage.as_str()).collect();
    assert_eq!(
        stages,
        [&["large files"; 4][..], &["small files"], &["pco-edge at 20 Hz", "pco-edge at 50 Hz"]].concat()
    );
    assert_eq!(results.cells[1].to_string(), "1 MiB by 256 KiB, direct if real, 2 workers");
    let run = results.cells[6].as_recording().expect("a recording");
    assert_eq!((run.label().as_str(), run.goal), ("pco-edge at 50 Hz", Goal::Pace));
    let campaign = results.campaign.as_ref().expect("a campaign");
    assert_eq!((&campaign.plan.cells, campaign.targets.len()), (&results.cells, 1));
    let described = results.targets[0].description.as_ref().expect("it was described");
    assert_eq!(described, &campaign.targets[0]);
    let paced = results.samples.iter().find(|measured| measured.key.cell == 6).expect("it was recorded");
    let ingest = paced.sample.ingest.as_ref().expect("a recording");
    assert_eq!((paced.key.phase, ingest.lost, ingest.readers.len()), (Phase::Ingest, 0, 2));
}

#[test]
fn a_record_of_schema_4_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = read(&record_of(4, ROWS_OF_SCHEMA_4, &directory)).expect("readable");
    let cells: Vec<_> = results.cells.iter().map(ToString::to_string).collect();
    assert_eq!(cells[0], "1 MiB by 256 KiB, direct if real, 2 workers");
    let names: Vec<&str> = results.targets.iter().map(|target| target.path.as_str()).collect();
    assert_eq!((cells.len(), names), (3, vec!["/data/target", "null:"]));
    assert!(results.samples.iter().all(|measured| measured.sample.parts.is_empty()));
    let paced = results.samples.iter().find(|measured| measured.key.cell == 2).expect("it was recorded");
    let ingest = paced.sample.ingest.as_ref().expect("a recording");
    assert_eq!((ingest.lost, ingest.stored, paced.sample.workers.len()), (0, 50, 0));
}

#[test]
fn a_record_of_schema_5_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = read(&record_of(5, ROWS_OF_SCHEMA_5, &directory)).expect("readable");
    let cells: Vec<_> = results.cells.iter().map(ToString::to_string).collect();
    assert_eq!(cells[0], "64 KiB by 64 KiB, buffered, N-to-1 strided, 2 workers");
    assert_eq!(cells[1], "1 x 2 items, unique, shift 1, 1 worker");
    let parts = results.samples.iter().flat_map(|measured| &measured.sample.parts);
    let told: Vec<_> = parts.map(|part| (part.rank, part.began, part.clock_uncertainty)).collect();
    assert_eq!(told.len(), 14, "two of each sample, those of the ceiling apart");
    assert!(told.iter().all(|(_, began, uncertainty)| (*began, *uncertainty) == (Nanos(0), 0)));
}

#[test]
fn a_record_of_schema_6_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = read(&record_of(6, ROWS_OF_SCHEMA_6, &directory)).expect("readable");
    let written = results.samples.iter().find(|measured| measured.key.phase == Phase::Write);
    let device = written.and_then(|measured| measured.sample.device).expect("it was counted");
    assert_eq!(device.flushes, None, "nobody counted them");
    // Of 64 buckets an octave, each second one begins where one of 32 did.
    let buckets: Vec<u16> =
        results.latencies.values().flat_map(Histogram::buckets).map(|(bucket, _)| bucket).collect();
    assert!(buckets.iter().any(|bucket| *bucket > 64), "{buckets:?}");
    assert!(buckets.iter().all(|bucket| *bucket < 64 || bucket % 2 == 0), "{buckets:?}");
    assert_eq!(Histogram::lowest(Histogram::bucket_of_half_as_many(358)), 38 << 10);
}

#[test]
fn what_an_instrument_said_of_its_files_is_kept() {
    let instrument = json!({
        "name": "camera", "storing": "positions", "format": "raw", "frames_per_file": 7, "streams": 1,
        "assumed": ["storing", "data", "frames_per_file"],
    });
    let told = measurement_of_schema_4(json!({ "recording": { "instrument": instrument, "goal": "pace" } }));
    let expected = json!({
        "name": "camera", "streams": 1, "assumed": ["data", "recording"],
        "recording": { "storing": "positions", "format": "raw", "frames_per_file": 7 },
    });
    assert_eq!(told, json!({ "recording": { "instrument": expected, "goal": "pace" } }));
    let workload = json!({ "workload": { "storing": "files" } });
    assert_eq!(measurement_of_schema_4(workload.clone()), workload, "it has no instrument");
}

#[test]
fn a_record_of_schema_7_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = read(&record_of(7, ROWS_OF_SCHEMA_7, &directory)).expect("readable");
    assert_eq!((results.samples.len(), results.cells.len()), (24, 2));
    assert!(results.samples.iter().all(|measured| measured.sample.background.is_none()));
    assert_eq!((results.machines.len(), results.network.len()), (0, 0), "nobody looked");
}

#[test]
fn a_record_of_schema_8_is_read_for_ever_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = read(&record_of(8, ROWS_OF_SCHEMA_8, &directory)).expect("readable");
    let ingests = results.samples.iter().filter_map(|measured| measured.sample.ingest.as_ref());
    let told: Vec<_> = ingests.map(|ingest| (ingest.condition.as_str(), ingest.load.as_str())).collect();
    let load = "beside 1 worker of stream, write only (64 KiB by 64 KiB, buffered)";
    assert_eq!(told, [("", ""), ("", load), ("", ""), ("", load)]);
    let loads = results.samples.iter().filter_map(|measured| measured.sample.background);
    assert!(loads.clone().count() > 0 && loads.clone().all(|done| done.frames.is_none()));
    let works = results.cells.iter().filter_map(|cell| cell.background()?.workload());
    assert_eq!(works.count(), 4, "what it does is read as it was written");
    let both = "one disk lost, beside 1 worker of tree (1 x 2 items)";
    assert_eq!(states_of_schema_8(both), ["one disk lost", "beside 1 worker of tree (1 x 2 items)"]);
    assert_eq!(states_of_schema_8("one disk lost"), ["one disk lost", ""]);
}

#[test]
fn a_campaign_goes_on_with_an_earlier_record_and_finds_all_that_was_there() {
    let all = [
        (3, ROWS_OF_SCHEMA_3, 58),
        (4, ROWS_OF_SCHEMA_4, 16),
        (5, ROWS_OF_SCHEMA_5, 14),
        (6, ROWS_OF_SCHEMA_6, 24),
        (7, ROWS_OF_SCHEMA_7, 36),
        (8, ROWS_OF_SCHEMA_8, 16),
    ];
    for (schema, rows, repeats) in all {
        let directory = tempfile::tempdir().expect("a directory");
        let path = record_of(schema, rows, &directory);
        Connection::open(&path)
            .and_then(|connection| {
                connection.execute_batch("CREATE TABLE notes (x); INSERT INTO notes VALUES (7)")
            })
            .expect("a table of the user's");
        let before = read(&path).expect("readable");
        let (mut record, begun) = Record::resume(&path).expect("nobody writes");
        assert_eq!(version(&path), schema, "nothing was written yet");
        assert_eq!((Some(&begun.campaign), begun.done.len()), (before.campaign.as_ref(), repeats));
        let resumed = Event { at: Nanos(5), what: "resumed".into() };
        record.note(&resumed).expect("space");
        assert_eq!(version(&path), SCHEMA_VERSION);
        let after = read(&path).expect("readable");
        assert_eq!((&after.cells, &after.campaign), (&before.cells, &before.campaign));
        assert_eq!(after.targets, before.targets);
        assert_eq!(format!("{:?}", after.samples), format!("{:?}", before.samples));
        assert_eq!(after.events.last(), Some(&resumed));
        let part = RankPart { rank: 1, ..RankPart::default() };
        let hung = Sample { parts: vec![part.clone()], ..Sample::invalid(Invalid::Hung) };
        record.replace(before.samples[0].key, &hung).expect("space");
        drop(record);
        let sample = read(&path).expect("readable").samples.swap_remove(0).sample;
        assert_eq!((sample.invalid, sample.parts), (Some(Invalid::Hung), vec![part]));
        let notes: i64 = Connection::open(&path)
            .and_then(|connection| connection.query_row("SELECT x FROM notes", [], |row| row.get(0)))
            .expect("the user's table");
        assert_eq!(notes, 7);
        assert_eq!(Record::resume(&path).expect("nobody writes").1.done.len(), repeats);
    }
}

/// The order of columns is that of today's tables: a record is filled by it.
#[test]
fn every_earlier_table_gives_the_columns_of_todays() {
    for earlier in &EARLIER {
        let (old, today) = (Connection::open_in_memory(), Connection::open_in_memory());
        let (old, today) = (old.expect("memory"), today.expect("memory"));
        old.execute_batch(earlier.statements).expect("valid");
        today.execute_batch(schema::SCHEMA).expect("valid");
        earlier.show_as_current(&old).expect("it can be shown");
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let mut tables = today.prepare(names).expect("a query");
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).expect("tables");
        for table in tables.map(|table| table.expect("a name")) {
            let columns = |connection: &Connection| {
                let query = connection.prepare(&format!("SELECT * FROM {table}")).expect("a table");
                query.column_names().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(columns(&old), columns(&today), "{table} of schema {}", earlier.version);
        }
    }
    let versions: Vec<i64> = EARLIER.iter().map(|earlier| earlier.version).collect();
    assert_eq!(versions, (OLDEST_SCHEMA..SCHEMA_VERSION).collect::<Vec<_>>(), "none is forgotten");
}

#[test]
fn what_is_no_plan_of_schema_3_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    for (change, part) in [
        ("UPDATE campaign SET plan = 'none'", "expected ident"),
        ("UPDATE cell SET parameters = '{}' WHERE id = 2", "a cell of stage `large files`"),
    ] {
        let path = record_3(&directory);
        Connection::open(&path).and_then(|connection| connection.execute_batch(change)).expect("ok");
        for refused in [read(&path).map(drop), Record::resume(&path).map(drop)] {
            let error = refused.expect_err(change).to_string();
            assert!(error.contains(part), "{error}");
        }
        std::fs::remove_file(&path).expect("a file");
    }
}
