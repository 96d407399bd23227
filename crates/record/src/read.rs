//! Reads a record, finished or not. A campaign may have a hundred thousand samples with a thousand rows each.
//! It therefore loads only the data that a report needs, with one pass for each table.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use nilometer_model::{
    Activity, Bin, Coldness, DeviceTraffic, DeviceUse, FilesSeen, Histogram, Invalid, LocksSeen, Nanos,
    Phase, Pressure, RankPart, Sample, Series, Switches, WorkerTotals,
};
use nilometer_plan::{Cell, Event, Group, Key, Measured, PlannedCampaign, Results, TargetEntry};
use rusqlite::{Connection, Row};

use super::{
    RecordError, background,
    connection::{open, to_read},
    ingest, machine, network,
    node_start::node_start,
    numbered::{Numbered, Places, each},
    row::{from_json, nanos, number, rows, unreadable},
    schema,
};

/// Reads the results in a record; [`Results`] says which parts it leaves out.
pub fn read(path: &Path) -> Result<Results, RecordError> {
    let failed = |source| RecordError::Sqlite { path: path.into(), action: "read", source };
    let connection = open(path, to_read)?;
    let second = open(path, to_read)?;
    read_all(&connection, second).map_err(failed)
}

/// Reads a record without latencies, and with the series of recordings only. Comparisons of records need no
/// more. Most rows of a record are those of histograms and series.
pub fn read_figures(path: &Path) -> Result<Results, RecordError> {
    let failed = |source| RecordError::Sqlite { path: path.into(), action: "read", source };
    let connection = open(path, to_read)?;
    figures(&connection).map_err(failed)
}

fn figures(connection: &Connection) -> rusqlite::Result<Results> {
    let (results, warm_up) = head(connection)?;
    let mut samples = samples(connection, warm_up)?;
    let places = Places::of(&samples);
    read_details(connection, &mut samples, &places)?;
    read_series(connection, &mut samples, &[])?;
    Ok(with_samples(results, samples))
}

/// Reads everything. `second` is another connection to the same record.
fn read_all(connection: &Connection, second: Connection) -> rusqlite::Result<Results> {
    let (mut results, warm_up) = head(connection)?;
    let mut samples = samples(connection, warm_up)?;
    let places = Places::of(&samples);
    let valid = &Valid::of(&samples);
    // Most rows belong to histograms, so a second thread reads them.
    results.latencies = std::thread::scope(|scope| {
        let latencies = scope.spawn(move || latencies(&second, valid));
        read_details(connection, &mut samples, &places)?;
        let medians = medians(&samples);
        read_series(connection, &mut samples, &medians)?;
        latencies.join().expect("it returns its errors")
    })?;
    Ok(with_samples(results, samples))
}

fn with_samples(mut results: Results, samples: Vec<Numbered>) -> Results {
    results.samples = samples.into_iter().map(|(_, measured)| measured).collect();
    results.set_reader_limits();
    results.set_ceilings_apart();
    results
}

/// Reads the series of recordings and of the samples that are charted over time. `shown` has the sorted
/// positions of the latter.
fn read_series(connection: &Connection, samples: &mut [Numbered], shown: &[usize]) -> rusqlite::Result<()> {
    for (at, measured) in samples.iter_mut().enumerate() {
        if measured.1.sample.ingest.is_some() || shown.binary_search(&at).is_ok() {
            measured.1.sample.series = series(connection, measured.0)?;
        }
    }
    Ok(())
}

/// Selects the facts about the first process's machine.
const FACTS: &str = "SELECT key, value FROM environment WHERE node = 0 ORDER BY rowid";

/// Reads everything except the samples. Also returns the number of warm-up rounds.
fn head(connection: &Connection) -> rusqlite::Result<(Results, u32)> {
    let query = "SELECT title, nilometer, started, repeats, margin, warm_up FROM campaign";
    let (mut results, warm_up) = connection.query_row(query, [], |row| {
        let results = Results {
            title: row.get("title")?,
            version: row.get("nilometer")?,
            started: row.get("started")?,
            repeats: row.get("repeats")?,
            margin: row.get("margin")?,
            ..Results::default()
        };
        Ok((results, row.get("warm_up")?))
    })?;
    results.cells = cells(connection)?;
    results.campaign = campaign(connection, &results.cells)?;
    results.targets = targets(connection)?;
    results.environment = rows(connection, FACTS, |row| Ok((row.get("key")?, row.get("value")?)))?;
    results.machines = machine::machines(connection)?;
    results.network = network::stages(connection, warm_up)?;
    results.events = rows(connection, "SELECT at, what FROM event ORDER BY id", |row| {
        Ok(Event { at: nanos(row, "at")?, what: row.get("what")? })
    })?;
    Ok((results, warm_up))
}

