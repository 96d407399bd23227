//! Writes a record. Each sample is a transaction, durable when it ends, which takes one to two milliseconds on
//! a local disk. Without the wait for the disk it would take a quarter of that. But then a loss of power could
//! destroy the whole record, not only its end.

use std::{
    io,
    path::{Path, PathBuf},
};

use nilometer_model::{Activity, Coldness, FilesSeen, Invalid, LocksSeen, RankPart, Sample, Series};
use nilometer_plan::{Conclusion, Event, Key, PlannedCampaign, Results, TargetEntry};
use rusqlite::{Connection, Transaction, named_params, params};

use super::{
    RecordError, SCHEMA_VERSION, background,
    connection::to_write,
    ingest,
    lock::Lock,
    machine::insert_machine,
    node_start::insert_node_start,
    place::Place,
    row::{Column, insert_histogram, insert_row, json},
    schema::{self, SCHEMA},
    seal,
    unfinished::Unfinished,
};

/// A record being written.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    connection: Connection,
    /// True once this process has removed the earlier conclusions, which no longer hold.
    is_open: bool,
    /// Dropped last, so that no other process writes before everything is closed.
    _lock: Lock,
}

impl Record {
    /// Makes a new record with its head: all of `head` except the samples. The first `warm_up` rounds will not
    /// count. The start is now, unless `head` has one. It never overwrites a file. The record is made under a
    /// temporary name, so after a kill it is complete or absent.
    pub fn create(path: &Path, head: &Results, warm_up: u32) -> Result<Self, RecordError> {
        let unnamed = |source| RecordError::Unnamed { path: path.into(), source };
        if path.symlink_metadata().is_ok() {
            return Err(RecordError::Exists { path: path.into() });
        }
        let place = Place::of(path).map_err(unnamed)?;
        if let Some(path) = place.companion() {
            return Err(RecordError::Companion { path });
        }
        let lock = Lock::of(&place)?;
        let failed = |source| RecordError::Sqlite { path: path.into(), action: "create", source };
        let new = Unfinished::create(&place).map_err(unnamed)?;
        let mut connection = to_write(&new.path()).map_err(failed)?;
        write_head(&mut connection, head, warm_up).map_err(failed)?;
        // SQLite looks for a journal by the name under which it opened the file.
        connection.close().map_err(|(_, error)| failed(error))?;
        new.finish().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists { path: path.into() },
            _ => unnamed(error),
        })?;
        let connection = to_write(&PathBuf::from(&place)).map_err(failed)?;
        Ok(Record::held(path, connection, lock))
    }

    pub(super) fn held(path: &Path, connection: Connection, lock: Lock) -> Self {
        Record { path: path.into(), connection, is_open: false, _lock: lock }
    }

    /// Returns the record's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a sample. When this returns, it is on the disk.
    pub fn add(&mut self, key: Key, sample: &Sample) -> Result<(), RecordError> {
        self.within("add a sample to", |transaction| insert(transaction, None, key, sample))
    }

    /// Adds samples from other programs, all or none. They have at most a distribution of latencies, and no
    /// data about the machine.
    pub(super) fn add_imported(
        &mut self,
        samples: impl Iterator<Item = (Key, Sample)>,
    ) -> Result<(), RecordError> {
        self.within("add samples to", |transaction| {
            for (key, sample) in samples {
                let id = insert_sample(transaction, None, key, &sample)?;
                insert_histogram(transaction, id, "latency", &sample.latency)?;
            }
            Ok(())
        })
    }

    /// Stores a fact about the first machine that was found during measurement. It replaces a fact of the same
    /// name.
    ///
    /// # Errors
    /// If the record can't be written.
    pub fn note_fact(&mut self, name: &str, value: &str) -> Result<(), RecordError> {
        self.within("note a fact in", |transaction| {
            let noted = "INSERT OR REPLACE INTO environment (node, key, value) VALUES (0, ?1, ?2)";
            transaction.execute(noted, params![name, value]).map(drop)
        })
    }

    /// Replaces the spoilt sample of the same key. The old one remains until the new one is on disk, and the
    /// order of samples stays the same.
    pub fn replace(&mut self, key: Key, sample: &Sample) -> Result<(), RecordError> {
        self.within("replace a sample in", |transaction| {
            let id = transaction.query_row(
                "SELECT id FROM sample WHERE (target, cell, repeat, phase) = (?1, ?2, ?3, ?4)",
                params![key.target, key.cell, key.repeat, key.phase.name()],
                |row| row.get(0),
            )?;
            for table in DETAILS {
                transaction.execute(&format!("DELETE FROM {table} WHERE sample = ?1"), [id])?;
            }
            transaction.execute("DELETE FROM sample WHERE id = ?1", [id])?;
            insert(transaction, Some(id), key, sample)
        })
    }

    /// Marks a target as left out.
    pub fn leave_out(&mut self, target: usize, why: &str) -> Result<(), RecordError> {
        self.within("change a target in", |transaction| {
            transaction
                .execute("UPDATE target SET left_out = ?2 WHERE id = ?1", params![target, why])
                .map(drop)
        })
    }

    /// Stores an event.
    pub fn note(&mut self, event: &Event) -> Result<(), RecordError> {
        self.within("add an event to", |transaction| {
            let row = params![event.at.0, event.what];
            transaction.execute("INSERT INTO event (at, what) VALUES (?1, ?2)", row).map(drop)
        })
    }

    /// Ends the campaign: stores the conclusions and closes the record under a seal.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn conclude(mut self, conclusions: &[Conclusion]) -> Result<(), RecordError> {
        self.within("add conclusions to", |transaction| {
            for Conclusion { subject, words } in conclusions {
                insert_row(transaction, "conclusion", &[("subject", subject), ("words", words)])?;
            }
            seal::note(transaction)
        })?;
        let Record { path, connection, _lock, .. } = self;
        let failed = |source| RecordError::Sqlite { path: path.clone(), action: "close", source };
        connection.close().map_err(|(_, source)| failed(source))?;
        seal::put(&path)
    }

    pub(super) fn within(
        &mut self,
        action: &'static str,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), RecordError> {
        let failed = |action| {
            let path = self.path.clone();
            move |source| RecordError::Sqlite { path, action, source }
        };
        written(&mut self.connection, !self.is_open, write).map_err(failed(action))?;
        self.is_open = true;
        Ok(())
    }
}

