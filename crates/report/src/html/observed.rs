//! Machines that were observed: drawn under the run, one chart below the other over the same time, then what was the limit of
//! each figure, and the figures.

use std::fmt::Write;

use nilometer_model::{Measured, Nanos, Results, observed::ObservedRange};

use nilometer_analysis::{
    Quantity, Study,
    observed::{BUSY_DISKS, LEGEND, ObservedMachine, ObservedRun, UseKind, UseValues, sample_range},
};

use super::{
    super::{
        chart::{Axis, Escaped, Line, Plot, Point, Span, Style, Unit, plot},
        observed::{COLUMNS, TITLE, rows},
    },
    clipped,
    latency::POINTS_MOST,
    stage::LETTERS,
};

/// More machines than this are not told apart in a chart.
const DRAWN_MOST: usize = 16;
/// Pixels: a run is longer than what is drawn elsewhere.
const WIDTH: f64 = 720.0;
/// Letters at the end of a line.
const NAME_LETTERS: usize = 14;

/// A section, where machines were observed.
pub(super) fn write(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let Some(run) = &study.observed else { return Ok(()) };
    write!(page, "<section class=\"card\" id=\"observed\"><h2>{TITLE}</h2><ul>")?;
    for machine in &run.machines {
        write_machine(page, machine)?;
    }
    page.push_str("</ul>");
    let frame = RunFrame::of(study.results, run);
    write_under_each_other(page, &frame.first_charts(study.results, run))?;
    write!(page, "<p class=\"soft\">{}</p>", frame.legend(run))?;
    page.push_str("<details><summary>More of what they did</summary>");
    write_under_each_other(page, &frame.more_charts(run))?;
    page.push_str("</details>");
    write_limits(page, run)?;
    write_figures(page, run)?;
    page.push_str("</section>");
    Ok(())
}

fn write_machine(page: &mut String, machine: &ObservedMachine) -> std::fmt::Result {
    write!(page, "<li><b>{}</b>: {}", Escaped(&machine.header.host), Escaped(&machine.words()))?;
    for sentence in std::iter::once(&machine.clock).chain(&machine.notes) {
        write!(page, "<br/><span class=\"soft\">{}</span>", Escaped(sentence))?;
    }
    page.push_str("</li>");
    Ok(())
}

fn write_limits(page: &mut String, run: &ObservedRun) -> std::fmt::Result {
    page.push_str("<h3>What was the limit</h3><ul>");
    for cell in &run.cells {
        let sentences = run.sentences(cell).join("; ");
        write!(page, "<li><b>{}</b>: {}</li>", Escaped(&cell.what), Escaped(&sentences))?;
    }
    page.push_str("</ul>");
    if run.has_busy_disks() {
        write!(page, "<p class=\"soft\">{BUSY_DISKS}</p>")?;
    }
    Ok(())
}

