//! How long it takes to compare two campaigns of 100 000 samples, and to import a table with a million rows.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::Context as _;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place, report,
};

const TRUE: &str = "true";
const COMPARE: &str = "nilometer compare --json";
const IMPORT: &str = "nilometer import";

/// Rows of the table, over systems and tests.
const ROWS: u32 = 1_000_000;
const SYSTEMS: u32 = 4;
const TESTS: u32 = 250;

/// Two campaigns beside each other.
pub(crate) fn compare(stop: &Stop) -> anyhow::Result<Outcome> {
    let program = place::program()?;
    let home = place::in_memory()?;
    let [before, after] = ["before.sqlite", "after.sqlite"].map(|name| home.path().join(name));
    report::write(&before).context("the record can't be made")?;
    fs::copy(&before, &after).context("the record can't be copied")?;
    let ours = || {
        let mut command = Command::new(&program);
        command.arg("compare").arg(&before).arg(&after).arg("--json");
        Ok(vec![measure::child(1.0, &mut command)?.0])
    };
    let title = "compare: two campaigns of 100 000 samples each";
    contest(title, &["compare"], COMPARE, 3000.0, ours).run(stop)
}

/// A table as a record.
pub(crate) fn import(stop: &Stop) -> anyhow::Result<Outcome> {
    let program = place::program()?;
    let home = place::in_memory()?;
    let [table, record] = ["table.csv", "table.sqlite"].map(|name| home.path().join(name));
    write(&table).context("the table can't be made")?;
    let ours = || {
        let mut command = Command::new(&program);
        command.arg("import").arg(&table).arg("--record").arg(&record);
        let cost = measure::child(1.0, &mut command)?.0;
        fs::remove_file(&record)?;
        Ok(vec![cost])
    };
    contest("import: a table with a million rows", &["import"], IMPORT, 10_000.0, ours).run(stop)
}

/// Ours against a program that does nothing.
fn contest<'a>(
    title: &str,
    phases: &'static [&'static str],
    ours: &'static str,
    limit: f64,
    run: impl FnMut() -> anyhow::Result<Vec<Cost>> + 'a,
) -> Contest<'a> {
    Contest {
        title: title.into(),
        quantity: Quantity::WallPerStart,
        phases,
        rounds: 5,
        contestants: vec![
            Contestant::new(TRUE, || Ok(vec![measure::child(1.0, &mut Command::new("true"))?.0])),
            Contestant::new(ours, run),
        ],
        bounds: vec![Bound { subject: ours, peer: TRUE, limit: Limit::More(limit) }],
    }
}

fn write(path: &Path) -> anyhow::Result<()> {
    let mut text = String::from("source,system,test,params,metric,value,sem,n,unit\n");
    for row in 0..ROWS {
        let system = row % SYSTEMS;
        let number = row / SYSTEMS % TESTS;
        writeln!(
            text,
            "bench,system {system},test {number},block={number}k,throughput,{}.5,,,MB/s",
            100 + row % 97
        )?;
    }
    Ok(fs::write(path, text)?)
}
