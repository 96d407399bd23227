//! Tests that a record reads back as written, and that other files and older records are refused.

use super::*;
use crate::{OLDEST_SCHEMA, Record, SCHEMA_VERSION};
use nilometer_model::{
    BackgroundDone, Bytes, DeviceTraffic, DeviceUse, FilesSeen, FramesBeside, Goal, Ingest, LocksSeen,
    NodeStart, PacketTotals, RankPart, ReaderTotals, Stall, Waited,
};
use nilometer_plan::{ResolvedPlan, parse};

/// One cell, in one stage.
pub(crate) fn plan() -> ResolvedPlan {
    let text = "title = \"t\"\n[[stage]]\nname = \"s\"\n[stage.workload.walk]\nlevels = 1\nbranching = 2\nfiles = 10\n";
    parse(text, "t.toml", 1.0).expect("a valid plan")
}

/// A campaign of that on no target.
pub(crate) fn campaign() -> PlannedCampaign {
    PlannedCampaign::new(plan(), Vec::new())
}

fn head() -> Results {
    let target = TargetEntry { path: "/a".into(), file_system: "ext4".into(), ..TargetEntry::default() };
    let (campaign, cells) = (campaign(), plan().cells);
    Results {
        title: "t".into(),
        campaign: Some(campaign),
        margin: 5.0,
        targets: vec![target],
        cells,
        ..Results::default()
    }
}

fn full_sample() -> Sample {
    let mut sample = Sample {
        bytes: 1 << 40,
        operations: 7,
        wall: Nanos(5),
        load: 0.5,
        device: Some(DeviceTraffic {
            read: 1,
            written: 2,
            flushes: Some(3),
            use_of: Some(DeviceUse { busy: Nanos(33), queue: Nanos(34) }),
        }),
        coldness: Some(Coldness::NotProvable),
        client: Nanos(11),
        switches: Switches { voluntary: 12, involuntary: 13 },
        started: Nanos(14),
        before: Activity { over: Nanos(15), stolen: Nanos(16), ..Activity::default() },
        during: Activity {
            pressure: Some(Pressure { io: Nanos(17), ..Pressure::default() }),
            ..Activity::default()
        },
        ingest: Some(full_ingest()),
        workers: vec![WorkerTotals { bytes: 3, last_done: Nanos(9), ..WorkerTotals::default() }],
        parts: vec![full_part(0), full_part(1)],
        node_starts: vec![full_start("node1"), full_start("node0")],
        background: Some(BackgroundDone {
            wall: Nanos(23),
            bytes: 24,
            operations: 25,
            latency_sum: Nanos(26),
            errors: 27,
            frames: Some(FramesBeside {
                due: 28,
                lost: 29,
                late: 30,
                allowance: Nanos(31),
                longest_stall: Nanos(32),
            }),
        }),
        locks: Some(LocksSeen { tries: 19, broken: 20, passed: 21, longest: Nanos(22) }),
        seen: Some(FilesSeen { files: 9, stale: 2, longest: Nanos(18), ..FilesSeen::default() }),
        ..Sample::new(Nanos(0))
    };
    sample.latency.add(1000);
    sample.lateness.add(5);
    sample.series.add(Nanos(3_000_000), 4);
    sample.errors.insert(5, 2);
    sample
}

/// Makes a part in which no two numbers are equal.
fn full_part(rank: u32) -> RankPart {
    RankPart {
        rank,
        node: format!("node{rank}"),
        clock_offset: -2,
        clock_uncertainty: 11,
        began: Nanos(12),
        workers: 3,
        bytes: 4,
        operations: 5,
        first_done: Nanos(6),
        last_done: Nanos(7),
        user: Nanos(8),
        system: Nanos(9),
        run_delay: Nanos(10),
    }
}

/// The state of a node in which no two numbers are equal.
fn full_start(node: &str) -> NodeStart {
    let before = Activity {
        over: Nanos(1),
        disk_read: 2,
        disk_written: 3,
        received: 4,
        sent: 5,
        ..Activity::default()
    };
    NodeStart { node: node.into(), load: 0.25, before }
}

fn full_ingest() -> Ingest {
    let mut ingest = Ingest {
        lost: 3,
        goal: Goal::Search,
        count: 3,
        stalls: vec![Stall { at: Nanos(3), length: Nanos(4) }, Stall { at: Nanos(1), length: Nanos(9) }],
        stall_count: 8,
        slowest_second: Some(Bytes(77)),
        company: "i + j".into(),
        condition: "one lost".into(),
        load: "beside 1 worker".into(),
        written: Bytes(99),
        readers: vec![ReaderTotals {
            copies: true,
            frames: 6,
            missed: 1,
            hung: true,
            ..ReaderTotals::default()
        }],
        packets: Some(full_packets()),
        ..Ingest::default()
    };
    ingest.levels.set(Nanos(5_000_000), 3);
    ingest.levels.lose(Nanos(9_000_000), 4);
    for (histogram, value) in [(&mut ingest.durable, 1), (&mut ingest.readable, 2), (&mut ingest.read, 3)] {
        histogram.add(value);
    }
    ingest
}

