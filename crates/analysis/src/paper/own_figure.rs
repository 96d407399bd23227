//! One's own figure in a table of a study, from the repeats of a cell or from a single run.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{Activity, Invalid, Sample, statistics::Summary};
use nilometer_plan::FigureKind;

use crate::CellOutcome;

/// One's own figure in a table of a study. A bound stands for a figure that this machine spoilt.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnFigure {
    /// The figure, with the numbers of valid repeats and of all repeats.
    Known {
        /// In the unit of its column.
        value: f64,
        /// Repeats that it rests on.
        valid: usize,
        /// All repeats.
        all: usize,
    },
    /// A mean over the nodes of a run, with its standard error.
    OverNodes {
        /// In the unit of its column.
        mean: f64,
        /// The standard error; `None` if the record does not have the figure of each node.
        error: Option<f64>,
    },
    /// A lower bound.
    AtLeast(f64),
    /// An upper bound.
    AtMost(f64),
    /// The reason why there is none, in a word or two.
    Missing(&'static str),
}

/// The word for a figure whose repeats are all INVALID, and bound nothing.
const INVALID: &str = "INVALID";

impl fmt::Display for OwnFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OwnFigure::Known { value, valid, all } if valid < all => {
                write!(f, "{} ({valid}/{all})", significant(value))
            }
            OwnFigure::Known { value, .. } => f.write_str(&significant(value)),
            OwnFigure::OverNodes { mean, error: Some(error) } => {
                write!(f, "{} ± {}", significant(mean), significant(error))
            }
            OwnFigure::OverNodes { mean, error: None } => write!(f, "{} ± unknown", significant(mean)),
            OwnFigure::AtLeast(value) => write!(f, "at least {}", significant(value)),
            OwnFigure::AtMost(value) => write!(f, "at most {}", significant(value)),
            OwnFigure::Missing(why) => f.write_str(why),
        }
    }
}

/// A number with four significant digits, or all digits before the point.
fn significant(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    #[expect(clippy::cast_sign_loss, reason = "it is clamped to 0 and more")]
    let decimals = (3.0 - magnitude).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// Bytes a second of a unit of rates; `None` for operations, and for units of other quantities.
pub(super) fn bytes_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "KB/s" => 1e3,
        "MB/s" => 1e6,
        "GB/s" => 1e9,
        "Mbit/s" => 1e6 / 8.0,
        "Gbit/s" => 1e9 / 8.0,
        _ => return None,
    })
}

/// The unit of an own figure whose column has none.
pub(super) const fn own_unit(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::BackgroundIo => "MB/s",
        _ => "",
    }
}

/// The figure over the repeats of a cell.
pub(super) fn over_repeats(kind: FigureKind, unit: &str, outcome: &CellOutcome<'_>) -> OwnFigure {
    let all = outcome.samples.len();
    let valid: Vec<f64> =
        outcome.usable().filter_map(|measured| value(kind, unit, &measured.sample)).collect();
    if kind == FigureKind::Processor || kind == FigureKind::MachineProcessor {
        return processor(kind, outcome);
    }
    if let Some(summary) = Summary::of(&valid) {
        return OwnFigure::Known { value: chosen(kind, &summary), valid: summary.count, all };
    }
    let samples = outcome.samples.iter().map(|measured| &measured.sample);
    let starved: Vec<f64> =
        samples.filter(|sample| is_bound(sample)).filter_map(|sample| value(kind, unit, sample)).collect();
    let bound = Summary::of(&starved).map(|summary| chosen(kind, &summary));
    match (kind, bound) {
        (FigureKind::Rate | FigureKind::Max | FigureKind::Min | FigureKind::Mean, Some(bound)) => {
            OwnFigure::AtLeast(bound)
        }
        (FigureKind::Real, Some(bound)) => OwnFigure::AtMost(bound),
        _ => OwnFigure::Missing(INVALID),
    }
}

/// The statistic of a kind of figure. The statistic of lower bounds is a lower bound as well.
fn chosen(kind: FigureKind, summary: &Summary) -> f64 {
    match kind {
        FigureKind::Max => summary.range.1,
        FigureKind::Min => summary.range.0,
        _ => summary.mean,
    }
}

/// Returns true if the tool waited for a processor in a repeat: the storage would have been faster.
fn is_bound(sample: &Sample) -> bool {
    sample.wall.0 > 0 && matches!(sample.invalid, Some(Invalid::Starved(_)))
}

