//! Figures without a ratio: a rate of zero, and a figure in another unit.

use super::*;

#[test]
fn a_repeat_at_a_rate_of_zero_leaves_its_figure_undecided() {
    let before = MONDAY.results(|_, _| 1e9);
    let mut after = MadeUp { seed: 5, started: "2026-11-24T08:00:00Z", ..MONDAY }.results(|_, _| 1e9);
    let stopped = after.samples.iter_mut().find(|measured| measured.key.cell == 0).expect("a repeat");
    (stopped.sample.bytes, stopped.sample.operations) = (0, 0);
    let all = [before, after];
    let compared = compared(&all);
    let against = compared.against(5.0).expect("the same target");
    assert_eq!((against.figures, against.compared, against.open.len()), (4, 3, 1), "{against:?}");
    let text = against_text(&compared, &against);
    let why = "not decided: /data 2026-11-24: large, workers 1, write: a repeat has a rate of 0, and no ratio to others";
    assert!(text.contains(why) && text.contains("3 of 4 figures of a compared, 1 not decided"), "{text}");
}

#[test]
fn a_figure_in_another_unit_is_not_invalid() {
    let before = MONDAY.results(|_, _| 1e9);
    let mut after = MadeUp { seed: 5, started: "2026-11-24T08:00:00Z", ..MONDAY }.results(|_, _| 1e9);
    for measured in &mut after.samples {
        (measured.sample.bytes, measured.sample.operations) = (1 << 20, 0);
    }
    let mut all = [before, after];
    for measured in &mut all[0].samples {
        (measured.sample.bytes, measured.sample.operations) = (0, 1);
    }
    let compared = compared(&all);
    let against = compared.against(5.0).expect("the same target");
    assert!(against.left.iter().all(|left| left.why == "other unit, not compared"), "{against:?}");
    assert_eq!(against.left.len(), 4);
}

#[test]
fn a_valid_rate_of_zero_is_shown_as_zero() {
    let mut results = MadeUp { paths: &["/data", "/other"], ..MONDAY }.results(|_, _| 1e9);
    for measured in results.samples.iter_mut().filter(|measured| measured.key.target == 0) {
        (measured.sample.bytes, measured.sample.operations) = (0, 0);
    }
    let study = nilometer_analysis::Study::of(&results);
    let text = crate::terminal(&study, crate::Detail::Full, TextLayout::plain());
    assert!(!text.contains("INVALID") && text.contains("0 B/s"), "{text}");
}
