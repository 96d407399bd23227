//! Details behind the rates of a stage: the latency of operations, and the rate over time in the median repeat.

use nilometer_analysis::{CellOutcome, Quantity, StageCell, StageFigures, letter};
use nilometer_model::{Histogram, Nanos, Phase, Series, statistics::Summary};

use crate::{
    chart::{Axis, Chart, LETTERS, Line, Plot, Point, Span, Style, Unit, WIDTH, clipped, nines},
    document::{Block, Fold},
};

/// Number of pairs of charts that are open at first, and the total number.
const OPEN: usize = 2;
const MOST: usize = 16;
/// Limit on points. More are not visible in a chart of this width.
pub(super) const POINTS_MOST: usize = 150;

/// Fewer bins than this do not show a course of time.
pub(super) const BINS_LEAST: usize = 8;

/// Minimum number of operations in a point. With fewer, one operation more or less at an edge would look like
/// storage whose rate fluctuates.
const OPERATIONS_LEAST: usize = 20;
/// With fewer points than this there is no chart.
const POINTS_LEAST: usize = 4;

/// A pair of charts for each cell and phase.
pub(super) fn latency(stage: &StageFigures<'_>) -> Option<Block> {
    let all: Vec<(&StageCell, Phase)> = stage
        .cells
        .iter()
        .flat_map(|cell| stage.questions.iter().map(move |question| (cell, question.phase)))
        .filter(|(cell, phase)| outcomes(stage, cell, *phase).iter().any(|outcome| outcome.valid > 0))
        .collect();
    if all.is_empty() {
        return None;
    }
    let count = all.len();
    let step = count.div_ceil(MOST);
    let some = (step > 1)
        .then(|| Block::soft(format!("Every {step}th of {count} charts; the table below has all.")));
    let charts = all.into_iter().step_by(step).map(|(cell, phase)| Block::charts(behind(stage, cell, phase)));
    Some(Block::Fold(Fold {
        summary: "Latency, and the rate over time".into(),
        is_open: count <= OPEN,
        blocks: some.into_iter().chain(charts).collect(),
    }))
}

/// Draws the distribution and the rate over time of a cell's phase, if they were recorded.
fn behind(stage: &StageFigures<'_>, cell: &StageCell, phase: Phase) -> Vec<Chart> {
    let outcomes = outcomes(stage, cell, phase);
    let quantity = outcomes.first().map_or(Quantity::Operations, |outcome| stage.quantity(outcome));
    let comma = if cell.label.is_empty() { "" } else { ", " };
    let title = format!("{}{comma}{}", phase.name(), cell.label);
    let mut charts: Vec<Chart> = distribution(&title, &outcomes).into_iter().collect();
    charts.extend(over_time(&title, quantity, &outcomes));
    charts
}

fn outcomes<'a>(stage: &'a StageFigures<'_>, cell: &StageCell, phase: Phase) -> Vec<&'a CellOutcome<'a>> {
    stage.outcomes.iter().filter(|outcome| outcome.cell == cell.index && outcome.phase == phase).collect()
}

fn distribution(title: &str, outcomes: &[&CellOutcome<'_>]) -> Option<Chart> {
    let lines = outcomes.iter().filter_map(|o| Some((o.target, o.latency?)));
    let lines: Vec<Distribution<'_>> = lines
        .map(|(target, histogram)| Distribution { series: target, name: letter(target), histogram })
        .collect();
    let axes = DelayAxes { what: "operations", delay: "time from the start of an operation until its end" };
    quantiles(&format!("{title}: latency"), axes, &lines, None, extent(&lines))
}

/// The distribution of a duration.
#[derive(Debug, Clone)]
pub(super) struct Distribution<'a> {
    /// Decides colour and dash.
    pub(super) series: usize,
    /// The name at the line's end.
    pub(super) name: String,
    /// The times.
    pub(super) histogram: &'a Histogram,
}

/// The least and the longest time of all that is drawn, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    least: f64,
    longest: f64,
}

/// The names of a distribution's axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DelayAxes<'a> {
    /// The things that are delayed: `frames`.
    pub(super) what: &'a str,
    /// The delay, from one event to another.
    pub(super) delay: &'a str,
}

