//! Tidy CSV: a measured value a row, as the published results of studies are kept.
//!
//! Columns: `source,table,system,test,params,metric,value,value_min,value_max,sem,n,unit,date,...,note`. Rows
//! that share system, test, params and metric are repeats, each a run. Some rows belong together: the greatest,
//! the least and the mean of iterations, or the real, user and system time of a run.

use std::{collections::HashMap, io::Read};

use nilometer_model::{Nanos, Phase};
use nilometer_plan::ImportedRun;

use super::{
    Fault,
    bandwidth::{GivenUnit, unit},
    dates,
    gathered::{Gathered, GivenFigure, GivenWork, nanos},
    stand_in::{Known, with_error},
    table::{Fields, KnownColumns, Table, TableRow},
};

/// Returns true if a file's first line is the header of such a table.
pub(super) fn is_header(line: &str) -> bool {
    let names: Vec<&str> = line.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
    ["system", "test", "metric", "value", "unit"].iter().all(|name| names.contains(name))
}

const NEEDED: [&str; 6] = ["system", "test", "params", "metric", "value", "unit"];

/// Columns that are taken, or that say where a row comes from.
const KNOWN: [&str; 14] = [
    "source",
    "table",
    "system",
    "test",
    "params",
    "metric",
    "value",
    "value_min",
    "value_max",
    "sem",
    "n",
    "unit",
    "date",
    "note",
];

/// The key that related rows share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TestKey {
    source: String,
    system: String,
    test: String,
    params: String,
}

/// The greatest, the least and the mean, as far as they have come.
#[derive(Debug, Clone, Default)]
struct Extremes {
    greatest: Option<f64>,
    least: Option<f64>,
    mean: Option<f64>,
    count: Option<u64>,
    unit: Option<GivenUnit>,
    line: u64,
    started: Nanos,
}

/// A time of a run, with the row that gives it.
#[derive(Debug, Clone, Copy)]
struct Timed {
    seconds: f64,
    line: u64,
    started: Nanos,
}

/// Real, user and system times by their order.
#[derive(Debug, Clone, Default)]
struct ShellTimes {
    real: Vec<Timed>,
    user: Vec<f64>,
    system: Vec<f64>,
}

/// Related rows, which are combined in order once all rows are read.
#[derive(Default)]
struct Joined {
    order: Vec<TestKey>,
    extremes: HashMap<TestKey, Extremes>,
    times: HashMap<TestKey, ShellTimes>,
    /// The kind of the first figure of a test and metric.
    kinds: HashMap<(TestKey, String), &'static str>,
}

/// A note of a row that repeats an earlier one.
const COUNTED_ONCE: &str = "count it once";

/// Reads the table row by row: it may be far larger than the samples that are made of it.
pub(super) fn parse(text: impl Read, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut joined = Joined::default();
    let columns = KnownColumns { needed: &NEEDED, is_known: |column| KNOWN.contains(&column) };
    Table::each(text, &columns, gathered, |row, gathered| take(row, gathered, &mut joined))?;
    joined.finish(gathered)
}

