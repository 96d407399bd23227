//! `precision` as a rule for when a campaign stops: the interval of a figure that was repeated until it was narrow.

use nilometer_campaign::MeasuredRates;
use nilometer_model::{Nanos, Phase, Sample, Seed, statistics::Summary};
use nilometer_plan::{Key, PlannedCampaign, parse};

use super::{
    campaign::normal,
    tally::{Missed, Tally},
};

const REPEATS: [u32; 2] = [3, 10];
const SPREADS: [f64; 4] = [0.01, 0.03, 0.05, 0.1];
const PRECISIONS: [u32; 2] = [2, 5];
const REPEATS_MOST: u32 = 50;
/// The mean rate, in bytes a second.
const TRUTH: f64 = 1e9;

/// Prints the table.
pub(super) fn print(campaigns: u64) -> Vec<Missed> {
    let campaigns = 10 * campaigns;
    println!(
        "`precision` stops at the interval that it asks for; {campaigns} figures each, at most {REPEATS_MOST} repeats. Intervals that hold the truth, in percent (repeats):\n"
    );
    let spreads = SPREADS.map(|spread| format!("spread {:.0} %", 100.0 * spread)).join(" | ");
    println!("| precision | repeats at least | {spreads} |\n|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for precision in PRECISIONS {
        for repeats in REPEATS {
            let rule = StoppingRule::new(precision, repeats);
            let mut columns = Vec::new();
            for spread in SPREADS {
                let (tally, count) = rule.figures(spread, campaigns);
                columns.push(format!("{:.1} ({count:.1})", 100.0 * tally.held()));
                let what = format!("precision {precision} %, {repeats} repeats, spread {spread}");
                missed.extend(tally.missed(&what, campaigns));
            }
            println!("| {precision} % | {repeats} | {} |", columns.join(" | "));
        }
    }
    missed
}

/// A plan of one cell that asks for a precision.
struct StoppingRule {
    plan: PlannedCampaign,
    repeats: u32,
}

impl StoppingRule {
    fn new(precision: u32, repeats: u32) -> Self {
        let text = format!(
            "title = \"t\"\nrepeats = {repeats}\nprecision = {precision}\n[[stage]]\nname = \"s\"\n\
             [stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n"
        );
        let plan = parse(&text, "aa", 1.0).expect("a valid plan");
        StoppingRule { plan: PlannedCampaign::new(plan, Vec::new()), repeats }
    }

    /// How often the interval holds the truth, and how many repeats a figure took.
    fn figures(&self, spread: f64, campaigns: u64) -> (Tally, f64) {
        let mut tally = Tally::default();
        let mut repeats = 0;
        for seed in 0..campaigns {
            let rates = self.rates(spread, seed);
            repeats += rates.len();
            let summary = Summary::of(&rates).expect("repeats");
            let half = summary.half_width().unwrap_or(f64::INFINITY);
            tally.count((summary.mean - TRUTH).abs() <= half, false);
        }
        (tally, repeats as f64 / campaigns as f64)
    }

    /// The rates that a campaign measures until it stops.
    fn rates(&self, spread: f64, seed: u64) -> Vec<f64> {
        let mut stream = Seed(seed).named("precision").stream();
        let mut measured = MeasuredRates::default();
        let mut rates = Vec::new();
        for repeat in 0..REPEATS_MOST {
            if repeat >= self.repeats && !measured.is_wide(&self.plan, 0, &[0]) {
                break;
            }
            let rate = TRUTH * (1.0 + spread * normal(&mut stream));
            #[expect(clippy::cast_sign_loss, reason = "a spread of a tenth leaves rates positive")]
            let bytes = rate as u64;
            let sample = Sample { bytes, operations: 1, wall: Nanos(1_000_000_000), ..Sample::new(Nanos(0)) };
            let key =
                Key { target: 0, cell: 0, repeat: repeat + self.plan.plan.warm_up, phase: Phase::Write };
            measured.add(&self.plan.plan, key, &sample);
            rates.push(rate);
        }
        rates
    }
}
