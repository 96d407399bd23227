//! What recording packets costs over their size and rate: a line for each size, and a mark where loss begins.

use std::fmt::Write;

use nilometer_analysis::{Curve, Study};

use super::{
    super::{
        chart::{Axis, Escaped, Line, Plot, Point, Style, Unit, plot},
        packets::{LEGEND, begins, bytes, columns, heading, rows},
    },
    write_charts,
};

/// Pixels at the natural size of a chart that stands by itself.
const WIDE: f64 = 490.0;
/// The sign of a rate at which packets are lost, as that of trials that lost.
const LOST: usize = 1;

/// A section for all curves.
pub(super) fn write(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.curves.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"card\" id=\"packets\"><h2>What packets cost</h2>");
    let groups = || study.curves.chunk_by(|a, b| (a.target, a.onto_nothing) == (b.target, b.onto_nothing));
    let charts: Vec<String> = groups().map(chart).collect();
    write_charts(page, &charts)?;
    write!(
        page,
        "<p class=\"soft\">The processor time of the recorder for each packet. Signs: where packets were lost.</p>"
    )?;
    for curves in groups() {
        write!(page, "<h3>{}</h3><p class=\"soft\">{}</p>", Escaped(&heading(&curves[0])), Escaped(LEGEND))?;
        write_table(page, curves)?;
        page.push_str("<ul>");
        for sentence in curves.iter().map(begins) {
            write!(page, "<li>{}</li>", Escaped(&sentence))?;
        }
        page.push_str("</ul>");
    }
    page.push_str("</section>");
    Ok(())
}

fn write_table(page: &mut String, curves: &[Curve]) -> std::fmt::Result {
    page.push_str("<div class=\"scroll\"><table><thead><tr><th class=\"f\">rate</th>");
    for size in columns(curves) {
        write!(page, "<th class=\"f\">{}</th>", Escaped(&size))?;
    }
    page.push_str("</tr></thead><tbody>");
    for row in rows(curves) {
        page.push_str("<tr>");
        for figure in row {
            write!(page, "<td class=\"f\">{}</td>", Escaped(&figure))?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn chart(curves: &[Curve]) -> String {
    let mut lines: Vec<Line> = curves.iter().enumerate().map(|(series, curve)| line(series, curve)).collect();
    lines.push(lossy(curves));
    let greatest =
        |of: fn(&Point) -> f64| lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max);
    let x = Axis::from_zero(Unit::ByteRate, greatest(|point| point.x)).named("rate");
    let y = Axis::from_zero(Unit::Time, greatest(|point| point.y)).named("a packet");
    let title = heading(&curves[0]);
    let description = format!("{title}: {LEGEND}");
    plot(&Plot { title, description, x, y, lines, spans: Vec::new(), width: WIDE })
}

fn line(series: usize, curve: &Curve) -> Line {
    let point = |at: &nilometer_analysis::AtRate| {
        let cost = at.cost?;
        let title = format!("{} at {}: {cost} a packet", bytes(curve.size), at.rate.bits());
        Some(Point { x: at.rate.0, y: cost.0 as f64, title, ..Point::default() })
    };
    let points = curve.rates.iter().filter_map(point).collect();
    Line {
        series: if series < LOST { series } else { series + 1 },
        name: bytes(curve.size),
        points,
        style: Style::Marked,
    }
}

/// The points at which most repeats lost.
fn lossy(curves: &[Curve]) -> Line {
    let lost = curves.iter().flat_map(|curve| curve.rates.iter().map(move |at| (curve, at)));
    let point = |(curve, at): (&Curve, &nilometer_analysis::AtRate)| {
        let cost = at.cost.filter(|_| at.loses())?;
        let title = format!("{} at {}: {:.2} % lost", bytes(curve.size), at.rate.bits(), at.lost * 100.0);
        Some(Point { x: at.rate.0, y: cost.0 as f64, title, label: "lost".into(), ..Point::default() })
    };
    Line { series: LOST, name: String::new(), points: lost.filter_map(point).collect(), style: Style::Signs }
}
