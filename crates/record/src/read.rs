//! Reading a record, finished or not. A campaign may have a hundred thousand samples with a thousand rows each: only what
//! a report needs is read, in as few passes as there are tables.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use nilometer_model::{
    Activity, Bin, CellEntry, Coldness, Event, Group, Histogram, Invalid, Key, Measured, Nanos, Pressure,
    Results, Sample, Series, Switches, TargetEntry, WorkerTotals, plan::Phase,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, types::Type};

use super::{RecordError, SCHEMA_VERSION, earlier, ingest, place::Place, schema, write};

/// What the record holds of its campaign; see [`Results`] for what is left out.
pub fn read(path: &Path) -> Result<Results, RecordError> {
    let (connection, second) = (open(path, connect)?, open(path, connect)?);
    read_all(&connection, second).map_err(|source| RecordError::Sqlite {
        path: path.into(),
        action: "read",
        source,
    })
}

/// An existing record of this program's schema, with what `connect` opens.
pub(super) fn open(
    path: &Path,
    connect: impl Fn(&Path) -> rusqlite::Result<Connection>,
) -> Result<Connection, RecordError> {
    let real = PathBuf::from(&Place::existing(path)?);
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => RecordError::Foreign { path: path.into() },
        _ => RecordError::Sqlite { path: path.into(), action: "read", source },
    };
    let connection = connect(&real).map_err(failed)?;
    let found = match version(&connection) {
        // Only who may write can undo what a killed process had half written.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
            write::connect(&real).and_then(|connection| version(&connection))
        }
        found => found,
    };
    match (found.map_err(failed)?, writer(&connection)) {
        (SCHEMA_VERSION, Some(_)) => {}
        (found, Some(by)) => return Err(RecordError::Schema { path: path.into(), found, by }),
        (_, None) => return Err(RecordError::Foreign { path: path.into() }),
    }
    match schema::foreign_object(&connection).map_err(failed)? {
        None => Ok(connection),
        Some(what) => Err(RecordError::Changed { path: path.into(), what }),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Opens a record to read it.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread only: SQLite need not lock at every column.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
}

/// The version of the program that wrote a record; none if it is no record.
fn writer(connection: &Connection) -> Option<String> {
    connection.query_row("SELECT nilometer FROM campaign", [], |row| row.get(0)).ok()
}

/// `second` is a connection to the same record.
fn read_all(connection: &Connection, second: Connection) -> rusqlite::Result<Results> {
    let (mut results, warm_up) = head(connection)?;
    let mut samples = samples(connection, warm_up)?;
    let places = Places::of(&samples);
    let valid = &Valid::of(&samples);
    // Most rows are those of histograms: they are read by a second thread.
    results.latencies = std::thread::scope(|scope| {
        let latencies = scope.spawn(move || latencies(&second, valid));
        read_details(connection, &mut samples, &places)?;
        read_series(connection, &mut samples)?;
        latencies.join().expect("it returns its errors")
    })?;
    results.samples = samples.into_iter().map(|(_, measured)| measured).collect();
    Ok(results)
}

/// The series of those samples that are shown over time.
fn read_series(connection: &Connection, samples: &mut [Numbered]) -> rusqlite::Result<()> {
    let medians = medians(samples);
    for (at, measured) in samples.iter_mut().enumerate() {
        if measured.1.sample.ingest.is_some() || medians.binary_search(&at).is_ok() {
            measured.1.sample.series = series(connection, measured.0)?;
        }
    }
    Ok(())
}

