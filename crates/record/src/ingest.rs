//! What became of an instrument's frames: its part of the record, written and read.

use nilometer_model::{
    Bytes, Histogram, Ingest, Level, Levels, PacketTotals, ReaderTotals, Sample, Stall, plan::Goal,
};
use rusqlite::{Connection, Row, Transaction, params};

use super::{
    read::{Numbered, Places, each, nanos, number},
    write::insert_histogram,
};

/// The histogram of a kind, beside those of every sample.
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
    insert_row(transaction, id, ingest)?;
    for (kind, histogram) in
        [("durable", &ingest.durable), ("readable", &ingest.readable), ("read", &ingest.read)]
    {
        insert_histogram(transaction, id, kind, histogram)?;
    }
    let mut level = transaction.prepare_cached("INSERT INTO level VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let width = ingest.levels.width().0;
    for (bin, Level { most, last, lost }) in ingest.levels.bins().iter().enumerate() {
        level.execute(params![id, bin, width, most, last, lost])?;
    }
    let mut stall = transaction.prepare_cached("INSERT INTO stall VALUES (?1, ?2, ?3)")?;
    for Stall { at, length } in &ingest.stalls {
        stall.execute(params![id, at.0, length.0])?;
    }
    let mut reader = transaction
        .prepare_cached("INSERT INTO reader VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?;
    for (index, totals) in ingest.readers.iter().enumerate() {
        let ReaderTotals { copies, after, frames, bytes, wall, missed, wrong, failed, hung } = *totals;
        reader
            .execute(params![id, index, copies, after, frames, bytes, wall.0, missed, wrong, failed, hung])?;
    }
    ingest.packets.as_ref().map_or(Ok(()), |packets| insert_packets(transaction, id, packets))
}

fn insert_packets(transaction: &Transaction<'_>, id: i64, packets: &PacketTotals) -> rusqlite::Result<()> {
    let row = params![
        id,
        packets.size.0,
        packets.due,
        packets.unsent,
        packets.came,
        packets.dropped,
        packets.ring,
        packets.stored,
        packets.losses,
        packets.longest_loss,
        packets.reordered,
        packets.extent,
        packets.overtaken,
        packets.duplicates,
        packets.room.0,
        packets.late.0,
        packets.sending.0,
        packets.receiving.0,
    ];
    let query = "INSERT INTO packet VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    transaction.execute(query, row).map(drop)
}

fn insert_row(transaction: &Transaction<'_>, id: i64, ingest: &Ingest) -> rusqlite::Result<()> {
    let row = params![
        id,
        ingest.instrument,
        ingest.count,
        ingest.goal.name(),
        ingest.frame_size.0,
        ingest.period.0,
        ingest.duration.0,
        ingest.due,
        ingest.stored,
        ingest.lost,
        ingest.slots,
        ingest.slots_high,
        ingest.longest_stall.0,
        ingest.allowance.0,
        ingest.late,
        ingest.stall_count,
        ingest.stalled.0,
        ingest.slowest_second.map(|bytes| bytes.0),
        ingest.company,
        ingest.condition,
        ingest.written.0,
    ];
    transaction
        .execute(
            "INSERT INTO ingest VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19, ?20, ?21)",
            row,
        )
        .map(drop)
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
            ingest.stalls =
                of(connection, *id, "SELECT * FROM stall WHERE sample = ?1 ORDER BY rowid", |row| {
                    Ok(Stall { at: nanos(row, 1)?, length: nanos(row, 2)? })
                })?;
            ingest.packets =
                of(connection, *id, "SELECT * FROM packet WHERE sample = ?1", packets)?.into_iter().next();
            ingest.readers = of(connection, *id, "SELECT * FROM reader WHERE sample = ?1", reader)?;
        }
    }
    Ok(())
}

/// The rows of a sample.
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
        instrument: row.get(1)?,
        count: row.get(2)?,
        goal: Goal::from_name(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        frame_size: Bytes(number(row, 4)?),
        period: nanos(row, 5)?,
        duration: nanos(row, 6)?,
        due: number(row, 7)?,
        stored: number(row, 8)?,
        lost: number(row, 9)?,
        slots: number(row, 10)?,
        slots_high: number(row, 11)?,
        longest_stall: nanos(row, 12)?,
        allowance: nanos(row, 13)?,
        late: number(row, 14)?,
        stall_count: number(row, 15)?,
        stalled: nanos(row, 16)?,
        slowest_second: row.get::<_, Option<u64>>(17)?.map(Bytes),
        company: row.get(18)?,
        condition: row.get(19)?,
        written: Bytes(number(row, 20)?),
        ..Ingest::default()
    })
}

fn packets(row: &Row<'_>) -> rusqlite::Result<PacketTotals> {
    Ok(PacketTotals {
        size: Bytes(number(row, 1)?),
        due: number(row, 2)?,
        unsent: number(row, 3)?,
        came: number(row, 4)?,
        dropped: number(row, 5)?,
        ring: number(row, 6)?,
        stored: number(row, 7)?,
        losses: number(row, 8)?,
        longest_loss: number(row, 9)?,
        reordered: number(row, 10)?,
        extent: number(row, 11)?,
        overtaken: number(row, 12)?,
        duplicates: number(row, 13)?,
        room: Bytes(number(row, 14)?),
        late: nanos(row, 15)?,
        sending: nanos(row, 16)?,
        receiving: nanos(row, 17)?,
    })
}

fn reader(row: &Row<'_>) -> rusqlite::Result<ReaderTotals> {
    Ok(ReaderTotals {
        copies: row.get(2)?,
        after: row.get(3)?,
        frames: number(row, 4)?,
        bytes: number(row, 5)?,
        wall: nanos(row, 6)?,
        missed: number(row, 7)?,
        wrong: number(row, 8)?,
        failed: number(row, 9)?,
        hung: row.get(10)?,
    })
}
