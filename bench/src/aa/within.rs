//! Two targets of one record, compared by the report.

use nilometer_analysis::Study;

use super::{
    campaign::{AlikeTargets, Noise, Shape, Spread, by_workers},
    tally::{Missed, Shapes, Tally},
};

const NOISES: [Noise; 12] = [
    Noise { name: "5 % a sample", sample: Spread::Same(0.05), ..Noise::NONE },
    Noise { name: "5 % a sample, 3 % a round", sample: Spread::Same(0.05), round: 0.03, ..Noise::NONE },
    Noise { name: "5 % a sample, 5 % a round", sample: Spread::Same(0.05), round: 0.05, ..Noise::NONE },
    Noise { name: "5 % a sample, 10 % a round", sample: Spread::Same(0.05), round: 0.1, ..Noise::NONE },
    Noise { name: "10 % a round", sample: Spread::Same(0.002), round: 0.1, ..Noise::NONE },
    Noise { name: "1 to 10 % by cell", sample: Spread::Drawn, ..Noise::NONE },
    Noise { name: "10 % in one cell, 1 % in others", sample: Spread::FirstCell, ..Noise::NONE },
    Noise { name: "1 to 10 % by cell, 5 % a round", sample: Spread::Drawn, round: 0.05, ..Noise::NONE },
    Noise {
        name: "5 % and 5 %, drift of both by 30 %",
        sample: Spread::Same(0.05),
        round: 0.05,
        drift: 0.3,
        ..Noise::NONE
    },
    Noise {
        name: "5 % and 5 %, a fifth INVALID",
        sample: Spread::Same(0.05),
        round: 0.05,
        invalid: 0.2,
        ..Noise::NONE
    },
    Noise { name: "5 %, one round of ten stalls", sample: Spread::Same(0.05), stalls: 0.1, ..Noise::NONE },
    Noise { name: "0.2 % a sample", sample: Spread::Same(0.002), ..Noise::NONE },
];

const CELLS: [u32; 4] = [1, 2, 4, 8];
const ROUNDS: [u32; 5] = [2, 3, 4, 6, 8];
const MARGIN: f64 = 5.0;

/// Prints the table: over all cells and of a cell, of all shapes.
pub(super) fn print(campaigns: u64) -> Vec<Missed> {
    println!(
        "Two targets of a record, {ROUNDS:?} rounds of {CELLS:?} cells; {campaigns} campaigns of each shape. In percent:"
    );
    println!(
        "intervals that hold the truth (in the worst shape), *faster* or *slower* at a margin of 5 %, not decided.\n"
    );
    println!("| noise | all cells: held | falsely | not decided | a cell: held | falsely | not decided |");
    println!("|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for noise in &NOISES {
        let [all, cell] = of_noise(noise, campaigns, &mut missed);
        println!("| {} | {all} | {cell} |", noise.name);
    }
    missed
}

fn of_noise(noise: &Noise, campaigns: u64, missed: &mut Vec<Missed>) -> [Shapes; 2] {
    let mut found = [Shapes::default(); 2];
    for cells in CELLS {
        for rounds in ROUNDS {
            let shape = Shape { cells, rounds };
            let tallies = of_shape(noise, shape, campaigns);
            for ((shapes, tally), what) in found.iter_mut().zip(tallies).zip(["all cells", "a cell"]) {
                shapes.add(tally);
                let what = format!("{}, {what}, {rounds} rounds of {cells}", noise.name);
                missed.extend(tally.missed(&what, campaigns));
            }
        }
    }
    for (shapes, what) in found.iter().zip(["all cells", "a cell"]) {
        let campaigns = campaigns * (CELLS.len() * ROUNDS.len()) as u64;
        missed.extend(shapes.all.missed(&format!("{}, {what}", noise.name), campaigns));
    }
    found
}

/// Over all cells, and of each cell.
fn of_shape(noise: &Noise, shape: Shape, campaigns: u64) -> [Tally; 2] {
    let cells = by_workers(shape.cells);
    let campaign = AlikeTargets { noise, shape, targets: 2, cells: &cells, faster: 0.0 };
    let mut tallies = [Tally::default(); 2];
    for seed in 0..campaigns {
        let results = campaign.results(seed);
        let study = Study::of(&results);
        let comparisons =
            study.stages.iter().flat_map(|stage| &stage.figures.questions).flat_map(|of| &of.comparisons);
        for comparison in comparisons {
            tallies[0].add(&comparison.effect, MARGIN);
            comparison.cells.iter().for_each(|(_, effect)| tallies[1].add(effect, MARGIN));
        }
    }
    tallies
}
