//! Lines over two axes: sweeps, distributions and time series.

use std::collections::BTreeSet;

use super::{
    axis::Axis,
    strip::{self, PlotEdges, StripRow, StripStretch},
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
    pub(crate) place: SpanPlace,
}

/// The place at which a chart shows a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanPlace {
    /// Behind the lines, as high as the plot.
    Behind,
    /// In a strip of this name below the plot, with a row for each series. The lines stay free.
    Strip(&'static str),
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
    /// Stretches of the horizontal axis, behind the lines or below them.
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
    /// Height of the strip below the lines; zero if there is none.
    strip: f64,
}

impl Area {
    fn of(plot: &Plot) -> Self {
        let labels = plot.y.ticks.iter().map(|(_, label)| label.chars().count());
        let strip_letters = strip_name(plot).chars().count();
        let left = 10.0 + LETTER * labels.chain([strip_letters]).max().unwrap_or(0) as f64;
        let marked = plot.lines.iter().any(|line| matches!(line.style, Style::Marked | Style::Signs));
        let names = plot.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let right = (9.0 + 7.0 * names as f64).clamp(24.0, 110.0);
        Area {
            left,
            inset: if marked { 14.0 } else { 0.0 },
            width: plot.width - left - right,
            height: HEIGHT - ABOVE - BELOW,
            strip: strip::height(strip_series(plot).len()),
        }
    }

    fn bottom(&self) -> f64 {
        ABOVE + self.height
    }

    /// Pixels of the whole drawing.
    fn total(&self) -> f64 {
        HEIGHT + self.strip
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
    let mut svg = Svg::new(plot.width, area.total(), &plot.description);
    svg.text("h", xy(0.0, 11.0), Anchor::Start, &plot.title);
    axes(&mut svg, plot, &area);
    for span in plot.spans.iter().filter(|span| span.place == SpanPlace::Behind) {
        svg.series(span.series);
        let at = stretch(plot, &area, span);
        svg.span("b", xy(at.left, ABOVE), at.width, area.height, at.title);
        svg.end();
    }
    let edges = PlotEdges { left: area.left, right: area.left + area.width, bottom: area.bottom() };
    strip::draw(&mut svg, edges, &strip_rows(plot, &area));
    for line in &plot.lines {
        svg.series(line.series);
        draw(&mut svg, plot, &area, line);
        svg.end();
    }
    names(&mut svg, plot, &area);
    svg.finish()
}

fn axes(svg: &mut Svg, plot: &Plot, area: &Area) {
    let bottom = area.bottom();
    let below = bottom + area.strip;
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
        svg.text("t", xy(x, below + 15.0), Anchor::Middle, label);
    }
    svg.line("k", xy(area.left, bottom), xy(right, bottom));
    svg.text("t", xy(0.0, ABOVE - 11.0), Anchor::Start, &plot.y.name);
    // A long name starts at the left edge, where it has the whole width.
    let is_long = LETTER * plot.x.name.chars().count() as f64 > right;
    let end = if is_long { plot.width } else { right };
    svg.text("t", xy(end, area.total() - 5.0), Anchor::End, &plot.x.name);
}

/// Least width of a span, so that it stays visible.
const SPAN_LEAST: f64 = 1.6;

fn stretch<'a>(plot: &Plot, area: &Area, span: &'a Span) -> StripStretch<'a> {
    let [from, to] = [span.from, span.to].map(|x| area.place(plot, x, 0.0).x);
    StripStretch { left: from, width: (to - from).max(SPAN_LEAST), title: &span.title }
}

/// The series with a row in the strip, in their order.
fn strip_series(plot: &Plot) -> BTreeSet<usize> {
    plot.spans.iter().filter(|span| span.place != SpanPlace::Behind).map(|span| span.series).collect()
}

/// The name of the strip; empty if there is none.
fn strip_name(plot: &Plot) -> &'static str {
    let name = |span: &Span| match span.place {
        SpanPlace::Strip(name) => Some(name),
        SpanPlace::Behind => None,
    };
    plot.spans.iter().find_map(name).unwrap_or_default()
}

