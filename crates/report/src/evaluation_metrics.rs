//! The figures and answers of an evaluation as metrics, for the textfile collector of Prometheus' node exporter.
//! [`super::figures_csv`] and [`super::json`] have the same findings.

use std::collections::BTreeMap;

use nilometer_analysis::{AcceptanceAnswer, CellOutcome, Decision, Study, Verdict};
use nilometer_model::{MetricsText, Moment, Nanos, statistics::Summary, sustained::SustainedRate};

use super::render::printable;

const DECISIONS: [Decision; 3] = [Decision::Carries, Decision::DoesNotCarry, Decision::NotDecided];
const ANSWERS: [AcceptanceAnswer; 3] =
    [AcceptanceAnswer::Pass, AcceptanceAnswer::Fail, AcceptanceAnswer::NotDecided];
/// Percentiles of latencies, with the share of operations that are at most as long.
const PERCENTILES: [(&str, f64); 4] = [("50", 0.5), ("99", 0.99), ("99.9", 0.999), ("100", 1.0)];

/// Writes the metrics of an evaluation in Prometheus' text format 0.0.4. A value that the record does not have
/// is missing. Every metric has the plan's `title` as a label, so that files of several plans can lie beside
/// each other.
pub fn evaluation_metrics(study: &Study<'_>) -> String {
    let mut page = MetricsText::default();
    let names = LabelTexts::of(study);
    campaign(&mut page, study, &names);
    figures(&mut page, study, &names);
    latencies(&mut page, study, &names);
    verdicts(&mut page, study, &names);
    recordings(&mut page, study, &names);
    acceptance(&mut page, study, &names);
    page.into_text()
}

/// The texts of labels. They differ within the record, because Prometheus refuses a file with two values of the
/// same labels.
struct LabelTexts {
    title: String,
    /// By index of the target.
    targets: Vec<String>,
    /// By index of the cell.
    cells: Vec<String>,
    /// By index of the verdict.
    instruments: Vec<String>,
}

impl LabelTexts {
    fn of(study: &Study<'_>) -> Self {
        let results = study.results;
        let targets = results.targets.iter().map(|target| (0, printable(&target.path)));
        let stage = |name: &str| results.cells.iter().position(|cell| cell.stage == name).unwrap_or(0);
        let cells = results.cells.iter().map(|cell| (stage(&cell.stage), printable(&cell.to_string())));
        let instruments = study.verdicts.iter();
        let instruments = instruments.map(|verdict| (verdict.target, printable(&verdict.instrument.label())));
        LabelTexts {
            title: printable(&results.title),
            targets: told_apart(targets),
            cells: told_apart(cells),
            instruments: told_apart(instruments),
        }
    }

    fn target(&self, index: usize) -> &str {
        self.targets.get(index).map_or("", String::as_str)
    }

    fn cell(&self, index: usize) -> &str {
        self.cells.get(index).map_or("", String::as_str)
    }
}

/// Returns the texts, with their number behind those that were in the same group before: `a`, `a (2)`.
fn told_apart(texts: impl Iterator<Item = (usize, String)>) -> Vec<String> {
    let mut counts: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut apart = Vec::new();
    for key in texts {
        let text = key.1.clone();
        let count = counts.entry(key).or_default();
        *count += 1;
        apart.push(if *count == 1 { text } else { format!("{text} ({count})") });
    }
    apart
}

