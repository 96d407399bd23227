//! The cost of recording packets: a row for each rate, a column for each size.

use nilometer_analysis::Curve;

use crate::{
    chart::{Axis, Chart, Line, Plot, Point, Style, Unit, WIDE},
    document::{Block, Cell, Column, Detail, Heading, Row, Section, Table},
    packets::{LEGEND, begins, bytes, columns, heading, rows},
};

/// Letters of a time with a share.
const FIGURE: usize = 16;
/// The sign of a rate at which packets were lost, the same as for trials with loss.
const LOST: usize = 1;
const DRAWN: &str = "The processor time of the recorder for each packet. Signs: where packets were lost.";

pub(crate) fn packets(curves: &[Curve], detail: Detail) -> Vec<Section> {
    let tables = curves.chunk_by(|a, b| (a.target, a.onto_nothing) == (b.target, b.onto_nothing));
    let place = |(number, curves): (usize, &[Curve])| match number {
        0 => section(curves, detail).at("packets", "packets"),
        _ => section(curves, detail).at(format!("packets-{number}"), ""),
    };
    tables.enumerate().map(place).collect()
}

fn section(curves: &[Curve], detail: Detail) -> Section {
    let mut blocks = Vec::new();
    if detail == Detail::Page {
        blocks.extend([Block::charts(vec![chart(curves)]), Block::soft(DRAWN)]);
    }
    blocks.extend([Block::soft(LEGEND), Block::Table(table(curves))]);
    blocks.push(Block::list(curves.iter().map(begins)));
    Section::new(Heading::of(heading(&curves[0])), blocks)
}

fn table(curves: &[Curve]) -> Table {
    let columns = std::iter::once("rate".to_owned()).chain(columns(curves));
    let columns = columns.map(|heading| Column::figure(heading).at_least(FIGURE));
    let rows = rows(curves).into_iter().map(|row| Row::of(row.into_iter().map(Cell::new)));
    Table { columns: columns.collect(), rows: rows.collect() }
}

fn chart(curves: &[Curve]) -> Chart {
    let mut lines: Vec<Line> = curves.iter().enumerate().map(|(series, curve)| line(series, curve)).collect();
    lines.push(lossy(curves));
    let greatest =
        |of: fn(&Point) -> f64| lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max);
    let x = Axis::from_zero(Unit::ByteRate, greatest(|point| point.x)).named("rate of packets");
    let y = Axis::from_zero(Unit::Time, greatest(|point| point.y)).named("processor time of a packet");
    let title = heading(&curves[0]);
    let description = format!("{title}: {LEGEND}");
    Chart::Plot(Plot { title, description, x, y, lines, spans: Vec::new(), width: WIDE })
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