/// Makes totals in which no two numbers are equal.
fn full_packets() -> PacketTotals {
    PacketTotals {
        size: Bytes(1),
        due: 2,
        unsent: 3,
        came: 4,
        dropped: 5,
        ring: 6,
        stored: 7,
        losses: 8,
        longest_loss: 9,
        reordered: 10,
        extent: 11,
        overtaken: 12,
        duplicates: 13,
        room: Bytes(14),
        late: Nanos(15),
        sending: Nanos(16),
        receiving: Nanos(17),
    }
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    let key = |repeat| Key { target: 0, cell: 0, repeat, phase: Phase::Read };
    let refused = || Sample { invalid: Some(Invalid::Refused("why".into())), ..full_sample() };
    let mut record = Record::create(&path, &head(), 1).expect("a new record");
    for (repeat, sample) in [(0, full_sample()), (1, full_sample()), (2, refused())] {
        record.add(key(repeat), &sample).expect("space");
    }
    record.leave_out(0, "gone").expect("space");
    let event = Event { at: Nanos(5), what: "something".into() };
    record.note(&event).expect("space");
    let results = read(&path).expect("readable while open");
    let keys: Vec<u32> = results.samples.iter().map(|measured| measured.key.repeat).collect();
    assert_eq!(keys, [1, 2], "the first round is for warming up");
    // Latencies are read by group, of valid repeats.
    let expected = Sample { latency: Histogram::default(), ..full_sample() };
    assert_eq!(format!("{:?}", results.samples[0].sample), format!("{expected:?}"));
    assert_eq!(results.samples[1].sample.invalid, refused().invalid);
    assert_eq!(results.latencies[&key(1).group()], full_sample().latency);
    assert_eq!((results.targets[0].left_out.as_deref(), &results.events[0]), (Some("gone"), &event));
    assert_eq!((results.campaign, results.cells), (Some(campaign()), plan().cells));
    assert!(record.add(key(1), &full_sample()).is_err(), "a sample is written once");
}

/// Every table that belongs to a sample has rows of it once, those of the attempt that counts.
#[test]
fn a_spoilt_sample_gives_way_to_one_that_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    let key = |repeat| Key { target: 0, cell: 0, repeat, phase: Phase::Read };
    let waited = Waited { waited: Nanos(3), of: Nanos(9), allowed: Nanos(1), throttled: Nanos(2) };
    let starved = Sample { invalid: Some(Invalid::Starved(Some(waited))), bytes: 1, ..full_sample() };
    let mut record = Record::create(&path, &head(), 0).expect("a new record");
    record.add(key(0), &starved).expect("space");
    record.add(key(1), &full_sample()).expect("space");
    assert_eq!(read(&path).expect("readable").samples[0].sample.invalid, starved.invalid);
    let connection = Connection::open(&path).expect("a database");
    let rows = || -> Vec<(String, i64)> {
        let tables = "SELECT name FROM sqlite_schema WHERE sql LIKE '%REFERENCES sample%' ORDER BY name";
        let mut tables = connection.prepare(tables).expect("a query");
        let names = tables.query_map([], |row| row.get::<_, String>(0)).expect("tables");
        let names: Vec<String> = names.map(|name| name.expect("a name")).collect();
        let count = |name: &String| {
            let query = format!("SELECT count(*) FROM {name} WHERE sample = 1");
            connection.query_row(&query, [], |row| row.get(0)).expect("a count")
        };
        names.iter().map(|name| (name.clone(), count(name))).collect()
    };
    let before = rows();
    assert!(before.len() == 16 && before.iter().all(|(_, count)| *count > 0), "{before:?}");
    record.replace(key(0), &full_sample()).expect("space");
    assert_eq!(rows(), before);
    let results = read(&path).expect("readable");
    let repeats: Vec<_> = results.samples.iter().map(|one| (one.key.repeat, one.sample.bytes)).collect();
    let bytes = full_sample().bytes;
    assert_eq!(repeats, [(0, bytes), (1, bytes)], "in the old order");
    assert!(results.samples.iter().all(|one| one.sample.invalid == full_sample().invalid));
    assert!(record.replace(key(2), &full_sample()).is_err(), "there is none");
}

