//! Horizontal bars with their intervals and repeats. The names stand above their bars, which fits a phone as
//! well as a poster.

use super::svg::{Anchor, Short, Svg, xy};

/// A chart of bars.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bars {
    /// Stands above it.
    pub(crate) title: String,
    /// Text that screen readers speak instead of the drawing.
    pub(crate) description: String,
    /// Labels with their bars.
    pub(crate) groups: Vec<(String, Vec<Bar>)>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    /// Decides the colour.
    pub(crate) series: usize,
    /// The name in front of the bar.
    pub(crate) name: String,
    /// Length of the bar, or `None` if no repeat is valid.
    pub(crate) value: Option<f64>,
    /// The interval of the value.
    pub(crate) interval: Option<(f64, f64)>,
    /// Each repeat.
    pub(crate) repeats: Vec<f64>,
    /// The text behind the bar.
    pub(crate) text: String,
}

const WIDTH: f64 = 350.0;
const ABOVE: f64 = 20.0;
const ROW: f64 = 19.0;
const BAR: f64 = 12.0;
const LABEL: f64 = 17.0;
/// Left edge of the bars, and the length of the longest.
const LEFT: f64 = 24.0;
const LONGEST: f64 = 206.0;
/// Limit on dots, because more repeats would be a smear.
const DOTS_MOST: usize = 40;

/// The drawing; all bars have one scale, from zero.
pub(crate) fn bars(bars: &Bars) -> String {
    let rows: usize = bars.groups.iter().map(|(_, bars)| bars.len()).sum();
    let labels = bars.groups.iter().filter(|(label, _)| !label.is_empty()).count();
    let height = ABOVE + ROW * rows as f64 + LABEL * labels as f64 + 4.0;
    let mut svg = Svg::new(WIDTH, height, &bars.description);
    svg.text("h", xy(0.0, 11.0), Anchor::Start, &bars.title);
    let scale = LONGEST / longest(bars);
    let mut y = ABOVE;
    for (label, group) in &bars.groups {
        if !label.is_empty() {
            svg.text("t", xy(0.0, y + 12.0), Anchor::Start, label);
            y += LABEL;
        }
        svg.line("k", xy(LEFT, y), xy(LEFT, y + ROW * group.len() as f64 - 4.0));
        for bar in group {
            draw(&mut svg, bar, y, scale);
            y += ROW;
        }
    }
    svg.finish()
}

/// Returns the largest value, interval end or repeat in the chart.
fn longest(bars: &Bars) -> f64 {
    let all = bars.groups.iter().flat_map(|(_, bars)| bars);
    let reach = all.flat_map(|bar| {
        bar.repeats.iter().copied().chain(bar.value).chain(bar.interval.map(|(_, high)| high))
    });
    reach.filter(|value| value.is_finite()).fold(f64::MIN_POSITIVE, f64::max)
}

fn draw(svg: &mut Svg, bar: &Bar, y: f64, scale: f64) {
    let middle = y + BAR / 2.0 + 1.0;
    let at = |value: f64| LEFT + (value * scale).clamp(0.0, LONGEST);
    svg.series(bar.series);
    svg.text("n", xy(LEFT - 6.0, middle + 4.0), Anchor::End, &bar.name);
    if let Some(value) = bar.value {
        svg.rect("v", xy(LEFT, y + 1.0), at(value) - LEFT, BAR);
        if bar.repeats.len() > 1 {
            let step = bar.repeats.len().div_ceil(DOTS_MOST);
            for repeat in bar.repeats.iter().step_by(step) {
                let x = Short(at(*repeat));
                let y = Short(middle);
                svg.add(format_args!("<circle class=\"o\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>"));
            }
        }
        if let Some((low, high)) = bar.interval {
            svg.line("w", xy(at(low), middle), xy(at(high), middle));
            for end in [low, high] {
                svg.line("w", xy(at(end), middle - 4.0), xy(at(end), middle + 4.0));
            }
        }
    }
    svg.end();
    let class = if bar.value.is_some() { "x" } else { "bad" };
    svg.text(class, xy(WIDTH, middle + 4.0), Anchor::End, &bar.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_beyond_the_longest_bar() {
        let bar = |value: Option<f64>, repeats: Vec<f64>| Bar {
            series: 0,
            name: "A".into(),
            value,
            interval: value.map(|value| (-value, 3.0 * value)),
            repeats,
            text: "x".into(),
        };
        let all = vec![bar(Some(5.0), vec![4.0, 20.0]), bar(None, Vec::new())];
        let chart = Bars { title: "t".into(), description: "d".into(), groups: vec![("g".into(), all)] };
        assert!((longest(&chart) - 20.0).abs() < 1e-9);
        let drawn = bars(&chart);
        assert!(drawn.contains("cx=\"230\"") && drawn.contains("class=\"bad\""), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 2);
    }

    #[test]
    fn each_name_and_each_repeat_stands_on_its_own_bar() {
        let bar = |name: &str| Bar {
            series: 0,
            name: name.into(),
            value: Some(5.0),
            interval: None,
            repeats: vec![4.0, 6.0],
            text: "x".into(),
        };
        let groups = vec![(String::new(), vec![bar("A"), bar("B")])];
        let drawn = bars(&Bars { title: "t".into(), description: "d".into(), groups });
        for (row, name) in ["A", "B"].into_iter().enumerate() {
            let top = ABOVE + ROW * row as f64 + 1.0;
            let middle = top + BAR / 2.0;
            assert!(
                drawn.contains(&format!("y=\"{}\" text-anchor=\"end\">{name}<", middle + 4.0)),
                "{drawn}"
            );
            assert_eq!(drawn.matches(&format!("cy=\"{middle}\"")).count(), 2, "{drawn}");
        }
    }
}
