//! Warnings, for programs.

use serde::Serialize;

use nilometer_analysis::Warning;

#[derive(Serialize)]
pub(super) struct Told {
    /// `grave`, `caution` or `note`.
    grade: String,
    text: String,
    advice: Option<&'static str>,
}

pub(super) fn told(warnings: &[Warning]) -> Vec<Told> {
    let told = |warning: &Warning| Told {
        grade: format!("{:?}", warning.grade()).to_lowercase(),
        text: warning.to_string(),
        advice: warning.advice(),
    };
    warnings.iter().map(told).collect()
}
