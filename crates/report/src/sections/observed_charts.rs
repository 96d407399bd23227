//! Charts of observed machines under the run, one below the other over the same time axis.

use nilometer_analysis::{
    Quantity,
    observed::{ObservedMachine, ObservedRun, UseKind, UseValues, sample_range},
};
use nilometer_model::{Nanos, observed::ObservedRange};
use nilometer_plan::{Measured, Results};

use super::latency::{POINTS_MOST, time_axis};
use crate::chart::{Axis, Chart, LETTERS, Line, Plot, Point, Span, SpanPlace, Style, Unit, clipped};

/// Limit on machines, because more look the same in a chart.
const DRAWN_MOST: usize = 16;
/// Width in pixels. A run is longer than the subjects of other charts.
const WIDTH: f64 = 720.0;
/// Letters at the end of a line.
const NAME_LETTERS: usize = 14;

/// The time axis that all charts share.
pub(super) struct RunFrame {
    from: Nanos,
    /// Nanoseconds from the start.
    end: f64,
    /// Times of measurements; empty if there are too many to show.
    measured: Vec<ObservedRange>,
    /// Letters of the longest name at the end of a line. A chart without names leaves the same space.
    name_letters: usize,
}

/// More spans than this are not visible individually.
const SHADED_MOST: usize = 200;
const PERCENT: Unit = Unit::Count("%");

impl RunFrame {
    pub(super) fn of(results: &Results, run: &ObservedRun) -> Self {
        let mut measured: Vec<ObservedRange> = results.samples.iter().filter_map(sample_range).collect();
        if measured.len() > SHADED_MOST {
            measured.clear();
        }
        let names = run.machines.iter().take(DRAWN_MOST).map(shown_name);
        let name_letters = names.map(|name| name.chars().count()).max().unwrap_or(0);
        RunFrame { from: run.range.from, end: run.range.length().0 as f64, measured, name_letters }
    }

    pub(super) fn legend(&self, run: &ObservedRun) -> String {
        let mut legend =
            "Top: the measured rate. Below it: the activity of the machines at that time.".to_owned();
        if !self.measured.is_empty() {
            legend.push_str(" Shaded: measurements.");
        }
        if run.machines.len() > DRAWN_MOST {
            let drawn = format!(" The first {DRAWN_MOST} machines are drawn.");
            legend.push_str(&drawn);
        }
        legend
    }

    /// Draws the rate of the run, and the utilization of machines.
    pub(super) fn first_charts(&self, results: &Results, run: &ObservedRun) -> Vec<Chart> {
        let full = [
            ("busiest disk", UseKind::DiskBusy),
            ("fullest link", UseKind::LinkShare),
            ("busiest processor", UseKind::CoreBusy),
        ];
        let drawn = full.into_iter().filter_map(|(title, kind)| {
            self.machines(run, title, PERCENT, &|machine: &ObservedMachine| largest(machine, kind))
        });
        self.rate(results).into_iter().chain(drawn).collect()
    }

    /// Draws the throughput of machines.
    pub(super) fn more_charts(&self, run: &ObservedRun) -> Vec<Chart> {
        let amounts = [
            ("read from disks", UseKind::DiskRead),
            ("written to disks", UseKind::DiskWritten),
            ("received", UseKind::LinkReceived),
            ("sent", UseKind::LinkSent),
        ];
        let drawn = amounts.into_iter().filter_map(|(title, kind)| {
            self.machines(run, title, Unit::ByteRate, &|machine: &ObservedMachine| sum(machine, kind))
        });
        let processors = |machine: &ObservedMachine| largest(machine, UseKind::ProcessorsBusy);
        drawn.chain(self.machines(run, "all processors", PERCENT, &processors)).collect()
    }

    fn at(&self, time: Nanos) -> f64 {
        time.since(self.from).0 as f64
    }

    /// Draws the rate of each sample over its time: of bytes, or of operations if no bytes are moved.
    fn rate(&self, results: &Results) -> Option<Chart> {
        let moves_bytes = results.samples.iter().any(|measured| measured.sample.bytes > 0);
        let (quantity, unit) = if moves_bytes {
            (Quantity::Bytes, Unit::ByteRate)
        } else {
            (Quantity::Operations, Unit::Operations)
        };
        let mut samples: Vec<&Measured> =
            results.samples.iter().filter(|measured| sample_range(measured).is_some()).collect();
        samples.sort_by_key(|measured| measured.sample.started);
        let points: Vec<Point> = samples.into_iter().flat_map(|one| self.step(one, quantity)).collect();
        let room = "\u{a0}".repeat(self.name_letters);
        self.chart("what was measured", unit, vec![line(0, room, points)])
    }

