//! Records beside each other: two by Welch's method, and one against a baseline of one or several runs.

use nilometer_analysis::{NamedRecord, RecordsCompared};
use nilometer_plan::Results;

use super::{
    campaign::{AlikeTargets, Noise, Shape, Spread, by_workers},
    tally::{Missed, Tally},
};

const NOISES: [Noise; 6] = [
    Noise { name: "1 % a sample", sample: Spread::Same(0.01), ..Noise::NONE },
    Noise { name: "5 % a sample", sample: Spread::Same(0.05), ..Noise::NONE },
    Noise { name: "10 % a sample", sample: Spread::Same(0.1), ..Noise::NONE },
    Noise { name: "1 to 10 % by cell", sample: Spread::Drawn, ..Noise::NONE },
    Noise { name: "10 % in one cell, 1 % in others", sample: Spread::FirstCell, ..Noise::NONE },
    Noise { name: "5 % a sample, 5 % a round", sample: Spread::Same(0.05), round: 0.05, ..Noise::NONE },
];
const REPEATS: [u32; 3] = [2, 3, 5];
const CELLS: u32 = 8;
const MARGIN: f64 = 5.0;

/// What the comparison of two runs says.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    all: Tally,
    cell: Tally,
    /// `--against`: false if anything got worse.
    alarm: Tally,
}

/// Prints the table of two records.
pub(super) fn print(campaigns: u64) -> Vec<Missed> {
    println!(
        "Two records of {CELLS} cells, by Welch's method; {campaigns} pairs. An alarm: something got worse by 1 %.\n"
    );
    println!(
        "| noise | repeats | all cells: held | falsely | not decided | a cell: held | falsely | not decided | alarms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for noise in &NOISES {
        for repeats in REPEATS {
            let Runs { all, cell, alarm } = two(noise, repeats, campaigns);
            let alarms = 100.0 * alarm.falsely();
            println!("| {} | {repeats} | {all} | {cell} | {alarms:.1} |", noise.name);
            for (tally, what) in [(all, "all cells"), (cell, "a cell"), (alarm, "alarms")] {
                let what = format!("two records, {}, {what}, {repeats} repeats", noise.name);
                missed.extend(tally.missed(&what, campaigns));
            }
        }
    }
    missed
}

/// A loss that counts, in percent.
const THRESHOLD: f64 = 1.0;

fn two(noise: &Noise, repeats: u32, campaigns: u64) -> Runs {
    let cells = by_workers(CELLS);
    let shape = Shape { cells: CELLS, rounds: repeats };
    let campaign = AlikeTargets { noise, shape, targets: 1, cells: &cells, faster: 0.0 };
    let mut runs = Runs::default();
    for seed in 0..campaigns {
        let records = [2 * seed, 2 * seed + 1].map(|seed| campaign.results(seed));
        let compared = compared(&records);
        let pairs = compared.stages.iter().flat_map(|stage| &stage.questions).flat_map(|of| &of.pairs);
        for pair in pairs {
            runs.all.add(&pair.effect, MARGIN);
            pair.cells.iter().for_each(|cell| runs.cell.add(&cell.effect, MARGIN));
        }
        let against = compared.against(THRESHOLD).expect("the same target");
        runs.alarm.count(true, !against.worse.is_empty());
    }
    runs
}

fn compared(records: &[Results]) -> RecordsCompared<'_> {
    let named: Vec<NamedRecord<'_>> =
        records.iter().map(|results| NamedRecord { name: "run", results }).collect();
    RecordsCompared::of(&named)
}

const DAYS: [Noise; 2] = [
    Noise { name: "5 % a sample, 5 % a day", sample: Spread::Same(0.05), day: 0.05, ..Noise::NONE },
    Noise { name: "5 % a sample, no day", sample: Spread::Same(0.05), ..Noise::NONE },
];
const BASELINES: [usize; 5] = [1, 2, 3, 5, 8];
const REPEATS_OF_RUN: u32 = 3;
/// The loss that a gate is to find, as a logarithm: 30 %.
const LOSS: f64 = -0.357;

/// Prints the table of a gate in continuous testing.
pub(super) fn print_baselines(campaigns: u64) -> Vec<Missed> {
    println!(
        "A run of {CELLS} cells and {REPEATS_OF_RUN} repeats against baselines of other days; {campaigns} gates. An alarm: something got worse by 5 %.\n"
    );
    println!(
        "| noise | baselines | alarms where nothing differs | where all is 30 % slower |\n|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for noise in &DAYS {
        for baselines in BASELINES {
            let alike = gates(noise, baselines, 0.0, campaigns);
            let slower = gates(noise, baselines, LOSS, campaigns);
            let [alarms, found] = [alike, slower].map(|tally| 100.0 * tally.falsely());
            println!("| {} | {baselines} | {alarms:.1} | {found:.1} |", noise.name);
            // One baseline says nothing of how much days differ.
            if baselines > 1 || noise.day <= 0.0 {
                missed.extend(alike.missed(&format!("{}, {baselines} baselines", noise.name), campaigns));
            }
        }
    }
    missed
}

fn gates(noise: &Noise, baselines: usize, faster: f64, campaigns: u64) -> Tally {
    let cells = by_workers(CELLS);
    let shape = Shape { cells: CELLS, rounds: REPEATS_OF_RUN };
    let before = AlikeTargets { noise, shape, targets: 1, cells: &cells, faster: 0.0 };
    let now = AlikeTargets { faster, ..before };
    let mut alarms = Tally::default();
    for gate in 0..campaigns {
        let seed = |run: usize| gate * 100 + run as u64;
        let mut records: Vec<Results> = (0..baselines).map(|run| before.results(seed(run))).collect();
        records.push(now.results(seed(99)));
        let compared = compared(&records).with_baselines(baselines);
        let against = compared.against(MARGIN).expect("the same target");
        alarms.count(true, !against.worse.is_empty());
    }
    alarms
}
