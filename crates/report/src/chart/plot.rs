//! Lines over two axes: sweeps, distributions and time series.

use super::{
    axis::Axis,
    svg::{Anchor, Position, Svg, xy},
};

/// A line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// Decides colour, dash and shape.
    pub(crate) series: usize,
    /// The name at the line's end.
    pub(crate) name: String,
    /// From left to right.
    pub(crate) points: Vec<Point>,
    /// The style of the line.
    pub(crate) style: Style,
}

/// A point of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Point {
    /// Position on the axis of `x`.
    pub(crate) x: f64,
    /// Position on the axis of `y`.
    pub(crate) y: f64,
    /// Its interval, if it has one.
    pub(crate) interval: Option<(f64, f64)>,
    /// The tooltip.
    pub(crate) title: String,
    /// The text next to the point's sign.
    pub(crate) label: String,
}

/// A stretch of the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    /// Decides the colour.
    pub(crate) series: usize,
    /// Start on the axis of `x`.
    pub(crate) from: f64,
    /// End on the axis of `x`, at least `from`.
    pub(crate) to: f64,
    /// The tooltip.
    pub(crate) title: String,
}

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Each point has its sign, with a band if it has an interval.
    Marked,
    /// Only the line, because there are too many points for signs.
    Plain,
    /// Signs without a line and without a name.
    Signs,
    /// A limit to compare with: thin, in the colour of text.
    Reference,
}

/// Lines over two axes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plot {
    /// Stands above it.
    pub(crate) title: String,
    /// Text that screen readers speak instead of the drawing.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    /// Behind the lines, from top to bottom.
    pub(crate) spans: Vec<Span>,
    /// Pixels at its natural size.
    pub(crate) width: f64,
}

const HEIGHT: f64 = 222.0;
const ABOVE: f64 = 38.0;
const BELOW: f64 = 36.0;
/// About the width of a letter, and the height of a line.
const LETTER: f64 = 6.1;
const LINE_HEIGHT: f64 = 12.0;

/// The part of the drawing that contains the lines.
struct Area {
    left: f64,
    /// Free space at both ends, so that signs and their labels do not touch the axis.
    inset: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn of(plot: &Plot) -> Self {
        let longest = plot.y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let left = 10.0 + LETTER * longest as f64;
        let marked = plot.lines.iter().any(|line| matches!(line.style, Style::Marked | Style::Signs));
        let names = plot.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let right = (9.0 + 7.0 * names as f64).clamp(24.0, 110.0);
        Area {
            left,
            inset: if marked { 14.0 } else { 0.0 },
            width: plot.width - left - right,
            height: HEIGHT - ABOVE - BELOW,
        }
    }

    fn place(&self, plot: &Plot, x: f64, y: f64) -> Position {
        let above = 1.0 - plot.y.at(y);
        xy(self.along(plot.x.at(x)), ABOVE + above * self.height)
    }

    /// From a place between 0 and 1 to pixels.
    fn along(&self, place: f64) -> f64 {
        self.left + self.inset + place * (self.width - 2.0 * self.inset)
    }
}

/// The drawing.
pub(crate) fn plot(plot: &Plot) -> String {
    let area = Area::of(plot);
    let mut svg = Svg::new(plot.width, HEIGHT, &plot.description);
    svg.text("h", xy(0.0, 11.0), Anchor::Start, &plot.title);
    axes(&mut svg, plot, &area);
    for span in &plot.spans {
        draw_span(&mut svg, plot, &area, span);
    }
    for line in &plot.lines {
        svg.series(line.series);
        draw(&mut svg, plot, &area, line);
        svg.end();
    }
    names(&mut svg, plot, &area);
    svg.finish()
}

