//! Elements with known rates, behind a shared link of known rate.

use super::*;
use crate::{Study, letter, made_up::LinkedElements};

const MB: f64 = 1e6;

impl LinkedElements {
    fn growth(&self) -> ElementGrowth {
        growth_of(&self.results())
    }
}

fn growth_of(results: &Results) -> ElementGrowth {
    let growths = Study::of(results).stages.remove(0).growths;
    assert_eq!(growths.len(), 1, "one phase of one workload: {growths:?}");
    growths.into_iter().next().expect("one")
}

fn near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() < share
}

#[test]
fn four_elements_of_100_behind_a_link_of_250_have_their_knee_at_three() {
    let growth = LinkedElements::alike(4, 100.0 * MB, 250.0 * MB).growth();
    assert_eq!(growth.knee, GrowthKnee::At(3));
    assert_eq!(growth.counts.iter().map(AtOnce::count).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for (at, [rate, share]) in
        growth.counts.iter().zip([[100.0, 1.0], [200.0, 1.0], [250.0, 0.833], [250.0, 0.625]])
    {
        assert!(near(at.rate.expect("measured").mean, rate * MB, 0.02), "{at:?}");
        assert!(near(at.sum_alone.expect("measured"), 100.0 * MB * at.count() as f64, 0.02), "{at:?}");
        assert!(near(at.ceiling.expect("measured"), 1e10 * at.count() as f64, 0.02), "{at:?}");
        match &at.share {
            None => assert_eq!(at.count(), 1, "all others have one"),
            Some(effect) => {
                assert!(near(effect.log_ratio.exp(), share, 0.02), "{at:?}");
                assert!(effect.low.exp() < share * 1.01 && effect.high.exp() > share * 0.99, "{at:?}");
            }
        }
    }
    assert_eq!(growth.odd, []);
}

#[test]
fn the_knee_is_where_the_link_puts_it() {
    let knee = |count, link: f64| LinkedElements::alike(count, 100.0 * MB, link * MB).growth().knee;
    assert_eq!(knee(8, 1e6), GrowthKnee::Beyond, "no link");
    assert_eq!(knee(8, 100.0), GrowthKnee::At(1), "one fills it");
    assert_eq!(knee(8, 600.0), GrowthKnee::At(6));
    assert_eq!(knee(8, 610.0), GrowthKnee::At(6), "what a seventh adds is less than counts");
    assert_eq!(knee(2, 150.0), GrowthKnee::Beyond);
    // The same for any true knee and any noise of one percent.
    for at in 1..8 {
        assert_eq!(knee(8, 100.0 * at as f64), GrowthKnee::At(at));
    }
}

#[test]
fn what_spreads_too_far_decides_nothing() {
    let noisy = LinkedElements { noise: 0.5, ..LinkedElements::alike(4, 100.0 * MB, 250.0 * MB) };
    assert!(matches!(noisy.growth().knee, GrowthKnee::Undecided(_)), "{:?}", noisy.growth().knee);
    let once = LinkedElements { repeats: 1, ..LinkedElements::alike(4, 100.0 * MB, 250.0 * MB) };
    assert_eq!(once.growth().knee, GrowthKnee::Undecided(1), "one repeat has no interval");
}

#[test]
fn an_element_that_is_slower_than_its_equals_is_named() {
    let mut elements = LinkedElements::alike(5, 100.0 * MB, 1e6 * MB);
    elements.rates[2] = 40.0 * MB;
    let growth = elements.growth();
    let [odd] = growth.odd[..] else { panic!("{:?}", growth.odd) };
    assert_eq!(letter(odd.target), "C");
    assert!(
        odd.effect.low.exp() < 0.4 && odd.effect.high.exp() > 0.4 && odd.effect.high.exp() < 0.45,
        "{odd:?}"
    );
    // Elements that wait for the slow one reach only its rate each.
    assert!(near(growth.counts[2].rate.expect("measured").mean, 120.0 * MB, 0.02));
    elements.rates[2] = 95.0 * MB;
    assert_eq!(elements.growth().odd, [], "a little slower is not odd");
    let mut two = LinkedElements::alike(2, 100.0 * MB, 1e6 * MB);
    two.rates[1] = 10.0 * MB;
    assert_eq!(two.growth().odd, [], "of two nobody knows which");
}

#[test]
fn a_repeat_that_failed_on_one_element_says_nothing_of_all() {
    let mut results = LinkedElements::alike(4, 100.0 * MB, 250.0 * MB).results();
    let all = results.cells.len() - 1;
    let of_all = |measured: &&mut Measured| measured.key.cell == all && measured.key.repeat == 1;
    results.samples.iter_mut().find(of_all).expect("measured").sample.invalid = Some(Invalid::Errors);
    let growth = growth_of(&results);
    assert_eq!(growth.counts[3].rate.expect("two are left").count, 2);
    assert_eq!(growth.knee, GrowthKnee::At(3));
    // An element was left out for good: a number below the plan's is no point of the curve.
    let mut results = LinkedElements::alike(4, 100.0 * MB, 250.0 * MB).results();
    results.samples.retain(|measured| measured.key.target != 1);
    let growth = growth_of(&results);
    assert_eq!(
        growth.counts.iter().map(AtOnce::count).collect::<Vec<_>>(),
        [1, 3],
        "A, and A, C and D together"
    );
}

#[test]
fn without_several_at_once_there_is_no_growth() {
    let alone = LinkedElements { volumes: "\"alone\"", ..LinkedElements::alike(4, 100.0 * MB, 250.0 * MB) };
    assert!(Study::of(&alone.results()).stages[0].growths.is_empty());
    // A plan without single elements: the curve has no first point and no shares.
    let at_once = LinkedElements { volumes: "2, 3, 4", ..LinkedElements::alike(4, 100.0 * MB, 250.0 * MB) };
    let growth = at_once.growth();
    assert_eq!(growth.counts.iter().map(AtOnce::count).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(growth.counts.iter().all(|at| at.share.is_none() && at.sum_alone.is_none()), "{growth:?}");
    assert_eq!(growth.knee, GrowthKnee::At(3));
}
