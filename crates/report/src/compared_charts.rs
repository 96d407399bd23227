//! Records beside each other, drawn: the rates of each cell, and the runs of a target in time.

use nilometer_analysis::{
    AlignedStage, Quantity, RecordsCompared, RunPoint, RunSequence, TargetHistory, letter,
};
use nilometer_model::Moment;

use crate::{
    chart::{
        Axis, Bar, Bars, Chart, LETTERS, Line, Plot, Point, Span, SpanPlace, Style, WIDE, clipped, interval,
        unit,
    },
    compared::{row_unit, step},
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
                text: words::rate_or_bound(outcome, row_unit(row, question.quantity)),
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
    let places = places(compared, history, sequence);
    let points = sequence.points.iter().zip(&places.at);
    let points: Vec<Point> = points.map(|(point, x)| run_point(compared, sequence, point, *x)).collect();
    let title = format!("{}, {}", sequence.stage, sequence.phase.name());
    let at = |subject: usize| {
        let index = sequence.points.iter().position(|point| point.subject == subject).unwrap_or(0);
        places.at[index]
    };
    let spans = sequence.steps.iter().map(|of| Span {
        series: 1,
        from: at(of.before),
        to: at(of.after),
        title: step(compared, sequence, of),
        place: SpanPlace::Behind,
    });
    let what = if sequence.quantity == Quantity::Time { "time of a task" } else { "rate" };
    Chart::Plot(Plot {
        description: format!("{title}: the rate of each run"),
        title: clipped(&title, LETTERS),
        x: Axis::of_parameter(places.name, &ticks(compared, sequence, &places)),
        y: Axis::from_zero(unit(sequence.quantity), highest(&points)).named(what),
        spans: spans.collect(),
        lines: vec![Line { series: 0, name: String::new(), points, style: Style::Marked }],
        width: WIDE,
    })
}

fn run_point(compared: &RecordsCompared<'_>, sequence: &RunSequence, point: &RunPoint, x: f64) -> Point {
    let quantity = sequence.quantity;
    Point {
        x,
        y: quantity.drawn(point.rate()),
        interval: point.interval().map(|(low, high)| quantity.drawn_interval(low, high)),
        title: format!("{}: {}", compared.name(point.subject), quantity.show(point.rate())),
        label: String::new(),
    }
}

/// An interval reaches at most to this multiple of the highest run. A wider one would press all runs onto the
/// axis; its mark says that it goes on.
const INTERVAL_MOST: f64 = 1.5;

/// The highest value that the chart shows.
fn highest(points: &[Point]) -> f64 {
    let run = points.iter().map(|point| point.y).fold(0.0, f64::max);
    let ends = points.iter().filter_map(|point| Some(point.interval?.1));
    ends.fold(run, f64::max).min(INTERVAL_MOST * run)
}

/// The positions of runs on an axis.
struct RunPositions {
    /// One for each point: days, or numbers of runs.
    at: Vec<f64>,
    /// The name of the axis.
    name: &'static str,
    /// True if the positions are days.
    is_time: bool,
}

/// Runs nearer to each other than this share of the axis would lie upon each other.
const NEAREST: f64 = 0.02;

/// Places runs by their days if each has a day of its own and no two would coincide, else by their order.
fn places(compared: &RecordsCompared<'_>, history: &TargetHistory, sequence: &RunSequence) -> RunPositions {
    let time = |point: &RunPoint| {
        let moment: Moment = compared.results(point.subject).started.parse().ok()?;
        Some(moment.0.seconds() / 86_400.0)
    };
    let times: Option<Vec<f64>> = sequence.points.iter().map(time).collect();
    let mut pairs = sequence.points.windows(2);
    let have_days = pairs.all(|pair| compared.day(pair[0].subject) != compared.day(pair[1].subject));
    if let Some(at) = times.filter(|times| have_days && are_apart(times)) {
        return RunPositions { at, name: "day of the run", is_time: true };
    }
    let number = |point: &RunPoint| {
        let number = history.runs.iter().position(|run| *run == point.subject);
        number.unwrap_or(0) as f64
    };
    let at = sequence.points.iter().map(number).collect();
    RunPositions { at, name: "runs in the order of time", is_time: false }
}

fn are_apart(days: &[f64]) -> bool {
    let [Some(first), Some(last)] = [days.first(), days.last()] else { return false };
    days.windows(2).all(|pair| pair[1] - pair[0] > NEAREST * (last - first))
}

/// The day of each run, or its letter on an axis of runs.
fn ticks(
    compared: &RecordsCompared<'_>,
    sequence: &RunSequence,
    places: &RunPositions,
) -> Vec<(f64, String)> {
    let name = |point: &RunPoint| match compared.day(point.subject) {
        Some(day) if places.is_time => words::day(day, false),
        _ => letter(point.subject),
    };
    sequence.points.iter().zip(&places.at).map(|(point, at)| (*at, name(point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_interval_does_not_press_the_runs_onto_the_axis() {
        let point = |y, high| Point { y, interval: Some((0.0, high)), ..Point::default() };
        let is_about = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
        assert!(is_about(highest(&[point(10.0, 12.0), point(8.0, 9.0)]), 12.0));
        assert!(is_about(highest(&[point(10.0, 4e11), point(8.0, 9.0)]), 15.0));
        assert!(is_about(highest(&[]), 0.0));
    }

    #[test]
    fn runs_of_a_day_do_not_lie_upon_each_other() {
        assert!(are_apart(&[0.0, 7.0, 14.0]));
        assert!(!are_apart(&[0.0, 0.01, 14.0]), "two runs of a day");
        assert!(!are_apart(&[3.0, 3.0]) && !are_apart(&[]));
    }
}
