//! The writer's rate against the readers' rate: a point for each number of readers.

use std::collections::BTreeMap;

use nilometer_model::{ByteRate, Measured, plan::Goal, statistics::Summary};

use crate::{Recording, letter};

use super::{
    super::{
        super::chart::{Axis, Line, Plot, Point, Style, Unit, plot},
        stage::WIDTH,
    },
    Setting,
};

/// As fast as it goes, and at the instrument's pace; only where somebody read.
pub(super) fn charts(recording: &Recording<'_>) -> Vec<String> {
    let wanted = [
        (Goal::Limit, "writer against readers, as fast as it goes"),
        (Goal::Pace, "writer against readers, at its own pace"),
    ];
    wanted.into_iter().filter_map(|(goal, title)| chart(recording, goal, title)).collect()
}

/// What readers got together, and what the writer got, in bytes a second.
type Rates = (f64, f64);

fn chart(recording: &Recording<'_>, goal: Goal, title: &str) -> Option<String> {
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
    Some(plot(&Plot { title: title.into(), description, x, y, lines, spans: Vec::new(), width: WIDTH }))
}

/// By target and number of readers.
fn points<'a>(recording: &Recording<'a>, goal: Goal) -> BTreeMap<usize, BTreeMap<Setting<'a>, Vec<Rates>>> {
    let mut points: BTreeMap<usize, BTreeMap<Setting<'a>, Vec<Rates>>> = BTreeMap::new();
    for &measured in &recording.samples {
        let Some(ingest) = measured.sample.ingest.as_ref().filter(|ingest| ingest.goal == goal) else {
            continue;
        };
        let setting = Setting::of(ingest);
        if measured.sample.invalid.is_none() && setting.company.is_empty() {
            let settings = points.entry(measured.key.target).or_default();
            settings.entry(setting).or_default().push(rates(measured, goal));
        }
    }
    points
}

fn rates(measured: &Measured, goal: Goal) -> Rates {
    let sample = &measured.sample;
    let readers = sample.ingest.iter().flat_map(|ingest| &ingest.readers).filter(|reader| !reader.after);
    let read = readers.map(|reader| ByteRate::of(reader.bytes, reader.wall).0).sum();
    let long_run = sample.series.last_third().filter(|_| goal == Goal::Limit);
    (read, long_run.unwrap_or_else(|| sample.rate()).0)
}

fn line(target: usize, points: BTreeMap<Setting<'_>, Vec<Rates>>) -> Line {
    let point = |(setting, rates): (Setting<'_>, Vec<Rates>)| {
        let mean = |of: fn(&Rates) -> f64| {
            Summary::of(&rates.iter().map(of).collect::<Vec<_>>()).map_or(0.0, |summary| summary.mean)
        };
        let (x, y) = (mean(|rates| rates.0), mean(|rates| rates.1));
        let title = format!("{}, {setting}: {} written, {} read", letter(target), ByteRate(y), ByteRate(x));
        Point { x, y, title, label: setting.sign(), ..Point::default() }
    };
    let points = points.into_iter().map(point).collect();
    Line { series: target, name: letter(target), points, style: Style::Marked }
}
