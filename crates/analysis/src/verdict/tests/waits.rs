//! Recorders that waited for a processor at full speed.

use nilometer_model::RankPart;

use super::*;

/// A pass at full speed of 60 s whose recorder waited for a processor for `seconds`.
fn held_back(rate: u64, seconds: u64) -> Measured {
    let mut pass = measured(0, false, rate, 0);
    pass.sample.run_delay = Nanos(seconds * SECOND.0);
    pass
}

/// A recording at the instrument's pace whose buffer was still filling at the end.
fn filling() -> Measured {
    changed(&measured(1, true, 100_000_000, 0), |ingest| {
        (0..6000).for_each(|at| ingest.levels.set(Nanos::from_millis(10 * at), at / 10));
    })
}

/// Without the wait, each of these storages takes 100 MB/s or more.
#[test]
fn a_rate_that_the_recorder_s_wait_lowered_never_decides_against_the_storage() {
    for pass in [held_back(90_000_000, 9), held_back(70_000_000, 30)] {
        let verdict = one(vec![pass.clone(), filling()]);
        assert_eq!(verdict.decision(), Decision::NotDecided, "{verdict}");
        let waited = pass.sample.recorder_wait();
        let why = format!("not decided: the recorder waited {} of 60 s for a processor", waited.waited);
        assert!(verdict.to_string().starts_with(&why), "{verdict}");
        assert!(verdict.claim().contains("so the storage may be faster"), "{}", verdict.claim());
        let quiet = one(vec![pass, measured(1, true, 100_000_000, 0)]);
        assert!(quiet.to_string().starts_with(&why), "it is no contradiction: {quiet}");
    }
    // 70 MB/s by a recorder that waited for 9 s of 60 s are at most 83 MB/s.
    let slow = one(vec![held_back(70_000_000, 9), filling()]);
    assert_eq!(slow.decision(), Decision::DoesNotCarry, "{slow}");
}

#[test]
fn a_rate_that_suffices_in_spite_of_the_recorder_s_wait_carries_the_instrument() {
    let verdict = one(vec![held_back(150_000_000, 30), measured(1, true, 100_000_000, 0)]);
    assert_eq!(verdict.decision(), Decision::Carries, "{verdict}");
    let words = "carries at least 1.5 times the instrument's rate (the recorder waited 30 s of 60 s for a \
                 processor); no frame";
    assert!(verdict.to_string().starts_with(words), "{verdict}");
    let cached = through(
        4_000_000_000,
        "through the cache",
        vec![held_back(150_000_000, 30), measured(1, true, 100_000_000, 0)],
    );
    assert_eq!(cached.decision(), Decision::NotDecided, "memory may have taken it: {cached}");
}

/// A pass whose rate falls from `before` to `after` at this second. The recorder waited for a processor for `waited`
/// seconds of the 60.
fn falling(before: u64, after: u64, at: u64, waited: u64) -> Measured {
    let mut pass = held_back(0, waited);
    pass.sample.series = Series::new(Nanos(0));
    for hundredth in 0..6000 {
        let rate = if hundredth < 100 * at { before } else { after };
        pass.sample.series.add(Nanos::from_millis(10 * hundredth), rate / 100);
    }
    pass
}

#[test]
fn a_fall_of_the_rate_while_the_recorder_waits_is_no_full_cache() {
    let fallen = |seconds: u64| {
        let pass = falling(240_000_000, 160_000_000, 30, seconds);
        through(6_000_000_000, "through the cache", vec![pass, measured(1, true, 100_000_000, 0)])
    };
    let full = fallen(0);
    assert!(full.cache.is_some() && full.decision() == Decision::Carries, "{full}");
    let waited = fallen(8);
    assert!(waited.cache.is_none(), "10 s of frames are missing, and the recorder waited for 8 s");
    assert_eq!(waited.decision(), Decision::NotDecided, "{waited}");
}

/// The storage takes 130 MB/s. In the last 20 s the recorder runs half of the time.
#[test]
fn a_wait_at_the_end_of_a_pass_is_no_slow_storage() {
    let verdict = one(vec![falling(130_000_000, 65_000_000, 40, 10), filling()]);
    assert_eq!(verdict.decision(), Decision::NotDecided, "{verdict}");
}

/// Three of four processes end after 24 s. The fourth, which waited for 36 s, goes on alone until 60 s.
#[test]
fn a_process_that_waited_and_ends_last_is_no_slow_storage() {
    let mut pass = falling(400_000_000, 40_000_000, 24, 36);
    let waits = [0, 0, 0, 36];
    let part = |wait| RankPart { run_delay: Nanos(wait * SECOND.0), ..RankPart::default() };
    pass.sample.parts = waits.map(part).to_vec();
    let verdict = one(vec![pass, filling()]);
    assert_eq!(verdict.decision(), Decision::NotDecided, "{verdict}");
    assert!(verdict.limit.is_none_or(|limit| limit.is_lower_bound()), "{verdict}");
}

#[test]
fn a_pass_with_its_processors_counts_and_those_without_do_not() {
    let slow =
        one(vec![held_back(70_000_000, 0), held_back(40_000_000, 30), held_back(40_000_000, 30), filling()]);
    assert_eq!(slow.decision(), Decision::DoesNotCarry, "{slow}");
    let fast = one(vec![
        measured(0, false, 240_000_000, 0),
        held_back(60_000_000, 30),
        measured(1, true, 100_000_000, 0),
    ]);
    assert!(fast.to_string().starts_with("carries 2.4 times the instrument's rate (2.4 to 2.4); "), "{fast}");
}
