//! Records of earlier schemas: records are kept for years, and each is read for ever after.
//!
//! Each earlier schema has a `SELECT` for every table that is another one today, which gives today's columns. A record that is
//! read gets temporary views of these under the tables' names, and its file stays as it is. One that a campaign goes on with
//! is brought into today's form with the first that is written to it, in one transaction.

use nilometer_model::Histogram;
use rusqlite::{
    Connection, Error,
    functions::{Context, FunctionFlags},
};
use serde_json::{Value, json};

use super::{SCHEMA_VERSION, schema};

/// A schema that an earlier version of the program wrote.
#[derive(Debug)]
pub(super) struct EarlierSchema {
    /// Its `PRAGMA user_version`.
    version: i64,
    /// The statements that made it.
    pub(super) statements: &'static str,
    /// Its tables that are others today.
    changed: &'static [ChangedTable],
    /// Today's tables that it did not have.
    added: &'static [&'static [&'static str]],
}

/// A table of an earlier schema that has other columns today.
#[derive(Debug)]
struct ChangedTable {
    name: &'static str,
    /// What gives today's columns, in today's order, of the columns that it had.
    columns: &'static str,
    /// Which of its rows are rows today.
    rows: &'static str,
}

const fn changed(name: &'static str, columns: &'static str) -> ChangedTable {
    ChangedTable { name, columns, rows: "TRUE" }
}

/// Until schema 4 a process had rows of its own, and there was no other than the first.
const SAMPLES_OF_RANKS: ChangedTable = ChangedTable {
    name: "sample",
    columns: "id, target, cell, repeat, phase, bytes, operations, wall, user, system, wait, client, machine, \
              voluntary, involuntary, run_delay, filling, settling, started, load, device_read, device_written, \
              NULL AS device_flushes, NULL AS device_busy, NULL AS device_queue, coldness, invalid",
    rows: "rank = 0",
};

/// Until schema 6 flushes of the device were not counted.
const SAMPLES_WITHOUT_FLUSHES: ChangedTable = ChangedTable { rows: "TRUE", ..SAMPLES_OF_RANKS };

/// Until schema 8 it was not counted how long a device was busy.
const SAMPLES_WITHOUT_QUEUE: ChangedTable = changed(
    "sample",
    "id, target, cell, repeat, phase, bytes, operations, wall, user, system, wait, client, machine, voluntary, \
     involuntary, run_delay, filling, settling, started, load, device_read, device_written, device_flushes, \
     NULL AS device_busy, NULL AS device_queue, coldness, invalid",
);

/// Until schema 6 a histogram had half as many buckets.
const COARSE_HISTOGRAMS: ChangedTable =
    changed("histogram", "sample, kind, bucket_of_schema_6(bucket) AS bucket, count");

/// What processes see of each other is in records since schema 6.
const BETWEEN_PROCESSES: [&str; 2] = ["visibility", "locking"];

/// What was concluded is in records since schema 7.
const CONCLUDED: [&str; 2] = ["conclusion", "seal"];

/// The machines of a campaign and the network between them are in records since schema 8.
const BETWEEN_MACHINES: [&str; 6] =
    ["machine", "link", "network_stage", "network_cell", "network_sample", "flow"];

/// What became of the frames of a load is in records since schema 9.
const OF_LOADS: [&str; 1] = ["frames_beside"];

/// Until schema 7 there were no loads.
const RECORDINGS_WITHOUT_LOAD: ChangedTable = changed(
    "ingest",
    "sample, count, goal, frame_size, period, duration, due, stored, lost, slots, slots_high, longest_stall, allowance, \
     late, stalls, stalled, slowest, company, condition, '' AS load, written",
);

/// Until schema 8 a load was told among the conditions.
const RECORDINGS_WITH_LOAD_AS_CONDITION: ChangedTable = changed(
    "ingest",
    "sample, count, goal, frame_size, period, duration, due, stored, lost, slots, slots_high, longest_stall, allowance, \
     late, stalls, stalled, slowest, company, condition_of_schema_8(condition) AS condition, \
     load_of_schema_8(condition) AS load, written",
);

/// Until schema 5 nothing was known of when a process began.
const PARTS_WITHOUT_BEGIN: ChangedTable = changed(
    "part",
    "sample, rank, node, clock_offset, 0 AS clock_uncertainty, 0 AS began, workers, bytes, operations, first_done, \
     last_done, user, system, run_delay",
);

/// All of them, the oldest first.
pub(super) const EARLIER: [EarlierSchema; 6] = [
    EarlierSchema {
        version: 3,
        statements: include_str!("earlier/3.sql"),
        changed: &[
            changed(
                "campaign",
                "id, title, nilometer, started, plan_of_schema_3(plan) AS plan, warm_up, repeats, margin",
            ),
            changed("target", "id, path, file_system, description, left_out"),
            changed(
                "cell",
                "id, stage, name, measurement_of_schema_4(measurement_of_schema_3(parameters)) AS measurement",
            ),
            SAMPLES_OF_RANKS,
            COARSE_HISTOGRAMS,
            RECORDINGS_WITHOUT_LOAD,
        ],
        added: &[&["part", "background"], &BETWEEN_PROCESSES, &CONCLUDED, &BETWEEN_MACHINES, &OF_LOADS],
    },
    EarlierSchema {
        version: 4,
        statements: include_str!("earlier/4.sql"),
        changed: &[
            changed("cell", "id, stage, name, measurement_of_schema_4(measurement) AS measurement"),
            SAMPLES_OF_RANKS,
            COARSE_HISTOGRAMS,
            RECORDINGS_WITHOUT_LOAD,
        ],
        added: &[&["part", "background"], &BETWEEN_PROCESSES, &CONCLUDED, &BETWEEN_MACHINES, &OF_LOADS],
    },
    EarlierSchema {
        version: 5,
        statements: include_str!("earlier/5.sql"),
        changed: &[PARTS_WITHOUT_BEGIN, SAMPLES_WITHOUT_FLUSHES, COARSE_HISTOGRAMS, RECORDINGS_WITHOUT_LOAD],
        added: &[&["background"], &BETWEEN_PROCESSES, &CONCLUDED, &BETWEEN_MACHINES, &OF_LOADS],
    },
    EarlierSchema {
        version: 6,
        statements: include_str!("earlier/6.sql"),
        changed: &[SAMPLES_WITHOUT_FLUSHES, COARSE_HISTOGRAMS, RECORDINGS_WITHOUT_LOAD],
        added: &[&["background"], &CONCLUDED, &BETWEEN_MACHINES, &OF_LOADS],
    },
    EarlierSchema {
        version: 7,
        statements: include_str!("earlier/7.sql"),
        changed: &[SAMPLES_WITHOUT_QUEUE, RECORDINGS_WITHOUT_LOAD],
        added: &[&["background"], &BETWEEN_MACHINES, &OF_LOADS],
    },
    EarlierSchema {
        version: 8,
        statements: include_str!("earlier/8.sql"),
        changed: &[SAMPLES_WITHOUT_QUEUE, RECORDINGS_WITH_LOAD_AS_CONDITION],
        added: &[&OF_LOADS],
    },
];

impl EarlierSchema {
    /// The one with this version; none for today's, and for one that was never written.
    pub(super) fn of(version: i64) -> Option<&'static Self> {
        EARLIER.iter().find(|schema| schema.version == version)
    }

