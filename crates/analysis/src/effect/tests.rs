//! Known answers: small cases by hand, and thousands of campaigns whose true ratio is known.

use nilometer_model::{RandomStream, Seed, statistics::PAIRS_LEAST};

use super::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// A standard normal number (Box and Muller 1958).
fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

fn differences(seed: u64, pairs: usize, true_ratio: f64, noise: f64) -> Vec<f64> {
    let mut stream = Seed(seed).named("simulated").stream();
    (0..pairs).map(|_| true_ratio.ln() + noise * normal(&mut stream)).collect()
}

#[test]
fn two_pairs_by_hand() {
    // Swapped: none, the first, the second, both. The sums are 4, 2, -2, -4.
    let swaps = Swaps::of(&[1.0, 3.0], Seed(1)).expect("pairs");
    assert_eq!(swaps.means, [1.0, 2.0, 3.0]);
    assert!(near(swaps.p(0.0), 0.5), "{}", swaps.p(0.0));
    assert!(near(swaps.p(2.5), 1.0) && near(swaps.p(3.5), 0.5));
    assert!(swaps.effect().low.is_infinite() && swaps.effect().high.is_infinite());
}

#[test]
fn six_pairs_are_the_fewest_that_decide() {
    let all: Vec<f64> = (1_u8..=6).map(f64::from).collect();
    for pairs in 1..=6 {
        let swaps = Swaps::of(&all[..pairs], Seed(1)).expect("pairs");
        assert!(near(swaps.p(0.0), 2.0 / f64::from(1_u32 << pairs)), "{pairs}");
        assert_eq!(swaps.effect().low.is_finite(), pairs >= PAIRS_LEAST, "{pairs}");
    }
    let effect = Swaps::of(&all, Seed(1)).expect("pairs").effect();
    assert!(near(effect.low, 1.0) && near(effect.high, 6.0) && near(effect.log_ratio, 3.5));
    assert!(Swaps::of(&[], Seed(1)).is_none());
}

#[test]
fn test_and_interval_agree() {
    for pairs in [6, 9, 14, 15, 100, 5000] {
        let swaps = Swaps::of(&differences(7, pairs, 1.1, 0.3), Seed(3)).expect("pairs");
        let Effect { low, high, log_ratio, .. } = swaps.effect();
        assert!(low <= log_ratio && log_ratio <= high, "{pairs}: {low} {log_ratio} {high}");
        let beyond = 1e-9;
        for (inside, outside) in [(low, low - beyond), (high, high + beyond)] {
            assert!(swaps.p(inside) > 0.05 && swaps.p(outside) <= 0.05, "{pairs}");
        }
    }
}

/// How often of `runs` simulated comparisons something holds, for each of a few numbers of pairs.
fn share(runs: u64, pairs: usize, ratio: f64, holds: impl Fn(&Swaps) -> bool) -> f64 {
    let held = (0..runs).filter(|run| {
        let swaps = Swaps::of(&differences(*run, pairs, ratio, 0.1), Seed(*run)).expect("pairs");
        holds(&swaps)
    });
    held.count() as f64 / runs as f64
}

/// Four standard deviations of a share that is 5 % in truth.
fn tolerance(runs: u64) -> f64 {
    4.0 * (0.05 * 0.95 / runs as f64).sqrt()
}

#[test]
fn nineteen_of_twenty_intervals_hold_the_true_ratio() {
    for (pairs, runs) in [(6, 2000), (10, 2000), (40, 1000), (600, 1000)] {
        let truth = 1.8_f64.ln();
        let covered = share(runs, pairs, 1.8, |swaps| {
            let Effect { low, high, .. } = swaps.effect();
            low <= truth && truth <= high
        });
        // With six pairs the exact figure is 1 - 2/64.
        let exact = if pairs == 6 { 1.0 - 2.0 / 64.0 } else { 0.95 };
        assert!((covered - exact).abs() <= tolerance(runs), "{pairs} pairs: {covered}");
    }
}

