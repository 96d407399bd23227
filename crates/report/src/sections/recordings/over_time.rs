//! Recordings over time: the rate with stalls, and the fill of the ring with losses.

use nilometer_model::{ByteRate, Levels, Nanos, Series, Stall};
use nilometer_plan::Measured;

use nilometer_analysis::{Quantity, letter};

use super::super::latency::{BINS_LEAST, POINTS_MOST, RateCourse, rate_chart, reference, time_axis};
use super::windows::{RateWindow, windows};
use crate::chart::{Axis, Chart, LETTERS, Line, Plot, Point, Span, SpanPlace, Style, Unit, WIDTH, clipped};

/// Draws the rate of each recording with its stalls. `level` is a reference line.
pub(super) fn rate(title: &str, samples: &[&Measured], level: ByteRate) -> Option<Chart> {
    let long = samples.iter().filter(|measured| measured.sample.series.bins().len() >= BINS_LEAST);
    let lines = long.map(|measured| rate_line(measured.key.target, &measured.sample.series)).collect();
    let spans = samples.iter().flat_map(|measured| stalls(measured)).collect();
    let end = samples.iter().map(|measured| whole_time(measured)).fold(0.0, f64::max);
    rate_chart(title, Quantity::Bytes, RateCourse { lines, end, level: Some(level.0), spans })
}

/// Nanoseconds until the last frame arrived, or until the storage acknowledged it.
fn whole_time(measured: &Measured) -> f64 {
    let series = &measured.sample.series;
    let acknowledged = series.width().0 as f64 * series.bins().len() as f64;
    let arrived = measured.sample.ingest.as_ref().map_or(0.0, |ingest| ingest.duration.0 as f64);
    acknowledged.max(arrived)
}

/// A step for each window.
fn rate_line(target: usize, series: &Series) -> Line {
    let width = series.width().0 as f64;
    let step = |window: &RateWindow| {
        let y = window.rate(width);
        window.ends(width).map(|x| Point { x, y, ..Point::default() })
    };
    let points = windows(series).iter().flat_map(step).collect();
    Line { series: target, name: letter(target), points, style: Style::Plain }
}

fn stalls(measured: &Measured) -> impl Iterator<Item = Span> + '_ {
    let stalls = measured.sample.ingest.iter().flat_map(|ingest| &ingest.stalls);
    stalls.map(|Stall { at, length }| Span {
        series: measured.key.target,
        from: at.0 as f64,
        to: (at.0 + length.0) as f64,
        title: format!("a stall of {length} after {at}"),
        place: SpanPlace::Strip("stalls"),
    })
}

/// Draws the largest number of slots in use at once, and the number of all slots, with a sign for lost frames.
pub(super) fn ring(title: &str, samples: &[&Measured]) -> Option<Chart> {
    let rings: Vec<(usize, u64, &Levels)> = samples
        .iter()
        .filter_map(|measured| {
            let ingest = measured.sample.ingest.as_ref()?;
            let long = ingest.levels.bins().len() >= BINS_LEAST;
            long.then_some((measured.key.target, ingest.slots, &ingest.levels))
        })
        .collect();
    let most = rings.iter().map(|(_, slots, _)| *slots).max()?;
    let end = rings.iter().map(|(_, _, levels)| length(levels)).fold(0.0, f64::max);
    let mut sizes: Vec<u64> = rings.iter().map(|(_, slots, _)| *slots).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut lines: Vec<Line> =
        rings.iter().flat_map(|(target, slots, levels)| lines(*target, *slots, levels)).collect();
    lines.extend(sizes.into_iter().map(|slots| reference(slots as f64, end)));
    let x = time_axis(end);
    let y = Axis::from_zero(Unit::Count("frames in the buffer"), most as f64);
    let description = format!("{title}: the most frames in the buffer at once");
    Some(Chart::Plot(Plot {
        title: clipped(title, LETTERS),
        description,
        x,
        y,
        lines,
        spans: Vec::new(),
        width: WIDTH,
    }))
}

/// Nanoseconds.
fn length(levels: &Levels) -> f64 {
    levels.width().0 as f64 * levels.bins().len() as f64
}

/// Draws the slots in use, and the losses if there are any.
fn lines(target: usize, slots: u64, levels: &Levels) -> Vec<Line> {
    let together = levels.bins().len().div_ceil(POINTS_MOST);
    let width = levels.width().0 as f64 * together as f64;
    let mut used = Vec::new();
    let mut lost = Vec::new();
    for (number, bins) in levels.bins().chunks(together).enumerate() {
        let x = (number as f64 + 0.5) * width;
        let most = bins.iter().map(|level| level.most).max().unwrap_or(0);
        used.push(Point { x, y: most as f64, ..Point::default() });
        let frames: u64 = bins.iter().map(|level| level.lost).sum();
        if frames > 0 {
            let plural = if frames == 1 { "" } else { "s" };
            let title = format!("{frames} frame{plural} lost after {}", Nanos::from_seconds(x * 1e-9));
            lost.push(Point { x, y: slots as f64, title, ..Point::default() });
        }
    }
    let used = Line { series: target, name: letter(target), points: used, style: Style::Plain };
    let lost = Line { series: target, name: String::new(), points: lost, style: Style::Signs };
    [used, lost].into_iter().filter(|line| !line.points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_losses_survive_the_joining_of_bins() {
        let mut levels = Levels::new(Nanos(0));
        (0..600).for_each(|bin| levels.set(Nanos(bin << 20), if bin == 301 { 77 } else { 3 }));
        levels.lose(Nanos(302 << 20), 77);
        levels.lose(Nanos(303 << 20), 77);
        let lines = lines(1, 80, &levels);
        let [used, lost] = &lines[..] else { panic!("{}", lines.len()) };
        assert!(used.points.len() <= POINTS_MOST);
        let most = used.points.iter().max_by(|a, b| a.y.total_cmp(&b.y)).expect("points");
        assert!(
            (most.y - 77.0).abs() < 1e-9 && (most.x / (301.5 * 1_048_576.0) - 1.0).abs() < 0.01,
            "{most:?}"
        );
        assert_eq!((lost.points.len(), lost.points[0].title.split(' ').next()), (1, Some("2")));
    }
}
