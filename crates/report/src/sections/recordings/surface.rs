//! The writer's rate against the readers' rate: a point for each number of readers.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Goal, Series, statistics::Summary, sustained::sustained};
use nilometer_plan::Measured;

use nilometer_analysis::{StudyRecording, letter};

use super::Setting;
use crate::chart::{Axis, Chart, Line, Plot, Point, Style, Unit, WIDTH};

/// Draws full-speed recordings and recordings at the instrument's pace, if a target has at least two numbers of
/// readers.
pub(super) fn charts(recording: &StudyRecording<'_>) -> Vec<Chart> {
    let wanted = [
        (Goal::Limit, "writer against readers, at full speed"),
        (Goal::Pace, "writer against readers, at its own pace"),
    ];
    wanted.into_iter().filter_map(|(goal, title)| chart(recording, goal, title)).collect()
}

fn chart(recording: &StudyRecording<'_>, goal: Goal, title: &str) -> Option<Chart> {
    let lines: Vec<Line> =
        points(recording, goal).into_iter().map(|(target, points)| line(target, points)).collect();
    if lines.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let greatest =
        |of: fn(&Point) -> f64| lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max);
    let x = Axis::from_zero(Unit::ByteRate, greatest(|point| point.x)).named("read together");
    let y = Axis::from_zero(Unit::ByteRate, greatest(|point| point.y)).named("written");
    let description = format!("{title}: a point for each number of readers");
    Some(Chart::Plot(Plot { title: title.into(), description, x, y, lines, spans: Vec::new(), width: WIDTH }))
}

/// Groups recordings by target and number of readers.
fn points<'a>(
    recording: &StudyRecording<'a>,
    goal: Goal,
) -> BTreeMap<usize, BTreeMap<Setting<'a>, Vec<&'a Measured>>> {
    let mut points: BTreeMap<usize, BTreeMap<Setting<'a>, Vec<&'a Measured>>> = BTreeMap::new();
    for &measured in &recording.samples {
        let Some(ingest) = measured.sample.ingest.as_ref().filter(|ingest| ingest.goal == goal) else {
            continue;
        };
        let setting = Setting::of(ingest);
        if measured.sample.invalid.is_none() && setting.company.is_empty() {
            let settings = points.entry(measured.key.target).or_default();
            settings.entry(setting).or_default().push(measured);
        }
    }
    points
}

/// Returns the rate of all readers of a recording together.
fn read(measured: &Measured) -> f64 {
    let readers = measured.sample.ingest.iter().flat_map(|ingest| &ingest.readers);
    let meanwhile = readers.filter(|reader| !reader.after);
    meanwhile.map(|reader| ByteRate::of(reader.bytes, reader.wall).0).sum()
}

/// Returns the writer's rate. At full speed it is the verdict's figure.
fn written(made: &[&Measured]) -> f64 {
    let is_limit = |measured: &Measured| {
        measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == Goal::Limit)
    };
    let passes: Vec<&Series> =
        made.iter().filter(|measured| is_limit(measured)).map(|measured| &measured.sample.series).collect();
    sustained(&passes).map_or_else(|| mean(made, |measured| measured.sample.rate().0), |found| found.rate.0)
}

fn mean(made: &[&Measured], of: fn(&Measured) -> f64) -> f64 {
    let values: Vec<f64> = made.iter().map(|measured| of(measured)).collect();
    Summary::of(&values).map_or(0.0, |summary| summary.mean)
}

fn point(target: usize, setting: Setting<'_>, made: &[&Measured]) -> Point {
    let x = mean(made, read);
    let y = written(made);
    let title = format!("{}, {setting}: {} written, {} read", letter(target), ByteRate(y), ByteRate(x));
    Point { x, y, title, label: setting.sign(), ..Point::default() }
}

fn line(target: usize, points: BTreeMap<Setting<'_>, Vec<&Measured>>) -> Line {
    let points = points.into_iter().map(|(setting, made)| point(target, setting, &made)).collect();
    Line { series: target, name: letter(target), points, style: Style::Marked }
}