#[test]
fn a_difference_is_seen_where_there_is_one_and_rarely_where_there_is_none() {
    let rejects = |swaps: &Swaps| swaps.p(0.0) <= 0.05;
    for (pairs, runs) in [(6, 2000), (12, 2000), (50, 1000)] {
        let size = share(runs, pairs, 1.0, rejects);
        assert!(size > 0.0 && size <= 0.05 + tolerance(runs), "{pairs} pairs: {size}");
    }
    let power = [6, 12, 30].map(|pairs| share(500, pairs, 1.08, rejects));
    assert!(power[0] < power[1] && power[1] < power[2] && power[2] > 0.95, "{power:?}");
}

#[test]
fn the_interval_of_a_cell_is_pooled_over_the_stage() {
    let (cells, repeats, runs) = (5, 3, 1000);
    let mut covered = 0;
    for run in 0..runs {
        let all = differences(run, cells * repeats, 1.3, 0.1);
        let (variance, freedom) = pooled_variance(all.chunks(repeats));
        assert_eq!(freedom, 10);
        let effect = Effect::of_cell(&all[..repeats], variance, freedom).expect("pairs");
        covered += usize::from(effect.low <= 1.3_f64.ln() && 1.3_f64.ln() <= effect.high);
    }
    let covered = covered as f64 / runs as f64;
    assert!((covered - 0.95).abs() <= tolerance(runs), "{covered}");
}

#[test]
fn a_pooled_interval_by_hand() {
    let cells: [&[f64]; 3] = [&[1.0, 3.0], &[5.0, 5.0], &[]];
    let (variance, freedom) = pooled_variance(cells.into_iter());
    assert!(near(variance, 1.0) && freedom == 2);
    let effect = Effect::of_cell(&[1.0, 3.0], variance, freedom).expect("pairs");
    // t for 2 degrees of freedom is 4.3027.
    assert!((effect.high - 2.0 - 4.302_653 / 2_f64.sqrt()).abs() < 1e-5, "{effect:?}");
    let single = Effect::of_cell(&[1.0], 0.0, 0).expect("a pair");
    assert!(single.low.is_infinite());
    assert_eq!(Effect::of_cell(&[], 1.0, 3), None);
}

fn effect(ratio: f64, low: f64, high: f64) -> Effect {
    Effect { log_ratio: ratio.ln(), low: low.ln(), high: high.ln(), pairs: 9 }
}

#[test]
fn words_follow_the_interval_and_the_margin() {
    for ((ratio, low, high), words) in [
        ((1.8, 1.6, 2.0), "A is 1.8 times as fast as B (1.6 to 2.0)"),
        ((1.0 / 1.8, 0.5, 1.0 / 1.6), "B is 1.8 times as fast as A (1.6 to 2.0)"),
        ((25.3, 20.0, 30.0), "A is 25 times as fast as B (20 to 30)"),
        ((1.12, 1.09, 1.15), "A is 12 % faster than B (9.0 to 15 %)"),
        ((1.01, 0.99, 1.03), "A and B: no difference larger than 5 %"),
        ((1.08, 0.97, 1.20), "not decided: A is between 3.0 % slower and 20 % faster than B"),
        ((1.05, 1.02, 1.08), "not decided: A is between 2.0 % and 8.0 % faster than B"),
        ((0.95, 0.92, 0.98), "not decided: A is between 2.0 % and 8.0 % slower than B"),
        ((1.08, 0.0, f64::INFINITY), "A and B: not decided, too few repeats"),
        ((1.08, 0.00001, 100_000.0), "A and B: not decided, too few repeats"),
    ] {
        assert_eq!(effect(ratio, low, high).words(5.0, "A", "B"), words);
    }
}

#[test]
fn what_drifts_for_both_cancels() {
    let mut stream = Seed(5).stream();
    let pair = |round: i32, stream: &mut RandomStream| {
        let drift = 1.5_f64.powi(round);
        let [a, b] = [1.2 * drift, drift].map(|rate| rate * (0.01 * normal(stream)).exp());
        (a / b).ln()
    };
    let differences: Vec<f64> = (0..12).map(|round| pair(round, &mut stream)).collect();
    let effect = Swaps::of(&differences, Seed(1)).expect("pairs").effect();
    assert_eq!(effect.answer(5.0), Answer::Faster);
    assert!((effect.log_ratio.exp() - 1.2).abs() < 0.02 && (effect.high - effect.low) < 0.04, "{effect:?}");
}