fn take(row: &TableRow<'_>, gathered: &mut Gathered<'_>, joined: &mut Joined) -> Result<(), Fault> {
    let value = row.number("value")?;
    let error = row.number("sem")?;
    let count = row.count("n")?;
    check_range(row, value)?;
    let started = date(row)?;
    let Some(value) = value else {
        gathered.leave_out("rows without a value (ranges, and unpublished figures)");
        return Ok(());
    };
    if row.text("note").contains(COUNTED_ONCE) {
        gathered.leave_out("rows that are printed twice in their source");
        return Ok(());
    }
    let Some(unit) = unit(row.text("unit")) else {
        gathered.leave_out(format!("rows in `{}`, which is no time and no rate", row.text("unit")));
        return Ok(());
    };
    let key = key(row);
    if key.system.is_empty() || key.test.is_empty() {
        return Err(Fault::at(row.line, "a row needs a system and a test"));
    }
    match (row.text("metric"), unit) {
        ("max" | "min" | "mean", _) => joined.extreme(row, key, value, count, unit),
        ("real" | "user" | "sys", GivenUnit::Time(factor)) => {
            joined.time(row, key, Timed { seconds: value * factor, line: row.line, started });
            Ok(())
        }
        ("wait", GivenUnit::Time(_)) => {
            gathered.leave_out("wait, which is real less user and sys");
            Ok(())
        }
        (metric, _) => {
            let figure = if matches!(metric, "time" | "throughput") { "" } else { metric };
            let figure = joined.figure(&key, figure, unit);
            let spread = error.zip(count).filter(|_| gathered.options.errors_of_runs);
            let values = spread.and_then(|(error, count)| with_error(value, error, count));
            for value in values.unwrap_or_else(|| vec![value]) {
                let did = GivenWork { started, ..work(value, unit, row.line)? };
                gathered.add(given(&key, &figure, did, gathered.options.any_parameters));
            }
            Ok(())
        }
    }
}

/// A value lies within its range.
fn check_range(row: &TableRow<'_>, value: Option<f64>) -> Result<(), Fault> {
    let [least, most] = [row.number("value_min")?, row.number("value_max")?];
    let value = value.or(least).or(most).unwrap_or(0.0);
    let is_within = least.is_none_or(|least| least <= value) && most.is_none_or(|most| value <= most);
    if is_within {
        return Ok(());
    }
    let range = [row.text("value_min"), row.text("value_max")].join(" to ");
    Err(Fault::at(row.line, format!("a value of {value} in the range {range}: one of them is wrong")))
}

/// Returns the date of a row, or zero if it has none.
fn date(row: &TableRow<'_>) -> Result<Nanos, Fault> {
    let text = row.text("date");
    if text.is_empty() {
        return Ok(Nanos(0));
    }
    dates::iso(text).ok_or_else(|| {
        Fault::at(row.line, format!("date `{text}`: write 2026-01-31, or 2026-01-31T10:00:00"))
    })
}

fn key(row: &TableRow<'_>) -> TestKey {
    let text = |column: &str| row.text(column).to_owned();
    TestKey { source: text("source"), system: text("system"), test: text("test"), params: text("params") }
}

fn work(value: f64, unit: GivenUnit, line: u64) -> Result<GivenWork, Fault> {
    match unit {
        GivenUnit::Time(factor) => GivenWork::of_time(value * factor, line),
        GivenUnit::ByteRate(factor) => GivenWork::of_byte_rate(value * factor, line),
        GivenUnit::Operations => GivenWork::of_operation_rate(value, line),
    }
}

fn given(key: &TestKey, figure: &str, did: GivenWork, any_parameters: bool) -> GivenFigure {
    let told = !any_parameters && !key.params.is_empty();
    let parameters = told.then(|| (String::new(), key.params.clone()));
    let run = ImportedRun {
        source: key.source.clone(),
        task: key.test.clone(),
        parameters: parameters.into_iter().collect(),
        figure: figure.to_owned(),
    };
    GivenFigure { target: key.system.clone(), stage: key.test.clone(), run, phase: Phase::Given, did }
}

impl Joined {
    fn known(&mut self, key: &TestKey) {
        if !self.extremes.contains_key(key) && !self.times.contains_key(key) {
            self.order.push(key.clone());
        }
    }

    fn extreme(
        &mut self,
        row: &TableRow<'_>,
        key: TestKey,
        value: f64,
        count: Option<u64>,
        unit: GivenUnit,
    ) -> Result<(), Fault> {
        self.known(&key);
        let found = self.extremes.entry(key).or_default();
        let metric = row.text("metric");
        let place = match metric {
            "max" => &mut found.greatest,
            "min" => &mut found.least,
            _ => &mut found.mean,
        };
        if place.replace(value).is_some() {
            return Err(Fault::at(row.line, format!("`{metric}` of the same test is there twice")));
        }
        if found.unit.is_some_and(|known| known != unit) {
            return Err(Fault::at(row.line, "the greatest, the least and the mean are in different units"));
        }
        found.count = count.or(found.count);
        found.unit = Some(unit);
        found.line = row.line;
        found.started = date(row)?;
        Ok(())
    }

