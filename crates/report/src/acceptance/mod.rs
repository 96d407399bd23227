//! The acceptance in reports: as text, as data for programs, and as a separate page to file.

mod page;

pub(super) use page::tone;
pub use page::{AcceptanceProof, acceptance_page};

use serde::Serialize;

use nilometer_analysis::{AcceptanceVerdict, letter};
use nilometer_plan::Results;

/// Returns the target with its price.
pub(super) fn offer(results: &Results, verdict: &AcceptanceVerdict) -> String {
    let path = results.targets.get(verdict.target).map_or("", |target| &target.path);
    match &verdict.price {
        Some(price) => format!("{path} ({price})"),
        None => path.to_owned(),
    }
}

/// A target with its answer, for programs.
#[derive(Serialize)]
pub(super) struct AcceptedTarget<'a> {
    target: String,
    price: Option<&'a str>,
    /// `PASS`, `FAIL` or `NOT DECIDED`.
    answer: &'static str,
    criteria: Vec<FoundCriterion<'a>>,
}

#[derive(Serialize)]
struct FoundCriterion<'a> {
    stage: &'a str,
    phase: Option<&'static str>,
    demand: String,
    /// `met`, `not met` or `not decided`.
    answer: &'static str,
    found: &'a str,
}

pub(super) fn accepted(verdicts: &[AcceptanceVerdict]) -> Vec<AcceptedTarget<'_>> {
    verdicts.iter().map(accepted_target).collect()
}

fn accepted_target(verdict: &AcceptanceVerdict) -> AcceptedTarget<'_> {
    AcceptedTarget {
        target: letter(verdict.target),
        price: verdict.price.as_deref(),
        answer: verdict.answer().name(),
        criteria: verdict.criteria.iter().map(found).collect(),
    }
}

fn found(judged: &nilometer_analysis::JudgedCriterion) -> FoundCriterion<'_> {
    FoundCriterion {
        stage: &judged.criterion.stage,
        phase: judged.criterion.phase.map(nilometer_model::Phase::name),
        demand: judged.criterion.demand.to_string(),
        answer: judged.answer.name(),
        found: &judged.found,
    }
}
