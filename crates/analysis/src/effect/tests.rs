//! Known answers: small cases by hand, and a thousand stages with a known true ratio.

use nilometer_model::{RandomStream, Seed};

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

/// Four standard deviations of a share that is really 5 %.
fn tolerance(runs: u64) -> f64 {
    4.0 * (0.05 * 0.95 / runs as f64).sqrt()
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

/// `100 % slower` says that nothing is left.
#[test]
fn a_loss_of_nearly_all_is_not_rounded_to_all() {
    let told = |ratio, low, high| effect(ratio, low, high).loss_words();
    assert_eq!(told(0.003, 0.0002, 0.02), "99.7 % slower (98 to 99.9 %)");
    assert_eq!(told(0.004, 0.001, 0.0061), "99.6 % slower (99.3 to 99.9 %)");
    assert_eq!(told(0.77, 0.72, 0.82), "23 % slower (18 to 28 %)");
    let unbounded = Effect { low: f64::NEG_INFINITY, ..effect(0.5, 0.5, 0.9) };
    assert_eq!(unbounded.loss_words(), "50 % slower (10 to 100 %)");
}
