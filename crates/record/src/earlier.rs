//! Records of earlier schemas: records are kept for years, and each is read for ever after.
//!
//! Each earlier schema has a `SELECT` for every table that is another one today, which gives today's columns. A record that is
//! read gets temporary views of these under the tables' names, and its file stays as it is. One that a campaign goes on with
//! is brought into today's form with the first that is written to it, in one transaction.

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
    /// What gives today's columns, in today's order, of each table that is another one: name, and columns of the old one.
    tables: &'static [(&'static str, &'static str)],
}

/// All of them, the oldest first.
pub(super) const EARLIER: [EarlierSchema; 1] = [EarlierSchema {
    version: 3,
    statements: include_str!("earlier/3.sql"),
    tables: &[
        (
            "campaign",
            "id, title, nilometer, started, plan_of_schema_3(plan) AS plan, warm_up, repeats, margin",
        ),
        ("target", "id, path, file_system, description, left_out"),
        ("cell", "id, stage, name, measurement_of_schema_3(parameters) AS measurement"),
        (
            "ingest",
            "sample, count, goal, frame_size, period, duration, due, stored, lost, slots, slots_high, longest_stall, \
             allowance, late, stalls, stalled, slowest, company, condition, written",
        ),
    ],
}];

impl EarlierSchema {
    /// The one with this version; none for today's, and for one that was never written.
    pub(super) fn of(version: i64) -> Option<&'static Self> {
        EARLIER.iter().find(|schema| schema.version == version)
    }

    /// Lets a connection read the record as if it were of today's schema. Nothing can be written by it.
    pub(super) fn show_as_current(&self, connection: &Connection) -> rusqlite::Result<()> {
        add_functions(connection)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        for (table, columns) in self.tables {
            connection
                .execute_batch(&format!("CREATE TEMP VIEW {table} AS SELECT {columns} FROM main.{table}"))?;
        }
        Ok(())
    }

    /// Brings the record into today's form, and lets its connection see that. What a user has added to the file stays.
    pub(super) fn bring_up_to_date(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        // A table that others refer to goes for a moment. The switch has no effect within a transaction.
        connection.pragma_update(None, "foreign_keys", false)?;
        let transaction = connection.transaction()?;
        for (table, columns) in self.tables {
            transaction.execute_batch(&format!(
                "DROP VIEW temp.{table};
                 CREATE TEMP TABLE carried_over AS SELECT {columns} FROM main.{table};
                 DROP TABLE main.{table};
                 {};
                 INSERT INTO main.{table} SELECT * FROM carried_over;
                 DROP TABLE carried_over;",
                schema::statement_of(table)
            ))?;
        }
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
        connection.pragma_update(None, "foreign_keys", true)
    }
}

fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("plan_of_schema_3", 1, flags, of_text(plan_of_schema_3))?;
    connection.create_scalar_function("measurement_of_schema_3", 1, flags, of_text(measurement_of_schema_3))
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
#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nilometer_model::{
        Event, Invalid, Nanos, Sample,
        plan::{Goal, Phase},
    };
    use tempfile::TempDir;

    use super::*;
    use crate::{OLDEST_SCHEMA, Record, read};

    /// The rows of a record that version 0.1.0 wrote: five cells of two workloads, and recordings at two rates.
    const ROWS_OF_SCHEMA_3: &str = include_str!("earlier/record_3.sql");

    fn record_3(directory: &TempDir) -> PathBuf {
        let path = directory.path().join("r.sqlite");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(EARLIER[0].statements).expect("the tables that it made");
        connection.execute_batch(ROWS_OF_SCHEMA_3).expect("what it wrote");
        path
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
    fn a_campaign_goes_on_with_a_record_of_schema_3_and_finds_all_that_was_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = record_3(&directory);
        Connection::open(&path)
            .and_then(|connection| {
                connection.execute_batch("CREATE TABLE notes (x); INSERT INTO notes VALUES (7)")
            })
            .expect("a table of the user's");
        let before = read(&path).expect("readable");
        let (mut record, begun) = Record::resume(&path).expect("nobody writes");
        assert_eq!(version(&path), 3, "nothing was written yet");
        assert_eq!((Some(&begun.campaign), begun.done.len()), (before.campaign.as_ref(), 58));
        let resumed = Event { at: Nanos(5), what: "resumed".into() };
        record.note(&resumed).expect("space");
        assert_eq!(version(&path), SCHEMA_VERSION);
        let after = read(&path).expect("readable");
        assert_eq!((&after.cells, &after.campaign), (&before.cells, &before.campaign));
        assert_eq!(after.targets, before.targets);
        assert_eq!(format!("{:?}", after.samples), format!("{:?}", before.samples));
        assert_eq!(after.events.last(), Some(&resumed));
        record.replace(before.samples[0].key, &Sample::invalid(Invalid::Hung)).expect("space");
        drop(record);
        assert_eq!(read(&path).expect("readable").samples[0].sample.invalid, Some(Invalid::Hung));
        let notes: i64 = Connection::open(&path)
            .and_then(|connection| connection.query_row("SELECT x FROM notes", [], |row| row.get(0)))
            .expect("the user's table");
        assert_eq!(notes, 7);
        assert_eq!(Record::resume(&path).expect("nobody writes").1.done.len(), 58);
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
