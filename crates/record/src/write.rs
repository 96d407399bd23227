//! Writing: each sample in a transaction of its own, durable when it is done. On a local disk that takes one to two
//! milliseconds; without waiting for the disk it would take a fourth of that, and a loss of power could cost the whole
//! record, not only its end.

use std::{
    io,
    path::{Path, PathBuf},
};

use nilometer_model::{Activity, CellEntry, Event, Histogram, Invalid, Key, Results, Sample, TargetEntry};
use rusqlite::{Connection, OpenFlags, Transaction, params};

use super::{
    RecordError, SCHEMA_VERSION, ingest, lock::Lock, place::Place, schema::SCHEMA, unfinished::Unfinished,
};

/// A record being written.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    connection: Connection,
    /// Dropped last: nobody else writes before all is closed.
    _lock: Lock,
}

impl Record {
    /// A new record with its head: all of `head` but its samples, `warm_up` rounds of which will count for nothing.
    /// Refuses to overwrite. It is made under another name, so that whenever it is killed a record is whole or absent.
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
        let mut connection = connect(&new.path()).map_err(failed)?;
        write_head(&mut connection, head, warm_up).map_err(failed)?;
        // SQLite finds a journal by the name under which a file was opened.
        connection.close().map_err(|(_, error)| failed(error))?;
        new.finish().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists { path: path.into() },
            _ => unnamed(error),
        })?;
        let connection = connect(&PathBuf::from(&place)).map_err(failed)?;
        Ok(Record::held(path, connection, lock))
    }

    pub(super) fn held(path: &Path, connection: Connection, lock: Lock) -> Self {
        Record { path: path.into(), connection, _lock: lock }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a sample. When this returns, it is on the disk.
    pub fn add(&mut self, key: Key, sample: &Sample) -> Result<(), RecordError> {
        self.within("add a sample to", |transaction| insert(transaction, None, key, sample))
    }

    /// Puts a sample in the place of the one of the same key, which was spoilt. The old one is there until the new one is
    /// on the disk, and the place in the order of samples stays.
    pub fn replace(&mut self, key: Key, sample: &Sample) -> Result<(), RecordError> {
        self.within("replace a sample in", |transaction| {
            let id = transaction.query_row(
                "SELECT id FROM sample WHERE (target, cell, repeat, phase, node, rank) = (?1, ?2, ?3, ?4, 0, 0)",
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

    /// Notes that a target was given up.
    pub fn leave_out(&mut self, target: usize, why: &str) -> Result<(), RecordError> {
        self.within("change a target in", |transaction| {
            transaction
                .execute("UPDATE target SET left_out = ?2 WHERE id = ?1", params![target, why])
                .map(drop)
        })
    }

    /// Notes what happened besides.
    pub fn note(&mut self, event: &Event) -> Result<(), RecordError> {
        self.within("add an event to", |transaction| {
            let row = params![event.at.0, event.what];
            transaction.execute("INSERT INTO event (at, what) VALUES (?1, ?2)", row).map(drop)
        })
    }

    pub(super) fn within(
        &mut self,
        action: &'static str,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), RecordError> {
        let run = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            write(&transaction)?;
            transaction.commit()
        };
        run(&mut self.connection).map_err(|source| RecordError::Sqlite {
            path: self.path.clone(),
            action,
            source,
        })
    }
}

/// Opens a record to write to it.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    durable(&connection)?;
    Ok(connection)
}

/// A transaction ends when SQLite has removed its journal. Unless the directory is synced too, which is what EXTRA adds, a
/// loss of power brings the journal back, and the last transaction is undone
/// (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
fn durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "EXTRA")
}

fn write_head(connection: &mut Connection, head: &Results, warm_up: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.execute(
        "INSERT INTO campaign VALUES (1, ?1, ?2, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?3, ?4, ?5, ?6)",
        params![head.title, head.version, head.plan, warm_up, head.repeats, head.margin],
    )?;
    for (key, value) in &head.environment {
        transaction.execute("INSERT INTO environment VALUES (0, ?1, ?2)", params![key, value])?;
    }
    for (id, TargetEntry { path, file_system, description, left_out }) in head.targets.iter().enumerate() {
        let row = params![id, path, file_system, description, left_out];
        transaction.execute("INSERT INTO target VALUES (?1, ?2, ?3, ?4, ?5)", row)?;
    }
    for (id, CellEntry { stage, name, parameters }) in head.cells.iter().enumerate() {
        let row = params![id, stage, name, parameters];
        transaction.execute("INSERT INTO cell VALUES (?1, ?2, ?3, ?4)", row)?;
    }
    transaction.commit()
}

