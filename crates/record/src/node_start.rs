//! Writes and reads the state of each machine just before a sample.

use nilometer_model::{Activity, NodeStart};
use rusqlite::{Row, Transaction};

use super::row::{Column, insert_row, nanos, number};

/// Adds the state of a machine. `position` counts the machines of the sample.
pub(super) fn insert_node_start(
    transaction: &Transaction<'_>,
    id: i64,
    position: usize,
    start: &NodeStart,
) -> rusqlite::Result<()> {
    let NodeStart { node, load, before } = start;
    let columns: [Column<'_>; 9] = [
        ("sample", &id),
        ("position", &position),
        ("node", node),
        ("load", load),
        ("over", &before.over.0),
        ("disk_read", &before.disk_read),
        ("disk_written", &before.disk_written),
        ("received", &before.received),
        ("sent", &before.sent),
    ];
    insert_row(transaction, "node_start", &columns)
}

/// Reads a row of `node_start`.
pub(super) fn node_start(row: &Row<'_>) -> rusqlite::Result<NodeStart> {
    let before = Activity {
        over: nanos(row, "over")?,
        disk_read: number(row, "disk_read")?,
        disk_written: number(row, "disk_written")?,
        received: number(row, "received")?,
        sent: number(row, "sent")?,
        ..Activity::default()
    };
    Ok(NodeStart { node: row.get("node")?, load: row.get("load")?, before })
}
