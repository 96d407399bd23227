//! Rates by round, and the certainty of their differences.

use std::collections::BTreeMap;

use crate::{by_round::RoundLog, effect::Effect};

/// The rate of each valid round.
pub(crate) type RoundRates = BTreeMap<u32, f64>;

/// The logarithms of ratios of rates from the same round.
pub(crate) fn differences(of: &RoundRates, against: impl Fn(u32) -> Option<f64>) -> Vec<f64> {
    by_round(of, against).iter().map(|ratio| ratio.log).collect()
}

/// The same, each with its round.
pub(crate) fn by_round(of: &RoundRates, against: impl Fn(u32) -> Option<f64>) -> Vec<RoundLog> {
    let ratio =
        |(round, rate): (&u32, &f64)| Some(RoundLog { round: *round, log: (rate / against(*round)?).ln() });
    of.iter().filter_map(ratio).collect()
}

/// The spread of a difference between two rows measured in the same rounds. It is the residual of all rows
/// without the means of rows and rounds, so that a drift common to all rows does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResidualSpread {
    variance: f64,
    freedom: usize,
}

impl ResidualSpread {
    /// Ignores rounds in which a row is missing, and rows with a single round, which have no spread.
    pub(crate) fn of(all: &[&RoundRates]) -> Self {
        let rows: Vec<&RoundRates> = all.iter().copied().filter(|row| row.len() > 1).collect();
        let rounds = common_rounds(&rows);
        let freedom = rows.len().saturating_sub(1) * rounds.len().saturating_sub(1);
        if freedom == 0 {
            return ResidualSpread { variance: 0.0, freedom };
        }
        let logs: Vec<Vec<f64>> =
            rows.iter().map(|row| rounds.iter().map(|round| row[round].ln()).collect()).collect();
        let of_rows: Vec<f64> = logs.iter().map(|row| mean(row.iter().copied())).collect();
        let of_rounds: Vec<f64> =
            (0..rounds.len()).map(|round| mean(logs.iter().map(|row| row[round]))).collect();
        let of_all = mean(of_rows.iter().copied());
        let mut squares = 0.0;
        for (row, of_row) in logs.iter().zip(&of_rows) {
            let residuals =
                row.iter().zip(&of_rounds).map(|(log, of_round)| log - of_row - of_round + of_all);
            squares += residuals.map(|residual| residual.powi(2)).sum::<f64>();
        }
        // A difference has the variance of both of its ends.
        ResidualSpread { variance: 2.0 * squares / freedom as f64, freedom }
    }

    /// The mean of these differences with its interval; `None` if there are none.
    pub(crate) fn effect(self, differences: &[f64]) -> Option<Effect> {
        Effect::of_cell(differences, self.variance, self.freedom)
    }
}

fn common_rounds(rows: &[&RoundRates]) -> Vec<u32> {
    let Some((first, others)) = rows.split_first() else { return Vec::new() };
    let is_common = |round: &&u32| others.iter().all(|row| row.contains_key(round));
    first.keys().filter(is_common).copied().collect()
}

/// The mean of at least one value.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(of: &[f64]) -> RoundRates {
        (0..).zip(of.iter().copied()).collect()
    }

    #[test]
    fn what_drifts_for_all_rows_is_no_spread() {
        let [one, other] = [rates(&[100.0, 50.0, 25.0]), rates(&[200.0, 100.0, 50.0])];
        let effect = ResidualSpread::of(&[&one, &other])
            .effect(&differences(&other, |round| one.get(&round).copied()))
            .expect("three rounds");
        assert!((effect.log_ratio.exp() - 2.0).abs() < 1e-9, "{effect:?}");
        assert!((effect.high - effect.low).abs() < 1e-6, "{effect:?}");
    }

    /// Two rows of two rounds: the difference is 0.1 in one and 0.3 in the other, its variance 0.02, with one degree of
    /// freedom: 12.706 x sqrt (0.02 / 2) to each side.
    #[test]
    fn the_interval_is_that_of_a_difference() {
        let [one, other] = [rates(&[1.0, 1.0]), rates(&[0.1_f64.exp(), 0.3_f64.exp()])];
        let effect = ResidualSpread::of(&[&one, &other])
            .effect(&differences(&other, |round| one.get(&round).copied()))
            .expect("two rounds");
        assert!((effect.high - 0.2 - 12.7062 * 0.1).abs() < 1e-3, "{effect:?}");
    }

    #[test]
    fn a_row_of_a_single_round_takes_nothing_from_the_others() {
        let [one, other, single] = [rates(&[1.0, 1.1]), rates(&[2.0, 2.1]), rates(&[3.0])];
        let effect = |rows: &[&RoundRates]| ResidualSpread::of(rows).effect(&[0.5]).expect("a pair");
        assert_eq!(effect(&[&one, &other, &single]), effect(&[&one, &other]));
        assert!(effect(&[&one, &other, &single]).high.is_finite());
    }

    #[test]
    fn too_few_rounds_decide_nothing() {
        let [one, other] = [rates(&[1.0]), rates(&[2.0, 2.0])];
        let effect = ResidualSpread::of(&[&one, &other]).effect(&[2_f64.ln()]).expect("a pair");
        assert!(effect.high.is_infinite(), "{effect:?}");
        assert_eq!(ResidualSpread::of(&[]).effect(&[]), None);
    }
}
