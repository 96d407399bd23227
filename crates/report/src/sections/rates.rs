//! The rates of a stage, drawn: bars, or curves over the parameter that most cells differ in.

use nilometer_analysis::{CellOutcome, Quantity, Question, RateUnit, StageCell, StageFigures, letter};

use crate::{
    chart::{Axis, Bar, Bars, Chart, LETTERS, Line, Plot, Point, Style, WIDTH, clipped, interval, unit},
    document::Block,
    words,
};

/// Limit on charts; the table has everything.
const PANELS_MOST: usize = 24;
/// Limit on lines in a chart, because more look the same.
const LINES_MOST: usize = 6;

pub(super) fn rates(stage: &StageFigures<'_>) -> Vec<Block> {
    // A single bar always has full length. The glance and the table have the rates.
    if stage.cells.len() < 2 && stage.targets().len() < 2 {
        return Vec::new();
    }
    let mut panels: Vec<Chart> = match &stage.varying.axis {
        Some(axis) => stage.questions.iter().flat_map(|question| curves(stage, question, axis)).collect(),
        None => stage.questions.iter().map(|question| bar_chart(stage, question)).collect(),
    };
    let more = panels.len().saturating_sub(PANELS_MOST);
    panels.truncate(PANELS_MOST);
    let rest = format!("{more} more charts of this kind are left out: the numbers are below.");
    std::iter::once(Block::charts(panels)).chain((more > 0).then(|| Block::soft(rest))).collect()
}

fn bar_chart(stage: &StageFigures<'_>, question: &Question) -> Chart {
    let outcomes = stage.of_phase(question.phase);
    let unit = words::unit_of(outcomes.iter().copied(), question.quantity);
    let group = |cell: &StageCell| {
        let of_cell = outcomes.iter().filter(|outcome| outcome.cell == cell.index);
        (clipped(&cell.label, LETTERS), of_cell.map(|outcome| bar(outcome, unit)).collect::<Vec<_>>())
    };
    let groups: Vec<(String, Vec<Bar>)> =
        stage.cells.iter().map(group).filter(|(_, bars)| !bars.is_empty()).collect();
    let phase = question.phase.name();
    Chart::Bars(Bars { title: phase.into(), description: format!("{}, {phase}: rates", stage.name), groups })
}

fn bar(outcome: &CellOutcome<'_>, unit: RateUnit) -> Bar {
    let quantity = unit.quantity();
    let summary = outcome.summary(quantity);
    Bar {
        series: outcome.target,
        name: letter(outcome.target),
        value: summary.map(|summary| summary.mean),
        interval: summary.as_ref().and_then(interval),
        repeats: outcome.usable().map(|measured| quantity.of(&measured.sample)).collect(),
        text: words::rate_or_bound(outcome, unit),
    }
}

/// Draws a sweep as curves. With several targets there is a chart for each combination of the other parameters;
/// with one target, a line for each.
fn curves(stage: &StageFigures<'_>, question: &Question, axis: &str) -> Vec<Chart> {
    let outcomes = stage.of_phase(question.phase);
    let others = combinations(stage);
    let x = x_axis(stage, axis);
    let unit = unit(question.quantity);
    let what = if question.quantity == Quantity::Time { "time of a task" } else { "rate" };
    let y = Axis::of_values(unit, means(&outcomes, question.quantity).into_iter()).named(what);
    let empty = Plot {
        title: String::new(),
        description: String::new(),
        x,
        y,
        lines: Vec::new(),
        spans: Vec::new(),
        width: WIDTH,
    };
    let sweep = Sweep { stage, question, axis, outcomes: &outcomes };
    let panel = |title: String, lines: Vec<Line>| Chart::Plot(titled(stage, axis, &title, lines, &empty));
    let phase = question.phase.name();
    if stage.targets().len() == 1 && others.len() > 1 && others.len() <= LINES_MOST {
        let names: Vec<String> = stage.varying.others.iter().map(|name| words::parameter(name)).collect();
        let lines = others.iter().enumerate();
        let lines = lines.filter_map(|(series, other)| sweep.line(other, None, series, other.join(", ")));
        return vec![panel(format!("{phase}, a line for each {}", names.join(", ")), lines.collect())];
    }
    let panels = others.iter().map(|other| {
        let lines = stage.targets().into_iter();
        let lines = lines.filter_map(|target| sweep.line(other, Some(target), target, letter(target)));
        let title =
            if other.is_empty() { phase.to_owned() } else { format!("{phase}, {}", words_of(stage, other)) };
        panel(title, lines.collect())
    });
    panels.collect()
}

