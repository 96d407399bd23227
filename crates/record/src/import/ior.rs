//! IOR: the tables of its text (versions 2 to 4) and its CSV (`-O summaryFormat=CSV`). A table has a row for
//! each access of each repetition; IOR 2 prints a summary of these rows instead.
//!
//! IOR within IO500 prints no summary. Its text is whole if each access has as many rows as there were repetitions.

use nilometer_command_lines::IorCommand;
use nilometer_model::Phase;

use super::{
    Fault,
    agreement::SameFigure,
    dates,
    gathered::Gathered,
    ior_test::{Access, IorSummary, IorTest, KIBI, OperationRate, phase},
    table::{Fields, KnownColumns, Table, TableRow, number},
};

/// Returns true if a line is the header of its CSV.
pub(super) fn is_csv(line: &str) -> bool {
    line.starts_with("access,bw(MiB/s),")
}

/// `IOR-4.0.0: MPI Coordinated Test of Parallel I/O`.
pub(super) fn version(text: &str) -> Option<&str> {
    text.strip_prefix("IOR-")?.split_once(": MPI Coordinated").map(|(version, _)| version)
}

pub(super) fn parse_text(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut reading = Reading::new(gathered);
    for (line, text) in (1..).zip(text.lines()) {
        reading.take(text.trim_end(), line)?;
    }
    if !reading.has_results() {
        return Err(Fault::whole("cut off: IOR's table of results is missing"));
    }
    reading.check_whole()
}

/// The table that rows belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsOf {
    NoTable,
    /// A row for each access of each repetition.
    Accesses,
    /// The greatest, the least, the mean and the standard deviation of these.
    Summary,
}

/// The text so far.
struct Reading<'a, 'b> {
    gathered: &'a mut Gathered<'b>,
    test: IorTest,
    tests: u64,
    /// Accesses that the command line asks for; empty if it does not say.
    asked: Vec<Phase>,
    /// The command line.
    command: Option<IorCommand>,
    rows: RowsOf,
    /// The columns of the table, by their names.
    columns: Vec<String>,
    /// Bytes that IOR says it moved in the access whose row comes next.
    moved: Option<f64>,
    /// Rows of a summary that stand for repetitions, since the text has no row for each.
    summaries: usize,
    /// IOR printed a line that it only prints behind a complete table.
    is_complete: bool,
}

impl<'a, 'b> Reading<'a, 'b> {
    fn new(gathered: &'a mut Gathered<'b>) -> Self {
        Reading {
            gathered,
            test: IorTest::default(),
            tests: 0,
            asked: Vec::new(),
            command: None,
            rows: RowsOf::NoTable,
            columns: Vec::new(),
            moved: None,
            summaries: 0,
            is_complete: false,
        }
    }

    fn has_results(&self) -> bool {
        !self.test.rows.is_empty() || self.summaries > 0
    }

    fn take(&mut self, text: &str, line: u64) -> Result<(), Fault> {
        let words = text.trim_start();
        if let Some(version) = version(words) {
            version.clone_into(&mut self.test.version);
        } else if words.starts_with("access ") && words.contains("bw(MiB/s)") {
            self.columns = words.split_whitespace().map(str::to_owned).collect();
            self.rows = RowsOf::Accesses;
        } else if words.starts_with("Operation ") && words.contains("Max") {
            self.rows = RowsOf::Summary;
        } else if let Some(moved) =
            words.split_once("Using actual aggregate bytes moved").map(|(_, rest)| rest)
        {
            self.moved = number(moved.trim_matches([' ', '=', '.']));
        } else if is_complaint(words) {
            self.take_complaint(words, line)?;
        } else if let Some(rest) = words.strip_prefix("Max Write:") {
            self.check_greatest(Phase::Write, rest, line)?;
        } else if let Some(rest) = words.strip_prefix("Max Read:") {
            self.check_greatest(Phase::Read, rest, line)?;
        } else if words.starts_with("Finished") || words.starts_with("Run finished") {
            self.is_complete = true;
        } else if !self.is_row(words, line)? {
            self.take_option(words)?;
        }
        Ok(())
    }