fn write_figures(page: &mut String, run: &ObservedRun) -> std::fmt::Result {
    write!(
        page,
        "<details><summary>All figures: {LEGEND}</summary><div class=\"scroll\"><table><thead><tr>"
    )?;
    page.push_str("<th>measured</th><th>machine</th>");
    for column in &COLUMNS[1..] {
        write!(page, "<th>{column}</th>")?;
    }
    page.push_str("</tr></thead><tbody>");
    for cell in &run.cells {
        for row in rows(run, cell) {
            write!(page, "<tr><td>{}</td>", Escaped(&cell.what))?;
            for figure in &row {
                write!(page, "<td>{}</td>", Escaped(figure))?;
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</tbody></table></div></details>");
    Ok(())
}

/// One below the other, as they are over the same time.
fn write_under_each_other(page: &mut String, charts: &[String]) -> std::fmt::Result {
    page.push_str("<div class=\"charts under\">");
    for chart in charts {
        write!(page, "<figure>{chart}</figure>")?;
    }
    page.push_str("</div>");
    Ok(())
}

/// The time that all charts are over.
struct RunFrame {
    from: Nanos,
    /// Nanoseconds from then.
    end: f64,
    /// When something was measured; empty where that was more often than can be seen.
    measured: Vec<ObservedRange>,
    /// Letters of the longest name at the end of a line: a chart without names leaves as much room for them.
    name_letters: usize,
}

/// More than this are not seen one by one.
const SHADED_MOST: usize = 200;
const PERCENT: Unit = Unit::Count("%");

impl RunFrame {
    fn of(results: &Results, run: &ObservedRun) -> Self {
        let mut measured: Vec<ObservedRange> = results.samples.iter().filter_map(sample_range).collect();
        if measured.len() > SHADED_MOST {
            measured.clear();
        }
        let names = run.machines.iter().take(DRAWN_MOST).map(shown_name);
        let name_letters = names.map(|name| name.chars().count()).max().unwrap_or(0);
        RunFrame { from: run.range.from, end: run.range.length().0 as f64, measured, name_letters }
    }

    fn legend(&self, run: &ObservedRun) -> String {
        let mut legend =
            "Below the rate of what was measured stands what machines did at that time.".to_owned();
        if !self.measured.is_empty() {
            legend.push_str(" Shaded: when something was measured.");
        }
        if run.machines.len() > DRAWN_MOST {
            write!(legend, " The first {DRAWN_MOST} machines are drawn.").expect("a text takes all");
        }
        legend
    }

    /// The rate of the run, and how full machines were.
    fn first_charts(&self, results: &Results, run: &ObservedRun) -> Vec<String> {
        let full = [
            ("busiest disk", UseKind::DiskBusy),
            ("fullest link", UseKind::LinkShare),
            ("busiest processor", UseKind::CoreBusy),
        ];
        let drawn = full.into_iter().filter_map(|(title, kind)| {
            self.machines(run, title, PERCENT, &|machine: &ObservedMachine| largest(machine, kind))
        });
        self.rate(results).into_iter().chain(drawn).collect()
    }

    /// How much they did.
    fn more_charts(&self, run: &ObservedRun) -> Vec<String> {
        let amounts = [
            ("read from disks", UseKind::DiskRead),
            ("written to disks", UseKind::DiskWritten),
            ("received", UseKind::LinkReceived),
            ("sent", UseKind::LinkSent),
        ];
        let drawn = amounts.into_iter().filter_map(|(title, kind)| {
            self.machines(run, title, Unit::ByteRate, &|machine: &ObservedMachine| sum(machine, kind))
        });
        let processors = |machine: &ObservedMachine| largest(machine, UseKind::ProcessorsBusy);
        drawn.chain(self.machines(run, "all processors", PERCENT, &processors)).collect()
    }

    fn at(&self, time: Nanos) -> f64 {
        time.since(self.from).0 as f64
    }

    /// The rate of each sample over its time: of bytes, or of operations where no bytes are moved.
    fn rate(&self, results: &Results) -> Option<String> {
        let moves_bytes = results.samples.iter().any(|measured| measured.sample.bytes > 0);
        let (quantity, unit) = if moves_bytes {
            (Quantity::Bytes, Unit::ByteRate)
        } else {
            (Quantity::Operations, Unit::Operations)
        };
        let mut samples: Vec<&Measured> =
            results.samples.iter().filter(|measured| sample_range(measured).is_some()).collect();
        samples.sort_by_key(|measured| measured.sample.started);
        let points: Vec<Point> = samples.into_iter().flat_map(|one| self.step(one, quantity)).collect();
        let room = "\u{a0}".repeat(self.name_letters);
        self.chart("what was measured", unit, vec![line(0, room, points)])
    }

    /// From nothing to the rate of a sample, and back at its end.
    fn step(&self, measured: &Measured, quantity: Quantity) -> [Point; 4] {
        let rate = quantity.of(&measured.sample);
        let begin = self.at(measured.sample.started);
        let end = self.at(measured.sample.started + measured.sample.wall);
        [(begin, 0.0), (begin, rate), (end, rate), (end, 0.0)].map(|(x, y)| Point {
            x,
            y,
            ..Point::default()
        })
    }

    /// A line for each machine.
    fn machines(
        &self,
        run: &ObservedRun,
        title: &str,
        unit: Unit,
        figure: &dyn Fn(&ObservedMachine) -> Vec<f64>,
    ) -> Option<String> {
        let factor = if unit == Unit::ByteRate { 1.0 } else { 100.0 };
        let drawn = run.machines.iter().take(DRAWN_MOST).enumerate();
        let lines = drawn.map(|(number, machine)| {
            let points = self.points(machine, &figure(machine), factor);
            line(number, shown_name(machine), points)
        });
        self.chart(title, unit, lines.filter(|line| !line.points.is_empty()).collect())
    }

    /// Neighbouring spans together, so that they are no more than can be seen.
    fn points(&self, machine: &ObservedMachine, values: &[f64], factor: f64) -> Vec<Point> {
        let end = self.from + Nanos::from_seconds(self.end * 1e-9);
        let run = ObservedRange { from: self.from, to: end };
        let spans = machine.series.spans.iter().zip(values);
        let known: Vec<(ObservedRange, f64)> = spans
            .filter(|(span, value)| span.meets(run) && value.is_finite())
            .map(|(span, value)| (*span, factor * value))
            .collect();
        let together = known.len().div_ceil(POINTS_MOST).max(1);
        known.chunks(together).map(|near| self.point(near)).collect()
    }

    /// The highest of several spans, at the middle one.
    fn point(&self, near: &[(ObservedRange, f64)]) -> Point {
        let middle = near[near.len() / 2].0;
        let x = f64::midpoint(self.at(middle.from), self.at(middle.to));
        let y = near.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        Point { x, y, ..Point::default() }
    }

    fn chart(&self, title: &str, unit: Unit, lines: Vec<Line>) -> Option<String> {
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.y).fold(0.0, f64::max);
        if lines.is_empty() {
            return None;
        }
        let is_share = matches!(unit, Unit::Count(_));
        let mut x = Axis::from_zero(Unit::Time, self.end);
        x.until(self.end);
        let y = Axis::from_zero(unit, if is_share { 100.0 } else { most });
        let description = format!("{title} over the time of the run");
        let title = clipped(title, LETTERS);
        let spans = self.measured.iter().map(|range| self.span(*range)).collect();
        Some(plot(&Plot { title, description, x, y, lines, spans, width: WIDTH }))
    }

    fn span(&self, range: ObservedRange) -> Span {
        let from = self.at(range.from);
        Span { series: 0, from, to: self.at(range.to), title: "something was measured".into() }
    }
}

fn shown_name(machine: &ObservedMachine) -> String {
    clipped(&machine.header.host, NAME_LETTERS)
}

fn line(series: usize, name: String, points: Vec<Point>) -> Line {
    Line { series, name, points, style: Style::Plain }
}

/// The largest of a machine's resources of a kind, span by span.
fn largest(machine: &ObservedMachine, kind: UseKind) -> Vec<f64> {
    joined(machine.series.all(kind), f64::max)
}

/// The sum over what is made of no others, span by span.
fn sum(machine: &ObservedMachine, kind: UseKind) -> Vec<f64> {
    let header = &machine.header;
    let is_own = |name: &str| {
        header.disk(name).is_none_or(|disk| disk.made_of.is_empty())
            && header.link(name).is_none_or(|link| link.is_card)
    };
    joined(machine.series.all(kind).filter(|of| is_own(&of.key.name)), |one, other| one + other)
}

/// Not a number where none is known.
fn joined<'a>(all: impl Iterator<Item = &'a UseValues>, join: fn(f64, f64) -> f64) -> Vec<f64> {
    let both = |one: f64, other: f64| match (one.is_finite(), other.is_finite()) {
        (true, true) => join(one, other),
        (true, false) => one,
        _ => other,
    };
    let values = all.map(|of| of.values.clone());
    let joined = values.reduce(|one, other| one.iter().zip(&other).map(|(a, b)| both(*a, *b)).collect());
    joined.unwrap_or_default()
}
