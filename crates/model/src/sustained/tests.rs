//! Tests the method with simulated storage of known long-run rate.

use super::*;
use crate::{Bin, RandomStream, Seed};

/// 67 ms.
const WIDTH: Nanos = Nanos(1 << 26);
/// Bytes of a bin in the long run, without stalls.
const LEVEL: f64 = 60e6;
/// The longest and the shortest pass in seconds, as in campaigns.
const PASS: (f64, f64) = (40.0, 15.0);
/// The time from the end of a pass to the start of the next.
const BETWEEN: f64 = 3.0;

fn seconds(bins: usize) -> f64 {
    bins as f64 * WIDTH.seconds()
}

fn bins_of(seconds: f64) -> usize {
    #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
    let bins = (seconds / WIDTH.seconds()) as usize;
    bins
}

fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

fn between(stream: &mut RandomStream, least: f64, most: f64) -> f64 {
    least + (most - least) * stream.unit()
}

/// A storage over a whole campaign.
struct Storage {
    /// Its capacity in each bin, as a share of the level.
    capacity: Vec<f64>,
    /// The long-run rate.
    truth: f64,
    /// The cache at the beginning of each pass: it takes this many seconds of the level, this many times as
    /// fast.
    cache: Option<(f64, f64)>,
    /// The time until it reaches its rate, in seconds.
    start_up: f64,
}

impl Storage {
    fn steady(capacity: Vec<f64>, truth: f64) -> Self {
        Storage { capacity, truth, cache: None, start_up: 0.0 }
    }

    fn white(stream: &mut RandomStream, spread: f64) -> Self {
        let bin = |_| (1.0 + spread * normal(stream)).max(0.05);
        Storage::steady((0..bins_of(200.0)).map(bin).collect(), 1.0)
    }

    /// A storage with deviations that last `lasting` seconds.
    fn drifting(stream: &mut RandomStream, spread: f64, lasting: f64) -> Self {
        let kept = (-WIDTH.seconds() / lasting).exp();
        let mut away = spread * normal(stream);
        let bin = |_| {
            away = kept * away + (1.0 - kept * kept).sqrt() * spread * normal(stream);
            (1.0 + away).max(0.05)
        };
        Storage::steady((0..bins_of(200.0)).map(bin).collect(), 1.0)
    }

    /// A storage that stops once in each period.
    fn stalling(stream: &mut RandomStream) -> Self {
        let period = between(stream, 2.0, 12.0);
        let stall = period * between(stream, 0.03, 0.25);
        let phase = period * stream.unit();
        let white = Storage::white(stream, 0.05);
        // Seconds of work without a stall until then.
        let going = |time: f64| {
            let periods = (time / period).floor();
            periods * (period - stall) + (time - periods * period - stall).max(0.0)
        };
        let share =
            |bin: usize| (going(seconds(bin + 1) + phase) - going(seconds(bin) + phase)) / WIDTH.seconds();
        let capacity = white.capacity.iter().enumerate().map(|(bin, level)| level * share(bin));
        Storage::steady(capacity.collect(), 1.0 - stall / period)
    }

    fn cached(self, stream: &mut RandomStream) -> Self {
        Storage { cache: Some((between(stream, 3.0, 20.0), between(stream, 1.3, 4.0))), ..self }
    }

    fn starting(self, stream: &mut RandomStream) -> Self {
        Storage { start_up: between(stream, 0.0, 3.0), ..self }
    }

