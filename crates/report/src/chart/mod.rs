//! Charts as data, and as SVG. Colours, dashes and fonts come from the page's style sheet by class. A chart
//! therefore follows light, dark and print. Shapes and dashes distinguish series without colour.

mod axis;
mod bars;
mod plot;
mod strip;
mod svg;

use nilometer_analysis::Quantity;
use nilometer_model::statistics::Summary;

pub(super) use axis::{Axis, Unit, nines};
pub(super) use bars::{Bar, Bars, bars};
pub(super) use plot::{Line, Plot, Point, Span, SpanPlace, Style, plot};
pub(super) use svg::{Escaped, lone_sign, sign};

/// Natural width in pixels of a chart next to others.
pub(crate) const WIDTH: f64 = 350.0;
/// Natural width in pixels of a chart that stands alone.
pub(crate) const WIDE: f64 = 490.0;
/// Number of letters that fit into a chart's width.
pub(crate) const LETTERS: usize = 54;

/// A drawing of a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Chart {
    Plot(Plot),
    Bars(Bars),
}

impl Chart {
    /// Draws it as SVG.
    pub(crate) fn svg(&self) -> String {
        match self {
            Chart::Plot(lines) => plot(lines),
            Chart::Bars(of) => bars(of),
        }
    }
}

/// At most `most` characters: labels in a chart can't wrap.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).collect::<String>() + "…"
}

/// Returns the ends of the interval of a mean, or `None` if there is only one repeat.
pub(crate) fn interval(summary: &Summary) -> Option<(f64, f64)> {
    let half = summary.half_width()?;
    Some(((summary.mean - half).max(0.0), summary.mean + half))
}

/// The unit of an axis.
pub(crate) const fn unit(quantity: Quantity) -> Unit {
    match quantity {
        Quantity::Bytes => Unit::ByteRate,
        Quantity::Operations => Unit::Operations,
        Quantity::Time => Unit::Time,
    }
}