/// Executes the changes of `write` in one transaction. The first of a process also brings an older schema to the
/// present one, and removes the earlier conclusions.
fn written(
    connection: &mut Connection,
    is_first: bool,
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    if is_first {
        schema::upgrade(&transaction, schema::version(&transaction)?)?;
        transaction.execute_batch("DELETE FROM conclusion; DELETE FROM seal")?;
    }
    write(&transaction)?;
    transaction.commit()
}

fn write_head(connection: &mut Connection, head: &Results, warm_up: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    let plan = head.campaign.as_ref().map(without_cells).transpose()?;
    // Imported results did not start now, even if their start is unknown.
    let started = Some(&head.started).filter(|started| head.is_imported() || !started.is_empty());
    transaction.execute(
        "INSERT INTO campaign (id, title, nilometer, started, plan, warm_up, repeats, margin)
         VALUES (1, :title, :nilometer, ifnull(:started, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), :plan,
                 :warm_up, :repeats, :margin)",
        named_params! {
            ":title": head.title,
            ":nilometer": head.version,
            ":started": started,
            ":plan": plan,
            ":warm_up": warm_up,
            ":repeats": head.repeats,
            ":margin": head.margin,
        },
    )?;
    for (key, value) in &head.environment {
        insert_row(&transaction, "environment", &[("node", &0), ("key", key), ("value", value)])?;
    }
    for (id, machine) in head.machines.iter().enumerate() {
        insert_machine(&transaction, id, machine)?;
    }
    for (id, target) in head.targets.iter().enumerate() {
        insert_target(&transaction, id, target)?;
    }
    for (id, cell) in head.cells.iter().enumerate() {
        let name = cell.to_string();
        let measurement = json(&cell.measurement)?;
        let columns: [Column<'_>; 4] =
            [("id", &id), ("stage", &cell.stage), ("name", &name), ("measurement", &measurement)];
        insert_row(&transaction, "cell", &columns)?;
    }
    transaction.commit()
}

fn insert_target(transaction: &Transaction<'_>, id: usize, target: &TargetEntry) -> rusqlite::Result<()> {
    let TargetEntry { path, file_system, description, left_out } = target;
    let description = description.as_ref().map(json).transpose()?;
    insert_row(
        transaction,
        "target",
        &[
            ("id", &id),
            ("path", path),
            ("file_system", file_system),
            ("description", &description),
            ("left_out", left_out),
        ],
    )
}

/// Serializes a campaign without its cells, which have a table of their own.
fn without_cells(campaign: &PlannedCampaign) -> rusqlite::Result<String> {
    let mut campaign = campaign.clone();
    campaign.plan.cells = Vec::new();
    json(&campaign)
}

/// The tables whose rows belong to a sample.
const DETAILS: [&str; 16] = [
    "activity",
    "part",
    "node_start",
    "background",
    "frames_beside",
    "visibility",
    "locking",
    "worker",
    "histogram",
    "series",
    "error",
    "ingest",
    "packet",
    "level",
    "stall",
    "reader",
];

/// Adds a sample with all its rows, under the given id or the next one.
fn insert(transaction: &Transaction<'_>, id: Option<i64>, key: Key, sample: &Sample) -> rusqlite::Result<()> {
    let id = insert_sample(transaction, id, key, sample)?;
    insert_details(transaction, id, sample)?;
    sample.ingest.as_ref().map_or(Ok(()), |ingest| ingest::insert(transaction, id, ingest))
}

fn insert_sample(
    transaction: &Transaction<'_>,
    id: Option<i64>,
    key: Key,
    sample: &Sample,
) -> rusqlite::Result<i64> {
    let device = DeviceColumns::of(sample);
    insert_row(
        transaction,
        "sample",
        &[
            ("id", &id),
            ("target", &key.target),
            ("cell", &key.cell),
            ("repeat", &key.repeat),
            ("phase", &key.phase.name()),
            ("bytes", &sample.bytes),
            ("operations", &sample.operations),
            ("wall", &sample.wall.0),
            ("user", &sample.user.0),
            ("system", &sample.system.0),
            ("wait", &sample.wait().0),
            ("client", &sample.client.0),
            ("machine", &sample.machine.0),
            ("voluntary", &sample.switches.voluntary),
            ("involuntary", &sample.switches.involuntary),
            ("run_delay", &sample.run_delay.0),
            ("filling", &sample.filling.0),
            ("settling", &sample.settling.0),
            ("started", &sample.started.0),
            ("load", &sample.load),
            ("device_read", &device.read),
            ("device_written", &device.written),
            ("device_flushes", &device.flushes),
            ("device_busy", &device.busy),
            ("device_queue", &device.queue),
            ("coldness", &sample.coldness.map(Coldness::name)),
            ("invalid", &sample.invalid.as_ref().map(Invalid::to_text)),
        ],
    )?;
    Ok(transaction.last_insert_rowid())
}

/// Columns of facts about the device.
struct DeviceColumns {
    read: Option<u64>,
    written: Option<u64>,
    flushes: Option<u64>,
    busy: Option<u64>,
    queue: Option<u64>,
}

impl DeviceColumns {
    fn of(sample: &Sample) -> Self {
        let device = sample.device;
        DeviceColumns {
            read: device.map(|device| device.read),
            written: device.map(|device| device.written),
            flushes: device.and_then(|device| device.flushes),
            busy: device.and_then(|device| device.use_of).map(|used| used.busy.0),
            queue: device.and_then(|device| device.use_of).map(|used| used.queue.0),
        }
    }
}

fn insert_activity(
    transaction: &Transaction<'_>,
    id: i64,
    moment: &str,
    activity: &Activity,
) -> rusqlite::Result<()> {
    let pressure = activity.pressure;
    insert_row(
        transaction,
        "activity",
        &[
            ("sample", &id),
            ("moment", &moment),
            ("over", &activity.over.0),
            ("busy", &activity.busy.0),
            ("stolen", &activity.stolen.0),
            ("switches", &activity.switches),
            ("disk_read", &activity.disk_read),
            ("disk_written", &activity.disk_written),
            ("received", &activity.received),
            ("sent", &activity.sent),
            ("pressure_cpu", &pressure.map(|pressure| pressure.cpu.0)),
            ("pressure_io", &pressure.map(|pressure| pressure.io.0)),
            ("pressure_memory", &pressure.map(|pressure| pressure.memory.0)),
        ],
    )
}

fn insert_part(transaction: &Transaction<'_>, id: i64, part: &RankPart) -> rusqlite::Result<()> {
    insert_row(
        transaction,
        "part",
        &[
            ("sample", &id),
            ("rank", &part.rank),
            ("node", &part.node),
            ("clock_offset", &part.clock_offset),
            ("clock_uncertainty", &part.clock_uncertainty),
            ("began", &part.began.0),
            ("workers", &part.workers),
            ("bytes", &part.bytes),
            ("operations", &part.operations),
            ("first_done", &part.first_done.0),
            ("last_done", &part.last_done.0),
            ("user", &part.user.0),
            ("system", &part.system.0),
            ("run_delay", &part.run_delay.0),
        ],
    )
}

fn insert_seen(transaction: &Transaction<'_>, id: i64, seen: &FilesSeen) -> rusqlite::Result<()> {
    let FilesSeen { files, missing, short, stale, out_of_order, never, longest } = seen;
    let columns: [Column<'_>; 8] = [
        ("sample", &id),
        ("files", files),
        ("missing", missing),
        ("short", short),
        ("stale", stale),
        ("out_of_order", out_of_order),
        ("never", never),
        ("longest", &longest.0),
    ];
    insert_row(transaction, "visibility", &columns)
}

fn insert_locks(transaction: &Transaction<'_>, id: i64, locks: &LocksSeen) -> rusqlite::Result<()> {
    let LocksSeen { tries, broken, passed, longest } = locks;
    let columns: [Column<'_>; 5] =
        [("sample", &id), ("tries", tries), ("broken", broken), ("passed", passed), ("longest", &longest.0)];
    insert_row(transaction, "locking", &columns)
}

fn insert_details(transaction: &Transaction<'_>, id: i64, sample: &Sample) -> rusqlite::Result<()> {
    sample.locks.as_ref().map_or(Ok(()), |locks| insert_locks(transaction, id, locks))?;
    sample.background.as_ref().map_or(Ok(()), |done| background::insert_background(transaction, id, done))?;
    sample.seen.as_ref().map_or(Ok(()), |seen| insert_seen(transaction, id, seen))?;
    for part in &sample.parts {
        insert_part(transaction, id, part)?;
    }
    for (position, start) in sample.node_starts.iter().enumerate() {
        insert_node_start(transaction, id, position, start)?;
    }
    for (worker, totals) in sample.workers.iter().enumerate() {
        let columns: [Column<'_>; 6] = [
            ("sample", &id),
            ("worker", &worker),
            ("bytes", &totals.bytes),
            ("operations", &totals.operations),
            ("first_done", &totals.first_done.0),
            ("last_done", &totals.last_done.0),
        ];
        insert_row(transaction, "worker", &columns)?;
    }
    insert_activity(transaction, id, "before", &sample.before)?;
    insert_activity(transaction, id, "during", &sample.during)?;
    insert_histogram(transaction, id, "latency", &sample.latency)?;
    insert_histogram(transaction, id, "lateness", &sample.lateness)?;
    insert_series(transaction, id, &sample.series)?;
    for (errno, count) in &sample.errors {
        insert_row(transaction, "error", &[("sample", &id), ("errno", errno), ("count", count)])?;
    }
    Ok(())
}

fn insert_series(transaction: &Transaction<'_>, id: i64, series: &Series) -> rusqlite::Result<()> {
    let query = "INSERT INTO series (sample, bin, width, operations, bytes) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = transaction.prepare_cached(query)?;
    let width = series.width().0;
    for (index, bin) in series.bins().iter().enumerate() {
        insert.execute(params![id, index, width, bin.operations, bin.bytes])?;
    }
    Ok(())
}
