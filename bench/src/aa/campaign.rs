//! A simulated campaign: rates of a storage that differs in nothing but noise, as samples of a record.

use nilometer_model::{Invalid, Nanos, Phase, RandomStream, Sample, Seed};
use nilometer_plan::{Cell, Key, Measured, Results, TargetEntry, parse};

/// The noise of a storage: standard deviations of the logarithm of a rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    pub(super) name: &'static str,
    /// Of each sample by itself.
    pub(super) sample: Spread,
    /// Of a target in a round: its samples of all cells have it in common.
    pub(super) round: f64,
    /// Of a run: all its samples have it in common.
    pub(super) day: f64,
    /// How much slower all targets are in the last round than in the first.
    pub(super) drift: f64,
    /// The share of target and rounds in which the target stalls, and does a third of its rate.
    pub(super) stalls: f64,
    /// The share of samples that are INVALID.
    pub(super) invalid: f64,
}

/// How far the samples of a cell spread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spread {
    /// The same in all cells.
    Same(f64),
    /// Each cell draws its own, from 1 to 10 %.
    Drawn,
    /// 10 % in the first cell, and 1 % in all others.
    FirstCell,
}

impl Noise {
    pub(super) const NONE: Noise = Noise {
        name: "none",
        sample: Spread::Same(0.0),
        round: 0.0,
        day: 0.0,
        drift: 0.0,
        stalls: 0.0,
        invalid: 0.0,
    };
}

/// The size of a campaign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) cells: u32,
    pub(super) rounds: u32,
}

/// A campaign on targets that are all alike.
pub(super) struct AlikeTargets<'a> {
    pub(super) noise: &'a Noise,
    pub(super) shape: Shape,
    pub(super) targets: usize,
    /// Cells in the order of the plan; the campaign measures the first ones.
    pub(super) cells: &'a [Cell],
    /// How much faster than usual it is, as a logarithm.
    pub(super) faster: f64,
}

/// Stalled storage does this share of its rate.
const STALLED: f64 = 1.0 / 3.0;

impl AlikeTargets<'_> {
    /// The record of the campaign, which follows from the seed.
    pub(super) fn results(&self, seed: u64) -> Results {
        let mut stream = Seed(seed).named("campaign").stream();
        let spreads: Vec<f64> = (0..self.shape.cells).map(|cell| self.spread(cell, &mut stream)).collect();
        let day = self.faster + self.noise.day * normal(&mut stream);
        let mut samples = Vec::new();
        for repeat in 0..self.shape.rounds {
            let drift = -self.noise.drift * f64::from(repeat) / f64::from(self.shape.rounds);
            for target in 0..self.targets {
                let common = day + drift + self.of_round(&mut stream);
                for (cell, spread) in spreads.iter().enumerate() {
                    // Cells differ by far more than noise.
                    let log = common + 0.4 * cell as f64 + spread * normal(&mut stream);
                    let key = Key { target, cell, repeat, phase: Phase::Write };
                    samples.push(self.measured(key, log, &mut stream));
                }
            }
        }
        self.record(samples)
    }

    fn spread(&self, cell: u32, stream: &mut RandomStream) -> f64 {
        match self.noise.sample {
            Spread::Same(spread) => spread,
            Spread::Drawn => 0.01 + 0.09 * stream.unit(),
            Spread::FirstCell if cell == 0 => 0.1,
            Spread::FirstCell => 0.01,
        }
    }

    fn of_round(&self, stream: &mut RandomStream) -> f64 {
        let stall = if stream.unit() < self.noise.stalls { STALLED.ln() } else { 0.0 };
        stall + self.noise.round * normal(stream)
    }

    fn measured(&self, key: Key, log: f64, stream: &mut RandomStream) -> Measured {
        #[expect(clippy::cast_sign_loss, reason = "rates are positive")]
        let bytes = (1e9 * log.exp()) as u64;
        let invalid = (stream.unit() < self.noise.invalid).then_some(Invalid::Errors);
        let wall = Nanos(1_000_000_000);
        let sample = Sample { bytes, operations: bytes >> 20, wall, invalid, ..Sample::new(Nanos(0)) };
        Measured { key, sample }
    }

    fn record(&self, samples: Vec<Measured>) -> Results {
        let target = |number: usize| TargetEntry { path: format!("/data{number}"), ..TargetEntry::default() };
        Results {
            margin: 5.0,
            repeats: self.shape.rounds,
            targets: (0..self.targets).map(target).collect(),
            cells: self.cells[..self.shape.cells as usize].to_vec(),
            samples,
            ..Results::default()
        }
    }
}

/// Cells that differ in their number of workers.
pub(super) fn by_workers(cells: u32) -> Vec<Cell> {
    let workers: Vec<String> = (1..=cells).map(|workers| workers.to_string()).collect();
    planned(&format!("workers = [{}]\n{STREAM}", workers.join(", ")))
}

/// Cells that differ in the workers of a load beside them, none first.
pub(super) fn by_load(levels: u32) -> Vec<Cell> {
    let workers: Vec<String> = (0..levels).map(|workers| workers.to_string()).collect();
    let beside = STREAM.replace("[stage.", "[stage.background.");
    planned(&format!("{STREAM}[stage.background]\nworkers = [{}]\n{beside}", workers.join(", ")))
}

const STREAM: &str =
    "[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n";

fn planned(stage: &str) -> Vec<Cell> {
    let plan = format!("title = \"alike\"\n[[stage]]\nname = \"files\"\n{stage}");
    parse(&plan, "aa", 1.0).expect("a valid plan").cells
}

/// A standard normal number (Box and Muller 1958).
pub(super) fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}