    /// Lets a connection read the record as if it were of today's schema. Nothing can be written by it.
    pub(super) fn show_as_current(&self, connection: &Connection) -> rusqlite::Result<()> {
        add_functions(connection)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        for ChangedTable { name, columns, rows } in self.changed {
            connection.execute_batch(&format!(
                "CREATE TEMP VIEW {name} AS SELECT {columns} FROM main.{name} WHERE {rows}"
            ))?;
        }
        for table in self.added.iter().copied().flatten() {
            let statement = schema::statement_of(table).replacen("CREATE TABLE", "CREATE TEMP TABLE", 1);
            connection.execute_batch(&statement)?;
        }
        Ok(())
    }

    /// Brings the record into today's form, and lets its connection see that. What a user has added to the file stays.
    pub(super) fn bring_up_to_date(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        // A table that others refer to goes for a moment. The switch has no effect within a transaction.
        connection.pragma_update(None, "foreign_keys", false)?;
        let transaction = connection.transaction()?;
        for ChangedTable { name, columns, rows } in self.changed {
            transaction.execute_batch(&format!(
                "DROP VIEW temp.{name};
                 CREATE TEMP TABLE carried_over AS SELECT {columns} FROM main.{name} WHERE {rows};
                 DROP TABLE main.{name};
                 {};
                 INSERT INTO main.{name} SELECT * FROM carried_over;
                 DROP TABLE carried_over;",
                schema::statement_of(name)
            ))?;
        }
        for table in self.added.iter().copied().flatten() {
            transaction.execute_batch(&format!("DROP TABLE temp.{table}"))?;
            transaction.execute_batch(&schema::statement_of(table))?;
        }
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
        connection.pragma_update(None, "foreign_keys", true)
    }
}

fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("plan_of_schema_3", 1, flags, of_text(plan_of_schema_3))?;
    connection.create_scalar_function(
        "measurement_of_schema_3",
        1,
        flags,
        of_text(measurement_of_schema_3),
    )?;
    connection.create_scalar_function("bucket_of_schema_6", 1, flags, |context| {
        Ok(Histogram::bucket_of_half_as_many(context.get(0)?))
    })?;
    connection.create_scalar_function("condition_of_schema_8", 1, flags, |context| {
        Ok(states_of_schema_8(context.get_raw(0).as_str()?)[0].to_owned())
    })?;
    connection.create_scalar_function("load_of_schema_8", 1, flags, |context| {
        Ok(states_of_schema_8(context.get_raw(0).as_str()?)[1].to_owned())
    })?;
    connection.create_scalar_function("measurement_of_schema_4", 1, flags, of_text(measurement_of_schema_4))
}

/// Schema 8 told the condition and the load beside it in one text, `one disk lost, beside 1 worker of stream (...)`.
fn states_of_schema_8(both: &str) -> [&str; 2] {
    if both.starts_with("beside ") {
        return ["", both];
    }
    match both.find(", beside ") {
        Some(at) => [&both[..at], &both[at + 2..]],
        None => [both, ""],
    }
}

/// A function of SQL that converts a text of JSON.
fn of_text(convert: fn(Value) -> Value) -> impl Fn(&Context<'_>) -> rusqlite::Result<String> {
    move |context| {
        let text = context.get_raw(0).as_str()?;
        let old = serde_json::from_str(text).map_err(|error| Error::UserFunctionError(error.into()))?;
        Ok(convert(old).to_string())
    }
}

/// Schema 3 kept cells in its plan too, and recordings at first in a list of their own, `ingests`.
fn plan_of_schema_3(mut whole: Value) -> Value {
    if let Some(plan) = whole.get_mut("plan").and_then(Value::as_object_mut) {
        plan.remove("ingests");
        plan.insert("cells".into(), json!([]));
    }
    whole
}

/// Schema 3 kept a cell as one flat object. A workload had a key `workload`, a recording an `instrument`.
fn measurement_of_schema_3(mut run: Value) -> Value {
    if let Some(run) = run.as_object_mut() {
        run.remove("stage");
    }
    let kind = if run.get("instrument").is_some() { "recording" } else { "workload" };
    json!({ kind: run })
}

/// Until schema 4 an instrument said itself, among its figures, into which files its frames go.
fn measurement_of_schema_4(mut measurement: Value) -> Value {
    if let Some(instrument) = measurement.pointer_mut("/recording/instrument").and_then(Value::as_object_mut)
    {
        let keys = ["storing", "format", "frames_per_file"];
        let said = keys.map(|key| Some((key.to_owned(), instrument.remove(key)?)));
        let recording: serde_json::Map<_, _> = said.into_iter().flatten().collect();
        instrument.insert("recording".into(), recording.into());
        if let Some(assumed) = instrument.get_mut("assumed").and_then(Value::as_array_mut) {
            let before = assumed.len();
            assumed.retain(|key| !keys.iter().any(|moved| key == moved));
            if assumed.len() < before {
                assumed.push("recording".into());
            }
        }
    }
    measurement
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nilometer_model::{
        Event, Invalid, Nanos, RankPart, Sample,
        plan::{Goal, Phase},
    };
    use tempfile::TempDir;

    use super::*;
    use crate::{OLDEST_SCHEMA, Record, read};

    /// The rows of a record that version 0.1.0 wrote: five cells of two workloads, and recordings at two rates.
    const ROWS_OF_SCHEMA_3: &str = include_str!("earlier/record_3.sql");
    /// The rows of a record of a workload and of recordings at two rates, on a directory and onto nothing.
    const ROWS_OF_SCHEMA_4: &str = include_str!("earlier/record_4.sql");

    /// The rows of a record of two processes: a stream into a shared file, and a tree.
    const ROWS_OF_SCHEMA_5: &str = include_str!("earlier/record_5.sql");

    /// The rows of a record of one process: a stream, and a tree.
    const ROWS_OF_SCHEMA_6: &str = include_str!("earlier/record_6.sql");
    /// The same of the version that followed, sealed.
    const ROWS_OF_SCHEMA_7: &str = include_str!("earlier/record_7.sql");
    /// A stream and a recording, each with and without a load beside it, sealed.
    const ROWS_OF_SCHEMA_8: &str = include_str!("earlier/record_8.sql");

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
        let told =
            measurement_of_schema_4(json!({ "recording": { "instrument": instrument, "goal": "pace" } }));
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
}
