//! Finds steps in a sequence of runs.
//!
//! ```text
//!   ####                      the sequence is cut where its two parts differ most: where the square of the
//!   #### ##                   difference of their means, times k (n - k) / n, is largest
//!   #######_####
//!   |- k --|n-k|              then each part is looked at in the same way
//! ```
//!
//! The p-value is the share of random orders of the runs with at least as good a cut. (Antoch and Hušková,
//! "Permutation tests in change point analysis", Statistics and Probability Letters 53, 2001.) This makes no
//! assumption about the distribution of runs. But few runs have few orders: a cut after k of n runs never has a
//! p-value below 2 k! (n - k)! / n!.
//!
//! If that is too large for any decision, Student's t of the two parts decides, under the assumption of normally
//! distributed runs. Its p-value is multiplied by the number of possible cuts. Each way gets half of the errors
//! allowed.

use nilometer_model::{RandomStream, Seed, statistics::student_p};

/// A step in a sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the step.
    pub at: usize,
    /// The probability of such a good cut without a step, times the number of sequences tested (without their
    /// parts) and of ways.
    pub p: f64,
    /// The test that gave the probability.
    pub test: ChangeTest,
}

/// A test for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeTest {
    /// Random orders of the runs.
    Permutation,
    /// Student's t, because there are too few orders.
    Normal,
}

/// Errors allowed, in all sequences together.
const ERRORS: f64 = 0.05;
/// Number of tests: permutation and Student's t.
const WAYS: f64 = 2.0;
/// Shorter sequences have no spread beside a step.
const VALUES_LEAST: usize = 3;
/// Random orders, at the most; fewer once the result is clear.
const ORDERS: usize = 20_000;
/// Number of orders with as good a cut that suffices to know p (Besag and Clifford, "Sequential Monte Carlo
/// p-values", Biometrika 78, 1991).
const ENOUGH: usize = 50;

/// The steps of a sequence in order; `sequences` is the number of all sequences tested.
pub(super) fn change_points(values: &[f64], sequences: usize, seed: Seed) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    search(values, 0, sequences.max(1), seed, &mut found);
    found.sort_by_key(|point: &ChangePoint| point.at);
    found
}

/// Searches a part. The two parts beside a step replace one sequence: their errors together are no more than its
/// own.
fn search(values: &[f64], offset: usize, sequences: usize, seed: Seed, found: &mut Vec<ChangePoint>) {
    let Some(cut) = best_cut(values) else { return };
    let part = seed.part(offset as u64).part(values.len() as u64);
    let (p, test) = probability(values, cut, sequences, part);
    if p > ERRORS {
        return;
    }
    found.push(ChangePoint { at: offset + cut.at, p, test });
    search(&values[..cut.at], offset, 2 * sequences, seed, found);
    search(&values[cut.at..], offset + cut.at, 2 * sequences, seed, found);
}

/// A cut, and the sum of squares that it explains.
#[derive(Debug, Clone, Copy)]
struct Cut {
    at: usize,
    explains: f64,
}

