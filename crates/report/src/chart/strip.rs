//! The strip below a plot: stretches of time in a row for each series, so that they do not hide the lines.

use super::svg::{Anchor, Svg, xy};

/// A series' stretches.
pub(super) struct StripRow<'a> {
    pub(super) series: usize,
    /// The strip's name, in its first row only.
    pub(super) name: &'static str,
    /// The name of the series.
    pub(super) series_name: &'a str,
    pub(super) stretches: Vec<StripStretch<'a>>,
}

/// A stretch of the horizontal axis, in pixels.
pub(super) struct StripStretch<'a> {
    pub(super) left: f64,
    pub(super) width: f64,
    /// The tooltip.
    pub(super) title: &'a str,
}

/// The edges of the plot, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlotEdges {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// Pixels of a row, and of the bars in it.
const ROW: f64 = 13.0;
const BAR: f64 = 8.0;
/// Pixels between the plot and the first row.
const GAP: f64 = 8.0;

/// Pixels of a strip with this number of rows.
pub(super) fn height(rows: usize) -> f64 {
    if rows == 0 { 0.0 } else { GAP + ROW * rows as f64 }
}

/// Draws the rows, each with the name of its series at the right.
pub(super) fn draw(svg: &mut Svg, edges: PlotEdges, rows: &[StripRow<'_>]) {
    let PlotEdges { left, right, bottom } = edges;
    for (number, row) in rows.iter().enumerate() {
        let top = bottom + GAP + ROW * number as f64;
        let middle = top + BAR / 2.0;
        svg.line("g", xy(left, middle), xy(right, middle));
        svg.text("t", xy(left - 5.0, middle + 4.0), Anchor::End, row.name);
        svg.series(row.series);
        for at in &row.stretches {
            svg.span("stall", xy(at.left, top), at.width, BAR, at.title);
        }
        svg.text("n", xy(right + 7.0, middle + 4.0), Anchor::Start, row.series_name);
        svg.end();
    }
}