    /// Rises from zero to the rate of a sample, and falls back at its end.
    fn step(&self, measured: &Measured, quantity: Quantity) -> [Point; 4] {
        let rate = quantity.of(&measured.sample);
        let begin = self.at(measured.sample.started);
        let end = self.at(measured.sample.started + measured.sample.wall);
        [(begin, 0.0), (begin, rate), (end, rate), (end, 0.0)].map(|(x, y)| Point {
            x,
            y,
            ..Point::default()
        })
    }

    /// A line for each machine.
    fn machines(
        &self,
        run: &ObservedRun,
        title: &str,
        unit: Unit,
        figure: &dyn Fn(&ObservedMachine) -> Vec<f64>,
    ) -> Option<Chart> {
        let factor = if unit == Unit::ByteRate { 1.0 } else { 100.0 };
        let drawn = run.machines.iter().take(DRAWN_MOST).enumerate();
        let lines = drawn.map(|(number, machine)| {
            let points = self.points(machine, &figure(machine), factor);
            line(number, shown_name(machine), points)
        });
        self.chart(title, unit, lines.filter(|line| !line.points.is_empty()).collect())
    }

    /// Merges neighbouring spans, so that all points are visible.
    fn points(&self, machine: &ObservedMachine, values: &[f64], factor: f64) -> Vec<Point> {
        let end = self.from + Nanos::from_seconds(self.end * 1e-9);
        let run = ObservedRange { from: self.from, to: end };
        let spans = machine.series.spans.iter().zip(values);
        let known: Vec<(ObservedRange, f64)> = spans
            .filter(|(span, value)| span.meets(run) && value.is_finite())
            .map(|(span, value)| (*span, factor * value))
            .collect();
        let together = known.len().div_ceil(POINTS_MOST).max(1);
        known.chunks(together).map(|near| self.point(near)).collect()
    }

    /// The highest of several spans, at the middle one.
    fn point(&self, near: &[(ObservedRange, f64)]) -> Point {
        let middle = near[near.len() / 2].0;
        let x = f64::midpoint(self.at(middle.from), self.at(middle.to));
        let y = near.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        Point { x, y, ..Point::default() }
    }

    fn chart(&self, title: &str, unit: Unit, lines: Vec<Line>) -> Option<Chart> {
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.y).fold(0.0, f64::max);
        if lines.is_empty() {
            return None;
        }
        let is_share = matches!(unit, Unit::Count(_));
        let x = time_axis(self.end);
        let y = Axis::from_zero(unit, if is_share { 100.0 } else { most });
        let description = format!("{title} over the time of the run");
        let title = clipped(title, LETTERS);
        let spans = self.measured.iter().map(|range| self.span(*range)).collect();
        Some(Chart::Plot(Plot { title, description, x, y, lines, spans, width: WIDTH }))
    }

    fn span(&self, range: ObservedRange) -> Span {
        let from = self.at(range.from);
        Span {
            series: 0,
            from,
            to: self.at(range.to),
            title: "something was measured".into(),
            place: SpanPlace::Behind,
        }
    }
}

fn shown_name(machine: &ObservedMachine) -> String {
    clipped(&machine.header.host, NAME_LETTERS)
}

fn line(series: usize, name: String, points: Vec<Point>) -> Line {
    Line { series, name, points, style: Style::Plain }
}

/// The largest of a machine's resources of a kind, span by span.
fn largest(machine: &ObservedMachine, kind: UseKind) -> Vec<f64> {
    joined(machine.series.all(kind), f64::max)
}

/// Returns the sum over resources that are not made of others, span by span.
fn sum(machine: &ObservedMachine, kind: UseKind) -> Vec<f64> {
    let header = &machine.header;
    let is_own = |name: &str| {
        header.disk(name).is_none_or(|disk| disk.made_of.is_empty())
            && header.link(name).is_none_or(|link| link.is_card)
    };
    joined(machine.series.all(kind).filter(|of| is_own(&of.key.name)), |one, other| one + other)
}

/// Joins values span by span. The result is NaN if no value exists.
fn joined<'a>(all: impl Iterator<Item = &'a UseValues>, join: fn(f64, f64) -> f64) -> Vec<f64> {
    let both = |one: f64, other: f64| match (one.is_finite(), other.is_finite()) {
        (true, true) => join(one, other),
        (true, false) => one,
        _ => other,
    };
    let values = all.map(|of| of.values.clone());
    let joined = values.reduce(|one, other| one.iter().zip(&other).map(|(a, b)| both(*a, *b)).collect());
    joined.unwrap_or_default()
}
