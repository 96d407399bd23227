//! Elements with known rates, behind a shared link of known rate.

use nilometer_model::{Nanos, Phase, Sample, Seed};
use nilometer_plan::{Cell, Key, Measured, PlannedCampaign, Results, TargetEntry, Volumes};

use super::{described, planned, stage};

/// Bytes that each element writes in a repeat.
const BYTES: u64 = 1_000_000_000;

/// Elements behind a link.
#[derive(Debug, Clone)]
pub struct LinkedElements {
    /// The rate of each element alone.
    pub rates: Vec<f64>,
    /// The rate of the link.
    pub link: f64,
    /// The largest deviation of repeats, as a share.
    pub noise: f64,
    /// Repeats of each cell.
    pub repeats: u32,
    /// The values of `volumes`.
    pub volumes: &'static str,
}

impl LinkedElements {
    /// `count` elements that each do `rate` bytes per second alone, and `link` at the most together.
    pub fn alike(count: usize, rate: f64, link: f64) -> Self {
        let volumes = "\"alone\", 2, 3, 4, 5, 6, 7, 8, \"together\"";
        LinkedElements { rates: vec![rate; count], link, noise: 0.01, repeats: 3, volumes }
    }

    fn cells(&self) -> Vec<Cell> {
        let text = format!(
            "volumes = [{}]\n[stage.workload.stream]\nfile_size = \"1 GB\"\nblock_size = \"1 MB\"\n\
             access = \"direct\"\nread_back = false\n",
            self.volumes
        );
        stage("elements", &text)
    }

    /// The time when each of these is done: all active elements get the same part of the link, as far as they can
    /// use it.
    fn finished(&self, targets: &[usize]) -> Vec<f64> {
        let mut left: Vec<f64> = targets.iter().map(|_| BYTES as f64).collect();
        let mut finished = vec![0.0; targets.len()];
        let mut now = 0.0;
        while left.iter().any(|left| *left > 0.0) {
            let at_work: Vec<usize> = (0..left.len()).filter(|&place| left[place] > 0.0).collect();
            let part = self.link / at_work.len() as f64;
            let rate = |place: usize| self.rates[targets[place]].min(part);
            let step = at_work.iter().map(|&place| left[place] / rate(place)).fold(f64::INFINITY, f64::min);
            now += step;
            for &place in &at_work {
                left[place] -= rate(place) * step;
                if left[place] < 1.0 {
                    left[place] = 0.0;
                    finished[place] = now;
                }
            }
        }
        finished
    }

    fn samples(&self, cells: &[Cell], campaign: &PlannedCampaign) -> Vec<Measured> {
        let mut noise = Seed(5).stream();
        let mut samples = Vec::new();
        for (cell, run) in cells.iter().enumerate() {
            for repeat in 0..self.repeats {
                let groups: Vec<Vec<usize>> = match run.as_workload().expect("a workload").volumes {
                    Volumes::Alone => (0..self.rates.len()).map(|target| vec![target]).collect(),
                    _ => vec![campaign.at_once(cell)],
                };
                for targets in groups {
                    let factor = 1.0 + self.noise * (2.0 * noise.unit() - 1.0);
                    let finished = targets.iter().zip(self.finished(&targets));
                    samples.extend(
                        finished.map(|(&target, seconds)| measured(target, cell, repeat, seconds * factor)),
                    );
                }
            }
            let at_once = campaign.at_once(cell).len().max(1);
            samples.push(measured(self.rates.len(), cell, 0, 0.1 / at_once as f64));
        }
        samples
    }

    /// A whole campaign, with the tool's own rate: 10 GB/s for each element at once.
    pub fn results(&self) -> Results {
        let cells = self.cells();
        let mut campaign = planned(cells.clone(), self.repeats);
        let paths: Vec<String> = (0..=self.rates.len()).map(|index| format!("/{index}")).collect();
        campaign.targets = paths.iter().map(|path| described(path)).collect();
        campaign.ceiling = Some(self.rates.len());
        let entry = |path: &String| TargetEntry { path: path.clone(), ..TargetEntry::default() };
        let samples = self.samples(&cells, &campaign);
        let mut results = Results {
            campaign: Some(campaign),
            margin: 5.0,
            repeats: self.repeats,
            targets: paths.iter().map(entry).collect(),
            cells,
            samples,
            ..Results::default()
        };
        results.set_ceilings_apart();
        results
    }
}

fn measured(target: usize, cell: usize, repeat: u32, seconds: f64) -> Measured {
    let key = Key { target, cell, repeat, phase: Phase::Write };
    let wall = Nanos::from_seconds(seconds);
    Measured { key, sample: Sample { bytes: BYTES, operations: 1000, wall, ..Sample::new(Nanos(0)) } }
}
