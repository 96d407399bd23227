//! Records beside each other, drawn: the rates of each cell, and the runs of a target in time.

use nilometer_analysis::{AlignedStage, RecordsCompared, RunPoint, RunSequence, TargetHistory, letter};
use nilometer_model::Moment;

use crate::{
    chart::{Axis, Bar, Bars, Chart, LETTERS, Line, Plot, Point, Span, Style, WIDE, clipped, interval, unit},
    compared::step,
    words,
};

/// Limit on the number of cells in the drawing; the table has all of them.
const CELLS_MOST: usize = 24;

pub(super) fn bar_chart(compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>, phase: &str) -> Chart {
    let rows = stage.rows.iter().filter(|row| row.phase.name() == phase).take(CELLS_MOST);
    let groups = rows.map(|row| {
        let bars = compared.shown.iter().filter_map(|&subject| {
            let outcome = row.outcome(subject)?;
            let question = stage.questions.iter().find(|question| question.phase == row.phase)?;
            let summary = outcome.summary(question.quantity);
            Some(Bar {
                series: subject,
                name: letter(subject),
                value: summary.map(|summary| summary.mean),
                interval: summary.as_ref().and_then(interval),
                repeats: outcome.usable().map(|measured| question.quantity.of(&measured.sample)).collect(),
                text: words::rate_or_bound(outcome, question.quantity),
            })
        });
        (clipped(&row.label, LETTERS), bars.collect())
    });
    let description = format!("{}, {phase}: rates", stage.name);
    Chart::Bars(Bars { title: phase.into(), description, groups: groups.collect() })
}

/// The runs from left to right, the oldest first. A span marks both sides of a step.
pub(super) fn trend_chart(
    compared: &RecordsCompared<'_>,
    history: &TargetHistory,
    sequence: &RunSequence,
) -> Chart {
    let times: Vec<f64> = sequence.points.iter().map(|point| place(compared, history, point)).collect();
    let points = sequence.points.iter().zip(&times).map(|(point, x)| Point {
        x: *x,
        y: sequence.quantity.drawn(point.rate()),
        interval: point.interval().map(|(low, high)| sequence.quantity.drawn_interval(low, high)),
        title: format!("{}: {}", compared.name(point.subject), sequence.quantity.show(point.rate())),
        label: String::new(),
    });
    let points: Vec<Point> = points.collect();
    let title = format!("{}, {}", sequence.stage, sequence.phase.name());
    let x = Axis::of_parameter("run", &ticks(compared, sequence, &times));
    let highest = |point: &Point| point.interval.map_or(point.y, |(_, high)| high);
    let y = Axis::from_zero(unit(sequence.quantity), points.iter().map(highest).fold(0.0, f64::max));
    let at = |subject: usize| {
        let index = sequence.points.iter().position(|point| point.subject == subject).unwrap_or(0);
        times[index]
    };
    let spans = sequence.steps.iter().map(|of| Span {
        series: 1,
        from: at(of.before),
        to: at(of.after),
        title: step(compared, sequence, of),
    });
    Chart::Plot(Plot {
        description: format!("{title}: the rate of each run"),
        title: clipped(&title, LETTERS),
        x,
        y,
        spans: spans.collect(),
        lines: vec![Line { series: 0, name: String::new(), points, style: Style::Marked }],
        width: WIDE,
    })
}

/// Returns the position of a run: its day if all records have a date, else its number.
fn place(compared: &RecordsCompared<'_>, history: &TargetHistory, point: &RunPoint) -> f64 {
    let day = |subject: usize| {
        let moment: Moment = compared.results(subject).started.parse().ok()?;
        Some(moment.0.seconds() / 86_400.0)
    };
    let all: Option<Vec<f64>> = history.runs.iter().map(|run| day(*run)).collect();
    let index = history.runs.iter().position(|run| *run == point.subject).unwrap_or(0);
    all.map_or(index as f64, |days| days[index])
}

/// The first day, the last, and some between them.
fn ticks(compared: &RecordsCompared<'_>, sequence: &RunSequence, times: &[f64]) -> Vec<(f64, String)> {
    let day = |subject: usize| {
        let started = &compared.results(subject).started;
        started.get(5..10).map_or_else(|| letter(subject), str::to_owned)
    };
    let named = sequence.points.iter().zip(times).map(|(point, at)| (*at, day(point.subject)));
    let mut ticks: Vec<(f64, String)> = named.collect();
    ticks.dedup_by(|later, earlier| later.1 == earlier.1);
    ticks
}
