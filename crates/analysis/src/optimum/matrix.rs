//! The matrix of cells of a target in a phase: its best cell, and the influence of each parameter on the rates.
//!
//! The influence of a parameter is a ratio of two sums of squares of the logarithms of rates: between its values,
//! and of all repeats around their mean. It is the eta squared of a one-way analysis of variance. In a complete
//! matrix, the shares of parameters add up to their separate effects. The rest of the cells' share is their
//! interaction, and the remainder is the scatter of repeats.
//!
//! If cells are missing, or have different numbers of repeats, the shares of parameters overlap. Parameters are
//! then taken one after the other, the most influential first, and each counts only the part that earlier ones do
//! not explain (`additive_fit.rs`).

use std::collections::BTreeMap;

use nilometer_model::{Phase, statistics::Summary};
use nilometer_plan::{Requirement, Results};

use super::{ExplainedShare, StageOptimum, SufficientValue, ValueRate};
use crate::{
    CellOutcome, Quantity, StageFigures, Value,
    additive_fit::{CellMean, added_squares},
    parameters::{plain, words},
};

/// Fewer cells are no matrix.
const CELLS_LEAST: usize = 3;
/// Smaller shares are invisible.
const SHOWN_LEAST: f64 = 0.005;

/// The cells of a target in a phase that are compared.
pub(super) struct Matrix<'a> {
    pub(super) results: &'a Results,
    pub(super) stage: &'a StageFigures<'a>,
    pub(super) names: &'a [&'a String],
    pub(super) quantity: Quantity,
    pub(super) outcomes: Vec<&'a CellOutcome<'a>>,
    pub(super) left_out: usize,
}

