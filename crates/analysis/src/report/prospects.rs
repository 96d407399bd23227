//! The table of instruments and targets in words, as all reports for people show it.

use crate::{
    Basis, Kind, MeasuredLimit, Predictions, Prospect, Quantity, Study, letter,
    report::terminal::{BOLD, DIM, GREEN, Page, RED, YELLOW, clipped},
};

use super::words::NONE;

/// Targets beside each other in a terminal.
const BESIDE: usize = 4;
/// Columns of a terminal for a name, a rate, and a target.
const NAME: usize = 30;
const RATE: usize = 10;
const PROSPECT: usize = 13;

/// What the table shows.
pub(super) fn title(predictions: &Predictions) -> &'static str {
    match (predictions.records(), predictions.predicts()) {
        (true, true) => "Recorded and predicted",
        (false, _) => "Predicted",
        (true, false) => "Recorded",
    }
}

/// What stands below the title.
pub(super) const SUBTITLE: &str = "how many times the rate of each instrument the storage takes";

/// `3.5 x`, `no: 0.8 x`, or `?`.
pub(super) fn says(prospect: Option<&Prospect>) -> String {
    let Some(Prospect { carried, margin, .. }) = prospect else { return NONE.into() };
    match (carried, margin.map(times)) {
        (Some(true), Some(times)) => times,
        (Some(true), None) => "yes".into(),
        (Some(false), Some(times)) => format!("no: {times}"),
        (Some(false), None) => "no".into(),
        (None, Some(times)) => format!("?: {times}"),
        (None, None) => "?".into(),
    }
}

/// Below one it is rounded down: what is not enough must not look so.
fn times(margin: f64) -> String {
    match margin {
        margin if margin < 1.0 => format!("{:.2} x", (margin * 100.0).floor() / 100.0),
        margin if margin < 9.95 => format!("{margin:.1} x"),
        margin => format!("{margin:.0} x"),
    }
}

/// Whether a verdict stands behind it.
pub(super) fn is_recorded(prospect: Option<&Prospect>) -> bool {
    prospect.is_some_and(|prospect| prospect.basis == Basis::Recorded)
}

/// `1.87 GB/s written (large files)`.
pub(super) fn limit(limit: &MeasuredLimit) -> String {
    let value = match limit.kind {
        Kind::Files => format!("{} files made", Quantity::Operations.show(limit.value)),
        Kind::Written => format!("{} written", Quantity::Bytes.show(limit.value)),
        Kind::Shared => format!("{} written into a shared file", Quantity::Bytes.show(limit.value)),
    };
    format!("{value} ({})", limit.stage)
}

/// What must be known of predictions; none where there are none. Who asked for an instrument knows how to.
pub(super) fn note(study: &Study<'_>) -> Option<String> {
    let predictions = &study.predictions;
    let advice = if study.missing.instruments { "" } else { ": write --for NAME to record an instrument" };
    let used = predictions.used();
    let of_target = |limits: &[&MeasuredLimit]| {
        let words: Vec<String> = limits.iter().map(|of| limit(of)).collect();
        format!("{} {}", letter(limits[0].target), words.join(" and "))
    };
    let limits: Vec<String> = used.chunk_by(|a, b| a.target == b.target).map(of_target).collect();
    (!limits.is_empty()).then(|| {
        format!(
            "Predicted, not recorded, from the lower end of what was measured: {}. Stalls are not in a \
             prediction{advice}.",
            limits.join("; ")
        )
    })
}

impl Page {
    /// The table, where it says more than the verdicts do.
    pub(super) fn prospects(&mut self, study: &Study<'_>) {
        let predictions = &study.predictions;
        if !predictions.predicts() && study.verdicts.len() < 2 {
            return;
        }
        self.line("", "");
        self.line(BOLD, &format!("{}: {SUBTITLE}", title(predictions).to_uppercase()));
        let targets: Vec<usize> = (0..study.results.targets.len()).collect();
        for targets in targets.chunks(BESIDE) {
            self.prospects_on(predictions, targets);
        }
        let star = if predictions.records() && predictions.predicts() { "* recorded. " } else { "" };
        let note = note(study).unwrap_or_default();
        self.paragraph(DIM, "  ", &format!("{star}{note}"));
    }

    /// A row for each instrument, a column for each of a few targets.
    fn prospects_on(&mut self, predictions: &Predictions, targets: &[usize]) {
        let letters: Vec<String> =
            targets.iter().map(|target| format!("{:>PROSPECT$}", letter(*target))).collect();
        let letters = letters.join("  ");
        self.line(DIM, &format!("  {:<NAME$}{:>RATE$}{letters}", "", "rate"));
        let both = predictions.records() && predictions.predicts();
        for row in &predictions.rows {
            let prospects = targets.iter().map(|target| {
                let prospect = row.on.get(*target).and_then(Option::as_ref);
                let star = if both && is_recorded(prospect) { " *" } else { "  " };
                (colour(prospect), format!("{:>PROSPECT$}{star}", says(prospect)))
            });
            let before =
                format!("  {:<NAME$}{:>RATE$}", clipped(&row.instrument, NAME), row.rate.to_string());
            self.painted(std::iter::once(("", before)).chain(prospects));
        }
    }
}

/// What was recorded is sure; what is not carried is seen at once.
fn colour(prospect: Option<&Prospect>) -> &'static str {
    match prospect {
        Some(Prospect { carried: Some(false), .. }) => RED,
        Some(Prospect { carried: None, .. }) => YELLOW,
        Some(Prospect { basis: Basis::Recorded, .. }) => GREEN,
        _ => "",
    }
}
