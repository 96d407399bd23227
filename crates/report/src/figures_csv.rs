//! Exports every figure over its valid repeats as a row for a spreadsheet. The tables of the page show the same
//! figures. Their samples are in [`super::csv`].

use nilometer_model::{Nanos, NetworkStage, statistics::Summary};

use super::csv::row;
use nilometer_analysis::{CellOutcome, NetworkOutcome, Quantity, StageFigures, Study, network_outcomes};

type FigureColumn = (&'static str, fn(&CellOutcome<'_>) -> Option<f64>);

const COLUMNS: [FigureColumn; 12] = [
    ("latency_p50_s", |outcome| quantile(outcome, 0.5)),
    ("latency_p99_s", |outcome| quantile(outcome, 0.99)),
    ("latency_p999_s", |outcome| quantile(outcome, 0.999)),
    ("latency_p9999_s", |outcome| quantile(outcome, 0.9999)),
    ("latency_max_s", |outcome| quantile(outcome, 1.0)),
    ("real_s", |outcome| outcome.times.map(|times| times.real.seconds())),
    ("user_s", |outcome| outcome.times.map(|times| times.user.seconds())),
    ("system_s", |outcome| outcome.times.map(|times| times.system.seconds())),
    ("cores_process", |outcome| outcome.cores.map(|cores| cores.own)),
    ("cores_client", |outcome| outcome.cores.map(|cores| cores.client)),
    ("cores_machine", |outcome| outcome.cores.map(|cores| cores.machine)),
    ("machine_cpu_s_per_gigabyte", |outcome| outcome.cores.and_then(|cores| cores.for_gigabyte)),
];

/// Writes one row for each phase of each cell on each target, in RFC 4180 with a header that has units. Missing
/// values are empty. Rates are in bytes or operations a second; the row's unit says which.
pub fn figures_csv(study: &Study<'_>) -> String {
    let names = ["stage", "cell", "phase", "target", "file_system", "repeats", "valid", "unit"];
    let rates = ["mean", "half_width_95", "median", "least", "greatest"];
    let mut head: Vec<String> = names.iter().chain(&rates).map(ToString::to_string).collect();
    head.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    head.push("invalid".into());
    let mut text = row(&head);
    for stage in &study.stages {
        for outcome in &stage.figures.outcomes {
            text.push_str(&row(&fields(study, &stage.figures, outcome)));
        }
    }
    for stage in &study.results.network {
        for outcome in network_outcomes(&stage.results) {
            text.push_str(&row(&network_fields(stage, &outcome)));
        }
    }
    text
}

/// Fields of a pattern of the network between machines, which belongs to no target.
fn network_fields(stage: &NetworkStage, outcome: &NetworkOutcome) -> Vec<String> {
    let samples = stage.results.of_cell(outcome.number).count();
    let valid = outcome.rate.map_or(0, |rate| rate.count);
    let cell = outcome.cell.words(&stage.results.names());
    let mut fields = vec![stage.stage.clone(), cell, "network".into(), String::new(), String::new()];
    fields.extend([samples.to_string(), valid.to_string(), "bytes/s".into()]);
    fields.extend(rates(outcome.rate).map(text));
    fields.extend(COLUMNS.map(|_| String::new()));
    fields.push(outcome.failed.clone().unwrap_or_default());
    fields
}

fn fields(study: &Study<'_>, stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> Vec<String> {
    let quantity = stage.quantity(outcome);
    let target = study.results.targets.get(outcome.target);
    let unit = match quantity {
        Quantity::Bytes => "bytes/s",
        Quantity::Operations | Quantity::Time => "operations/s",
    };
    let mut fields = vec![
        stage.name.to_owned(),
        study.results.cells[outcome.cell].to_string(),
        outcome.phase.name().to_owned(),
        target.map_or_else(String::new, |target| target.path.clone()),
        target.map_or_else(String::new, |target| target.file_system.clone()),
        outcome.samples.len().to_string(),
        outcome.valid.to_string(),
        unit.to_owned(),
    ];
    fields.extend(rates(outcome.summary(quantity)).map(text));
    fields.extend(COLUMNS.iter().map(|(_, value)| text(value(outcome))));
    fields.push(outcome.invalid.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    fields
}

/// Mean, half the width of its interval, median, least and greatest over the valid repeats.
fn rates(summary: Option<Summary>) -> [Option<f64>; 5] {
    let Some(summary) = summary else { return [None; 5] };
    let (least, greatest) = summary.range;
    [Some(summary.mean), summary.half_width(), Some(summary.median), Some(least), Some(greatest)]
}

fn quantile(outcome: &CellOutcome<'_>, share: f64) -> Option<f64> {
    outcome.quantile(share).map(Nanos::seconds)
}

fn text(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
