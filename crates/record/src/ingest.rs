//! Writes and reads the part of the record about an instrument's frames.

use nilometer_model::{
    Bytes, Goal, Histogram, Ingest, Level, Levels, PacketTotals, ReaderTotals, Sample, Stall,
};
use rusqlite::{Connection, Row, Transaction, params};

use super::{
    numbered::{Numbered, Places, each},
    row::{insert_histogram, insert_row, nanos, number},
};

/// Returns the histogram of a kind that only recordings have.
fn histogram<'a>(ingest: &'a mut Ingest, kind: &str) -> Option<&'a mut Histogram> {
    match kind {
        "durable" => Some(&mut ingest.durable),
        "readable" => Some(&mut ingest.readable),
        "read" => Some(&mut ingest.read),
        _ => None,
    }
}

/// Adds the recording of a sample.
pub(super) fn insert(transaction: &Transaction<'_>, id: i64, ingest: &Ingest) -> rusqlite::Result<()> {
    insert_totals(transaction, id, ingest)?;
    for (kind, histogram) in
        [("durable", &ingest.durable), ("readable", &ingest.readable), ("read", &ingest.read)]
    {
        insert_histogram(transaction, id, kind, histogram)?;
    }
    let query = "INSERT INTO level (sample, bin, width, most, last, lost) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut level = transaction.prepare_cached(query)?;
    let width = ingest.levels.width().0;
    for (bin, Level { most, last, lost }) in ingest.levels.bins().iter().enumerate() {
        level.execute(params![id, bin, width, most, last, lost])?;
    }
    for Stall { at, length } in &ingest.stalls {
        insert_row(transaction, "stall", &[("sample", &id), ("at", &at.0), ("length", &length.0)])?;
    }
    for (index, totals) in ingest.readers.iter().enumerate() {
        insert_reader(transaction, id, index, totals)?;
    }
    ingest.packets.as_ref().map_or(Ok(()), |packets| insert_packets(transaction, id, packets))
}

fn insert_reader(
    transaction: &Transaction<'_>,
    id: i64,
    index: usize,
    totals: &ReaderTotals,
) -> rusqlite::Result<()> {
    insert_row(
        transaction,
        "reader",
        &[
            ("sample", &id),
            ("reader", &index),
            ("copies", &totals.copies),
            ("after", &totals.after),
            ("frames", &totals.frames),
            ("bytes", &totals.bytes),
            ("wall", &totals.wall.0),
            ("missed", &totals.missed),
            ("wrong", &totals.wrong),
            ("failed", &totals.failed),
            ("hung", &totals.hung),
        ],
    )
}

fn insert_packets(transaction: &Transaction<'_>, id: i64, packets: &PacketTotals) -> rusqlite::Result<()> {
    insert_row(
        transaction,
        "packet",
        &[
            ("sample", &id),
            ("size", &packets.size.0),
            ("due", &packets.due),
            ("unsent", &packets.unsent),
            ("came", &packets.came),
            ("dropped", &packets.dropped),
            ("ring", &packets.ring),
            ("stored", &packets.stored),
            ("losses", &packets.losses),
            ("longest_loss", &packets.longest_loss),
            ("reordered", &packets.reordered),
            ("extent", &packets.extent),
            ("overtaken", &packets.overtaken),
            ("duplicates", &packets.duplicates),
            ("room", &packets.room.0),
            ("late", &packets.late.0),
            ("sending", &packets.sending.0),
            ("receiving", &packets.receiving.0),
        ],
    )
}

fn insert_totals(transaction: &Transaction<'_>, id: i64, ingest: &Ingest) -> rusqlite::Result<()> {
    insert_row(
        transaction,
        "ingest",
        &[
            ("sample", &id),
            ("count", &ingest.count),
            ("goal", &ingest.goal.name()),
            ("frame_size", &ingest.frame_size.0),
            ("period", &ingest.period.0),
            ("duration", &ingest.duration.0),
            ("due", &ingest.due),
            ("stored", &ingest.stored),
            ("lost", &ingest.lost),
            ("slots", &ingest.slots),
            ("slots_high", &ingest.slots_high),
            ("longest_stall", &ingest.longest_stall.0),
            ("allowance", &ingest.allowance.0),
            ("late", &ingest.late),
            ("stalls", &ingest.stall_count),
            ("stalled", &ingest.stalled.0),
            ("slowest", &ingest.slowest_second.map(|bytes| bytes.0)),
            ("company", &ingest.company),
            ("condition", &ingest.condition),
            ("load", &ingest.load),
            ("written", &ingest.written.0),
        ],
    )
}