fn axes(svg: &mut Svg, plot: &Plot, area: &Area) {
    let bottom = ABOVE + area.height;
    let right = area.left + area.width;
    for (value, _) in &plot.y.ticks {
        let Position { y, .. } = area.place(plot, 0.0, *value);
        svg.line("g", xy(area.left, y), xy(right, y));
    }
    for (place, label) in plot.y.labelled(area.height, |_| LINE_HEIGHT) {
        let y = bottom - place * area.height + 3.5;
        svg.text("t", xy(area.left - 5.0, y), Anchor::End, label);
    }
    let room = |label: &str| 10.0 + LETTER * label.chars().count() as f64;
    for (place, label) in plot.x.labelled(area.width - 2.0 * area.inset, room) {
        let x = area.along(place);
        svg.line("k", xy(x, bottom), xy(x, bottom + 4.0));
        svg.text("t", xy(x, bottom + 15.0), Anchor::Middle, label);
    }
    svg.line("k", xy(area.left, bottom), xy(right, bottom));
    svg.text("t", xy(0.0, ABOVE - 11.0), Anchor::Start, &plot.y.name);
    svg.text("t", xy(right, HEIGHT - 5.0), Anchor::End, &plot.x.name);
}

/// Least width of a span, so that it stays visible.
const SPAN_LEAST: f64 = 1.6;

fn draw_span(svg: &mut Svg, plot: &Plot, area: &Area, span: &Span) {
    let [from, to] = [span.from, span.to].map(|x| area.place(plot, x, 0.0).x);
    svg.series(span.series);
    svg.span(xy(from, ABOVE), (to - from).max(SPAN_LEAST), area.height, &span.title);
    svg.end();
}

fn draw(svg: &mut Svg, plot: &Plot, area: &Area, line: &Line) {
    let places: Vec<Position> = line.points.iter().map(|point| area.place(plot, point.x, point.y)).collect();
    if line.style == Style::Reference {
        return svg.path("ref", &places);
    }
    if line.points.iter().any(|point| point.interval.is_some()) {
        let interval = |point: &Point| point.interval.unwrap_or((point.y, point.y));
        let points = line.points.iter();
        let above = points.clone().map(|point| area.place(plot, point.x, interval(point).1));
        let below = points.rev().map(|point| area.place(plot, point.x, interval(point).0));
        let outline: Vec<Position> = above.chain(below).collect();
        svg.path("a", &outline);
    }
    if line.style != Style::Signs {
        svg.path("l", &places);
    }
    if line.style != Style::Plain {
        for (at, point) in places.into_iter().zip(&line.points) {
            svg.mark(line.series, at, &point.title);
            if !point.label.is_empty() {
                svg.text("t", xy(at.x, at.y - 8.0), Anchor::Middle, &point.label);
            }
        }
    }
}

/// The lines' names at their ends, moved apart where they would overlap.
fn names(svg: &mut Svg, plot: &Plot, area: &Area) {
    let end = |line: &Line| line.points.last().map(|point| area.place(plot, point.x, point.y));
    let named = plot.lines.iter().filter(|line| matches!(line.style, Style::Marked | Style::Plain));
    let mut ends: Vec<(Position, &Line)> = named.filter_map(|line| Some((end(line)?, line))).collect();
    ends.sort_by(|a, b| a.0.x.total_cmp(&b.0.x));
    // Only names of lines that end at about the same place can overlap.
    let room = |line: &Line| LETTER * line.name.chars().count() as f64;
    for near in ends.chunk_by_mut(|a, b| b.0.x - a.0.x < room(a.1)) {
        near.sort_by(|a, b| a.0.y.total_cmp(&b.0.y));
        let places = apart(&near.iter().map(|(end, _)| end.y).collect::<Vec<_>>(), ABOVE + area.height);
        for ((end, line), y) in near.iter().zip(places) {
            svg.series(line.series);
            svg.text("n", xy(end.x + 7.0, y + 4.0), Anchor::Start, &line.name);
            svg.end();
        }
    }
}

/// The nearest places in the same order that are a line apart, none below `lowest`.
fn apart(wanted: &[f64], lowest: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &y in wanted {
        places.push(places.last().map_or(y, |last| y.max(last + LINE_HEIGHT)));
    }
    let mut limit = lowest;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LINE_HEIGHT;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_their_distance() {
        assert_eq!(apart(&[10.0, 12.0, 100.0], 104.0), [10.0, 22.0, 100.0]);
        assert_eq!(apart(&[98.0, 99.0, 100.0], 104.0), [80.0, 92.0, 104.0]);
        assert_eq!(apart(&[], 1.0), [0.0; 0]);
    }
}
