//! mdtest: the table of rates in its text, as version 4 writes it and those before it did. It has the greatest, the least, the mean
//! and the standard deviation over iterations.

use nilometer_model::plan::{ImportedRun, Phase};

use super::{
    Fault,
    gathered::{Gathered, GivenFigure, GivenWork},
    stand_in::Known,
    table::number,
};

/// What stands above a table.
#[derive(Debug, Clone, Default)]
struct Launch {
    version: String,
    path: String,
    tasks: String,
    nodes: String,
    options: String,
    /// Iterations of the table below; none outside of one.
    iterations: Option<u64>,
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut launch = Launch::default();
    let mut begun = false;
    let mut ended = true;
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(next) = launched(text) {
            launch = next;
            begun = true;
            ended = false;
        } else if let Some(options) = text.strip_prefix("Command line used:") {
            launch.options = told_options(options);
        } else if let Some(path) = text.strip_prefix("Path").map(|rest| rest.trim_start_matches([' ', ':'])) {
            path.trim().clone_into(&mut launch.path);
        } else if text.starts_with("SUMMARY time") {
            return Err(Fault::at(
                line,
                "times an operation: run mdtest without --print-time, which gives rates",
            ));
        } else if text.starts_with("SUMMARY") {
            launch.iterations = Some(iterations(text, line)?);
        } else if text.contains("-- finished at") {
            ended = true;
        } else if let Some((operation, rates)) = row(text).filter(|_| launch.iterations.is_some()) {
            add(&launch, operation, &rates, line, gathered)?;
        }
    }
    match (begun, ended) {
        (true, true) => Ok(()),
        (false, _) => Err(Fault::whole("no run of mdtest")),
        (true, false) => Err(Fault::whole("cut off: `-- finished at` is missing")),
    }
}

/// `mdtest-4.0.0 was launched with 10 total task(s) on 2 node(s)`.
fn launched(text: &str) -> Option<Launch> {
    let (version, rest) = text.trim().strip_prefix("mdtest-")?.split_once(" was launched with ")?;
    let (tasks, rest) = rest.split_once(" total task(s) on ")?;
    let nodes = rest.split(' ').next()?;
    let [version, tasks, nodes] = [version, tasks, nodes].map(str::to_owned);
    Some(Launch { version, tasks, nodes, ..Launch::default() })
}

/// The options as they were given, without quotes, the program and where it was to run.
fn told_options(line: &str) -> String {
    let words: Vec<String> =
        line.split_whitespace().skip(1).map(|word| word.replace(['\'', '"'], "")).collect();
    let mut told: Vec<&str> = Vec::new();
    let mut skipped = false;
    for word in &words {
        let is_place = word == "-d";
        if !is_place && !skipped {
            told.push(word);
        }
        skipped = is_place;
    }
    told.join(" ")
}

/// `SUMMARY rate: (of 3 iterations)`.
fn iterations(text: &str, line: u64) -> Result<u64, Fault> {
    let number = text.split_once("(of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    number.ok_or_else(|| Fault::at(line, "`(of N iterations)` is missing"))
}

/// Operations by their names, which a colon may follow.
const OPERATIONS: [(&str, Option<Phase>); 11] = [
    ("Directory creation", Some(Phase::MakeDirectories)),
    ("Directory stat", Some(Phase::StatDirectories)),
    ("Directory read", None),
    ("Directory rename", None),
    ("Directory removal", Some(Phase::RemoveDirectories)),
    ("File creation", Some(Phase::CreateFiles)),
    ("File stat", Some(Phase::StatFiles)),
    ("File read", Some(Phase::ReadFiles)),
    ("File removal", Some(Phase::RemoveFiles)),
    ("Tree creation", Some(Phase::MakeTree)),
    ("Tree removal", Some(Phase::RemoveTree)),
];

/// An operation with the rest of its line.
fn row(text: &str) -> Option<(usize, String)> {
    let text = text.trim_start();
    let at = OPERATIONS.iter().position(|(name, _)| text.starts_with(name))?;
    let rest = text[OPERATIONS[at].0.len()..].trim_start_matches([' ', ':']);
    Some((at, rest.to_owned()))
}

fn add(
    launch: &Launch,
    operation: usize,
    rates: &str,
    line: u64,
    gathered: &mut Gathered<'_>,
) -> Result<(), Fault> {
    let numbers: Option<Vec<f64>> = rates.split_whitespace().map(number).collect();
    let numbers =
        numbers.ok_or_else(|| Fault::at(line, format!("`{rates}`: write numbers that are at least zero")))?;
    let [greatest, least, mean, deviation] = numbers[..] else {
        return Err(Fault::at(
            line,
            format!("{} figures: greatest, least, mean and deviation are 4", numbers.len()),
        ));
    };
    if greatest <= 0.0 {
        gathered.leave_out("operations that were not done (a rate of zero)");
        return Ok(());
    }
    let count = launch.iterations;
    let known = Known { least, greatest, mean, count, deviation: Some(deviation) };
    let values = known.values().ok_or_else(|| {
        Fault::at(line, format!("a mean of {mean} between {least} and {greatest}: that can't be"))
    })?;
    let (name, phase) = OPERATIONS[operation];
    for value in values {
        gathered.add(GivenFigure {
            target: if launch.path.is_empty() { "mdtest".into() } else { launch.path.clone() },
            stage: "mdtest".into(),
            run: run(launch, if phase.is_none() { name } else { "" }),
            phase: phase.unwrap_or(Phase::Given),
            did: GivenWork::of_operation_rate(value, line)?,
        });
    }
    Ok(())
}

fn run(launch: &Launch, figure: &str) -> ImportedRun {
    let told = [("tasks", &launch.tasks), ("nodes", &launch.nodes), ("options", &launch.options)];
    let told = told.into_iter().filter(|(_, value)| !value.is_empty());
    ImportedRun {
        source: format!("mdtest {}", launch.version),
        task: String::new(),
        parameters: told.map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        figure: figure.to_lowercase(),
    }
}