fn strip_rows<'a>(plot: &'a Plot, area: &Area) -> Vec<StripRow<'a>> {
    let mut rows: Vec<StripRow<'a>> =
        strip_series(plot).into_iter().map(|series| strip_row(plot, area, series)).collect();
    if let Some(first) = rows.first_mut() {
        first.name = strip_name(plot);
    }
    rows
}

fn strip_row<'a>(plot: &'a Plot, area: &Area, series: usize) -> StripRow<'a> {
    let spans = plot.spans.iter().filter(|span| span.series == series && span.place != SpanPlace::Behind);
    let line = plot.lines.iter().find(|line| line.series == series && !line.name.is_empty());
    StripRow {
        series,
        name: "",
        series_name: line.map_or("", |line| line.name.as_str()),
        stretches: spans.map(|span| stretch(plot, area, span)).collect(),
    }
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
        clipped_ends(svg, plot, area, line);
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

/// Marks each interval that goes on beyond the chart with an arrow at its edge.
fn clipped_ends(svg: &mut Svg, plot: &Plot, area: &Area, line: &Line) {
    for point in &line.points {
        let high = point.interval.map_or(point.y, |(_, high)| high);
        if !plot.y.ends_below(high) {
            continue;
        }
        let at = area.place(plot, point.x, high);
        svg.arrow(at, &format!("{}: its interval goes on beyond the chart", point.title));
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
    use crate::chart::axis::Unit;

    #[test]
    fn names_keep_their_order_and_their_distance() {
        assert_eq!(apart(&[10.0, 12.0, 100.0], 104.0), [10.0, 22.0, 100.0]);
        assert_eq!(apart(&[98.0, 99.0, 100.0], 104.0), [80.0, 92.0, 104.0]);
        assert_eq!(apart(&[], 1.0), [0.0; 0]);
    }

    fn span(series: usize, place: SpanPlace) -> Span {
        Span { series, from: 1.0, to: 2.0, title: "a stall".into(), place }
    }

    fn drawing(spans: Vec<Span>) -> Plot {
        let points = [0.0, 10.0].map(|x| Point { x, y: x, ..Point::default() });
        let line = |series: usize, name: &str| Line {
            series,
            name: name.into(),
            points: points.to_vec(),
            style: Style::Plain,
        };
        Plot {
            title: "t".into(),
            description: "d".into(),
            x: Axis::from_zero(Unit::Count("s"), 10.0),
            y: Axis::from_zero(Unit::Count("n"), 10.0),
            lines: vec![line(0, "A"), line(1, "B")],
            spans,
            width: 350.0,
        }
    }

    #[test]
    fn each_series_has_a_row_below_the_plot() {
        let strip = |series| span(series, SpanPlace::Strip("stalls"));
        let drawing = drawing(vec![strip(1), strip(0), strip(1), span(0, SpanPlace::Behind)]);
        let rows = strip_rows(&drawing, &Area::of(&drawing));
        let told: Vec<(usize, &str, usize)> =
            rows.iter().map(|row| (row.series, row.name, row.stretches.len())).collect();
        assert_eq!(told, [(0, "stalls", 1), (1, "", 2)]);
        let svg = plot(&drawing);
        assert_eq!(
            ["class=\"stall\"", "class=\"b\"", ">stalls<"].map(|part| svg.matches(part).count()),
            [3, 1, 1]
        );
        let top = |part: &str| {
            let (_, rest) = part.split_once(" y=\"")?;
            rest.split_once('"')?.0.parse().ok()
        };
        let tops: Vec<f64> = svg.split("<rect class=\"stall\"").skip(1).filter_map(top).collect();
        assert_eq!(tops.len(), 3, "{svg}");
        assert!(tops.iter().all(|top| *top > 186.0), "no stall may cover the lines: {tops:?}");
    }

    #[test]
    fn a_plot_without_stalls_has_no_strip() {
        let svg = plot(&drawing(Vec::new()));
        assert!(svg.contains("viewBox=\"0 0 350 222\""), "{svg}");
    }
}