fn campaign(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    page.head("evaluation_info", "gauge", "1, with the version of the program that measured.");
    let version = printable(&study.results.version);
    page.value("evaluation_info", &[("title", title), ("version", &version)], 1.0);
    page.head("evaluation_start_time_seconds", "gauge", "When the evaluation began, as UNIX time.");
    if let Ok(Moment(started)) = study.results.started.parse() {
        page.value("evaluation_start_time_seconds", &[("title", title)], started.seconds());
    }
    page.head("evaluation_complete", "gauge", "1 if the record has everything that its plan asks for.");
    let is_complete = !study.missing.is_incomplete() && study.missing.open.is_empty();
    page.value("evaluation_complete", &[("title", title)], flag(is_complete));
    page.head("evaluation_warnings", "gauge", "Number of warnings of the report.");
    page.value("evaluation_warnings", &[("title", title)], study.warnings.len() as f64);
    page.head("evaluation_target_left_out", "gauge", "1 if the evaluation gave the target up.");
    for (index, target) in study.results.targets.iter().enumerate() {
        let labels = [("title", title), ("target", names.target(index))];
        page.value("evaluation_target_left_out", &labels, flag(target.left_out.is_some()));
    }
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The value of a figure; `None` if no valid repeat has it.
type FigureValue = fn(&CellOutcome<'_>) -> Option<f64>;

fn figures(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    let figures: [(&str, &str, FigureValue); 6] = [
        ("evaluation_repeats", "Repeats of a figure, with those that are INVALID.", |of| {
            Some(of.samples.len() as f64)
        }),
        ("evaluation_valid_repeats", "Valid repeats of a figure.", |of| Some(of.valid as f64)),
        ("evaluation_rate_bytes_per_second", "Mean rate over the valid repeats.", |of| mean(of.rate)),
        (
            "evaluation_rate_half_width_bytes_per_second",
            "Half the width of the 95 % interval of the mean rate.",
            |of| half_width(of.rate),
        ),
        ("evaluation_operations_per_second", "Mean rate of operations over the valid repeats.", |of| {
            mean(of.operations)
        }),
        (
            "evaluation_operations_half_width_per_second",
            "Half the width of the 95 % interval of the mean rate of operations.",
            |of| half_width(of.operations),
        ),
    ];
    for (name, help, value) in figures {
        page.head(name, "gauge", help);
        for (stage, of) in outcomes(study) {
            let labels = [
                ("title", title),
                ("stage", &stage),
                ("cell", names.cell(of.cell)),
                ("phase", of.phase.name()),
                ("target", names.target(of.target)),
            ];
            if let Some(value) = value(of) {
                page.value(name, &labels, value);
            }
        }
    }
}

fn latencies(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    page.head(
        "evaluation_latency_seconds",
        "gauge",
        "Latency that this percentage of operations does not exceed, over the valid repeats.",
    );
    for (stage, of) in outcomes(study) {
        for (percentile, share) in PERCENTILES {
            let labels = [
                ("title", title),
                ("stage", &stage),
                ("cell", names.cell(of.cell)),
                ("phase", of.phase.name()),
                ("target", names.target(of.target)),
                ("percentile", percentile),
            ];
            if let Some(latency) = of.quantile(share).map(Nanos::seconds) {
                page.value("evaluation_latency_seconds", &labels, latency);
            }
        }
    }
}

/// Every figure with the name of its stage, in the order of the report.
fn outcomes<'a>(study: &'a Study<'_>) -> impl Iterator<Item = (String, &'a CellOutcome<'a>)> {
    study
        .stages
        .iter()
        .flat_map(|stage| stage.figures.outcomes.iter().map(|of| (printable(stage.figures.name), of)))
}

fn mean(summary: Option<Summary>) -> Option<f64> {
    summary.map(|summary| summary.mean)
}

fn half_width(summary: Option<Summary>) -> Option<f64> {
    summary.and_then(|summary| summary.half_width())
}

fn verdicts(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    page.head(
        "evaluation_verdict",
        "gauge",
        "1 for the answer, of the three possible ones, to the question if the target carries the instrument.",
    );
    for (verdict, instrument) in study.verdicts.iter().zip(&names.instruments) {
        for decision in DECISIONS {
            let labels = [
                ("title", title),
                ("instrument", instrument),
                ("target", names.target(verdict.target)),
                ("decision", decision.name()),
            ];
            page.value("evaluation_verdict", &labels, flag(verdict.decision() == decision));
        }
    }
}

/// The value of a verdict; `None` if the record does not decide it.
type VerdictValue = fn(&Verdict) -> Option<f64>;

/// The sustained rate. `None` for a lower bound, of which only the lower end of the margin is a value.
fn measured_rate(of: &Verdict) -> Option<SustainedRate> {
    of.limit.filter(|limit| !limit.is_lower_bound())
}

fn recordings(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    let recordings: [(&str, &str, VerdictValue); 10] = [
        ("evaluation_instrument_bytes_per_second", "Rate of the instrument.", |of| Some(of.rate.0)),
        ("evaluation_sustained_bytes_per_second", "Rate that the target sustains behind its caches.", |of| {
            measured_rate(of).map(|limit| limit.rate.0)
        }),
        ("evaluation_margin_ratio", "Sustained rate of the target over the rate of the instrument.", |of| {
            measured_rate(of).and(of.margin())
        }),
        ("evaluation_margin_low_ratio", "Lower end of the 95 % interval of the margin.", |of| {
            of.margins().map(|margin| margin.low)
        }),
        ("evaluation_margin_high_ratio", "Upper end of the 95 % interval of the margin.", |of| {
            measured_rate(of).and(of.margins()).map(|margin| margin.high)
        }),
        ("evaluation_frames_due", "Frames of the recording at the instrument's own pace.", |of| {
            of.trial().map(|trial| trial.due as f64)
        }),
        ("evaluation_frames_lost", "Lost frames of the recording at the instrument's own pace.", |of| {
            of.trial().map(|trial| trial.lost as f64)
        }),
        (
            "evaluation_longest_stall_seconds",
            "Longest time in which frames waited and the recorder stored none.",
            |of| of.trial().map(|trial| trial.longest_stall.seconds()),
        ),
        (
            "evaluation_latest_frame_seconds",
            "Longest time from the moment at which a frame was due until it could be read.",
            |of| of.trial().map(|trial| trial.latest.seconds()),
        ),
        ("evaluation_covering_buffer_bytes", "Size of a buffer that covers the longest stall.", |of| {
            of.trial().map(|trial| trial.covering(of.rate).0 as f64)
        }),
    ];
    for (name, help, value) in recordings {
        page.head(name, "gauge", help);
        for (verdict, instrument) in study.verdicts.iter().zip(&names.instruments) {
            let labels =
                [("title", title), ("instrument", instrument), ("target", names.target(verdict.target))];
            if let Some(value) = value(verdict) {
                page.value(name, &labels, value);
            }
        }
    }
}

fn acceptance(page: &mut MetricsText, study: &Study<'_>, names: &LabelTexts) {
    let title = names.title.as_str();
    page.head(
        "evaluation_acceptance",
        "gauge",
        "1 for the answer, of the three possible ones, to the criteria of the plan.",
    );
    for verdict in &study.acceptance {
        for answer in ANSWERS {
            let labels =
                [("title", title), ("target", names.target(verdict.target)), ("answer", answer.name())];
            page.value("evaluation_acceptance", &labels, flag(verdict.answer() == answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_of_a_group_get_a_number() {
        let texts = [(0, "a"), (0, "a"), (1, "a"), (0, "b"), (0, "a")];
        let apart = told_apart(texts.into_iter().map(|(group, text)| (group, text.to_owned())));
        assert_eq!(apart, ["a", "a (2)", "a", "b", "a (3)"]);
    }
}
