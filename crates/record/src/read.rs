//! Reading a record, finished or not.

use std::{collections::HashMap, path::Path};

use nilometer_model::{
    Bin, Bytes, CellEntry, Coldness, Histogram, Ingest, Invalid, Key, Measured, Nanos, Results, Sample,
    Series, TargetEntry, WorkerTotals, plan::Phase,
};
use rusqlite::{Connection, OpenFlags, Row, types::Type};

use super::{RecordError, SCHEMA_VERSION};

/// All that the record holds.
pub fn read(path: &Path) -> Result<Results, RecordError> {
    if !path.exists() {
        return Err(RecordError::Missing { path: path.into() });
    }
    let failed = |source| RecordError::Sqlite { path: path.into(), action: "read", source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found != SCHEMA_VERSION {
        return Err(RecordError::Schema { path: path.into(), found });
    }
    read_all(&connection).map_err(failed)
}

fn read_all(connection: &Connection) -> rusqlite::Result<Results> {
    let title = connection.query_row("SELECT title FROM campaign", [], |row| row.get(0))?;
    let targets =
        rows(connection, "SELECT path, file_system, description, left_out FROM target ORDER BY id", |row| {
            Ok(TargetEntry {
                path: row.get(0)?,
                file_system: row.get(1)?,
                description: row.get(2)?,
                left_out: row.get(3)?,
            })
        })?;
    let cells = rows(connection, "SELECT stage, name, parameters FROM cell ORDER BY id", |row| {
        Ok(CellEntry { stage: row.get(0)?, name: row.get(1)?, parameters: row.get(2)? })
    })?;
    let environment = rows(connection, "SELECT key, value FROM environment ORDER BY rowid", |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(Results { title, targets, cells, samples: samples(connection)?, environment })
}

fn rows<T>(
    connection: &Connection,
    query: &str,
    each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(query)?.query_map([], each)?.collect()
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column)
}

fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    number(row, column).map(Nanos)
}

fn samples(connection: &Connection) -> rusqlite::Result<Vec<Measured>> {
    let query =
        "SELECT id, target, cell, repeat, phase, bytes, operations, wall, user, system, machine, run_delay,
                     filling, settling, load, device_read, device_written, coldness, invalid
                 FROM sample ORDER BY id";
    let mut samples = rows(connection, query, |row| Ok((row.get(0)?, measured(row)?)))?;
    let index: HashMap<i64, usize> = samples.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
    details(connection, &mut |id, put| {
        if let Some(&at) = index.get(&id) {
            put(&mut samples[at].1.sample);
        }
    })?;
    Ok(samples.into_iter().map(|(_, measured)| measured).collect())
}

fn measured(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let phase: String = row.get(4)?;
    let phase = Phase::from_name(&phase).ok_or_else(|| unknown_phase(&phase))?;
    let device = row.get::<_, Option<u64>>(15)?.zip(row.get(16)?);
    let sample = Sample {
        bytes: number(row, 5)?,
        operations: number(row, 6)?,
        wall: nanos(row, 7)?,
        user: nanos(row, 8)?,
        system: nanos(row, 9)?,
        machine: nanos(row, 10)?,
        run_delay: nanos(row, 11)?,
        filling: nanos(row, 12)?,
        settling: nanos(row, 13)?,
        load: row.get(14)?,
        device,
        coldness: row.get::<_, Option<String>>(17)?.and_then(|name| Coldness::from_name(&name)),
        invalid: row.get::<_, Option<String>>(18)?.map(|text| Invalid::from_text(&text)),
        ..Sample::new(Nanos(0))
    };
    let (target, cell) = (number(row, 1)? as usize, number(row, 2)? as usize);
    Ok(Measured { key: Key { target, cell, repeat: row.get(3)?, phase }, sample })
}

fn unknown_phase(name: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(4, Type::Text, format!("unknown phase `{name}`").into())
}

type Put<'a> = dyn FnMut(i64, &mut dyn FnMut(&mut Sample)) + 'a;