/// The figure of one repeat, if each repeat has one.
fn value(kind: FigureKind, unit: &str, sample: &Sample) -> Option<f64> {
    Some(match kind {
        FigureKind::Rate => match bytes_of(unit) {
            Some(bytes) => sample.sustained_rate().0 / bytes,
            None => sample.operation_rate(),
        },
        FigureKind::Max | FigureKind::Min | FigureKind::Mean => sample.operation_rate(),
        FigureKind::Real => sample.wall.seconds(),
        FigureKind::User => sample.user.seconds(),
        FigureKind::Sys => sample.system.seconds(),
        FigureKind::Wait => sample.wait().seconds(),
        _ => return None,
    })
}

/// Processor time in percent of the wall time. The kernel's steps are too coarse for short repeats.
fn processor(kind: FigureKind, outcome: &CellOutcome<'_>) -> OwnFigure {
    let Some(cores) = outcome.cores else {
        return OwnFigure::Missing(if outcome.valid == 0 { INVALID } else { "too short" });
    };
    let busy = if kind == FigureKind::Processor { cores.own } else { cores.machine };
    OwnFigure::Known { value: 100.0 * busy, valid: outcome.valid, all: outcome.samples.len() }
}

/// The figure of a single run on one machine or several. An INVALID run still has the state before it.
pub(super) fn of_run(kind: FigureKind, sample: &Sample) -> OwnFigure {
    let times = node_times(sample);
    let starts = &sample.node_starts;
    match kind {
        FigureKind::Time => time_of_run(sample, &times),
        FigureKind::Load | FigureKind::BackgroundIo if starts.is_empty() => {
            start_without_nodes(kind, sample, times.len())
        }
        FigureKind::Load => over_nodes(starts.iter().map(|start| Some(start.load))),
        FigureKind::BackgroundIo => over_nodes(starts.iter().map(|start| Some(start.disk_rate()?.0 / 1e6))),
        _ => OwnFigure::Missing("not a run's"),
    }
}

/// The state before a run of one process, or of several in a record up to schema 9. Such a record has the
/// greatest load of all nodes, and the sum of their I/O.
fn start_without_nodes(kind: FigureKind, sample: &Sample, nodes: usize) -> OwnFigure {
    match (kind, before(&sample.before)) {
        (FigureKind::Load, _) if nodes == 1 => of_one_node(sample.load),
        (FigureKind::Load, _) => OwnFigure::AtMost(sample.load),
        (_, Some(all)) if nodes == 1 => of_one_node(all),
        (_, Some(all)) => OwnFigure::OverNodes { mean: all / nodes as f64, error: None },
        (_, None) => OwnFigure::Missing("not observed"),
    }
}

/// The mean over nodes with its standard error. It is missing if one of the nodes was not observed.
fn over_nodes(figures: impl Iterator<Item = Option<f64>>) -> OwnFigure {
    let figures: Option<Vec<f64>> = figures.collect();
    match figures.as_deref().and_then(Summary::of) {
        Some(Summary { mean, sem: Some(error), .. }) => OwnFigure::OverNodes { mean, error: Some(error) },
        Some(summary) => of_one_node(summary.mean),
        None => OwnFigure::Missing("not observed"),
    }
}

fn time_of_run(sample: &Sample, times: &[f64]) -> OwnFigure {
    let Some(summary) = Summary::of(times) else { return OwnFigure::Missing(INVALID) };
    match (&sample.invalid, summary.sem) {
        (Some(_), _) if is_bound(sample) => OwnFigure::AtMost(summary.mean),
        (Some(_), _) => OwnFigure::Missing(INVALID),
        (None, None) => of_one_node(summary.mean),
        (None, error) => OwnFigure::OverNodes { mean: summary.mean, error },
    }
}

/// A figure without an error over nodes.
const fn of_one_node(value: f64) -> OwnFigure {
    OwnFigure::Known { value, valid: 1, all: 1 }
}

/// Megabytes a second that all disks moved before a run; `None` if nothing was observed.
fn before(activity: &Activity) -> Option<f64> {
    let moved = activity.disk_read as f64 + activity.disk_written as f64;
    (activity.over.0 > 0).then(|| moved / activity.over.seconds() / 1e6)
}