    /// A pass that begins at a bin of the campaign. It goes on until it is over or may end, but not before a
    /// minimum of bytes.
    fn pass(&self, at: usize, may_end: Option<f64>) -> Series {
        let (mut series, mut taken) = (Vec::new(), 0.0);
        for bin in 0..bins_of(PASS.0) {
            let full = self.cache.is_none_or(|(volume, _)| taken > volume * LEVEL / WIDTH.seconds());
            let speed = if full { 1.0 } else { self.cache.map_or(1.0, |(_, times)| times) };
            let started = (seconds(bin) / self.start_up.max(1e-9)).min(1.0);
            let bytes = LEVEL * self.capacity[at + bin] * speed * started;
            #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
            series.push(Bin { operations: 8, bytes: bytes as u64 });
            taken += bytes;
            let ends = may_end.is_some_and(|behind| taken > behind) && seconds(bin) > PASS.1;
            if ends && bin % 8 == 0 && is_precise(&Series::from_bins(WIDTH, series.clone())) {
                break;
            }
        }
        Series::from_bins(WIDTH, series)
    }

    /// Three passes, as in a campaign: the first one to its end.
    fn passes(&self) -> Vec<Series> {
        let first = self.pass(0, None);
        let behind = step(&first).map_or(0.0, |step| 1.5 * step.volume.0 as f64);
        let at = |pass: usize| pass * bins_of(PASS.0 + BETWEEN);
        let later = [1, 2].map(|pass| self.pass(at(pass), Some(behind)));
        std::iter::once(first).chain(later).collect()
    }
}

/// The results for many storages of a kind.
#[derive(Debug, Default)]
struct Came {
    covered: f64,
    within_5_percent: f64,
    /// Intervals wider than a tenth to both sides.
    wide: f64,
    changing: f64,
}

const STORAGES: u64 = 400;

/// The results in percent of the storages.
fn came(kind: fn(&mut RandomStream) -> Storage) -> Came {
    let mut all = Came::default();
    let each = 100.0 / STORAGES as f64;
    for seed in 0..STORAGES {
        let storage = kind(&mut Seed(seed).stream());
        let passes = storage.passes();
        let found = sustained(&passes.iter().collect::<Vec<_>>()).expect("long enough");
        let truth = ByteRate(storage.truth * LEVEL / WIDTH.seconds());
        let is = |holds: bool| if holds { each } else { 0.0 };
        all.covered += is(found.low.0 <= truth.0 && truth.0 <= found.high.0);
        all.within_5_percent += is((found.rate.0 / truth.0 - 1.0).abs() < 0.05);
        all.wide += is(found.uncertainty() > 0.1);
        all.changing += is(found.trend.is_some());
    }
    all
}

/// Name, storage, and the least coverage in percent.
type Kind = (&'static str, fn(&mut RandomStream) -> Storage, f64);

const KINDS: [Kind; 8] = [
    ("noise", |stream| Storage::white(stream, 0.2), 95.0),
    ("noise that lasts", |stream| Storage::drifting(stream, 0.1, 0.5), 95.0),
    // It is chance if a pass shows changes that take as long as it.
    (
        "slow drift",
        |stream| {
            let lasting = between(stream, 2.0, 20.0);
            Storage::drifting(stream, 0.03, lasting)
        },
        91.0,
    ),
    ("stalls", Storage::stalling, 95.0),
    ("a cache", |stream| Storage::white(stream, 0.1).cached(stream), 95.0),
    ("a cache and stalls", |stream| Storage::stalling(stream).cached(stream), 95.0),
    ("start-up", |stream| Storage::white(stream, 0.1).starting(stream), 95.0),
    ("start-up and stalls", |stream| Storage::stalling(stream).starting(stream), 95.0),
];

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    for (name, kind, least) in KINDS {
        let came = came(kind);
        println!("{name}: {came:.1?}");
        assert!(came.covered >= least, "{name}: {came:?}");
        assert!(came.within_5_percent >= 95.0, "{name}: {came:?}");
        assert!(came.wide <= 10.0 && came.changing <= 5.0, "{name}: {came:?}");
    }
}

/// A pass of 40 s at these levels.
fn pass(level: impl Fn(f64) -> f64) -> Series {
    let count = bins_of(PASS.0);
    #[expect(clippy::cast_sign_loss, reason = "no level is below zero")]
    let bin = |bin: usize| Bin { operations: 8, bytes: (LEVEL * level(bin as f64 / count as f64)) as u64 };
    Series::from_bins(WIDTH, (0..count).map(bin).collect())
}