/// A journal that a killed process left must be rolled back before anything can be read.
#[test]
fn a_record_is_readable_whenever_its_writer_was_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, copy) = (directory.path().join("r.sqlite"), directory.path().join("copy.sqlite"));
    drop(Record::create(&path, &head(), 0).expect("a new record"));
    let connection = Connection::open(&path).expect("a database");
    // A cache this small makes SQLite write in the middle of a transaction.
    connection.execute_batch("PRAGMA cache_size = 1; BEGIN").expect("a transaction");
    for at in 0..2000 {
        let row = rusqlite::params![at, "x".repeat(1000)];
        connection.execute("INSERT INTO event (at, what) VALUES (?1, ?2)", row).expect("space");
    }
    std::fs::copy(&path, &copy).expect("as a kill leaves it");
    let journal = |path: &Path| path.with_extension("sqlite-journal");
    std::fs::copy(journal(&path), journal(&copy)).expect("with its journal");
    let half_written = std::fs::metadata(&copy).expect("a file").len();
    assert!(half_written > 1_000_000, "{half_written} bytes: nothing was written before the commit");
    let results = read(&copy).expect("readable");
    assert_eq!((results.title.as_str(), results.events.len()), ("t", 0));
    let (_, begun) = Record::resume(&copy).expect("it goes on");
    assert!(begun.done.is_empty());
}

#[test]
fn foreign_and_missing_files_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    assert!(matches!(read(&path), Err(RecordError::Missing { .. })));
    Record::create(&path, &head(), 1).expect("a new record");
    assert!(matches!(Record::create(&path, &head(), 1), Err(RecordError::Exists { .. })));
    let connection = Connection::open(&path).expect("a database");
    connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("writable");
    let error = read(&path).expect_err("a newer schema").to_string();
    let newer = SCHEMA_VERSION + 1;
    let said = format!("has schema {newer}; this program reads schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION}");
    assert!(error.contains(&said), "{error}");
}

#[test]
fn an_error_about_a_missing_record_names_those_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let told = |name: &str| read(&directory.path().join(name)).expect_err("missing").to_string();
    assert!(told("a").ends_with("/a: no such record"), "{}", told("a"));
    for name in ["b.sqlite", "a.sqlite", "page.html"] {
        std::fs::write(directory.path().join(name), "").expect("written");
    }
    assert!(told("a").ends_with("no such record; did you mean a.sqlite?"), "{}", told("a"));
    assert!(told("c").ends_with("no such record; did you mean a.sqlite or b.sqlite?"), "{}", told("c"));
    for number in 2..6 {
        std::fs::write(directory.path().join(format!("e-{number}.sqlite")), "").expect("written");
    }
    let many = "no such record; there are a.sqlite, b.sqlite, e-2.sqlite and 3 more";
    assert!(told("c").ends_with(many), "{}", told("c"));
}

#[test]
fn a_record_of_an_older_program_is_refused_with_a_word() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    drop(Record::create(&path, &head(), 1).expect("a new record"));
    let connection = Connection::open(&path).expect("a database");
    let older = "DROP TABLE packet; PRAGMA user_version = 8";
    connection.execute_batch(older).expect("as an older schema was");
    let refused = [read(&path).map(drop), Record::resume(&path).map(drop), crate::concluded(&path).map(drop)];
    for error in refused.map(|refused| refused.expect_err("an older schema").to_string()) {
        let said =
            format!("r.sqlite has schema 8; this program reads schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION}");
        assert!(
            error.contains(&said) && error.contains("measure again, or use the program that wrote it"),
            "{error}"
        );
    }
}

#[test]
fn a_record_of_schema_9_is_read_and_gets_the_missing_tables_when_its_campaign_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    let key = Key { target: 0, cell: 0, repeat: 1, phase: Phase::Write };
    let mut record = Record::create(&path, &head(), 1).expect("a new record");
    record.add(key, &full_sample()).expect("space");
    drop(record);
    let connection = Connection::open(&path).expect("a database");
    let older = "DROP TABLE node_start; DROP TABLE network_interval; DROP TABLE link_interval; PRAGMA user_version = 9";
    connection.execute_batch(older).expect("as schema 9 was");
    let starts = |results: Results| -> Vec<_> {
        results.samples.into_iter().map(|measured| measured.sample.node_starts.len()).collect()
    };
    assert_eq!(starts(read(&path).expect("it stays readable")), [0]);
    assert_eq!(schema::version(&connection), Ok(9), "reading changes nothing");
    let (mut record, _) = Record::resume(&path).expect("it goes on");
    record.add(Key { repeat: 2, ..key }, &full_sample()).expect("the table is there");
    drop(record);
    assert_eq!(schema::version(&connection), Ok(SCHEMA_VERSION));
    assert_eq!(starts(read(&path).expect("readable")), [0, 2]);
}

#[test]
fn another_schema_has_another_version() {
    let statements =
        include_str!("../schema.sql").lines().map(|line| line.split("--").next().unwrap_or(line));
    let words: Vec<&str> = statements.flat_map(str::split_whitespace).collect();
    let seed = nilometer_model::Seed(0).named(&words.join(" ")).0;
    assert_eq!(
        (SCHEMA_VERSION, seed),
        (11, 10_571_673_634_376_384_584),
        "the schema was changed: raise its version, note its hash"
    );
}
