//! IOR: the table of its text (versions 3 and 4), its CSV (`-O summaryFormat=CSV`) and its JSON (`-O summaryFormat=JSON`): a row for
//! each access of each repetition.

use nilometer_model::plan::{ImportedRun, Phase};
use serde::Deserialize;

use super::{
    Fault,
    gathered::{Gathered, GivenFigure, GivenWork, count, nanos},
    table::{Table, TableRow, number},
};

const MEBI: f64 = 1024.0 * 1024.0;
const KIBI: f64 = 1024.0;

/// Whether a first line is that of its CSV.
pub(super) fn is_csv(line: &str) -> bool {
    line.starts_with("access,bw(MiB/s),")
}

/// Whether a text is its JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"tests\"") && text.contains("\"bwMiB\"")
}

/// What a row says.
struct Access {
    phase: Phase,
    /// MiB a second.
    rate: f64,
    /// From the first open to the last close, in seconds.
    total: f64,
    /// Bytes of an operation.
    transfer: f64,
    line: u64,
}

impl Access {
    fn work(&self) -> Result<GivenWork, Fault> {
        let wall = nanos(self.total, self.line)?;
        if wall.0 == 0 {
            return Err(Fault::at(self.line, "an access that took no time"));
        }
        let bytes = count(self.rate * MEBI * wall.seconds(), self.line)?;
        let operations = if self.transfer > 0.0 { bytes as f64 / self.transfer } else { 0.0 };
        Ok(GivenWork { bytes, operations: count(operations, self.line)?, wall, ..GivenWork::default() })
    }
}

fn phase(access: &str) -> Option<Phase> {
    match access {
        "write" => Some(Phase::Write),
        "read" => Some(Phase::Read),
        _ => None,
    }
}

/// What stands above its table: of one test.
#[derive(Debug, Clone, Default)]
struct Setup {
    version: String,
    path: String,
    parameters: Vec<(String, String)>,
    /// The columns of its table, by their names.
    columns: Vec<String>,
}

/// Options of its text that are told, by the names that it gives them, and as they are told here.
const TOLD: [(&str, &str); 10] = [
    ("api", "api"),
    ("access", ""),
    ("type", ""),
    ("segments", "segments"),
    ("ordering in a file", "order"),
    ("nodes", "nodes"),
    ("tasks", "tasks"),
    ("xfersize", "transfer size"),
    ("blocksize", "block size"),
    ("aggregate filesize", "aggregate size"),
];

impl Setup {
    fn run(&self) -> ImportedRun {
        ImportedRun {
            source: format!("IOR {}", self.version).trim_end().to_owned(),
            task: String::new(),
            parameters: self.parameters.clone(),
            figure: String::new(),
        }
    }

    fn tell(&mut self, key: &str, value: &str) {
        if key == "Path" || key == "test filename" {
            value.clone_into(&mut self.path);
        }
        let told = TOLD.iter().find(|(name, _)| *name == key);
        if let Some((_, name)) = told.filter(|_| !value.is_empty()) {
            self.parameters.retain(|(known, _)| known != name || name.is_empty());
            self.parameters.push(((*name).to_owned(), value.to_owned()));
        }
    }

    fn figure(&self, access: &Access) -> Result<GivenFigure, Fault> {
        Ok(GivenFigure {
            target: if self.path.is_empty() { "IOR".into() } else { self.path.clone() },
            stage: "IOR".into(),
            run: self.run(),
            phase: access.phase,
            did: access.work()?,
        })
    }
}

pub(super) fn parse_text(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut setup = Setup::default();
    let mut ended = false;
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(version) = version(text) {
            setup = Setup { version: version.to_owned(), ..Setup::default() };
            ended = false;
        } else if text.starts_with("StartTime") {
            setup.parameters.clear();
        } else if text.starts_with("access ") && text.contains("bw(MiB/s)") {
            setup.columns = text.split_whitespace().map(str::to_owned).collect();
        } else if let Some(access) = row(text, &setup, line)? {
            gathered.add(setup.figure(&access)?);
        } else if let Some((key, value)) = text.split_once(':') {
            setup.tell(key.trim(), value.trim());
        }
        ended |= text.starts_with("Max ")
            || text.starts_with("Summary of all tests")
            || text.starts_with("Finished");
    }
    if ended {
        Ok(())
    } else {
        Err(Fault::whole("cut off: the summary behind the table of results is missing"))
    }
}