/// Puts the recordings into their samples.
pub(super) fn read(
    connection: &Connection,
    samples: &mut [Numbered],
    places: &Places,
) -> rusqlite::Result<()> {
    each(connection, "SELECT * FROM ingest", samples, places, |row, sample| {
        sample.ingest = Some(ingest(row)?);
        Ok(())
    })?;
    let lateness = "SELECT h.sample, h.kind, h.bucket, h.count FROM histogram h JOIN ingest USING (sample) WHERE kind != 'latency'";
    each(connection, lateness, samples, places, |row, sample| {
        let kind = row.get_ref(1)?.as_str()?;
        let Sample { ingest, lateness, .. } = sample;
        let histogram = ingest.as_mut().and_then(|ingest| histogram(ingest, kind));
        histogram.unwrap_or(lateness).add_bucket(row.get(2)?, number(row, 3)?);
        Ok(())
    })?;
    for (id, measured) in samples {
        if let Some(ingest) = &mut measured.sample.ingest {
            ingest.levels = levels(connection, *id)?;
            ingest.stalls = of(
                connection,
                *id,
                "SELECT at, length FROM stall WHERE sample = ?1 ORDER BY rowid",
                |row| Ok(Stall { at: nanos(row, "at")?, length: nanos(row, "length")? }),
            )?;
            ingest.packets =
                of(connection, *id, "SELECT * FROM packet WHERE sample = ?1", packets)?.into_iter().next();
            ingest.readers = of(connection, *id, "SELECT * FROM reader WHERE sample = ?1", reader)?;
        }
    }
    Ok(())
}

/// Returns the rows of one sample.
fn of<T>(
    connection: &Connection,
    id: i64,
    query: &str,
    make: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(query)?.query_map([id], make)?.collect()
}

fn levels(connection: &Connection, id: i64) -> rusqlite::Result<Levels> {
    let mut width = Levels::default().width();
    let bins = of(connection, id, "SELECT * FROM level WHERE sample = ?1 ORDER BY bin", |row| {
        width = nanos(row, 2)?;
        Ok(Level { most: number(row, 3)?, last: number(row, 4)?, lost: number(row, 5)? })
    })?;
    Ok(Levels::from_bins(width, bins))
}

fn ingest(row: &Row<'_>) -> rusqlite::Result<Ingest> {
    Ok(Ingest {
        count: row.get("count")?,
        goal: Goal::from_name(row.get_ref("goal")?.as_str()?).unwrap_or_default(),
        frame_size: Bytes(number(row, "frame_size")?),
        period: nanos(row, "period")?,
        duration: nanos(row, "duration")?,
        due: number(row, "due")?,
        stored: number(row, "stored")?,
        lost: number(row, "lost")?,
        slots: number(row, "slots")?,
        slots_high: number(row, "slots_high")?,
        longest_stall: nanos(row, "longest_stall")?,
        allowance: nanos(row, "allowance")?,
        late: number(row, "late")?,
        stall_count: number(row, "stalls")?,
        stalled: nanos(row, "stalled")?,
        slowest_second: row.get::<_, Option<u64>>("slowest")?.map(Bytes),
        company: row.get("company")?,
        condition: row.get("condition")?,
        load: row.get("load")?,
        written: Bytes(number(row, "written")?),
        ..Ingest::default()
    })
}

fn packets(row: &Row<'_>) -> rusqlite::Result<PacketTotals> {
    Ok(PacketTotals {
        size: Bytes(number(row, "size")?),
        due: number(row, "due")?,
        unsent: number(row, "unsent")?,
        came: number(row, "came")?,
        dropped: number(row, "dropped")?,
        ring: number(row, "ring")?,
        stored: number(row, "stored")?,
        losses: number(row, "losses")?,
        longest_loss: number(row, "longest_loss")?,
        reordered: number(row, "reordered")?,
        extent: number(row, "extent")?,
        overtaken: number(row, "overtaken")?,
        duplicates: number(row, "duplicates")?,
        room: Bytes(number(row, "room")?),
        late: nanos(row, "late")?,
        sending: nanos(row, "sending")?,
        receiving: nanos(row, "receiving")?,
    })
}

fn reader(row: &Row<'_>) -> rusqlite::Result<ReaderTotals> {
    Ok(ReaderTotals {
        copies: row.get("copies")?,
        after: row.get("after")?,
        frames: number(row, "frames")?,
        bytes: number(row, "bytes")?,
        wall: nanos(row, "wall")?,
        missed: number(row, "missed")?,
        wrong: number(row, "wrong")?,
        failed: number(row, "failed")?,
        hung: row.get("hung")?,
        // The plan has it.
        limit_per_second: None,
    })
}
