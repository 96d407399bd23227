//! JSON of IOR (`-O summaryFormat=JSON`): a list of tests, each with its options and a result for each access of each repetition.

use nilometer_command_lines::IorCommand;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Fault, dates,
    gathered::Gathered,
    ior_test::{Access, IorSummary, IorTest, KIBI, OperationRate, phase},
    json_fault::json_fault,
};

#[derive(Deserialize)]
struct IorDocument {
    #[serde(rename = "Version", default)]
    version: String,
    #[serde(rename = "Began", default)]
    began: String,
    #[serde(rename = "Command line", default)]
    command: String,
    tests: Vec<JsonTest>,
    #[serde(default)]
    summary: Vec<JsonSummary>,
}

#[derive(Deserialize)]
struct JsonTest {
    #[serde(rename = "Path", default)]
    path: String,
    #[serde(rename = "StartTime", default)]
    started: String,
    #[serde(rename = "Parameters", default)]
    parameters: serde_json::Map<String, Value>,
    #[serde(rename = "Options", default)]
    options: serde_json::Map<String, Value>,
    #[serde(rename = "Results", default)]
    results: Vec<Value>,
}

/// Rates are in MiB a second, sizes in KiB, times in seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonAccess {
    #[serde(rename = "bwMiB")]
    rate: f64,
    #[serde(rename = "blockKiB", default)]
    block: f64,
    #[serde(rename = "xferKiB")]
    transfer: f64,
    iops: Option<f64>,
    #[serde(rename = "wrRdTime")]
    moving_time: Option<f64>,
    total_time: f64,
}

/// Rates of all repetitions, in MiB a second.
#[derive(Deserialize)]
struct JsonSummary {
    #[serde(default)]
    operation: String,
    #[serde(rename = "bwMaxMIB", default)]
    greatest: f64,
    #[serde(rename = "bwMinMIB", default)]
    least: f64,
    #[serde(rename = "bwMeanMIB", default)]
    mean: f64,
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let document: IorDocument = serde_json::from_str(text).map_err(|error| json_fault(&error))?;
    let began = dates::ctime(&document.began).unwrap_or_default();
    let mut last = IorTest::default();
    let count = document.tests.len();
    for test in document.tests {
        let started = dates::ctime(&test.started).unwrap_or(began);
        last = test.begun(&document.version, started);
        last.tell_command(&IorCommand::read(&document.command));
        for access in test.results.iter().flat_map(accesses) {
            let figure = last.figure(access?, None)?;
            gathered.add(figure);
        }
    }
    // A summary of several tests does not say which row is of which test.
    if count > 1 {
        return Ok(());
    }
    document
        .summary
        .iter()
        .filter_map(|summary| summary.of(&last))
        .try_for_each(|summary| summary.check(&last.rows))
}

impl JsonTest {
    fn begun(&self, version: &str, started: nilometer_model::Nanos) -> IorTest {
        let mut test = IorTest::begun(version, started);
        test.tell("Path", &self.path);
        let limit = self.parameters.get("deadlineForStonewall").into_iter();
        let limit = limit.map(|value| ("deadlineForStonewall", value));
        let options = self.options.iter().map(|(key, value)| (key.as_str(), value));
        for (key, value) in options.chain(limit) {
            let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            test.tell(key, &plain);
        }
        test
    }
}

impl JsonSummary {
    /// The summary of an access that has rows.
    fn of(&self, test: &IorTest) -> Option<IorSummary> {
        let JsonSummary { greatest, least, mean, .. } = *self;
        let phase = phase(&self.operation)?;
        let has_rows = test.rows.iter().any(|row| row.phase == phase);
        let summary = IorSummary { phase, greatest, least, mean, deviation: 0.0, line: 0 };
        (has_rows && greatest > 0.0).then_some(summary)
    }
}

/// Results are lists of the accesses of a repetition, or these by themselves.
fn accesses(result: &Value) -> Vec<Result<Access, Fault>> {
    let one = std::slice::from_ref(result);
    let all = result.as_array().map_or(one, Vec::as_slice);
    all.iter().filter_map(|access| json_access(access).transpose()).collect()
}

fn json_access(value: &Value) -> Result<Option<Access>, Fault> {
    let said = |error: serde_json::Error| Fault::whole(format!("a result of IOR: {error}"));
    let Some(phase) = value.get("access").and_then(Value::as_str).and_then(phase) else {
        return Ok(None);
    };
    let JsonAccess { rate, block, transfer, iops, moving_time, total_time } =
        JsonAccess::deserialize(value).map_err(said)?;
    let figures = [rate, block, transfer, total_time, iops.unwrap_or(0.0), moving_time.unwrap_or(0.0)];
    if figures.iter().any(|figure| *figure < 0.0) {
        return Err(Fault::whole("a result of IOR has a figure below zero"));
    }
    let operations = iops.zip(moving_time).map(|(rate, seconds)| OperationRate { rate, seconds });
    let [transfer, block] = [transfer, block].map(|size| size * KIBI);
    Ok(Some(Access { phase, rate, total: total_time, transfer, block, operations, line: 0 }))
}
