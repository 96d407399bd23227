//! Compares the tool's own rate, with a target that discards all data, to the measured rates. A figure close to
//! its ceiling depends on this machine and program as much as on the storage.

use nilometer_model::{Nanos, Phase, Sample};
use nilometer_plan::{Results, Volumes};

use crate::{CellOutcome, Quantity, StageFigures, letter};

/// The figure of a stage that is closest to the tool's own rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearestCeiling {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// The part of the cell.
    pub phase: Phase,
    /// The quantity of both rates.
    pub quantity: Quantity,
    /// The tool's own rate.
    pub ceiling: f64,
    /// The ceiling as a multiple of the figure, the mean over repeats.
    pub times: f64,
    /// True if the tool was done so soon that most of the time was for starting threads: with more work it would
    /// be faster.
    pub at_least: bool,
}

/// In less time than this, starting threads distorts the measurement.
const SOON: Nanos = Nanos::from_millis(1);

/// Below this multiple of a figure, the tool affects the figure: above it, the tool takes less than a third of
/// the time.
const NEAR: f64 = 3.0;

impl NearestCeiling {
    /// Returns true if the tool has a significant part in the figure.
    pub fn is_near(&self) -> bool {
        self.times < NEAR
    }

    /// The sentence below the stage's figures.
    pub fn words(&self, stage: &StageFigures<'_>) -> String {
        let label = stage.cell(self.cell).map_or("", |cell| cell.label.as_str());
        let of = if label.is_empty() { String::new() } else { format!(" ({label})") };
        let rate = self.quantity.show(self.ceiling);
        let phase = self.phase.name();
        let target = letter(self.target);
        let times =
            if self.times < 10.0 { format!("{:.1}", self.times) } else { format!("{:.0}", self.times) };
        let times = if self.at_least { format!("at least {times}") } else { times };
        let part = if self.is_near() { ": the tool may limit this figure" } else { "" };
        format!("ceiling: the tool alone does {rate} in {phase}{of}, {times} times {target}'s{part}")
    }
}

/// The tool's own sample in the phase of a cell, if it is usable. If several targets are measured at once, the
/// ceiling is that of all together, and a single one has none.
pub fn ceiling_of<'a>(results: &'a Results, outcome: &CellOutcome<'_>) -> Option<&'a Sample> {
    let run = results.cells.get(outcome.cell)?.as_workload();
    if run.is_some_and(|run| run.volumes != Volumes::Alone) {
        return None;
    }
    let group = (outcome.cell, outcome.phase);
    let same = results.ceilings.iter().filter(|measured| (measured.key.cell, measured.key.phase) == group);
    same.map(|measured| &measured.sample).find(|sample| sample.invalid.is_none())
}

/// The figure of a stage that is closest to its ceiling.
pub(crate) fn nearest(results: &Results, stage: &StageFigures<'_>) -> Option<NearestCeiling> {
    let nearest = stage.outcomes.iter().filter_map(|outcome| {
        let quantity = stage.quantity(outcome);
        let mean = outcome.summary(quantity)?.mean;
        let longer = outcome.usable().all(|measured| measured.sample.wall > SOON);
        let sample = ceiling_of(results, outcome).filter(|_| longer)?;
        let ceiling = quantity.of(sample);
        (mean > 0.0 && ceiling > 0.0).then_some(NearestCeiling {
            target: outcome.target,
            cell: outcome.cell,
            phase: outcome.phase,
            quantity,
            ceiling,
            times: ceiling / mean,
            at_least: sample.wall <= SOON,
        })
    });
    nearest.min_by(|one, other| one.times.total_cmp(&other.times))
}

#[cfg(test)]
mod tests {
    use nilometer_plan::{Key, Measured, TargetEntry};

    use super::*;
    use crate::{
        Study,
        made_up::{planned, writes},
    };

    /// A sample that takes `wall` nanoseconds for 1 GiB in 1024 operations.
    fn measured(target: usize, cell: usize, wall: u64) -> Measured {
        let key = Key { target, cell, repeat: 0, phase: Phase::Write };
        let sample = Sample { bytes: 1 << 30, operations: 1024, wall: Nanos(wall), ..Sample::new(Nanos(0)) };
        Measured { key, sample }
    }

    /// Two cells on one target, and on a target that discards all data.
    fn results(ceilings: [u64; 2]) -> Results {
        let cells = vec![writes("files", "1 MiB", 1), writes("files", "1 MiB", 2)];
        let mut campaign = planned(cells.clone(), 1);
        campaign.targets = vec![crate::made_up::described("/a"); 2];
        campaign.ceiling = Some(1);
        let targets = ["/a", "null:"].map(|path| TargetEntry { path: path.into(), ..TargetEntry::default() });
        let mut results = Results {
            campaign: Some(campaign),
            cells,
            targets: targets.to_vec(),
            samples: vec![
                measured(0, 0, 1_000_000_000),
                measured(0, 1, 500_000_000),
                measured(1, 0, ceilings[0]),
                measured(1, 1, ceilings[1]),
            ],
            ..Results::default()
        };
        results.set_ceilings_apart();
        results
    }

    #[test]
    fn the_figure_nearest_to_its_ceiling_is_named() {
        let results = results([100_000_000, 250_000_000]);
        assert_eq!((results.targets.len(), results.samples.len(), results.ceilings.len()), (1, 2, 2));
        let study = Study::of(&results);
        let nearest = study.stages[0].ceiling.expect("both have one");
        assert_eq!((nearest.cell, nearest.target, nearest.is_near()), (1, 0, true));
        assert!((nearest.times - 2.0).abs() < 1e-9, "{nearest:?}");
        let words = nearest.words(&study.stages[0].figures);
        assert!(words.contains("in write (workers 2), 2.0 times A's: the tool may limit"), "{words}");
        assert_eq!(
            (study.missing.planned, study.missing.unused.len()),
            (2, 0),
            "it is no target of the user's"
        );
    }

    #[test]
    fn a_ceiling_far_above_has_no_part_in_a_figure() {
        let results = results([1_000_000, 2_000_000]);
        let study = Study::of(&results);
        let nearest = study.stages[0].ceiling.expect("both have one");
        assert!(!nearest.is_near() && nearest.words(&study.stages[0].figures).ends_with(", 250 times A's"));
        let results = self::results([1_000, 2_000]);
        let study = Study::of(&results);
        let words = study.stages[0].ceiling.expect("both have one").words(&study.stages[0].figures);
        assert!(words.ends_with(", at least 250000 times A's"), "{words}");
    }
}
