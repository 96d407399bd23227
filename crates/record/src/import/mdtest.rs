//! mdtest: the table of rates in its text, as versions 1.8 to 4 write it. It has the greatest, the least, the
//! mean and the standard deviation over iterations. `-P`, with which IO500 runs it, adds a table of times:
//! rates are taken, and held against it.

use nilometer_command_lines::MdtestCommand;
use nilometer_model::{Nanos, Phase};
use nilometer_plan::ImportedRun;

use super::{
    Fault, dates,
    gathered::{Gathered, GivenFigure, GivenWork},
    mdtest_table::{Iterations, MdtestItems, OperationRow, is_heading},
};

/// The lines above a table.
#[derive(Debug, Clone, Default)]
struct Launch {
    version: String,
    path: String,
    tasks: String,
    nodes: String,
    options: String,
    started: Nanos,
    items: MdtestItems,
}

/// The table that rows belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    NoTable,
    /// Operations a second.
    Rates(u64),
    /// Seconds of all operations together.
    Times,
    /// Milliseconds of an operation: each follows from a rate.
    TimesOfOne,
}

/// The text so far.
struct Reading<'a, 'b> {
    gathered: &'a mut Gathered<'b>,
    launch: Launch,
    rows: Rows,
    /// Rates of the last table, against which times are held.
    rates: Vec<(String, Iterations)>,
    is_launched: bool,
    is_ended: bool,
    /// The line of a table of times without one of rates.
    only_times: Option<u64>,
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut reading = Reading {
        gathered,
        launch: Launch::default(),
        rows: Rows::NoTable,
        rates: Vec::new(),
        is_launched: false,
        is_ended: false,
        only_times: None,
    };
    for (line, text) in (1..).zip(text.lines()) {
        reading.take(text, line)?;
    }
    if let Some(line) = reading.only_times {
        return Err(Fault::at(
            line,
            "times without rates: run mdtest without --print-time, or with -P for both",
        ));
    }
    match (reading.is_launched, reading.is_ended) {
        (true, true) => Ok(()),
        (false, _) => Err(Fault::whole("cut off: a run of mdtest that was not launched")),
        (true, false) => Err(Fault::whole("cut off: `-- finished at` is missing")),
    }
}

impl Reading<'_, '_> {
    fn take(&mut self, text: &str, line: u64) -> Result<(), Fault> {
        let words = text.trim();
        if let Some(launch) = launched(words) {
            let started = self.launch.started;
            self.launch = Launch { started, ..launch };
            self.is_launched = true;
        } else if let Some(rest) = words.strip_prefix("-- started at ") {
            self.launch.started = dates::month_first(rest.trim_end_matches(['-', ' '])).unwrap_or_default();
        } else if let Some(options) = words.strip_prefix("Command line used:") {
            let command = MdtestCommand::read(options);
            self.launch.options = command.options;
            self.launch.items.is_limited = command.is_limited;
        } else if let Some(path) = words.strip_prefix("Path").map(|rest| rest.trim_start_matches([' ', ':']))
        {
            path.clone_into(&mut self.launch.path);
        } else if let Some((tasks, count)) = items(words) {
            // With -f, -l and -s each table is of another number of tasks.
            tasks.clone_into(&mut self.launch.tasks);
            self.launch.items.count = Some(count);
        } else if words.starts_with("SUMMARY") {
            self.open_table(words, line)?;
        } else if words.contains("-- finished at") {
            self.is_ended = true;
            self.rows = Rows::NoTable;
        } else if self.rows != Rows::NoTable {
            self.take_row(words, line)?;
        }
        Ok(())
    }

    /// `SUMMARY rate: (of 3 iterations)`; `SUMMARY: ...` before version 3, `SUMMARY time (in ms/op): ...` in
    /// version 4.1.
    fn open_table(&mut self, text: &str, line: u64) -> Result<(), Fault> {
        let number = text.split_once("(of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        let iterations = number.ok_or_else(|| Fault::at(line, "`(of N iterations)` is missing"))?;
        if !text.starts_with("SUMMARY time") {
            self.rates.clear();
            self.rows = Rows::Rates(iterations);
            return Ok(());
        }
        self.rows = if text.contains("(in ") { Rows::TimesOfOne } else { Rows::Times };
        if self.rates.is_empty() {
            self.only_times = Some(line);
        }
        Ok(())
    }

    fn take_row(&mut self, text: &str, line: u64) -> Result<(), Fault> {
        if is_heading(text) {
            return Ok(());
        }
        let Some(row) = OperationRow::read(text, line)? else {
            return Ok(());
        };
        match self.rows {
            Rows::Rates(iterations) => self.add(&row, iterations, line),
            Rows::Times => self.check(&row, line),
            Rows::NoTable | Rows::TimesOfOne => Ok(()),
        }
    }

    /// Checks that the rate and the time give the number of operations in the options.
    fn check(&mut self, row: &OperationRow, line: u64) -> Result<(), Fault> {
        let Some((_, rates)) = self.rates.iter().find(|(name, _)| *name == row.name) else { return Ok(()) };
        self.launch.items.check(row, rates, line)
    }

    fn add(&mut self, row: &OperationRow, iterations: u64, line: u64) -> Result<(), Fault> {
        self.rates.push((row.name.clone(), row.over));
        if row.over.greatest <= 0.0 {
            self.gathered.leave_out("operations that were not done (a rate of zero)");
            return Ok(());
        }
        let launch = &self.launch;
        let phase = row.phase();
        let figure = if phase == Phase::Given { row.name.as_str() } else { "" };
        for value in row.over.values(iterations, line)? {
            let did = GivenWork { started: launch.started, ..GivenWork::of_operation_rate(value, line)? };
            let target = if launch.path.is_empty() { "mdtest".into() } else { launch.path.clone() };
            self.gathered.add(GivenFigure {
                target,
                stage: "mdtest".into(),
                run: run(launch, figure),
                phase,
                did,
            });
        }
        Ok(())
    }
}

/// `mdtest-4.0.0 was launched with 10 total task(s) on 2 node(s)`.
fn launched(text: &str) -> Option<Launch> {
    let (version, rest) = text.strip_prefix("mdtest-")?.split_once(" was launched with ")?;
    let (tasks, rest) = rest.split_once(" total task(s) on ")?;
    let nodes = rest.split(' ').next()?;
    let [version, tasks, nodes] = [version, tasks, nodes].map(str::to_owned);
    Some(Launch { version, tasks, nodes, ..Launch::default() })
}

/// The tasks and the items: `64 tasks, 131072 files/directories`, `10 tasks, 33340 files`.
fn items(text: &str) -> Option<(&str, f64)> {
    let (tasks, rest) = text.split_once(" tasks, ")?;
    tasks.parse::<u64>().ok()?;
    let (count, kind) = rest.split_once(' ')?;
    let is_kind = ["files", "directories"].iter().any(|name| kind.starts_with(name));
    Some((tasks, count.parse().ok().filter(|_| is_kind)?))
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