/// Reads the campaign's plan, or `None` if the results come from other programs.
pub(super) fn campaign(connection: &Connection, cells: &[Cell]) -> rusqlite::Result<Option<PlannedCampaign>> {
    let text: Option<String> = connection.query_row("SELECT plan FROM campaign", [], |row| row.get(0))?;
    let Some(text) = text else { return Ok(None) };
    let mut campaign: PlannedCampaign = from_json("the plan", &text)?;
    campaign.plan.cells = cells.to_vec();
    Ok(Some(campaign))
}

/// The cells in the order of the plan.
pub(super) fn cells(connection: &Connection) -> rusqlite::Result<Vec<Cell>> {
    rows(connection, "SELECT stage, measurement FROM cell ORDER BY id", |row| {
        let stage: String = row.get("stage")?;
        let measurement =
            from_json(&format!("a cell of stage `{stage}`"), row.get_ref("measurement")?.as_str()?)?;
        Ok(Cell { stage, measurement })
    })
}

fn targets(connection: &Connection) -> rusqlite::Result<Vec<TargetEntry>> {
    let query = "SELECT path, file_system, description, left_out FROM target ORDER BY id";
    rows(connection, query, |row| {
        let text = row.get_ref("description")?.as_str_or_null()?;
        Ok(TargetEntry {
            path: row.get("path")?,
            file_system: row.get("file_system")?,
            description: text.map(|text| from_json("the description of a target", text)).transpose()?,
            left_out: row.get("left_out")?,
        })
    })
}

fn samples(connection: &Connection, warm_up: u32) -> rusqlite::Result<Vec<Numbered>> {
    let query =
        "SELECT id, target, cell, repeat, phase, bytes, operations, wall, user, system, client, machine,
                     voluntary, involuntary, run_delay, filling, settling, started, load, device_read,
                     device_written, device_flushes, device_busy, device_queue, coldness, invalid
                 FROM sample WHERE repeat >= ?1 ORDER BY id";
    connection.prepare(query)?.query_map([warm_up], |row| Ok((row.get(0)?, measured(row)?)))?.collect()
}

fn measured(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let sample = Sample {
        bytes: number(row, "bytes")?,
        operations: number(row, "operations")?,
        wall: nanos(row, "wall")?,
        user: nanos(row, "user")?,
        system: nanos(row, "system")?,
        client: nanos(row, "client")?,
        machine: nanos(row, "machine")?,
        switches: Switches { voluntary: number(row, "voluntary")?, involuntary: number(row, "involuntary")? },
        run_delay: nanos(row, "run_delay")?,
        filling: nanos(row, "filling")?,
        settling: nanos(row, "settling")?,
        started: nanos(row, "started")?,
        load: row.get("load")?,
        device: device(row)?,
        coldness: row.get_ref("coldness")?.as_str_or_null()?.and_then(Coldness::from_name),
        invalid: invalid(row)?,
        ..Sample::new(Nanos(0))
    };
    Ok(Measured { key: key(row)?, sample })
}

fn device(row: &Row<'_>) -> rusqlite::Result<Option<DeviceTraffic>> {
    let flushes = row.get("device_flushes")?;
    let moved = row.get::<_, Option<u64>>("device_read")?.zip(row.get("device_written")?);
    let used = row.get::<_, Option<u64>>("device_busy")?.zip(row.get("device_queue")?);
    let use_of = used.map(|(busy, queue)| DeviceUse { busy: Nanos(busy), queue: Nanos(queue) });
    Ok(moved.map(|(read, written)| DeviceTraffic { read, written, flushes, use_of }))
}

/// Reads the key of a row of `sample`.
pub(super) fn key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let phase = row.get_ref("phase")?.as_str()?;
    let phase =
        Phase::from_name(phase).ok_or_else(|| unreadable(format!("unknown phase `{phase}`").into()))?;
    Ok(Key { target: row.get("target")?, cell: row.get("cell")?, repeat: row.get("repeat")?, phase })
}

/// Reads the reason why a row of `sample` must not be used, if there is one.
pub(super) fn invalid(row: &Row<'_>) -> rusqlite::Result<Option<Invalid>> {
    Ok(row.get_ref("invalid")?.as_str_or_null()?.map(Invalid::from_text))
}