    /// Takes a row of the open table.
    fn is_row(&mut self, text: &str, line: u64) -> Result<bool, Fault> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(first) = words.first() else { return Ok(false) };
        if self.rows == RowsOf::Accesses && *first == "remove" {
            self.gathered.leave_out("removals of IOR's files");
            return Ok(true);
        }
        let Some(phase) = phase(first) else { return Ok(false) };
        let is_figure =
            words.get(1).is_some_and(|word| word.starts_with(['-', '.']) || number(word).is_some());
        match self.rows {
            RowsOf::NoTable => Ok(false),
            _ if !is_figure => Ok(false),
            RowsOf::Accesses => self.add_access(phase, &words, line).map(|()| true),
            RowsOf::Summary => self.add_summary(phase, &words, line).map(|()| true),
        }
    }

    fn add_access(&mut self, phase: Phase, words: &[&str], line: u64) -> Result<(), Fault> {
        if words.len() != self.columns.len() {
            let [given, wanted] = [words.len(), self.columns.len()];
            return Err(Fault::at(
                line,
                format!("cut off: a row of {given} figures, and the table has {wanted}"),
            ));
        }
        let access = self.access(phase, words, line)?;
        let figure = self.test.figure(access, self.moved.take())?;
        self.gathered.add(figure);
        Ok(())
    }

    fn access(&self, phase: Phase, words: &[&str], line: u64) -> Result<Access, Fault> {
        let place = |name: &str| self.columns.iter().position(|column| column == name);
        let of = |name: &str| {
            let value = place(name).and_then(|at| number(words[at]));
            value.ok_or_else(|| Fault::at(line, format!("{name} is no number that is at least zero")))
        };
        let operations = match place("IOPS") {
            Some(_) => Some(OperationRate { rate: of("IOPS")?, seconds: of("wr/rd(s)")? }),
            None => None,
        };
        Ok(Access {
            phase,
            rate: of("bw(MiB/s)")?,
            total: of("total(s)")?,
            transfer: of("xfer(KiB)")? * KIBI,
            block: of("block(KiB)")? * KIBI,
            operations,
            line,
        })
    }

    /// A summary repeats the rows above it. IOR 2 prints it alone.
    fn add_summary(&mut self, phase: Phase, words: &[&str], line: u64) -> Result<(), Fault> {
        self.is_complete = true;
        let numbers: Option<Vec<f64>> = words.iter().skip(1).take(4).map(|word| number(word)).collect();
        let Some(&[greatest, least, mean, deviation]) = numbers.as_deref() else {
            return Err(Fault::at(
                line,
                "a summary has a greatest, a least and a mean rate and their deviation",
            ));
        };
        let summary = IorSummary { phase, greatest, least, mean, deviation, line };
        if self.test.rows.is_empty() {
            let figures = self.test.of_summary(&summary)?;
            self.summaries += figures.len();
            for figure in figures {
                self.gathered.add(figure);
            }
            return Ok(());
        }
        // Behind several tests it has a row for each of them, and only the last one's rows are at hand.
        if self.tests > 1 { Ok(()) } else { summary.check(&self.test.rows) }
    }

    fn check_greatest(&mut self, phase: Phase, text: &str, line: u64) -> Result<(), Fault> {
        self.is_complete = true;
        self.rows = RowsOf::NoTable;
        let rates = self.test.rows.iter().filter(|row| row.phase == phase).map(|row| row.rate);
        let Some(follows) = rates.reduce(f64::max) else { return Ok(()) };
        let given = text.split_whitespace().next().and_then(number);
        let given = given.ok_or_else(|| Fault::at(line, "the greatest rate is no number"))?;
        let source = "the rows of the table";
        SameFigure { name: "the greatest rate", given, source, follows, unit: "MiB/s", slack: 0.0 }
            .check(line)
    }

    /// An option in the form `name : value`, or `name = value` before IOR 3.2.
    fn take_option(&mut self, text: &str) -> Result<(), Fault> {
        if text == "Summary:" && self.has_results() {
            return self.begin_test();
        }
        let Some((key, value)) = text.split_once([':', '=']) else { return Ok(()) };
        let [key, value] = [key.trim(), value.trim()];
        match key {
            "StartTime" => self.begin_test_at(value),
            _ if key.starts_with("Test ") && key.ends_with(" started") => self.begin_test_at(value),
            "Began" | "Run began" => {
                self.test.started = dates::ctime(value).unwrap_or_default();
                Ok(())
            }
            "Command line" | "Command line used" => {
                self.take_command(value);
                Ok(())
            }
            // Behind the header of the table other lines may look like options.
            _ if self.rows != RowsOf::NoTable => Ok(()),
            _ => {
                self.test.tell(key, value);
                Ok(())
            }
        }
    }

    fn take_command(&mut self, command: &str) {
        let command = IorCommand::read(command);
        let asked = [(command.writes, Phase::Write), (command.reads, Phase::Read)];
        self.asked = asked.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, phase)| phase).collect();
        self.test.tell_command(&command);
        self.command = Some(command);
    }

    /// Counts a line in which IOR itself doubts its figures. It refuses figures of wrong data.
    fn take_complaint(&mut self, text: &str, line: u64) -> Result<(), Fault> {
        if text.to_ascii_lowercase().contains("incorrect data on") {
            return Err(Fault::at(line, format!("IOR found wrong data, so its figures are none: `{text}`")));
        }
        self.gathered.leave_out(format!("`{text}` of IOR"));
        Ok(())
    }

    fn begin_test_at(&mut self, date: &str) -> Result<(), Fault> {
        self.begin_test()?;
        if let Some(started) = dates::ctime(date) {
            self.test.started = started;
        }
        Ok(())
    }

    fn begin_test(&mut self) -> Result<(), Fault> {
        if self.has_results() {
            self.check_whole()?;
        }
        let IorTest { version, started, .. } = std::mem::take(&mut self.test);
        self.test = IorTest::begun(&version, started);
        if let Some(command) = &self.command {
            self.test.tell_command(command);
        }
        self.tests += 1;
        self.rows = RowsOf::NoTable;
        self.columns.clear();
        self.summaries = 0;
        self.is_complete = false;
        Ok(())
    }

    /// Without a summary the rows of the table must be all that were asked for.
    fn check_whole(&self) -> Result<(), Fault> {
        if self.is_complete {
            return Ok(());
        }
        let wanted = self.test.repetitions.unwrap_or(1);
        let count = |phase: Phase| self.test.rows.iter().filter(|row| row.phase == phase).count() as u64;
        for (phase, name) in [(Phase::Write, "write"), (Phase::Read, "read")] {
            let found = count(phase);
            let is_asked = self.asked.contains(&phase) || found > 0;
            if is_asked && found < wanted {
                let rows = format!("{found} of {wanted} rows of {name}");
                return Err(Fault::whole(format!("cut off: {rows}, and no summary behind the table")));
            }
        }
        Ok(())
    }
}

