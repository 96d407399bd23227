//! Decides if the measured rates are precise enough: compares the interval of each figure with the plan's
//! precision. Pure.

use std::collections::BTreeMap;

use nilometer_model::{Phase, Sample, statistics::Summary};
use nilometer_plan::{Key, PlannedCampaign, ResolvedPlan, Results};

/// The rates of valid repeats, by cell, target and phase.
#[derive(Debug, Clone, Default)]
pub struct MeasuredRates(BTreeMap<RateOf, Vec<f64>>);

/// The key of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RateOf {
    cell: usize,
    target: usize,
    phase: Phase,
}

/// The rates of the repeats of workloads in a record, without the warm-up.
pub fn recorded_rates(results: &Results, plan: &ResolvedPlan) -> MeasuredRates {
    let mut rates = MeasuredRates::default();
    for measured in &results.samples {
        rates.add(plan, measured.key, &measured.sample);
    }
    rates
}

impl MeasuredRates {
    /// Adds a sample, which counts if it is a valid repeat of a workload.
    pub fn add(&mut self, plan: &ResolvedPlan, key: Key, sample: &Sample) {
        let counts = key.repeat >= plan.warm_up && sample.invalid.is_none();
        if !counts || sample.ingest.is_some() {
            return;
        }
        let rate = if sample.bytes > 0 { sample.sustained_rate().0 } else { sample.operation_rate() };
        let of = RateOf { cell: key.cell, target: key.target, phase: key.phase };
        self.0.entry(of).or_default().push(rate);
    }

    /// Returns true if some phase of a cell is less precise than the plan asks, on one of these targets. If no
    /// repeat is valid, more repeats would not help.
    pub fn is_wide(&self, resolved: &PlannedCampaign, cell: usize, targets: &[usize]) -> bool {
        let Some(precision) = resolved.plan.precision else { return false };
        let phases = resolved.plan.cells[cell].measured_phases();
        let of_all = targets
            .iter()
            .flat_map(|&target| phases.iter().map(move |&phase| RateOf { cell, target, phase }));
        of_all.filter_map(|of| self.0.get(&of)).any(|rates| is_wide(rates, precision))
    }
}

/// The last repeats of a figure, which do not decide when the campaign stops.
///
/// A campaign that stops at the first narrow interval prefers repeats that are close to each other by chance.
/// Such an interval at 95 % holds the truth in 88 to 95 % of cases. With three more repeats, whatever they are,
/// it does in 93 to 95 % (`nilometer-bench aa-simulated`).
const UNCHOSEN: usize = 3;
/// The interval of two repeats is narrow by chance too often.
const CHOSEN_LEAST: usize = 3;

/// Returns true if half of the 95 % interval of the mean was more than `precision` percent of it, before the
/// last three repeats.
fn is_wide(rates: &[f64], precision: f64) -> bool {
    let Some(chosen) = rates.len().checked_sub(UNCHOSEN).filter(|chosen| *chosen >= CHOSEN_LEAST) else {
        return rates.iter().any(|rate| *rate > 0.0);
    };
    let Some(summary) = Summary::of(&rates[..chosen]) else { return false };
    let half = summary.half_width().unwrap_or(f64::INFINITY);
    summary.mean > 0.0 && half > summary.mean * precision / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Invalid, Nanos};
    use nilometer_plan::parse;

    const PLAN: &str = "title = \"t\"\nwarm_up = 1\nrepeats = 3\nprecision = 2\n[[stage]]\nname = \"s\"\n[stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";

    fn resolved() -> PlannedCampaign {
        PlannedCampaign::new(parse(PLAN, "t.toml", 1.0).expect("a valid plan"), Vec::new())
    }

    fn sample(rate: u64) -> Sample {
        Sample { bytes: rate, operations: 1, wall: Nanos(1_000_000_000), ..Sample::new(Nanos(0)) }
    }

    #[test]
    fn a_figure_is_known_when_its_interval_is_narrow_on_each_target() {
        let resolved = resolved();
        let mut rates = MeasuredRates::default();
        let mut add = |target, repeat, sample: &Sample| {
            let key = Key { target, cell: 0, repeat, phase: Phase::Write };
            rates.add(&resolved.plan, key, sample);
        };
        // The warm-up and INVALID samples count for nothing.
        add(0, 0, &sample(1));
        add(0, 1, &Sample { invalid: Some(Invalid::Errors), ..sample(1) });
        for (repeat, rate) in (1..).zip([1000, 1001, 999, 1000, 1001, 999]) {
            add(0, repeat, &sample(rate));
        }
        for (repeat, rate) in (1..).zip([1000, 1100, 900, 1000, 1001, 999]) {
            add(1, repeat, &sample(rate));
        }
        assert!(!rates.is_wide(&resolved, 0, &[0]));
        assert!(rates.is_wide(&resolved, 0, &[0, 1]), "one of them is not known");
        assert!(!rates.is_wide(&resolved, 0, &[2]), "nothing is known of it, and nothing would be");
        let mut asks_nothing = resolved.clone();
        asks_nothing.plan.precision = None;
        assert!(!rates.is_wide(&asks_nothing, 0, &[1]));
    }

    #[test]
    fn five_repeats_are_never_enough() {
        assert!(is_wide(&[1000.0; 5], 50.0) && !is_wide(&[1000.0; 6], 0.1) && !is_wide(&[], 1.0));
        assert!(!is_wide(&[0.0; 2], 1.0), "more repeats of nothing say nothing");
    }

    #[test]
    fn the_last_three_repeats_are_not_chosen_by_how_close_they_are() {
        let close = [1000.0, 1001.0, 999.0, 500.0, 2000.0, 700.0];
        assert!(!is_wide(&close, 2.0), "it was narrow before them");
        assert!(is_wide(&[500.0, 2000.0, 700.0, 1000.0, 1001.0, 999.0], 2.0));
    }
}
