//! Warnings, for programs.

use serde::Serialize;

use nilometer_analysis::Study;

#[derive(Serialize)]
pub(super) struct Told {
    /// `grave`, `caution` or `note`.
    grade: String,
    text: String,
    advice: Option<&'static str>,
}

pub(super) fn warnings(study: &Study<'_>) -> Vec<Told> {
    let told = |warning: &nilometer_analysis::Warning| Told {
        grade: format!("{:?}", warning.grade()).to_lowercase(),
        text: warning.to_string(),
        advice: warning.advice(),
    };
    study.warnings.iter().map(told).collect()
}