/// `IOR-4.0.0: MPI Coordinated Test of Parallel I/O`.
fn version(text: &str) -> Option<&str> {
    text.strip_prefix("IOR-")?.split_once(": MPI Coordinated").map(|(version, _)| version)
}

/// A row of the table of results; none of any other line.
fn row(text: &str, setup: &Setup, line: u64) -> Result<Option<Access>, Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(phase) = words.first().and_then(|word| phase(word)) else { return Ok(None) };
    // The summary has rows of these names too, with many more columns.
    if setup.columns.is_empty() || words.len() != setup.columns.len() {
        return Ok(None);
    }
    let place = |name: &str| setup.columns.iter().position(|column| column == name);
    let no_number = |name: &str| Fault::at(line, format!("{name} is no number that is at least zero"));
    let of = |name: &str| place(name).and_then(|at| number(words[at])).ok_or_else(|| no_number(name));
    let transfer = of("xfer(KiB)")? * KIBI;
    Ok(Some(Access { phase, rate: of("bw(MiB/s)")?, total: of("total(s)")?, transfer, line }))
}

const CSV_NEEDED: [&str; 5] = ["access", "bw(MiB/s)", "block(KiB)", "xfer(KiB)", "total(s)"];

pub(super) fn parse_csv(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    Table::each(text.as_bytes(), &CSV_NEEDED, |row| take_row(row, gathered))
}

fn take_row(row: &TableRow<'_>, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let access = row.text("access");
    let Some(phase) = phase(access) else {
        gathered.leave_out(format!("rows of {access}"));
        return Ok(());
    };
    let needed =
        |column: &str| row.number(column)?.ok_or_else(|| Fault::at(row.line, format!("{column} is empty")));
    let transfer = needed("xfer(KiB)")? * KIBI;
    let access =
        Access { phase, rate: needed("bw(MiB/s)")?, total: needed("total(s)")?, transfer, line: row.line };
    let mut setup = Setup::default();
    setup.tell("tasks", row.text("numTasks"));
    setup.tell("xfersize", &size(transfer));
    setup.tell("blocksize", &size(needed("block(KiB)")? * KIBI));
    gathered.add(setup.figure(&access)?);
    Ok(())
}

fn size(bytes: f64) -> String {
    #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
    nilometer_model::Bytes(bytes as u64).to_string()
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "Version", default)]
    version: String,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    #[serde(rename = "Path", default)]
    path: String,
    #[serde(rename = "Options", default)]
    options: serde_json::Map<String, serde_json::Value>,
    #[serde(rename = "Results", default)]
    results: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonAccess {
    #[serde(rename = "bwMiB")]
    rate: f64,
    #[serde(rename = "xferKiB")]
    transfer: f64,
    total_time: f64,
}

pub(super) fn parse_json(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let document: Document = serde_json::from_str(text).map_err(|error| json_fault(&error))?;
    for test in document.tests {
        let mut setup = Setup { version: document.version.clone(), path: test.path, ..Setup::default() };
        for (key, value) in &test.options {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            setup.tell(key, &text);
        }
        for access in test.results.iter().flat_map(accesses) {
            let access = access?;
            gathered.add(setup.figure(&access)?);
        }
    }
    Ok(())
}

/// Results are lists of the accesses of a repetition, or these by themselves.
fn accesses(result: &serde_json::Value) -> Vec<Result<Access, Fault>> {
    let one = std::slice::from_ref(result);
    let all = result.as_array().map_or(one, Vec::as_slice);
    all.iter().filter_map(|access| json_access(access).transpose()).collect()
}

fn json_access(value: &serde_json::Value) -> Result<Option<Access>, Fault> {
    let said = |error: serde_json::Error| Fault::whole(format!("a result of IOR: {error}"));
    let Some(phase) = value.get("access").and_then(serde_json::Value::as_str).and_then(phase) else {
        return Ok(None);
    };
    let JsonAccess { rate, transfer, total_time } = JsonAccess::deserialize(value).map_err(said)?;
    if rate < 0.0 || transfer < 0.0 || total_time < 0.0 {
        return Err(Fault::whole("a result of IOR has a figure below zero"));
    }
    Ok(Some(Access { phase, rate, total: total_time, transfer: transfer * KIBI, line: 0 }))
}

/// With the line that the parser names.
pub(super) fn json_fault(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let why = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let why = if error.is_eof() { "cut off: the document does not end".to_owned() } else { why };
    Fault::at(error.line() as u64, why)
}