/// Seconds until each node was done.
fn node_times(sample: &Sample) -> Vec<f64> {
    let mut nodes: BTreeMap<&str, f64> = BTreeMap::new();
    for part in &sample.parts {
        let done = nodes.entry(&part.node).or_default();
        *done = done.max(part.last_done.seconds());
    }
    if nodes.is_empty() { vec![sample.wall.seconds()] } else { nodes.into_values().collect() }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, NodeStart, Phase, RankPart};
    use nilometer_plan::{Key, Measured, Results};

    use super::*;
    use crate::outcomes;

    /// A repeat of `operations` in a second.
    fn repeat(number: u32, operations: u64, invalid: Option<Invalid>) -> Measured {
        let key = Key { target: 0, cell: 0, repeat: number, phase: Phase::CreateFiles };
        let wall = Nanos(1_000_000_000);
        Measured { key, sample: Sample { operations, wall, invalid, ..Sample::new(Nanos(0)) } }
    }

    fn shown(kinds: &[FigureKind], samples: Vec<Measured>) -> Vec<String> {
        let results = Results { samples, ..Results::default() };
        let outcomes = outcomes(&results);
        kinds.iter().map(|kind| over_repeats(*kind, "op/s", &outcomes[0]).to_string()).collect()
    }

    const STARVED: Option<Invalid> = Some(Invalid::Starved(None));

    #[test]
    fn the_greatest_the_least_and_the_mean_are_those_of_valid_repeats() {
        let kinds = [FigureKind::Max, FigureKind::Min, FigureKind::Mean, FigureKind::Real];
        let all = [100, 300, 200].into_iter().zip(0..).map(|(count, number)| repeat(number, count, None));
        assert_eq!(shown(&kinds, all.clone().collect()), ["300.0", "100.0", "200.0", "1.000"]);
        let with_one = all.chain([repeat(3, 9000, Some(Invalid::WarmRead))]).collect();
        assert_eq!(shown(&kinds, with_one), ["300.0 (3/4)", "100.0 (3/4)", "200.0 (3/4)", "1.000 (3/4)"]);
    }

    #[test]
    fn a_figure_has_four_digits_whatever_its_sign() {
        let shown = [0.0, 0.123_45, -24.084, 39_532.4].map(significant);
        assert_eq!(shown, ["0.000", "0.1235", "-24.08", "39532"]);
    }

    #[test]
    fn repeats_that_waited_for_a_processor_bound_a_figure_and_others_say_that_they_are_invalid() {
        let kinds = [FigureKind::Max, FigureKind::Mean, FigureKind::Real, FigureKind::User];
        let spoilt = vec![repeat(0, 100, STARVED), repeat(1, 300, STARVED)];
        assert_eq!(shown(&kinds, spoilt), ["at least 300.0", "at least 200.0", "at most 1.000", "INVALID"]);
        let warm = vec![repeat(0, 100, Some(Invalid::WarmRead))];
        assert_eq!(shown(&kinds, warm), ["INVALID"; 4]);
    }

    #[test]
    fn a_run_on_several_nodes_has_the_mean_of_their_times_and_its_error() {
        let part = |rank: u32, node: &str, seconds: u64| RankPart {
            rank,
            node: node.into(),
            last_done: Nanos(seconds * 1_000_000_000),
            ..RankPart::default()
        };
        let before = Activity {
            over: Nanos(1_000_000_000),
            disk_read: 4_000_000,
            disk_written: 2_000_000,
            ..Activity::default()
        };
        let parts = vec![part(0, "a", 3), part(1, "a", 4), part(2, "b", 8)];
        let wall = Nanos(8_000_000_000);
        let sample = Sample { parts, before, wall, load: 2.5, ..Sample::new(Nanos(0)) };
        let kinds = [FigureKind::Time, FigureKind::Load, FigureKind::BackgroundIo];
        let of = |sample: &Sample| kinds.map(|kind| of_run(kind, sample).to_string());
        assert_eq!(of(&sample), ["6.000 ± 2.000", "at most 2.500", "3.000 ± unknown"], "schema 9");
        let start = |node: &str, load: f64, disk_read: u64| NodeStart {
            node: node.into(),
            load,
            before: Activity { disk_read, disk_written: 0, ..before },
        };
        let node_starts = vec![start("a", 0.5, 1_000_000), start("b", 2.5, 5_000_000)];
        let known = Sample { node_starts, ..sample.clone() };
        assert_eq!(of(&known), ["6.000 ± 2.000", "1.500 ± 1.000", "3.000 ± 2.000"]);
        let mut unseen = known.clone();
        unseen.node_starts[1].before = Activity::default();
        assert_eq!(of(&unseen), ["6.000 ± 2.000", "1.500 ± 1.000", "not observed"]);
        let parts = vec![part(0, "a", 3), part(1, "a", 4)];
        let one = Sample { parts, node_starts: vec![start("a", 0.5, 1_000_000)], ..known };
        assert_eq!(of(&one), ["4.000", "0.5000", "1.000"], "one node has no error");
        let spoilt = Sample { invalid: STARVED, ..sample.clone() };
        assert_eq!(of(&spoilt), ["at most 6.000", "at most 2.500", "3.000 ± unknown"]);
        let alone = Sample { parts: Vec::new(), wall: Nanos(500_000_000), ..sample };
        assert_eq!(of(&alone), ["0.5000", "2.500", "6.000"]);
    }
}