/// Hands every row of the small tables to its sample.
fn read_details(connection: &Connection, samples: &mut [Numbered], places: &Places) -> rusqlite::Result<()> {
    each(connection, "SELECT * FROM worker ORDER BY sample, worker", samples, places, |row, sample| {
        sample.workers.push(WorkerTotals {
            bytes: number(row, "bytes")?,
            operations: number(row, "operations")?,
            first_done: nanos(row, "first_done")?,
            last_done: nanos(row, "last_done")?,
        });
        Ok(())
    })?;
    each(connection, "SELECT * FROM part ORDER BY sample, rank", samples, places, |row, sample| {
        sample.parts.push(part(row)?);
        Ok(())
    })?;
    if schema::version(connection)? >= schema::NODE_START_SINCE {
        let query = "SELECT * FROM node_start ORDER BY sample, position";
        each(connection, query, samples, places, |row, sample| {
            sample.node_starts.push(node_start(row)?);
            Ok(())
        })?;
    }
    each(connection, "SELECT * FROM background", samples, places, |row, sample| {
        sample.background = Some(background::background(row)?);
        Ok(())
    })?;
    each(connection, "SELECT * FROM frames_beside", samples, places, |row, sample| {
        let frames = background::frames_beside(row)?;
        sample.background.get_or_insert_default().frames = Some(frames);
        Ok(())
    })?;
    each(connection, "SELECT * FROM visibility", samples, places, |row, sample| {
        sample.seen = Some(seen(row)?);
        Ok(())
    })?;
    each(connection, "SELECT * FROM locking", samples, places, |row, sample| {
        sample.locks = Some(locks(row)?);
        Ok(())
    })?;
    each(connection, "SELECT * FROM activity", samples, places, |row, sample| {
        let before = row.get_ref("moment")?.as_str()? == "before";
        *if before { &mut sample.before } else { &mut sample.during } = activity(row)?;
        Ok(())
    })?;
    each(connection, "SELECT * FROM error", samples, places, |row, sample| {
        sample.errors.insert(row.get("errno")?, number(row, "count")?);
        Ok(())
    })?;
    ingest::read(connection, samples, places)
}

fn locks(row: &Row<'_>) -> rusqlite::Result<LocksSeen> {
    Ok(LocksSeen {
        tries: number(row, "tries")?,
        broken: number(row, "broken")?,
        passed: number(row, "passed")?,
        longest: nanos(row, "longest")?,
    })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<FilesSeen> {
    Ok(FilesSeen {
        files: number(row, "files")?,
        missing: number(row, "missing")?,
        short: number(row, "short")?,
        stale: number(row, "stale")?,
        out_of_order: number(row, "out_of_order")?,
        never: number(row, "never")?,
        longest: nanos(row, "longest")?,
    })
}

fn part(row: &Row<'_>) -> rusqlite::Result<RankPart> {
    Ok(RankPart {
        rank: row.get("rank")?,
        node: row.get("node")?,
        clock_offset: row.get("clock_offset")?,
        clock_uncertainty: number(row, "clock_uncertainty")?,
        began: nanos(row, "began")?,
        workers: row.get("workers")?,
        bytes: number(row, "bytes")?,
        operations: number(row, "operations")?,
        first_done: nanos(row, "first_done")?,
        last_done: nanos(row, "last_done")?,
        user: nanos(row, "user")?,
        system: nanos(row, "system")?,
        run_delay: nanos(row, "run_delay")?,
    })
}

fn activity(row: &Row<'_>) -> rusqlite::Result<Activity> {
    let pressure = |column| row.get::<_, Option<u64>>(column).map(|time| time.map(Nanos));
    let pressures = (pressure("pressure_cpu")?, pressure("pressure_io")?, pressure("pressure_memory")?);
    let pressure = match pressures {
        (Some(cpu), Some(io), Some(memory)) => Some(Pressure { cpu, io, memory }),
        _ => None,
    };
    Ok(Activity {
        over: nanos(row, "over")?,
        busy: nanos(row, "busy")?,
        stolen: nanos(row, "stolen")?,
        switches: number(row, "switches")?,
        disk_read: number(row, "disk_read")?,
        disk_written: number(row, "disk_written")?,
        received: number(row, "received")?,
        sent: number(row, "sent")?,
        pressure,
    })
}

/// Merges the histograms of all valid repeats of each group.
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

/// The groups of the valid samples, by the ids of their rows.
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

/// Returns the samples of each group in the order of measurement.
fn groups(samples: &[Numbered]) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, (_, measured)) in samples.iter().enumerate() {
        groups.entry(measured.key.group()).or_default().push(at);
    }
    groups
}

/// Returns, for each group, the valid sample with the median wall time.
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
pub(crate) mod tests;
