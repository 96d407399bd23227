//! Charts as SVG: text in, text out. Colours, dashes and fonts come from the page's style sheet by class, so that a chart
//! follows light, dark and print; shapes and dashes tell series apart without colour.

mod axis;
mod bars;
mod plot;
mod svg;

pub(super) use axis::{Axis, Unit, nines};
pub(super) use bars::{Bar, Bars, bars};
pub(super) use plot::{Line, Plot, Point, Span, Style, plot};
pub(super) use svg::{Escaped, lone_sign, sign};
