//! Writes and reads the traffic of machines during trials of the network, interval by interval.

use nilometer_model::{LinkTraffic, TrafficInterval};
use rusqlite::{Connection, Row, Transaction, params};

use super::row::{Column, insert_row, nanos, number};

/// Adds the intervals of a trial.
pub(super) fn insert_intervals(
    transaction: &Transaction<'_>,
    sample: i64,
    intervals: &[TrafficInterval],
) -> rusqlite::Result<()> {
    let numbered = intervals.iter().enumerate();
    numbered.into_iter().try_for_each(|(position, interval)| insert(transaction, sample, position, interval))
}

fn insert(
    transaction: &Transaction<'_>,
    sample: i64,
    position: usize,
    interval: &TrafficInterval,
) -> rusqlite::Result<()> {
    let TrafficInterval { machine, from, until, retransmitted, links } = interval;
    let columns: [Column<'_>; 6] = [
        ("sample", &sample),
        ("position", &position),
        ("machine", machine),
        ("since", &from.0),
        ("until", &until.0),
        ("retransmitted", retransmitted),
    ];
    insert_row(transaction, "network_interval", &columns)?;
    for LinkTraffic { name, received_bytes, sent_bytes } in links {
        let columns: [Column<'_>; 5] = [
            ("sample", &sample),
            ("position", &position),
            ("name", name),
            ("received", received_bytes),
            ("sent", sent_bytes),
        ];
        insert_row(transaction, "link_interval", &columns)?;
    }
    Ok(())
}

/// Reads the intervals of a trial.
pub(super) fn intervals(connection: &Connection, sample: i64) -> rusqlite::Result<Vec<TrafficInterval>> {
    let query = "SELECT * FROM network_interval WHERE sample = ?1 ORDER BY position";
    let mut found = connection.prepare_cached(query)?;
    let mut rows = found.query([sample])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(interval(connection, sample, row)?);
    }
    Ok(all)
}

fn interval(connection: &Connection, sample: i64, row: &Row<'_>) -> rusqlite::Result<TrafficInterval> {
    let position: usize = row.get("position")?;
    let query = "SELECT * FROM link_interval WHERE sample = ?1 AND position = ?2 ORDER BY name";
    let links = connection
        .prepare_cached(query)?
        .query_map(params![sample, position], link)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(TrafficInterval {
        machine: row.get("machine")?,
        from: nanos(row, "since")?,
        until: nanos(row, "until")?,
        retransmitted: row.get("retransmitted")?,
        links,
    })
}

fn link(row: &Row<'_>) -> rusqlite::Result<LinkTraffic> {
    Ok(LinkTraffic {
        name: row.get("name")?,
        received_bytes: number(row, "received")?,
        sent_bytes: number(row, "sent")?,
    })
}
