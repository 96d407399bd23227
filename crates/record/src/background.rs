//! Writes and reads the background load of a sample.

use nilometer_model::{BackgroundDone, FramesBeside, Nanos};
use rusqlite::{Row, Transaction};

use super::row::{Column, insert_row, nanos, number};

/// Adds the results of the background load.
pub(super) fn insert_background(
    transaction: &Transaction<'_>,
    id: i64,
    done: &BackgroundDone,
) -> rusqlite::Result<()> {
    let BackgroundDone { wall, bytes, operations, latency_sum, errors, frames } = done;
    let columns: [Column<'_>; 6] = [
        ("sample", &id),
        ("wall", &wall.0),
        ("bytes", bytes),
        ("operations", operations),
        ("latency_sum", &latency_sum.0),
        ("errors", errors),
    ];
    insert_row(transaction, "background", &columns)?;
    frames.as_ref().map_or(Ok(()), |frames| insert_frames_beside(transaction, id, frames))
}

fn insert_frames_beside(transaction: &Transaction<'_>, id: i64, of: &FramesBeside) -> rusqlite::Result<()> {
    let FramesBeside { due, lost, late, allowance, longest_stall } = of;
    let columns: [Column<'_>; 6] = [
        ("sample", &id),
        ("due", due),
        ("lost", lost),
        ("late", late),
        ("allowance", &allowance.0),
        ("longest_stall", &longest_stall.0),
    ];
    insert_row(transaction, "frames_beside", &columns)
}

/// Reads a row of `background`. The counts of its frames are in `frames_beside`.
pub(super) fn background(row: &Row<'_>) -> rusqlite::Result<BackgroundDone> {
    Ok(BackgroundDone {
        wall: Nanos(row.get("wall")?),
        bytes: row.get("bytes")?,
        operations: row.get("operations")?,
        latency_sum: Nanos(row.get("latency_sum")?),
        errors: row.get("errors")?,
        frames: None,
    })
}

/// Reads a row of `frames_beside`.
pub(super) fn frames_beside(row: &Row<'_>) -> rusqlite::Result<FramesBeside> {
    Ok(FramesBeside {
        due: number(row, "due")?,
        lost: number(row, "lost")?,
        late: number(row, "late")?,
        allowance: nanos(row, "allowance")?,
        longest_stall: nanos(row, "longest_stall")?,
    })
}