/// All but the samples; how many rounds count for nothing.
fn head(connection: &Connection) -> rusqlite::Result<(Results, u32)> {
    let query = "SELECT title, nilometer, started, plan, repeats, margin, warm_up FROM campaign";
    let (mut results, warm_up) = connection.query_row(query, [], |row| {
        let results = Results {
            title: row.get(0)?,
            version: row.get(1)?,
            started: row.get(2)?,
            plan: earlier::plan(row.get(3)?),
            repeats: row.get(4)?,
            margin: row.get(5)?,
            ..Results::default()
        };
        Ok((results, row.get(6)?))
    })?;
    let targets = "SELECT path, file_system, description, left_out FROM target ORDER BY id";
    results.targets = rows(connection, targets, |row| {
        Ok(TargetEntry {
            path: row.get(0)?,
            file_system: row.get(1)?,
            description: row.get(2)?,
            left_out: row.get(3)?,
        })
    })?;
    results.cells = rows(connection, "SELECT stage, name, parameters FROM cell ORDER BY id", |row| {
        Ok(CellEntry { stage: row.get(0)?, name: row.get(1)?, parameters: row.get(2)? })
    })?;
    results.environment = rows(connection, "SELECT key, value FROM environment ORDER BY rowid", |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    results.events = rows(connection, "SELECT at, what FROM event ORDER BY id", |row| {
        Ok(Event { at: nanos(row, 0)?, what: row.get(1)? })
    })?;
    Ok((results, warm_up))
}

fn rows<T>(
    connection: &Connection,
    query: &str,
    each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(query)?.query_map([], each)?.collect()
}

pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column)
}

pub(super) fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    number(row, column).map(Nanos)
}

/// A sample with its row's id.
pub(super) type Numbered = (i64, Measured);

/// Where the sample with an id stands.
pub(super) struct Places(HashMap<i64, usize>);

impl Places {
    fn of(samples: &[Numbered]) -> Self {
        Places(samples.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect())
    }
}

fn samples(connection: &Connection, warm_up: u32) -> rusqlite::Result<Vec<Numbered>> {
    let query =
        "SELECT id, target, cell, repeat, phase, bytes, operations, wall, user, system, client, machine,
                     voluntary, involuntary, run_delay, filling, settling, started, load, device_read,
                     device_written, coldness, invalid
                 FROM sample WHERE repeat >= ?1 ORDER BY id";
    connection.prepare(query)?.query_map([warm_up], |row| Ok((row.get(0)?, measured(row)?)))?.collect()
}

fn measured(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let phase = row.get_ref(4)?.as_str()?;
    let phase = Phase::from_name(phase).ok_or_else(|| unknown_phase(phase))?;
    let sample = Sample {
        bytes: number(row, 5)?,
        operations: number(row, 6)?,
        wall: nanos(row, 7)?,
        user: nanos(row, 8)?,
        system: nanos(row, 9)?,
        client: nanos(row, 10)?,
        machine: nanos(row, 11)?,
        switches: Switches { voluntary: number(row, 12)?, involuntary: number(row, 13)? },
        run_delay: nanos(row, 14)?,
        filling: nanos(row, 15)?,
        settling: nanos(row, 16)?,
        started: nanos(row, 17)?,
        load: row.get(18)?,
        device: row.get::<_, Option<u64>>(19)?.zip(row.get(20)?),
        coldness: row.get_ref(21)?.as_str_or_null()?.and_then(Coldness::from_name),
        invalid: row.get_ref(22)?.as_str_or_null()?.map(Invalid::from_text),
        ..Sample::new(Nanos(0))
    };
    let (target, cell) = (number(row, 1)? as usize, number(row, 2)? as usize);
    Ok(Measured { key: Key { target, cell, repeat: row.get(3)?, phase }, sample })
}

fn unknown_phase(name: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(4, Type::Text, format!("unknown phase `{name}`").into())
}

/// Hands every row of the small tables to its sample.
fn read_details(connection: &Connection, samples: &mut [Numbered], places: &Places) -> rusqlite::Result<()> {
    each(connection, "SELECT * FROM worker ORDER BY sample, worker", samples, places, |row, sample| {
        let (bytes, operations) = (number(row, 2)?, number(row, 3)?);
        let (first_done, last_done) = (nanos(row, 4)?, nanos(row, 5)?);
        sample.workers.push(WorkerTotals { bytes, operations, first_done, last_done });
        Ok(())
    })?;
    each(connection, "SELECT * FROM activity", samples, places, |row, sample| {
        let before = row.get_ref(1)?.as_str()? == "before";
        *if before { &mut sample.before } else { &mut sample.during } = activity(row)?;
        Ok(())
    })?;
    each(connection, "SELECT * FROM error", samples, places, |row, sample| {
        sample.errors.insert(row.get(1)?, number(row, 2)?);
        Ok(())
    })?;
    ingest::read(connection, samples, places)
}