/// Hands every row of the detail tables to its sample.
fn details(connection: &Connection, put: &mut Put<'_>) -> rusqlite::Result<()> {
    each(connection, "SELECT * FROM worker ORDER BY sample, worker", |id, row| {
        let (bytes, operations) = (number(row, 2)?, number(row, 3)?);
        let totals =
            WorkerTotals { bytes, operations, first_done: nanos(row, 4)?, last_done: nanos(row, 5)? };
        put(id, &mut |sample| sample.workers.push(totals));
        Ok(())
    })?;
    each(connection, "SELECT * FROM histogram", |id, row| {
        let (kind, bucket, count): (String, u16, _) = (row.get(1)?, row.get(2)?, number(row, 3)?);
        put(id, &mut |sample| pick(sample, &kind).add_bucket(bucket, count));
        Ok(())
    })?;
    each(connection, "SELECT * FROM error", |id, row| {
        let (errno, count) = (row.get(1)?, number(row, 2)?);
        put(id, &mut |sample| {
            sample.errors.insert(errno, count);
        });
        Ok(())
    })?;
    let mut series: HashMap<i64, (Nanos, Vec<Bin>)> = HashMap::new();
    each(connection, "SELECT * FROM series ORDER BY sample, bin", |id, row| {
        let entry = series.entry(id).or_insert((nanos(row, 2)?, Vec::new()));
        entry.1.push(Bin { operations: number(row, 3)?, bytes: number(row, 4)? });
        Ok(())
    })?;
    #[expect(clippy::iter_over_hash_type, reason = "each goes to its own sample: the order does not show")]
    for (id, (width, bins)) in series {
        put(id, &mut |sample| sample.series = Series::from_bins(width, bins.clone()));
    }
    each(connection, "SELECT * FROM ingest", |id, row| {
        let ingest = ingest(row)?;
        put(id, &mut |sample| sample.ingest = Some(ingest.clone()));
        Ok(())
    })
}

fn each(
    connection: &Connection,
    query: &str,
    mut row: impl FnMut(i64, &Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    rows(connection, query, |r| row(r.get(0)?, r)).map(drop)
}

fn pick<'a>(sample: &'a mut Sample, kind: &str) -> &'a mut Histogram {
    if kind == "latency" { &mut sample.latency } else { &mut sample.lateness }
}

fn ingest(row: &Row<'_>) -> rusqlite::Result<Ingest> {
    Ok(Ingest {
        instrument: row.get(1)?,
        paced: row.get(2)?,
        frame_size: Bytes(number(row, 3)?),
        period: nanos(row, 4)?,
        duration: nanos(row, 5)?,
        due: number(row, 6)?,
        stored: number(row, 7)?,
        lost: number(row, 8)?,
        slots: number(row, 9)?,
        slots_high: number(row, 10)?,
        longest_stall: nanos(row, 11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn head() -> Results {
        let target = TargetEntry { path: "/a".into(), file_system: "ext4".into(), ..TargetEntry::default() };
        let cell = CellEntry { stage: "s".into(), name: "c".into(), parameters: "{}".into() };
        Results { title: "t".into(), targets: vec![target], cells: vec![cell], ..Results::default() }
    }

    fn full_sample() -> Sample {
        let mut sample = Sample {
            bytes: 1 << 40,
            operations: 7,
            wall: Nanos(5),
            load: 0.5,
            device: Some((1, 2)),
            coldness: Some(Coldness::NotProvable),
            invalid: Some(Invalid::Refused("why".into())),
            ingest: Some(Ingest { instrument: "i".into(), lost: 3, paced: true, ..Ingest::default() }),
            workers: vec![WorkerTotals { bytes: 3, last_done: Nanos(9), ..WorkerTotals::default() }],
            ..Sample::new(Nanos(0))
        };
        sample.latency.add(1000);
        sample.lateness.add(5);
        sample.series.add(Nanos(3_000_000), 4);
        sample.errors.insert(5, 2);
        sample
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        let key = Key { target: 0, cell: 0, repeat: 2, phase: Phase::Read };
        let mut record = Record::create(&path, &head(), "{}", "test").expect("a new record");
        record.add(key, &full_sample()).expect("space");
        record.leave_out(0, "gone").expect("space");
        let results = read(&path).expect("readable while open");
        assert_eq!((results.samples.len(), results.samples[0].key), (1, key));
        assert_eq!(format!("{:?}", results.samples[0].sample), format!("{:?}", full_sample()));
        assert_eq!(results.targets[0].left_out.as_deref(), Some("gone"));
        assert!(record.add(key, &full_sample()).is_err(), "a sample is written once");
    }

    #[test]
    fn foreign_and_missing_files_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("r.sqlite");
        assert!(matches!(read(&path), Err(RecordError::Missing { .. })));
        Record::create(&path, &head(), "{}", "test").expect("a new record");
        assert!(matches!(Record::create(&path, &head(), "{}", "test"), Err(RecordError::Exists { .. })));
        let connection = Connection::open(&path).expect("a database");
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("writable");
        let error = read(&path).expect_err("a newer schema").to_string();
        assert!(error.contains("schema 2, this program reads 1"), "{error}");
    }
}