#[test]
fn a_rate_that_still_rises_or_falls_is_said_to_change() {
    // Like a recorder of compressed frames: from 154 MB/s to 1126 MB/s.
    let rising = pass(|time| 0.3 + 1.9 * time);
    let found = sustained(&[&rising, &rising, &rising]).expect("long enough");
    assert!(found.trend.is_some_and(|trend| trend > 0.3), "{found:?}");
    assert!(!is_precise(&rising));
    let falling = pass(|time| 1.2 - 0.4 * time);
    assert!(sustained(&[&falling]).expect("long enough").trend.is_some_and(|trend| trend < -0.05));
    assert!(!is_precise(&falling));
}

#[test]
fn a_constant_rate_is_given_exactly_and_soon() {
    let constant = pass(|_| 1.0);
    let found = sustained(&[&constant]).expect("long enough");
    let rate = LEVEL / WIDTH.seconds();
    assert!((found.rate.0 / rate - 1.0).abs() < 1e-6 && found.uncertainty() < 0.006, "{found:?}");
    assert!(is_precise(&constant) && found.trend.is_none());
    let margin = found.margin(ByteRate(rate / 2.0));
    assert!((margin.times - 2.0).abs() < 1e-5 && (margin.low - 1.99).abs() < 1e-3, "{margin:?}");
    assert_eq!(sustained(&[&pass(|_| 0.0)]), None, "nothing was taken");
    assert_eq!(sustained(&[]), None);
    assert_eq!(sustained(&[&Series::from_bins(WIDTH, vec![Bin { operations: 1, bytes: 1 }; 10])]), None);
}

#[test]
fn one_stall_is_too_few_to_know_their_share() {
    let with = |stalls: &'static [f64]| {
        pass(move |time| if stalls.iter().any(|at| (time - at).abs() < 0.01) { 0.0 } else { 1.0 })
    };
    assert!(!is_precise(&with(&[0.5])));
    assert!(is_precise(&with(&[0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95])));
}

#[test]
fn what_readers_cost_is_covered_and_never_the_wrong_way_round() {
    let (mut covered, mut wrong) = (0, 0);
    for seed in 0..STORAGES {
        let mut stream = Seed(seed).named("readers").stream();
        let cost = [0.0, 0.1, 0.3, 0.6][seed as usize % 4];
        let storage = if seed % 2 == 0 {
            Storage::stalling(&mut stream)
        } else {
            Storage::drifting(&mut stream, 0.03, 10.0)
        };
        let beside = Storage {
            capacity: storage.capacity.iter().map(|level| level * (1.0 - cost)).collect(),
            ..Storage::steady(Vec::new(), storage.truth)
        };
        // Alternate, so that the second of a pair comes first every other round.
        let at = |pass: usize| pass * bins_of(25.0);
        let long = bins_of(200.0) - bins_of(PASS.0);
        let one = |storage: &Storage, pass: usize| storage.pass(at(pass).min(long), Some(0.0));
        let passes: Vec<(Series, Series)> = (0..3)
            .map(|round| (one(&storage, 2 * round + round % 2), one(&beside, 2 * round + 1 - round % 2)))
            .collect();
        let pairs: Vec<(&Series, &Series)> = passes.iter().map(|(alone, read)| (alone, read)).collect();
        let found = rate_change(&pairs).expect("three pairs");
        covered += u64::from(found.low <= -cost && -cost <= found.high);
        wrong += u64::from(found.low > 0.0);
    }
    let percent = |count: u64| 100.0 * count as f64 / STORAGES as f64;
    println!("covered {:.1} %, called faster {:.1} %", percent(covered), percent(wrong));
    assert!(percent(covered) >= 93.0 && percent(wrong) <= 1.5, "{covered} and {wrong} of {STORAGES}");
    assert_eq!(rate_change(&[(&pass(|_| 1.0), &pass(|_| 1.0))]), None, "one pair has no interval");
}