pub(super) fn each(
    connection: &Connection,
    query: &str,
    samples: &mut [Numbered],
    places: &Places,
    mut put: impl FnMut(&Row<'_>, &mut Sample) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(&at) = places.0.get(&row.get(0)?) {
            put(row, &mut samples[at].1.sample)?;
        }
    }
    Ok(())
}

fn activity(row: &Row<'_>) -> rusqlite::Result<Activity> {
    let pressure = |column| row.get::<_, Option<u64>>(column).map(|time| time.map(Nanos));
    let pressure = match (pressure(10)?, pressure(11)?, pressure(12)?) {
        (Some(cpu), Some(io), Some(memory)) => Some(Pressure { cpu, io, memory }),
        _ => None,
    };
    Ok(Activity {
        over: nanos(row, 2)?,
        busy: nanos(row, 3)?,
        stolen: nanos(row, 4)?,
        switches: number(row, 5)?,
        disk_read: number(row, 6)?,
        disk_written: number(row, 7)?,
        received: number(row, 8)?,
        sent: number(row, 9)?,
        pressure,
    })
}

/// The histograms of all valid repeats of a group together.
fn latencies(connection: &Connection, valid: &Valid) -> rusqlite::Result<BTreeMap<Group, Histogram>> {
    let mut histograms = vec![Histogram::default(); valid.groups.len()];
    let mut statement =
        connection.prepare("SELECT sample, bucket, count FROM histogram WHERE kind = 'latency'")?;
    let mut rows = statement.query([])?;
    let mut last = (i64::MIN, None);
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if id != last.0 {
            last = (id, valid.places.get(&id));
        }
        if let Some(&at) = last.1 {
            histograms[at].add_bucket(row.get(1)?, number(row, 2)?);
        }
    }
    Ok(valid.groups.iter().copied().zip(histograms).collect())
}

/// To which group the valid samples belong, by the ids of their rows.
struct Valid {
    groups: Vec<Group>,
    /// Indices into `groups`.
    places: HashMap<i64, usize>,
}

impl Valid {
    fn of(samples: &[Numbered]) -> Self {
        let groups: Vec<Group> = groups(samples).into_keys().collect();
        let valid = samples.iter().filter(|(_, measured)| measured.sample.invalid.is_none());
        let place =
            |(id, measured): &Numbered| Some((*id, groups.binary_search(&measured.key.group()).ok()?));
        let places = valid.filter_map(place).collect();
        Valid { groups, places }
    }
}

/// The samples of each group, in the order they were measured.
fn groups(samples: &[Numbered]) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, (_, measured)) in samples.iter().enumerate() {
        groups.entry(measured.key.group()).or_default().push(at);
    }
    groups
}

/// Of each group, the valid sample whose wall time is the median.
fn medians(samples: &[Numbered]) -> Vec<usize> {
    let median = |mut places: Vec<usize>| {
        places.retain(|&at| samples[at].1.sample.invalid.is_none());
        places.sort_by_key(|&at| samples[at].1.sample.wall);
        places.get(places.len() / 2).copied()
    };
    let mut medians: Vec<usize> = groups(samples).into_values().filter_map(median).collect();
    medians.sort_unstable();
    medians
}

fn series(connection: &Connection, id: i64) -> rusqlite::Result<Series> {
    let mut statement = connection
        .prepare_cached("SELECT width, operations, bytes FROM series WHERE sample = ?1 ORDER BY bin")?;
    let mut width = Nanos(1);
    let bins = statement.query_map([id], |row| {
        width = nanos(row, 0)?;
        Ok(Bin { operations: number(row, 1)?, bytes: number(row, 2)? })
    })?;
    let bins = bins.collect::<rusqlite::Result<Vec<Bin>>>()?;
    Ok(Series::from_bins(width, bins))
}

#[cfg(test)]
mod tests;