/// Draws distributions of durations, with the same width for each further nine. `limit` is a reference line,
/// and the axis covers `extent`.
pub(super) fn quantiles(
    title: &str,
    axes: DelayAxes<'_>,
    distributions: &[Distribution<'_>],
    limit: Option<Nanos>,
    extent: Extent,
) -> Option<Chart> {
    let DelayAxes { what, delay } = axes;
    let count = distributions.iter().map(|of| of.histogram.count()).max().filter(|count| *count > 0)?;
    let x = Axis::of_nines(count, what);
    let drawn = distributions.iter().filter(|of| of.histogram.count() > 0);
    let mut lines: Vec<Line> = drawn.map(quantile_line).collect();
    let Extent { mut least, mut longest } = extent;
    if let Some(Nanos(limit)) = limit {
        least = least.min(limit as f64);
        longest = longest.max(limit as f64);
        lines.push(reference(limit as f64, f64::MAX));
    }
    let description = format!("{title}: share of {what} that took at most this time");
    let y = Axis::log(Unit::Time, least.max(1.0), longest).named(delay);
    let title = clipped(title, LETTERS);
    Some(Chart::Plot(Plot { title, description, x, y, lines, spans: Vec::new(), width: WIDTH }))
}

pub(super) fn extent(distributions: &[Distribution<'_>]) -> Extent {
    let drawn = distributions.iter().filter(|of| of.histogram.count() > 0);
    let points = drawn.flat_map(|of| quantile_line(of).points);
    let none = Extent { least: f64::INFINITY, longest: 0.0 };
    points.fold(none, |extent, point| Extent {
        least: extent.least.min(point.y),
        longest: extent.longest.max(point.y),
    })
}

/// A level from one side of a chart to the other, which is at `end`.
pub(super) fn reference(level: f64, end: f64) -> Line {
    let point = |x| Point { x, y: level, ..Point::default() };
    Line { series: 0, name: String::new(), points: vec![point(0.0), point(end)], style: Style::Reference }
}

fn quantile_line(of: &Distribution<'_>) -> Line {
    let Distribution { series, ref name, histogram } = *of;
    let all = histogram.count().max(1) as f64;
    let mut points: Vec<Point> = Vec::new();
    let mut seen = 0;
    for (bucket, count) in histogram.buckets() {
        let y = Histogram::lowest(bucket) as f64;
        // From here on, latencies up to `y` are certain. The last bucket is drawn at the position of its first
        // operation.
        let x = nines(seen as f64 / all);
        // The shortest few would stretch the axis needlessly.
        if points.is_empty() && ((seen + count) as f64) < 0.005 * all {
            seen += count;
            continue;
        }
        let near = points.last().is_some_and(|last| x - last.x < 0.01 && y < last.y * 1.05);
        if !near {
            points.push(Point { x, y, ..Point::default() });
        }
        seen += count;
    }
    let most = Point { x: all.log10().max(0.0), y: histogram.max() as f64, ..Point::default() };
    points.push(most);
    Line { series, name: name.clone(), points, style: Style::Plain }
}

/// Draws one chart, or one for each of a few targets that would not fit into one.
fn over_time(title: &str, quantity: Quantity, outcomes: &[&CellOutcome<'_>]) -> Vec<Chart> {
    let series = outcomes.iter().filter_map(|outcome| Some((outcome.target, outcome.series?)));
    let all: Vec<(usize, &Series)> = series.collect();
    let apart = all.len() <= APART_MOST && !fit_together(&all);
    let groups = all.chunks(if apart { 1 } else { all.len().max(1) });
    let title = |group: &[(usize, &Series)]| {
        let letter = if apart { format!(", {}", letter(group[0].0)) } else { String::new() };
        format!("{title}{letter}: over time")
    };
    groups.filter_map(|group| timeline(&title(group), quantity, group)).collect()
}

/// More targets than this share a chart, even if they differ widely.
const APART_MOST: usize = 4;
/// Lines whose duration or rate differs by more than this factor do not fit into one chart.
const TOGETHER_MOST: f64 = 4.0;

fn fit_together(all: &[(usize, &Series)]) -> bool {
    let duration = |series: &Series| series.width().0 as f64 * series.bins().len() as f64;
    let rate = |series: &Series| {
        let operations: u64 = series.bins().iter().map(|bin| bin.operations).sum();
        operations as f64 / duration(series)
    };
    let near = |values: Vec<f64>| {
        let summary = Summary::of(&values);
        summary.is_none_or(|Summary { range: (least, most), .. }| most <= TOGETHER_MOST * least)
    };
    near(all.iter().map(|(_, series)| duration(series)).collect())
        && near(all.iter().map(|(_, series)| rate(series)).collect())
}

/// Draws the rate over time of each target.
fn timeline(title: &str, quantity: Quantity, series: &[(usize, &Series)]) -> Option<Chart> {
    let long = series.iter().filter(|(_, series)| series.bins().len() >= BINS_LEAST);
    let lines: Vec<Line> = long.map(|(target, series)| time_line(*target, series, quantity)).collect();
    let lengths = series.iter().map(|(_, series)| series.width().0 as f64 * series.bins().len() as f64);
    let course = RateCourse { lines, end: lengths.fold(0.0, f64::max), level: None, spans: Vec::new() };
    rate_chart(title, quantity, course)
}

/// Rates over time.
pub(super) struct RateCourse {
    pub(super) lines: Vec<Line>,
    /// Nanoseconds from the start to the end of the axis.
    pub(super) end: f64,
    /// A reference line.
    pub(super) level: Option<f64>,
    pub(super) spans: Vec<Span>,
}

/// Draws rates over time, if there is a line.
pub(super) fn rate_chart(title: &str, quantity: Quantity, course: RateCourse) -> Option<Chart> {
    let RateCourse { mut lines, end, level, spans } = course;
    if lines.is_empty() {
        return None;
    }
    let points = lines.iter().flat_map(|line| &line.points);
    let most = points.map(|point| point.y).chain(level).fold(0.0, f64::max);
    lines.extend(level.map(|level| reference(level, end)));
    let unit = if quantity == Quantity::Bytes { Unit::ByteRate } else { Unit::Operations };
    let x = time_axis(end);
    let y = Axis::from_zero(unit, most).named("rate");
    let description = format!("{title}: rate over time");
    Some(Chart::Plot(Plot { title: clipped(title, LETTERS), description, x, y, lines, spans, width: WIDTH }))
}

/// The time since the start, from zero to `end` nanoseconds.
pub(super) fn time_axis(end: f64) -> Axis {
    let mut axis = Axis::from_zero(Unit::Time, end).named("time since the start");
    axis.until(end);
    axis
}

/// Merges neighbouring bins. It leaves out the last ones if they do not fill half a point.
fn time_line(target: usize, series: &Series, quantity: Quantity) -> Line {
    let bins = series.bins();
    let whole = if bins.len() > 3 { &bins[..bins.len() - 1] } else { bins };
    let operations: u64 = whole.iter().map(|bin| bin.operations).sum();
    let steady = (whole.len() * OPERATIONS_LEAST).div_ceil(operations.max(1) as usize);
    let together =
        whole.len().div_ceil(POINTS_MOST).max(steady).clamp(1, whole.len().div_ceil(POINTS_LEAST).max(1));
    let width = series.width().0 as f64 * together as f64;
    // A rest of less than half a point would be too noisy.
    let chunks = whole.chunks(together).filter(|bins| 2 * bins.len() >= together);
    let points = chunks.enumerate().map(|(number, bins)| {
        let amount: u64 = match quantity {
            Quantity::Bytes => bins.iter().map(|bin| bin.bytes).sum(),
            Quantity::Operations | Quantity::Time => bins.iter().map(|bin| bin.operations).sum(),
        };
        let length = series.width().0 as f64 * bins.len() as f64;
        let x = number as f64 * width + length / 2.0;
        let y = amount as f64 / (length * 1e-9);
        Point { x, y, ..Point::default() }
    });
    Line { series: target, name: letter(target), points: points.collect(), style: Style::Plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_goes_from_the_least_to_the_greatest() {
        let mut histogram = Histogram::default();
        (1..=1000_u64).for_each(|value| histogram.add(value * 1000));
        let line = quantile_line(&Distribution { series: 0, name: "A".into(), histogram: &histogram });
        let (first, last) = (&line.points[0], line.points.last().expect("points"));
        assert!(first.x < 0.01 && first.y < 12_000.0, "{first:?}");
        assert!((last.x - 3.0).abs() < 1e-9 && last.y > 950_000.0, "{last:?}");
        assert!(line.points.windows(2).all(|pair| pair[0].x <= pair[1].x && pair[0].y <= pair[1].y));
        let middle = line.points.iter().rfind(|point| point.x <= nines(0.5)).expect("a half");
        assert!((middle.y / 500_000.0 - 1.0).abs() < 0.05, "{middle:?}");
    }

    #[test]
    fn time_is_divided_into_few_points_that_keep_the_rate() {
        let mut series = Series::new(Nanos(0));
        (0..6000_u64).for_each(|at| series.add(Nanos(at * 100_000), 1000));
        let line = time_line(0, &series, Quantity::Bytes);
        assert!(line.points.len() <= POINTS_MOST && line.points.len() > 50, "{}", line.points.len());
        let mean = line.points.iter().map(|point| point.y).sum::<f64>() / line.points.len() as f64;
        assert!((mean / 10e6 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(timeline("t", Quantity::Bytes, &[]), None);
    }

    #[test]
    fn a_few_bins_are_not_drawn_over_time() {
        let drawn = |bins: u64| {
            let mut series = Series::new(Nanos(0));
            (0..bins).for_each(|bin| series.add(Nanos(bin << 20), 1000));
            timeline("t", Quantity::Bytes, &[(0, &series)]).is_some()
        };
        assert_eq!([1, 3, 7, 8, 9].map(drawn), [false, false, false, true, true]);
    }
}
