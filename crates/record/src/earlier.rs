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
mod tests;