/// The best cut; `None` for too few values.
fn best_cut(values: &[f64]) -> Option<Cut> {
    if values.len() < VALUES_LEAST {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let mut best = Cut { at: 1, explains: -1.0 };
    let mut sum = 0.0;
    for (index, value) in values[..values.len() - 1].iter().enumerate() {
        sum += value - mean;
        let before = (index + 1) as f64;
        let explains = sum * sum * count / (before * (count - before));
        if explains > best.explains {
            best = Cut { at: index + 1, explains };
        }
    }
    Some(best)
}

fn probability(values: &[f64], cut: Cut, sequences: usize, seed: Seed) -> (f64, ChangeTest) {
    let families = sequences as f64 * WAYS;
    let adjusted = |p: f64| (p * families).min(1.0);
    if adjusted(least(values.len(), cut.at)) > ERRORS {
        return (adjusted(normal(values, cut)), ChangeTest::Normal);
    }
    (adjusted(permuted(values, cut, seed.stream())), ChangeTest::Permutation)
}

/// The share of orders that have the same values before the cut, or the other way round.
fn least(count: usize, at: usize) -> f64 {
    let smaller = at.min(count - at);
    let choices = (0..smaller).map(|taken| (count - taken) as f64 / (taken + 1) as f64);
    2.0 / choices.product::<f64>()
}

/// Student's t of two parts with a common spread, for each place of a cut.
fn normal(values: &[f64], cut: Cut) -> f64 {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = (count - 2) as f64;
    let left = (all - cut.explains).max(f64::EPSILON * all);
    if all <= 0.0 {
        return 1.0;
    }
    (student_p((cut.explains / (left / freedom)).sqrt(), freedom) * (count - 1) as f64).min(1.0)
}

/// The p-value: the share of orders whose best cut explains as much.
fn permuted(values: &[f64], cut: Cut, mut stream: RandomStream) -> f64 {
    let enough = cut.explains * (1.0 - 1e-9);
    let mut order = values.to_vec();
    let mut as_good = 1;
    for tried in 1..=ORDERS {
        shuffle(&mut order, &mut stream);
        as_good += usize::from(best_cut(&order).is_some_and(|cut| cut.explains >= enough));
        if as_good > ENOUGH {
            return as_good as f64 / (tried + 1) as f64;
        }
    }
    as_good as f64 / (ORDERS + 1) as f64
}

/// Shuffles the values with equal probability for every order (Fisher and Yates).
fn shuffle(values: &mut [f64], stream: &mut RandomStream) {
    for last in (1..values.len()).rev() {
        values.swap(last, stream.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed(7);

    /// A number that is approximately normally distributed.
    fn noise(stream: &mut RandomStream) -> f64 {
        (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
    }

    fn runs(count: usize, step_at: usize, step: f64, seed: u64) -> Vec<f64> {
        let mut stream = Seed(seed).stream();
        (0..count).map(|run| 0.02 * noise(&mut stream) + if run >= step_at { step } else { 0.0 }).collect()
    }

    #[test]
    fn a_step_is_found_at_its_place_by_the_test_that_can_decide_it() {
        let long = change_points(&runs(30, 17, -0.2, 1), 4, SEED);
        assert_eq!(
            long.iter().map(|point| (point.at, point.test)).collect::<Vec<_>>(),
            [(17, ChangeTest::Permutation)]
        );
        let short = change_points(&runs(6, 3, -0.5, 2), 4, SEED);
        assert_eq!(
            short.iter().map(|point| (point.at, point.test)).collect::<Vec<_>>(),
            [(3, ChangeTest::Normal)]
        );
        let last = change_points(&runs(20, 19, -0.5, 3), 1, SEED);
        assert_eq!(
            last.iter().map(|point| (point.at, point.test)).collect::<Vec<_>>(),
            [(19, ChangeTest::Normal)]
        );
    }

    #[test]
    fn two_steps_are_found() {
        let mut values = runs(40, 12, -0.2, 5);
        for value in &mut values[28..] {
            *value += 0.2;
        }
        let at: Vec<usize> = change_points(&values, 1, SEED).iter().map(|point| point.at).collect();
        assert_eq!(at, [12, 28]);
    }

    /// Steps that noise explains appear in at most the promised share of sequences.
    #[test]
    fn noise_is_rarely_named() {
        for count in [3, 6, 12, 30] {
            let named =
                (0..200).filter(|seed| !change_points(&runs(count, 0, 0.0, 100 + seed), 1, SEED).is_empty());
            let named = named.count();
            assert!(named <= 14, "{named} of 200 sequences of {count} runs: 5 % and some luck");
        }
    }

    #[test]
    fn the_fewest_orders_are_known() {
        // 8 runs cut in the middle: 2 x 4! x 4! of 8! orders.
        assert!((least(8, 4) - 2.0 * 24.0 * 24.0 / 40_320.0).abs() < 1e-12);
        assert!((least(20, 19) - 0.1).abs() < 1e-12);
        assert!(change_points(&[1.0, 1.0, 1.0, 1.0], 1, SEED).is_empty(), "nothing differs");
        assert!(change_points(&[1.0, 2.0], 1, SEED).is_empty());
    }
}