/// The tables whose rows belong to a sample.
const DETAILS: [&str; 10] =
    ["activity", "worker", "histogram", "series", "error", "ingest", "packet", "level", "stall", "reader"];

/// A sample with all that belongs to it, under a given id or the next one.
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
    let (read, written) = sample.device.map_or((None, None), |(read, written)| (Some(read), Some(written)));
    transaction.execute(
        "INSERT INTO sample (target, cell, repeat, phase, node, rank, clock_offset, bytes, operations, wall, user,
             system, wait, client, machine, voluntary, involuntary, run_delay, filling, settling, started, load,
             device_read, device_written, coldness, invalid, id)
         VALUES (?1, ?2, ?3, ?4, 0, 0, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
             ?21, ?22, ?23, ?24)",
        params![
            key.target,
            key.cell,
            key.repeat,
            key.phase.name(),
            sample.bytes,
            sample.operations,
            sample.wall.0,
            sample.user.0,
            sample.system.0,
            sample.wait().0,
            sample.client.0,
            sample.machine.0,
            sample.switches.voluntary,
            sample.switches.involuntary,
            sample.run_delay.0,
            sample.filling.0,
            sample.settling.0,
            sample.started.0,
            sample.load,
            read,
            written,
            sample.coldness.map(nilometer_model::Coldness::name),
            sample.invalid.as_ref().map(Invalid::to_text),
            id,
        ],
    )?;
    Ok(transaction.last_insert_rowid())
}

fn insert_activity(
    transaction: &Transaction<'_>,
    id: i64,
    moment: &str,
    activity: &Activity,
) -> rusqlite::Result<()> {
    let pressure = activity.pressure;
    let row = params![
        id,
        moment,
        activity.over.0,
        activity.busy.0,
        activity.stolen.0,
        activity.switches,
        activity.disk_read,
        activity.disk_written,
        activity.received,
        activity.sent,
        pressure.map(|pressure| pressure.cpu.0),
        pressure.map(|pressure| pressure.io.0),
        pressure.map(|pressure| pressure.memory.0),
    ];
    transaction
        .prepare_cached(
            "INSERT INTO activity VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(row)
        .map(drop)
}

fn insert_details(transaction: &Transaction<'_>, id: i64, sample: &Sample) -> rusqlite::Result<()> {
    let mut worker = transaction.prepare_cached("INSERT INTO worker VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (index, totals) in sample.workers.iter().enumerate() {
        let [bytes, operations] = [totals.bytes, totals.operations];
        let [first, last] = [totals.first_done, totals.last_done].map(|time| time.0);
        worker.execute(params![id, index, bytes, operations, first, last])?;
    }
    insert_activity(transaction, id, "before", &sample.before)?;
    insert_activity(transaction, id, "during", &sample.during)?;
    insert_histogram(transaction, id, "latency", &sample.latency)?;
    insert_histogram(transaction, id, "lateness", &sample.lateness)?;
    let mut series = transaction.prepare_cached("INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let width = sample.series.width().0;
    for (index, bin) in sample.series.bins().iter().enumerate() {
        let (operations, bytes) = (bin.operations, bin.bytes);
        series.execute(params![id, index, width, operations, bytes])?;
    }
    let mut error = transaction.prepare_cached("INSERT INTO error VALUES (?1, ?2, ?3)")?;
    for (errno, count) in &sample.errors {
        error.execute(params![id, errno, count])?;
    }
    Ok(())
}

pub(super) fn insert_histogram(
    transaction: &Transaction<'_>,
    id: i64,
    kind: &str,
    histogram: &Histogram,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO histogram VALUES (?1, ?2, ?3, ?4)")?;
    for (bucket, count) in histogram.buckets() {
        insert.execute(params![id, kind, bucket, count])?;
    }
    Ok(())
}
