//! The growth of workloads with the number of elements that run them at once.

use serde::Serialize;

use super::{Numbers, Ratio, numbers, ratio};
use crate::growth;
use nilometer_analysis::{AtOnce, ElementGrowth, GrowthKnee, Quantity, letter};

/// A phase of a workload. `unit` says if rates are in bytes or in operations a second.
#[derive(Serialize)]
pub(super) struct Growth<'a> {
    stage: &'a str,
    /// The parameters that distinguish the workload from others of its stage.
    workload: &'a str,
    phase: &'static str,
    /// `bytes_per_second` or `operations_per_second`.
    unit: &'static str,
    /// Results by the number of elements that work at once, the fewest first.
    counts: Vec<Together>,
    /// The smallest number that no larger one beats by more than the margin. Null if there is none, or if the
    /// data do not decide.
    knee: Option<usize>,
    /// True if the data show the knee, or show that there is none.
    knee_is_decided: bool,
    /// Elements that are much slower by themselves than the median of the others.
    odd: Vec<Odd>,
    /// The sentences of other reports.
    words: Vec<String>,
}

#[derive(Serialize)]
struct Together {
    targets: Vec<String>,
    rate: Option<Numbers>,
    /// The sum of the rates of each element alone.
    sum_alone: Option<f64>,
    /// The rate against that sum.
    share: Option<Ratio>,
    /// The tool's own rate with the same number of workers and a target that keeps nothing.
    ceiling: Option<f64>,
}

#[derive(Serialize)]
struct Odd {
    target: String,
    /// The ratio to the median of the others.
    ratio: Ratio,
}

pub(super) fn growths<'a>(
    stage: &'a str,
    growths: &'a [ElementGrowth],
    margin: f64,
) -> impl Iterator<Item = Growth<'a>> {
    growths.iter().map(move |of| growth_of(margin, stage, of))
}

fn growth_of<'a>(margin: f64, stage: &'a str, of: &'a ElementGrowth) -> Growth<'a> {
    let odd = of.odd.iter().map(|odd| Odd { target: letter(odd.target), ratio: ratio(&odd.effect, margin) });
    Growth {
        stage,
        workload: &of.label,
        phase: of.phase.name(),
        unit: match of.quantity {
            Quantity::Bytes => "bytes_per_second",
            Quantity::Operations | Quantity::Time => "operations_per_second",
        },
        counts: of.counts.iter().map(|at| together(at, margin)).collect(),
        knee: if let GrowthKnee::At(count) = of.knee { Some(count) } else { None },
        knee_is_decided: !matches!(of.knee, GrowthKnee::Undecided(_)),
        odd: odd.collect(),
        words: growth::sentences(of, margin),
    }
}

fn together(at: &AtOnce, margin: f64) -> Together {
    Together {
        targets: at.targets.iter().map(|&target| letter(target)).collect(),
        rate: at.rate.as_ref().map(numbers),
        sum_alone: at.sum_alone,
        share: at.share.as_ref().map(|share| ratio(share, margin)),
        ceiling: at.ceiling,
    }
}