/// A plot with the axes of an empty one.
fn titled(stage: &StageFigures<'_>, axis: &str, title: &str, lines: Vec<Line>, empty: &Plot) -> Plot {
    let description = format!("{}, {title}: rate against {}", stage.name, words::parameter(axis));
    Plot { title: clipped(title, LETTERS), description, lines, ..empty.clone() }
}

fn means(outcomes: &[&CellOutcome<'_>], quantity: Quantity) -> Vec<f64> {
    outcomes.iter().filter_map(|outcome| Some(quantity.drawn(outcome.summary(quantity)?.mean))).collect()
}

/// The values of all varying parameters but the axis, as text.
type Other = Vec<String>;

fn other(stage: &StageFigures<'_>, cell: &StageCell) -> Other {
    let value = |name: &String| cell.parameters.get(name).map_or_else(String::new, ToString::to_string);
    stage.varying.others.iter().map(value).collect()
}

/// Returns the combinations in the order of the plan.
fn combinations(stage: &StageFigures<'_>) -> Vec<Other> {
    let mut found: Vec<Other> = Vec::new();
    for cell in &stage.cells {
        let other = other(stage, cell);
        if !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

fn words_of(stage: &StageFigures<'_>, other: &Other) -> String {
    let names = stage.varying.others.iter().zip(other);
    names.map(|(name, value)| format!("{} {value}", words::parameter(name))).collect::<Vec<_>>().join(", ")
}

fn x_axis(stage: &StageFigures<'_>, axis: &str) -> Axis {
    let value = |cell: &StageCell| Some((cell.number(axis)?, cell.parameters.get(axis)?.to_string()));
    let mut values: Vec<(f64, String)> = stage.cells.iter().filter_map(value).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
    Axis::of_parameter(&words::parameter(axis), &values)
}

/// The source of a sweep's lines.
struct Sweep<'a> {
    stage: &'a StageFigures<'a>,
    question: &'a Question,
    axis: &'a str,
    outcomes: &'a [&'a CellOutcome<'a>],
}

impl Sweep<'_> {
    /// The cells of one combination on one target, or on the only one.
    fn line(&self, of: &Other, target: Option<usize>, series: usize, name: String) -> Option<Line> {
        let here =
            self.outcomes.iter().filter(|outcome| target.is_none_or(|target| outcome.target == target));
        let point = |outcome: &&CellOutcome<'_>| {
            let cell = self.stage.cell(outcome.cell).filter(|cell| other(self.stage, cell) == *of)?;
            self.point(cell, outcome)
        };
        let mut points: Vec<Point> = here.filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        (!points.is_empty()).then_some(Line { series, name, points, style: Style::Marked })
    }

    fn point(&self, cell: &StageCell, outcome: &CellOutcome<'_>) -> Option<Point> {
        let quantity = self.question.quantity;
        let summary = outcome.summary(quantity)?;
        let value = cell.parameters.get(self.axis)?;
        let rate = words::marked_rate(outcome, RateUnit::own(quantity))?;
        Some(Point {
            x: value.number()?,
            y: quantity.drawn(summary.mean),
            interval: interval(&summary).map(|(low, high)| quantity.drawn_interval(low, high)),
            title: format!("{}, {value}: {rate}", letter(outcome.target)),
            ..Point::default()
        })
    }
}
