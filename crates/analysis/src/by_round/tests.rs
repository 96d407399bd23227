//! Known answers: small tables by hand, and thousands of campaigns with a known true ratio.

use nilometer_model::{RandomStream, Seed};

use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3 * b.abs().max(1e-9)
}

/// A row of rounds for each cell; NaN for a missing cell.
fn cells(rows: &[&[f64]]) -> Vec<CellRounds> {
    let of_row = |(row, logs): (usize, &&[f64])| {
        let values = (0..).zip(*logs).map(|(round, &log)| RoundLog { round, log });
        CellRounds { row, values: values.filter(|value| !value.log.is_nan()).collect() }
    };
    rows.iter().enumerate().map(of_row).collect()
}

fn overall(rows: &[&[f64]]) -> LogDifference {
    round_means(&cells(rows)).expect("cells").overall.difference()
}

/// The table of the module's comment: the rounds have the means 0.03, -0.03 and 0.02.
#[test]
fn rounds_are_the_unit_as_worked_by_hand() {
    let found = overall(&[&[0.02, -0.04, 0.05], &[0.05, 0.0, 0.01], &[0.02, -0.05, 0.0]]);
    assert!(near(found.mean, 0.02 / 3.0) && near(found.error, 0.032_146 / 3_f64.sqrt()), "{found:?}");
    assert!(near(found.freedom.expect("three rounds"), 2.0), "{found:?}");
    let effect = found.effect();
    assert!(near(effect.high, 0.02 / 3.0 + 4.302_653 * 0.018_559), "{effect:?}");
    assert_eq!(effect.pairs, 9);
}

#[test]
fn a_single_round_decides_nothing_however_many_cells_it_has() {
    let rows: Vec<&[f64]> = vec![&[0.1]; 50];
    let found = overall(&rows);
    assert!(found.effect().low.is_infinite() && near(found.p(), 1.0), "{found:?}");
    assert!(round_means(&cells(&[&[], &[]])).is_none());
    assert!(round_means(&[]).is_none());
}

/// The first cell is 2.0, the second 0.0. A plain mean of rounds would jump to 0 in the round without the first.
#[test]
fn a_round_that_lacks_a_cell_is_no_other_round() {
    let found = overall(&[&[2.01, 1.99, 2.0, f64::NAN], &[0.01, -0.01, 0.0, 0.0]]);
    assert!(near(found.mean, 1.0) && found.error < 0.01, "{found:?}");
}

/// Each cell in a round of its own: leaving one out moves the mean of 0.3 to 0.45, 0.3 or 0.15.
#[test]
fn cells_that_share_no_round_spread_as_rounds() {
    let none = f64::NAN;
    let found = overall(&[&[0.0, none, none], &[none, 0.3, none], &[none, none, 0.6]]);
    assert!(near(found.mean, 0.3) && near(found.error, 0.03_f64.sqrt()), "{found:?}");
    assert!(near(found.freedom.expect("three rounds"), 2.0), "{found:?}");
}

/// The fifth round has one cell of eight, so it adds almost nothing to the four others.
#[test]
fn a_round_with_few_cells_adds_little_freedom() {
    let whole: &[f64] = &[0.01, -0.02, 0.03, 0.0, f64::NAN];
    let mut rows = vec![whole; 7];
    rows.push(&[0.01, -0.02, 0.03, 0.0, 0.02]);
    let freedom = overall(&rows).freedom.expect("rounds");
    assert!((3.0..3.3).contains(&freedom), "{freedom}");
}

#[test]
fn a_cell_takes_from_others_what_they_do_not_have_in_common() {
    let freedom = |rows: &[&[f64]]| round_means(&cells(rows)).expect("cells").cells[0].1.difference().freedom;
    let alone = freedom(&[&[0.1, 0.2, 0.3]]).expect("three rounds");
    let together = freedom(&[&[0.1, 0.2, 0.3], &[0.2, 0.3, 0.4], &[0.0, 0.1, 0.2]]).expect("three rounds");
    assert!(near(alone, 2.0) && near(together, 2.0), "{alone} {together}");
    let apart = freedom(&[&[0.1, 0.2, 0.3], &[0.3, 0.2, 0.1], &[0.2, 0.1, 0.3], &[0.2, 0.3, 0.1]]);
    let apart = apart.expect("three rounds");
    assert!(apart > 3.5 && apart <= 2.0 + SPREAD_PRIOR, "{apart}");
}

#[test]
fn a_cell_that_spreads_more_has_a_wider_interval() {
    let quiet: &[f64] = &[0.0, 0.01, -0.01, 0.0];
    let found = round_means(&cells(&[quiet, quiet, quiet, &[0.5, -0.6, 0.9, -0.4]])).expect("cells");
    let error = |at: usize| found.cells[at].1.difference().error;
    assert!(error(3) > 0.25 && error(0) < 0.5 * error(3), "{} {}", error(0), error(3));
    let single = round_means(&cells(&[quiet, &[0.3]])).expect("cells").cells[1].1.difference();
    assert!(single.error > 0.0 && single.freedom.is_some(), "one repeat spreads as the others: {single:?}");
}

/// A standard normal number (Box and Muller 1958).
fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

/// A campaign with this true difference that is slower in some rounds than in others.
fn campaign(seed: u64, count: usize, rounds: usize, truth: f64) -> Vec<CellRounds> {
    let mut stream = Seed(seed).named("rounds").stream();
    let common: Vec<f64> = (0..rounds).map(|_| truth + 0.1 * normal(&mut stream)).collect();
    let rows: Vec<Vec<f64>> =
        (0..count).map(|_| common.iter().map(|round| round + 0.05 * normal(&mut stream)).collect()).collect();
    cells(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[test]
fn nineteen_of_twenty_intervals_hold_the_true_ratio() {
    let truth = 1.8_f64.ln();
    let runs = 2000;
    for (count, rounds) in [(1, 3), (8, 2), (8, 3), (8, 6)] {
        let is_held = |seed: &u64| {
            let means = round_means(&campaign(*seed, count, rounds, truth)).expect("cells");
            let effect = means.overall.difference().effect();
            effect.low <= truth && truth <= effect.high
        };
        let covered = (0..runs).filter(is_held).count() as f64 / runs as f64;
        // Four standard deviations of a share that is really 5 %.
        assert!((covered - 0.95).abs() <= 0.0195, "{rounds} rounds of {count}: {covered}");
    }
}

#[test]
fn a_difference_is_seen_if_there_is_one_and_rarely_if_there_is_none() {
    let rejected = |truth: f64, rounds: usize| {
        let is_rejected = |seed: &u64| {
            let means = round_means(&campaign(*seed, 8, rounds, truth)).expect("cells");
            means.overall.difference().p() <= 0.05
        };
        (0..500).filter(is_rejected).count() as f64 / 500.0
    };
    let size = rejected(0.0, 6);
    assert!(size > 0.01 && size <= 0.09, "{size}");
    let power = [3, 6, 12].map(|rounds| rejected(0.12, rounds));
    assert!(power[0] < power[1] && power[1] < power[2] && power[2] > 0.9, "{power:?}");
}