impl Matrix<'_> {
    pub(super) fn optimum(&self, phase: Phase, target: usize) -> Option<StageOptimum> {
        if self.outcomes.len() < CELLS_LEAST || self.names.is_empty() {
            return None;
        }
        let mean =
            |outcome: &&&CellOutcome<'_>| outcome.summary(self.quantity).map_or(0.0, |summary| summary.mean);
        let best = self.outcomes.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        let rate = best.summary(self.quantity)?;
        let label =
            self.stage.cell(best.cell).map(|cell| words(&cell.parameters, self.names.iter().copied()));
        let alone = self.explained_alone();
        let shares = self.beside_those_before(&alone);
        let differs =
            |(one, other): (&ExplainedShare, &ExplainedShare)| (one.share - other.share).abs() > SHOWN_LEAST;
        let overlap = alone.iter().zip(&shares).any(differs);
        let strongest = shares.first().map(|share| share.parameter.clone());
        Some(StageOptimum {
            phase,
            target,
            quantity: self.quantity,
            best: label.unwrap_or_default(),
            rate,
            cells: self.outcomes.len(),
            left_out: self.left_out,
            shares,
            overlap,
            explained: self.explained_by(|cell| cell.to_string()),
            sufficient: self.names.iter().filter_map(|name| self.sufficient(name, phase, &rate)).collect(),
            by_value: strongest.map(|name| self.by_value(&name, best.cell)).unwrap_or_default(),
        })
    }

    /// The share of each parameter as if there were no others, the greatest first.
    fn explained_alone(&self) -> Vec<ExplainedShare> {
        let share = |name: &&String| self.explained_by(|cell| self.value(name, cell));
        let of = |name: &&String| ExplainedShare { parameter: (*name).clone(), share: share(name) };
        let mut shares: Vec<ExplainedShare> = self.names.iter().map(of).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    /// The shares in that order, each with only its addition.
    fn beside_those_before(&self, alone: &[ExplainedShare]) -> Vec<ExplainedShare> {
        let logs: Vec<Vec<f64>> = self.outcomes.iter().map(|outcome| self.logs(outcome)).collect();
        let count = |logs: &Vec<f64>| logs.len() as f64;
        let mean = |logs: &Vec<f64>| logs.iter().sum::<f64>() / count(logs).max(1.0);
        let cells: Vec<CellMean> =
            logs.iter().map(|logs| CellMean { log: mean(logs), count: count(logs) }).collect();
        let values: Vec<Vec<usize>> = alone.iter().map(|of| self.numbered(&of.parameter)).collect();
        let whole = cells.iter().map(|cell| cell.count * cell.log).sum::<f64>()
            / cells.iter().map(|cell| cell.count).sum::<f64>().max(1.0);
        let total: f64 = logs.iter().flatten().map(|log| (log - whole).powi(2)).sum();
        let added = added_squares(&cells, &values).into_iter();
        let share = |added: f64| if total > 0.0 { added / total } else { 0.0 };
        let named = alone.iter().zip(added);
        named.map(|(of, added)| ExplainedShare { share: share(added), ..of.clone() }).collect()
    }

    /// The number of each cell's value of a parameter.
    fn numbered(&self, name: &str) -> Vec<usize> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut number = |value: String| {
            let next = known.len();
            *known.entry(value).or_insert(next)
        };
        self.outcomes.iter().map(|outcome| number(self.value(name, outcome.cell))).collect()
    }

    /// The logarithms of a cell's rates.
    fn logs(&self, outcome: &CellOutcome<'_>) -> Vec<f64> {
        let rates = outcome.usable().map(|measured| self.quantity.of(&measured.sample));
        rates.filter(|rate| *rate > 0.0).map(f64::ln).collect()
    }

    /// The best cell with each value of a parameter.
    fn by_value(&self, name: &str, best: usize) -> Vec<ValueRate> {
        let mut found: Vec<(String, &CellOutcome<'_>)> = Vec::new();
        let mean = |outcome: &CellOutcome<'_>| outcome.summary(self.quantity).map_or(0.0, |rate| rate.mean);
        for outcome in &self.outcomes {
            let value = self.value(name, outcome.cell);
            match found.iter_mut().find(|(known, _)| *known == value) {
                Some((_, known)) if mean(outcome) > mean(known) => *known = outcome,
                Some(_) => {}
                None => found.push((value, outcome)),
            }
        }
        let rows = found.into_iter().filter_map(|(value, outcome)| {
            let repeats = outcome.usable().map(|measured| self.quantity.of(&measured.sample));
            Some(ValueRate {
                label: format!("{} {value}", plain(name)),
                rate: outcome.summary(self.quantity)?,
                repeats: repeats.collect(),
                is_best: outcome.cell == best,
            })
        });
        rows.collect()
    }

    fn value(&self, name: &str, cell: usize) -> String {
        self.stage
            .cell(cell)
            .and_then(|cell| cell.parameters.get(name))
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// The share of the sum of squares between groups of cells.
    fn explained_by(&self, group: impl Fn(usize) -> String) -> f64 {
        let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for outcome in &self.outcomes {
            groups.entry(group(outcome.cell)).or_default().extend(self.logs(outcome));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let all: Vec<f64> = groups.values().flatten().copied().collect();
        let whole = mean(&all);
        let total: f64 = all.iter().map(|log| (log - whole).powi(2)).sum();
        let between: f64 =
            groups.values().map(|group| group.len() as f64 * (mean(group) - whole).powi(2)).sum();
        if total > 0.0 { between / total } else { 0.0 }
    }

    /// The least value of a parameter that reaches the demanded rate, or almost the best. The parameter must have
    /// at least three numbers.
    fn sufficient(&self, name: &str, phase: Phase, best: &Summary) -> Option<SufficientValue> {
        let mut values: Vec<(f64, Value, f64, f64)> = Vec::new();
        for outcome in &self.outcomes {
            let value = self.stage.cell(outcome.cell)?.parameters.get(name)?;
            let summary = outcome.summary(self.quantity)?;
            let low = summary.mean - summary.half_width().unwrap_or(summary.mean);
            values.push((value.number()?, value.clone(), summary.mean, low));
        }
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let distinct = values.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()).count();
        let goal = self.goal(phase);
        let enough = |(_, _, mean, low): &(f64, Value, f64, f64)| match goal {
            Some(goal) => *low >= goal,
            None => *mean >= best.mean * (1.0 - self.results.margin / 100.0),
        };
        let first = values.iter().find(|value| enough(value))?;
        // The best cell with this value.
        let rate = values.iter().filter(|value| value.0.total_cmp(&first.0).is_eq()).map(|value| value.2);
        let rate = rate.max_by(f64::total_cmp)?;
        let most = values.last()?;
        let is_less = distinct >= CELLS_LEAST && first.0 < most.0;
        is_less.then(|| SufficientValue {
            parameter: name.to_owned(),
            value: first.1.clone(),
            most: most.1.clone(),
            rate,
            goal,
        })
    }

    /// The rate that the plan demands of the stage, if it demands one in this quantity.
    fn goal(&self, phase: Phase) -> Option<f64> {
        let criteria = &self.results.campaign.as_ref()?.plan.accept.criteria;
        let of_stage = criteria
            .iter()
            .filter(|criterion| criterion.stage == self.stage.name && criterion.phase == Some(phase));
        of_stage.into_iter().find_map(|criterion| match (criterion.demand, self.quantity) {
            (Requirement::Rate(rate), Quantity::Bytes) => Some(rate.0),
            (Requirement::Operations(rate), Quantity::Operations | Quantity::Time) => Some(rate),
            _ => None,
        })
    }
}