    fn time(&mut self, row: &TableRow<'_>, key: TestKey, time: Timed) {
        self.known(&key);
        let times = self.times.entry(key).or_default();
        match row.text("metric") {
            "real" => times.real.push(time),
            "user" => times.user.push(time.seconds),
            _ => times.system.push(time.seconds),
        }
    }

    /// The name of a figure. A time and a rate of one test are no repeats. The kind that came first has no name
    /// of its own.
    fn figure(&mut self, key: &TestKey, metric: &str, unit: GivenUnit) -> String {
        let kind = match unit {
            GivenUnit::Time(_) => "time",
            GivenUnit::ByteRate(_) => "throughput",
            GivenUnit::Operations => "operations a second",
        };
        let first = self.kinds.entry((key.clone(), metric.to_owned())).or_insert(kind);
        match metric {
            _ if *first == kind => metric.to_owned(),
            "" => kind.to_owned(),
            _ => format!("{metric}, {kind}"),
        }
    }

    fn finish(mut self, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
        for key in std::mem::take(&mut self.order) {
            if let Some(found) = self.extremes.get(&key) {
                let found = found.clone();
                let figure = found.unit.map(|unit| self.figure(&key, "", unit)).unwrap_or_default();
                add_extremes(&key, &figure, &found, gathered)?;
            }
            if let Some(times) = self.times.remove(&key) {
                let figure = self.figure(&key, "", GivenUnit::Time(1.0));
                add_times(&key, &figure, &times, gathered)?;
            }
        }
        Ok(())
    }
}

fn add_extremes(
    key: &TestKey,
    figure: &str,
    found: &Extremes,
    gathered: &mut Gathered<'_>,
) -> Result<(), Fault> {
    let Extremes { greatest, least, mean, count, unit, line, started } = *found;
    let Some(unit) = unit else { return Ok(()) };
    let (Some(greatest), Some(least), Some(mean)) = (greatest, least, mean) else {
        let Some(alone) = mean else {
            let count = u64::from(greatest.is_some()) + u64::from(least.is_some());
            gathered.leave_out_many("`max` and `min` of a test without its `mean`", count);
            return Ok(());
        };
        let did = GivenWork { started, ..work(alone, unit, line)? };
        gathered.add(given(key, figure, did, gathered.options.any_parameters));
        return Ok(());
    };
    let known = Known { least, greatest, mean, count, deviation: None };
    let values = known.values().ok_or_else(|| {
        Fault::at(line, format!("a mean of {mean} between {least} and {greatest}: that can't be"))
    })?;
    for value in values {
        let did = GivenWork { started, ..work(value, unit, line)? };
        gathered.add(given(key, figure, did, gathered.options.any_parameters));
    }
    Ok(())
}

/// Combines the first real time with the first user time, the second with the second.
fn add_times(
    key: &TestKey,
    figure: &str,
    times: &ShellTimes,
    gathered: &mut Gathered<'_>,
) -> Result<(), Fault> {
    for (name, all) in [("user", &times.user), ("sys", &times.system)] {
        if all.len() != times.real.len() && !all.is_empty() {
            gathered.leave_out_many(
                format!("rows of `{name}`, which are not as many as those of `real`"),
                all.len() as u64,
            );
        }
    }
    for (at, Timed { seconds, line, started }) in times.real.iter().copied().enumerate() {
        // If some times are missing, nobody can tell to which runs the others belong.
        let is_whole = |all: &[f64]| all.len() == times.real.len();
        let of = |all: &[f64]| nanos(if is_whole(all) { all[at] } else { 0.0 }, line);
        let [user, system] = [of(&times.user)?, of(&times.system)?];
        let did = GivenWork { user, system, started, ..GivenWork::of_time(seconds, line)? };
        gathered.add(given(key, figure, did, gathered.options.any_parameters));
    }
    Ok(())
}
