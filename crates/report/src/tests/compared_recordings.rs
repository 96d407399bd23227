//! Recordings against baselines, of which some recorder waited for a processor.

use nilometer_analysis::{LeftFigure, made_up::cameras};
use nilometer_model::{Bytes, Goal, Ingest, Nanos, Phase, Sample, Series};
use nilometer_plan::{Key, Measured, Results, TargetEntry};

use super::{SECOND, compared::compared};

/// Duration of a recording.
const LENGTH: Nanos = Nanos(40 * SECOND);

/// A recording of 40 s with this goal. Its recorder waited for a processor for `waited` seconds.
fn recording(goal: Goal, rate: u64, waited: u64) -> Measured {
    let mut series = Series::new(Nanos(0));
    for hundredth in 0..4000 {
        series.add(Nanos::from_millis(10 * hundredth), rate / 100);
    }
    let ingest = Ingest {
        goal,
        count: 1,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(10),
        duration: LENGTH,
        due: 4000,
        stored: 4000,
        slots: 100,
        ..Ingest::default()
    };
    let sample = Sample {
        wall: LENGTH,
        run_delay: Nanos(waited * SECOND),
        series,
        ingest: Some(ingest),
        ..Sample::new(Nanos(0))
    };
    let cell = usize::from(goal == Goal::Pace);
    Measured { key: Key { target: 0, cell, repeat: 0, phase: Phase::Ingest }, sample }
}

/// A record of this day: a pass at full speed, and a recording of 100 MB/s that lost nothing.
fn record(day: u32, rate: u64, waited: u64) -> Results {
    Results {
        started: format!("2026-11-{day}T08:00:00Z"),
        targets: vec![TargetEntry { path: "/data".into(), ..TargetEntry::default() }],
        cells: cameras("camera", 2),
        samples: vec![recording(Goal::Limit, rate, waited), recording(Goal::Pace, 100_000_000, 0)],
        ..Results::default()
    }
}

#[test]
fn a_rate_that_the_recorder_s_wait_lowered_is_not_worse_than_several_baselines() {
    let worse = |waited| {
        let before = [(20, 300_000_000), (21, 301_000_000), (22, 299_500_000)];
        let mut all = before.map(|(day, rate)| record(day, rate, 0)).to_vec();
        all.push(record(23, 255_000_000, waited));
        let compared = compared(&all).with_baselines(3);
        compared.against(5.0).expect("the same target").worse.len()
    };
    assert_eq!([worse(0), worse(7)], [1, 0], "7 of 40 s are more than the 15 % that are missing");
}

#[test]
fn a_lower_bound_is_not_compared_and_said_to_be_one() {
    let why = |before, now| {
        let all = [record(20, 400_000_000, before), record(21, 400_000_000, now)];
        let compared = compared(&all);
        let against = compared.against(5.0).expect("the same target");
        against.left.iter().map(LeftFigure::words).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(why(0, 0), "");
    assert!(why(0, 20).ends_with(": only a lower bound now"), "{}", why(0, 20));
    assert!(why(20, 0).ends_with(": only a lower bound in the baseline"), "{}", why(20, 0));
}
