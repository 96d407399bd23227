//! The growth of a workload with the number of elements that run it at once.

use nilometer_analysis::{AtOnce, ElementGrowth, GrowthKnee, Quantity, StageFigures};

use crate::{
    chart::{Axis, Chart, LETTERS, Line, Plot, Point, Style, Unit, WIDTH, clipped, interval},
    document::{Block, Cell, Column, Detail, Heading, Row, Section, Table},
    growth::{COLUMNS, LEGEND, heading, row, sentences},
};

/// Letters of a rate with its interval.
const RATE: usize = 19;
/// The series of the rate at once (and the knee), and of the sum of the rates alone.
const TOGETHER: usize = 0;
const SUM: usize = 1;
/// The most times that the ceiling of the tool may exceed the highest rate in the chart. A higher ceiling is
/// left out, because it would hide the rest.
const CEILING_MOST: f64 = 2.0;

pub(super) fn growth(
    stage: &StageFigures<'_>,
    growths: &[ElementGrowth],
    margin: f64,
    detail: Detail,
) -> Vec<Section> {
    growths.iter().map(|of| section(stage, of, margin, detail)).collect()
}

fn section(stage: &StageFigures<'_>, of: &ElementGrowth, margin: f64, detail: Detail) -> Section {
    let heading = Heading::with("Elements at once", format!(": {}", heading(of)));
    let mut blocks = Vec::new();
    if detail == Detail::Page {
        blocks.extend([Block::soft(LEGEND), Block::charts(vec![chart(stage, of)])]);
    }
    blocks.extend([Block::Table(table(of)), Block::list(sentences(of, margin))]);
    Section::part(heading, blocks)
}

fn table(of: &ElementGrowth) -> Table {
    let [count, rate, share, tool] = COLUMNS;
    let columns = vec![
        Column::figure(count),
        Column::figure(rate).at_least(RATE),
        Column::figure(share),
        Column::figure(tool).ranked(1),
    ];
    let row = |at: &AtOnce| Row::of(row(of, at).map(Cell::new));
    Table { columns, rows: of.counts.iter().map(row).collect() }
}

fn chart(stage: &StageFigures<'_>, of: &ElementGrowth) -> Chart {
    let title = heading(of);
    let lines = vec![ceiling(of), sums(of), rates(of), knee(of)];
    let greatest = lines.iter().flat_map(|line| &line.points).map(highest).fold(0.0, f64::max);
    let counts = of.counts.iter().map(AtOnce::count);
    let ticks: Vec<(f64, String)> = counts.map(|count| (count as f64, count.to_string())).collect();
    Chart::Plot(Plot {
        description: format!("{}, {title}: rate against the number of elements at once", stage.name),
        title: clipped(&title, LETTERS),
        x: Axis::of_parameter("elements at once", &ticks),
        y: Axis::from_zero(unit_of_sums(of.quantity), greatest).named("rate together"),
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        spans: Vec::new(),
        width: WIDTH,
    })
}

/// Sums over elements are rates, even for tasks that show times otherwise.
fn unit_of_sums(quantity: Quantity) -> Unit {
    if quantity == Quantity::Bytes { Unit::ByteRate } else { Unit::Operations }
}

fn highest(point: &Point) -> f64 {
    point.interval.map_or(point.y, |(_, high)| high.max(point.y))
}

/// The rate at once, with its interval.
fn rates(of: &ElementGrowth) -> Line {
    let points = of.counts.iter().filter_map(|at| rate(of, at)).collect();
    Line { series: TOGETHER, name: "at once".into(), points, style: Style::Marked }
}

fn rate(of: &ElementGrowth, at: &AtOnce) -> Option<Point> {
    let rate = at.rate.as_ref()?;
    let [count, shown, ..] = row(of, at);
    let title = format!("{count} at once: {shown}");
    Some(Point { x: at.count() as f64, y: rate.mean, interval: interval(rate), title, ..Point::default() })
}

/// The sum of the rates alone.
fn sums(of: &ElementGrowth) -> Line {
    let point = |at: &AtOnce| Some(Point { x: at.count() as f64, y: at.sum_alone?, ..Point::default() });
    let points = of.counts.iter().filter_map(point).collect();
    Line { series: SUM, name: "sum".into(), points, style: Style::Plain }
}

/// The ceiling of the tool, if it is near.
fn ceiling(of: &ElementGrowth) -> Line {
    let highest =
        of.counts.iter().filter_map(|at| at.rate.as_ref()).map(|rate| rate.mean).fold(0.0, f64::max);
    let near = |at: &&AtOnce| at.ceiling.is_some_and(|ceiling| ceiling < CEILING_MOST * highest);
    let point = |at: &AtOnce| Some(Point { x: at.count() as f64, y: at.ceiling?, ..Point::default() });
    let points = of.counts.iter().filter(near).filter_map(point).collect();
    Line { series: SUM, name: String::new(), points, style: Style::Reference }
}

/// A mark at the number beyond which more elements add nothing.
fn knee(of: &ElementGrowth) -> Line {
    let at = of.counts.iter().find(|at| of.knee == GrowthKnee::At(at.count()));
    let point = at.and_then(|at| {
        let y = at.rate.as_ref()?.mean;
        let title = format!("more than {} at once add nothing", at.count());
        Some(Point { x: at.count() as f64, y, title, label: "knee".into(), ..Point::default() })
    });
    Line { series: TOGETHER, name: String::new(), points: point.into_iter().collect(), style: Style::Signs }
}
