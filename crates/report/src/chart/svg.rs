//! The elements that charts are made of.

use std::fmt::{self, Display, Write};

/// Text in markup. It escapes markup and turns control characters into blanks.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                letter if letter.is_control() && letter != '\n' => f.write_str(" ")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Number of colours in the style sheet. Further series get other dashes.
pub(super) const COLOURS: usize = 8;

/// The classes of a series.
pub(crate) fn classes(series: usize) -> String {
    let colour = series % COLOURS;
    let round = series / COLOURS;
    if round == 0 { format!("s{colour}") } else { format!("s{colour} r{}", 1 + (round - 1) % 3) }
}

/// A point of a drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Pixels from the left.
    pub(super) x: f64,
    /// Pixels from above.
    pub(super) y: f64,
}

pub(super) const fn xy(x: f64, y: f64) -> Position {
    Position { x, y }
}

/// A drawing, its origin at the upper left; units are pixels at its natural size.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// The alignment of a text at its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Screen readers speak `title`, and browsers show it as a tooltip.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Svg { text: String::new() };
        svg.add(format_args!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\"><title>{}</title>",
            Short(width),
            Short(height),
            Escaped(title)
        ));
        svg
    }

    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        self.text.write_fmt(markup).expect("writing to a string does not fail");
    }

    /// Assigns the following elements to a series, until [`Svg::end`].
    pub(super) fn series(&mut self, series: usize) {
        self.add(format_args!("<g class=\"{}\">", classes(series)));
    }

    pub(super) fn end(&mut self) {
        self.text.push_str("</g>");
    }

    pub(super) fn line(&mut self, class: &str, from: Position, to: Position) {
        let [x1, y1, x2, y2] = [from.x, from.y, to.x, to.y].map(Short);
        self.add(format_args!("<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>"));
    }

    /// `corner` is the upper left one.
    pub(super) fn rect(&mut self, class: &str, corner: Position, width: f64, height: f64) {
        let [x, y, width, height] = [corner.x, corner.y, width.max(0.0), height].map(Short);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// Draws a stretch of the area from its upper left corner on, with a tooltip.
    pub(super) fn span(&mut self, class: &str, corner: Position, width: f64, height: f64, title: &str) {
        let [x, y, width, height] = [corner.x, corner.y, width, height].map(Short);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{}</title></rect>",
            Escaped(title)
        ));
    }

    pub(super) fn text(&mut self, class: &str, at: Position, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let x = Short(at.x);
        let y = Short(at.y);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}</text>",
            Escaped(text)
        ));
    }

    /// A line through points, or the outline of an area.
    pub(super) fn path(&mut self, class: &str, points: &[Position]) {
        if points.is_empty() {
            return;
        }
        self.add(format_args!("<path class=\"{class}\" d=\"M"));
        for point in points {
            self.add(format_args!("{} {} ", Short(point.x), Short(point.y)));
        }
        self.text.pop();
        self.add(format_args!("\"/>"));
    }

    /// Draws the sign of a series at a point, with a tooltip.
    pub(super) fn mark(&mut self, series: usize, at: Position, title: &str) {
        let shape = shape(series, at);
        self.add(format_args!("<path class=\"m\" d=\"{shape}\"><title>{}</title></path>", Escaped(title)));
    }

    /// Draws an arrow that points beyond the upper edge, at which its tip is.
    pub(super) fn arrow(&mut self, tip: Position, title: &str) {
        let Position { x, y } = tip;
        let [left, right, foot, x, y] = [x - 4.5, x + 4.5, y + 8.0, x, y].map(Short);
        self.add(format_args!(
            "<path class=\"m\" d=\"M{left} {foot} {x} {y} {right} {foot}z\"><title>{}</title></path>",
            Escaped(title)
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// Returns a circle, square, triangle, diamond or other shape, about 7 pixels wide.
fn shape(series: usize, middle: Position) -> String {
    let Position { x, y } = middle;
    let outline: &[(f64, f64)] = match series % 6 {
        0 => {
            let left = Short(x - 3.4);
            let y = Short(y);
            return format!("M{left} {y}a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z");
        }
        1 => &[(-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)],
        2 => &[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)],
        3 => &[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)],
        4 => &[(0.0, 4.2), (4.0, -3.0), (-4.0, -3.0)],
        _ => &[(-4.0, -1.3), (4.0, -1.3), (4.0, 1.3), (-4.0, 1.3)],
    };
    let points: Vec<String> =
        outline.iter().map(|(dx, dy)| format!("{} {}", Short(x + dx), Short(y + dy))).collect();
    format!("M{}z", points.join(" "))
}

/// The sign of a series by itself, for legends.
pub(crate) fn sign(series: usize) -> String {
    format!(
        "<svg class=\"sign {}\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path class=\"l\" d=\"M1 6 25 6\"/><path class=\"m\" d=\"{}\"/></svg>",
        classes(series),
        shape(series, xy(13.0, 6.0))
    )
}

/// The sign of a series that has no line, for legends.
pub(crate) fn lone_sign(series: usize) -> String {
    format!(
        "<svg class=\"sign lone {}\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path class=\"m\" d=\"{}\"/></svg>",
        classes(series),
        shape(series, xy(6.0, 6.0))
    )
}

/// A coordinate with at most one decimal. More would be invisible and make pages long.
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if !tenths.is_finite() {
            return f.write_str("0");
        }
        let whole = (tenths / 10.0).trunc();
        let tenth = tenths.abs() % 10.0;
        if tenth == 0.0 { write!(f, "{}", whole + 0.0) } else { write!(f, "{}", tenths / 10.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        assert_eq!(Escaped("<a b='\"'>&\x1b").to_string(), "&lt;a b=&#39;&quot;&#39;&gt;&amp; ");
    }

    #[test]
    fn coordinates_are_short() {
        let shown = [0.0, 1.0, -0.04, 12.34, -3.16, f64::NAN].map(|value| Short(value).to_string());
        assert_eq!(shown, ["0", "1", "0", "12.3", "-3.2", "0"]);
    }

    #[test]
    fn series_beyond_the_colours_differ_in_their_dashes() {
        assert_eq!([0, 7, 8, 16].map(classes), ["s0", "s7", "s0 r1", "s0 r2"]);
    }
}
