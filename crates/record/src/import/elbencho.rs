//! CSV of elbencho (`--csvfile`): a row for each phase, with the figures of when the last thread was done. Of latencies it has
//! the least, the mean and the greatest, from which no distribution follows: they are not taken.
//!
//! Columns are those of its documentation (docs/csv-docs.md of elbencho 3); what a version adds or lacks is let be.

use nilometer_model::{
    Bytes, Moment, Nanos,
    plan::{ImportedRun, Phase},
};

use super::{
    Fault,
    gathered::{Gathered, GivenFigure, GivenWork, count, nanos},
    table::{Table, TableRow},
};

/// Whether a file's first line is that of such a table.
pub(super) fn is_header(line: &str) -> bool {
    line.contains("operation,time ms [first],time ms [last]")
}

const NEEDED: [&str; 4] = ["operation", "time ms [last]", "entries [last]", "MiB [last]"];
const MEBI: f64 = 1024.0 * 1024.0;

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    Table::each(text.as_bytes(), &NEEDED, |row| take(row, gathered))
}

fn take(row: &TableRow<'_>, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let operation = row.text("operation");
    let Some(phase) = phase(operation) else {
        gathered.leave_out(format!("rows of {operation}"));
        return Ok(());
    };
    let wall = wall(row)?;
    if wall.0 == 0 {
        gathered.leave_out("rows that took less than a millisecond, which is how finely times are given");
        return Ok(());
    }
    let did = work(row, phase, wall)?;
    gathered.add(GivenFigure { target: target(row), stage: stage(row), run: run(row)?, phase, did });
    Ok(())
}

/// Shorter times are given too coarsely: the rate and the number of entries say them better.
const COARSE_SECONDS: f64 = 0.1;

/// Until the last thread was done.
fn wall(row: &TableRow<'_>) -> Result<Nanos, Fault> {
    let seconds = row.number("time ms [last]")?.unwrap_or(0.0) / 1e3;
    let rate = row.number("entries/s [last]")?.filter(|rate| *rate > 0.0);
    let entries = row.number("entries [last]")?.filter(|entries| *entries > 0.0);
    match entries.zip(rate).filter(|_| seconds < COARSE_SECONDS) {
        Some((entries, rate)) => nanos(entries / rate, row.line),
        None => nanos(seconds, row.line),
    }
}

fn phase(operation: &str) -> Option<Phase> {
    Some(match operation {
        "WRITE" => Phase::Write,
        "READ" => Phase::Read,
        "STAT" => Phase::StatFiles,
        "MKDIRS" => Phase::MakeDirectories,
        "RMDIRS" => Phase::RemoveDirectories,
        "RMFILES" => Phase::RemoveFiles,
        _ => return None,
    })
}

fn work(row: &TableRow<'_>, phase: Phase, wall: Nanos) -> Result<GivenWork, Fault> {
    let moves_data = matches!(phase, Phase::Write | Phase::Read);
    let bytes = row.number("MiB [last]")?.unwrap_or(0.0) * MEBI;
    let entries = row.count("entries [last]")?.unwrap_or(0);
    let rate = row.number("IOPS [last]")?;
    let operations = match rate.filter(|_| moves_data) {
        Some(rate) => count(rate * wall.seconds(), row.line)?,
        None => entries,
    };
    if row.number("MiB/s [last]")?.is_some_and(|rate| rate > 0.0) && bytes <= 0.0 {
        return Err(Fault::at(row.line, "a rate of data of which there are none"));
    }
    Ok(GivenWork {
        bytes: count(bytes, row.line)?,
        operations,
        wall,
        started: started(row.text("ISO date")),
        ..GivenWork::default()
    })
}

/// elbencho gives the time of the machine without its zone, when the phase was done.
fn started(text: &str) -> Nanos {
    let whole = text.get(..19).unwrap_or_default();
    format!("{whole}Z").parse::<Moment>().map_or(Nanos(0), |moment| moment.0)
}

/// Its last arguments are paths.
fn target(row: &TableRow<'_>) -> String {
    let command = row.text("command");
    let path = command
        .split_whitespace()
        .rev()
        .map(|word| word.trim_matches('"'))
        .find(|word| word.starts_with('/'));
    path.unwrap_or("elbencho").to_owned()
}

fn stage(row: &TableRow<'_>) -> String {
    match row.text("label") {
        "" => "elbencho".to_owned(),
        label => label.to_owned(),
    }
}

/// What is in its own columns, without what follows from the rest.
fn run(row: &TableRow<'_>) -> Result<ImportedRun, Fault> {
    let mut parameters = Vec::new();
    for column in ["hosts", "threads", "dirs", "files", "IO depth"] {
        if let Some(number) = row.count(column)? {
            parameters.push((column.to_lowercase(), number.to_string()));
        }
    }
    for column in ["file size", "block size"] {
        if let Some(size) = row.count(column)? {
            parameters.push((column.to_owned(), Bytes(size).to_string()));
        }
    }
    for (column, word) in [("direct IO", "direct"), ("random", "random")] {
        if row.text(column) == "1" {
            parameters.push((String::new(), word.to_owned()));
        }
    }
    let version = row.text("version");
    let source = format!("elbencho {version}").trim_end().to_owned();
    Ok(ImportedRun { source, task: String::new(), parameters, figure: String::new() })
}
