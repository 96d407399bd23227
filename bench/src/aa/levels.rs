//! The levels of a load beside a workload, each against the workload without it.

use nilometer_analysis::Study;

use super::{
    campaign::{AlikeTargets, Noise, Shape, Spread, by_load},
    tally::{Missed, Tally},
};

const NOISES: [Noise; 2] = [
    Noise { name: "5 % a sample", sample: Spread::Same(0.05), ..Noise::NONE },
    Noise { name: "1 to 10 % by level", sample: Spread::Drawn, ..Noise::NONE },
];

/// With none.
const LEVELS: u32 = 4;
const ROUNDS: [u32; 4] = [2, 3, 4, 8];
const MARGIN: f64 = 5.0;

/// Prints the table.
pub(super) fn print(campaigns: u64) -> Vec<Missed> {
    println!("Three levels of a load that costs nothing, each against none; {campaigns} campaigns.\n");
    println!("| noise | rounds | held | falsely | not decided |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    for noise in &NOISES {
        for rounds in ROUNDS {
            let tally = of_shape(noise, rounds, campaigns);
            println!("| {} | {rounds} | {tally} |", noise.name);
            missed.extend(tally.missed(&format!("levels, {}, {rounds} rounds", noise.name), campaigns));
        }
    }
    missed
}

fn of_shape(noise: &Noise, rounds: u32, campaigns: u64) -> Tally {
    let cells = by_load(LEVELS);
    let shape = Shape { cells: LEVELS, rounds };
    let campaign = AlikeTargets { noise, shape, targets: 1, cells: &cells, faster: 0.0 };
    let mut tally = Tally::default();
    for seed in 0..campaigns {
        // Cells of a simulated campaign differ by a factor, which the levels of a load must not.
        let mut results = campaign.results(seed);
        for measured in &mut results.samples {
            let level = 0.4 * measured.key.cell as f64;
            #[expect(clippy::cast_sign_loss, reason = "rates are positive")]
            let bytes = (measured.sample.bytes as f64 / level.exp()) as u64;
            measured.sample.bytes = bytes;
        }
        let study = Study::of(&results);
        let interferences = study.stages.iter().flat_map(|stage| &stage.interferences);
        let effects = interferences.flat_map(|of| &of.levels).filter_map(|level| level.effect.as_ref());
        effects.for_each(|effect| tally.add(effect, MARGIN));
    }
    tally
}