/// `WARNING: ...`, `ior WARNING: ...`, `ior ERROR: ...`.
fn is_complaint(text: &str) -> bool {
    let text = text.strip_prefix("ior ").unwrap_or(text);
    text.starts_with("WARNING") || text.starts_with("ERROR")
}

const CSV_NEEDED: [&str; 5] = ["access", "bw(MiB/s)", "block(KiB)", "xfer(KiB)", "total(s)"];

/// Columns that are taken, or that say how the total time is made up.
const CSV_KNOWN: [&str; 12] = [
    "access",
    "bw(MiB/s)",
    "IOPS",
    "Latency",
    "block(KiB)",
    "xfer(KiB)",
    "open(s)",
    "wr/rd(s)",
    "close(s)",
    "total(s)",
    "numTasks",
    "iter",
];

pub(super) fn parse_csv(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let columns = KnownColumns { needed: &CSV_NEEDED, is_known: |column| CSV_KNOWN.contains(&column) };
    Table::each(text.as_bytes(), &columns, gathered, take_row)
}

fn take_row(row: &TableRow<'_>, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let access = row.text("access");
    let Some(phase) = phase(access) else {
        gathered.leave_out(format!("rows of {access}"));
        return Ok(());
    };
    let needed =
        |column: &str| row.number(column)?.ok_or_else(|| Fault::at(row.line, format!("{column} is empty")));
    let operations = row.number("IOPS")?.zip(row.number("wr/rd(s)")?);
    let access = Access {
        phase,
        rate: needed("bw(MiB/s)")?,
        total: needed("total(s)")?,
        transfer: needed("xfer(KiB)")? * KIBI,
        block: needed("block(KiB)")? * KIBI,
        operations: operations.map(|(rate, seconds)| OperationRate { rate, seconds }),
        line: row.line,
    };
    let mut test = IorTest::default();
    test.tell("tasks", row.text("numTasks"));
    let figure = test.figure(access, None)?;
    gathered.add(figure);
    Ok(())
}
