//! Records beside each other as a page: who is faster, what differs besides, cell by cell, and the runs of a target in time.

use std::fmt::Write;

use nilometer_model::Moment;

use nilometer_analysis::{
    AlignedNetwork, AlignedStage, Decision, RecordsCompared, RunPoint, RunSequence, SubjectPair,
    TargetHistory, effect::Answer, letter,
};

use crate::{
    chart::{
        Axis, Bar, Bars, Chart, Escaped, LETTERS, Line, Plot, Point, Span, Style, clipped, interval, sign,
        unit,
    },
    compared::{
        against_first, cell_effect, fact, figure, history_note, lone, long_run, need, note, origin, pair,
        step, title, verdict, without_step,
    },
    compared_network,
    document::Arrangement,
    render::{charts as write_charts, write_foot, write_head},
    words,
};

/// More cells than this are not drawn: the table has them.
const CELLS_MOST: usize = 24;
/// Longer tables are closed until they are asked for.
const ROWS_OPEN: usize = 24;
/// Pixels of a history at its natural size.
const WIDE: f64 = 480.0;

/// The page.
pub fn compared_html(compared: &RecordsCompared<'_>) -> String {
    let mut page = String::new();
    write_page(&mut page, compared).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, compared: &RecordsCompared<'_>) -> std::fmt::Result {
    let title = title(compared);
    write_head(page, &title)?;
    write!(
        page,
        "<header><p class=\"brand\">Nilometer</p><h1>{}</h1><ul class=\"targets\">",
        Escaped(&title)
    )?;
    for (index, subject) in compared.subjects.iter().enumerate() {
        write!(
            page,
            "<li class=\"s{}\">{}<b>{}</b> <span>{} <span class=\"soft\">{}</span></span></li>",
            index % 8,
            sign(index),
            letter(index),
            Escaped(&subject.name),
            Escaped(&origin(compared, index))
        )?;
    }
    page.push_str("</ul></header><main>");
    write_histories(page, compared)?;
    write_answers(page, compared)?;
    write_recordings(page, compared)?;
    write_differing(page, compared)?;
    for stage in &compared.stages {
        write_stage(page, compared, stage)?;
    }
    for network in &compared.networks {
        write_network(page, compared, network)?;
    }
    write_foot(page, "")
}

fn write_answers(page: &mut String, compared: &RecordsCompared<'_>) -> std::fmt::Result {
    if compared.stages.is_empty() && compared.networks.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<section class=\"card\"><h2>How they compare</h2><p class=\"soft\">{}</p>",
        Escaped(&note(compared))
    )?;
    for stage in &compared.stages {
        for (place, question) in stage.questions.iter().enumerate() {
            let class = if place == 0 { "q first" } else { "q" };
            let name = if place == 0 { stage.name } else { "" };
            write!(
                page,
                "<div class=\"{class}\"><div class=\"name\">{}<span>{}</span></div><div>",
                Escaped(name),
                question.phase.name()
            )?;
            for of in &question.pairs {
                write_sentence(page, compared.margin, of, &pair(of, compared.margin))?;
            }
            page.push_str("</div><div>");
            for of in &question.needs {
                write_sentence(page, compared.margin, of, &need(of, compared.margin))?;
            }
            page.push_str("</div></div>");
        }
    }
    for network in compared.networks.iter().filter(|network| !network.pairs.is_empty()) {
        let name = Escaped(&network.stage);
        write!(page, "<div class=\"q first\"><div class=\"name\">{name}<span>network</span></div><div>")?;
        for of in &network.pairs {
            write_sentence(page, compared.margin, of, &pair(of, compared.margin))?;
        }
        page.push_str("</div><div></div></div>");
    }
    page.push_str("</section>");
    Ok(())
}

fn write_sentence(page: &mut String, margin: f64, of: &SubjectPair, words: &str) -> std::fmt::Result {
    let class = match of.effect.answer(margin) {
        Answer::Faster | Answer::Slower => "yes",
        Answer::Alike => "alike",
        Answer::Undecided => "open",
    };
    write!(page, "<p class=\"says {class}\">{}</p>", Escaped(words))
}

fn write_recordings(page: &mut String, compared: &RecordsCompared<'_>) -> std::fmt::Result {
    for recording in &compared.recordings {
        write!(page, "<section class=\"card\"><h2>Recorded: {}</h2>", Escaped(&recording.instrument))?;
        for (subject, found) in recording.verdicts.iter().enumerate() {
            let Some(found) = found else { continue };
            let (class, sign) = class_and_sign(found.decision());
            write!(
                page,
                "<div class=\"verdict {class}\"><strong>{sign}</strong> {} {}: {}</div>",
                letter(subject),
                Escaped(compared.name(subject)),
                Escaped(&verdict(found))
            )?;
        }
        for sentence in long_run(recording, compared.margin) {
            write!(page, "<p class=\"says alike\">{}</p>", Escaped(&sentence))?;
        }
        page.push_str("</section>");
    }
    Ok(())
}

fn write_differing(page: &mut String, compared: &RecordsCompared<'_>) -> std::fmt::Result {
    if compared.differing.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"card\"><h2>What differs besides</h2><ul class=\"warn\">");
    for differing in &compared.differing {
        write!(page, "<li class=\"note\">{}</li>", Escaped(&fact(differing)))?;
    }
    page.push_str("</ul></section>");
    Ok(())
}

fn write_stage(
    page: &mut String,
    compared: &RecordsCompared<'_>,
    stage: &AlignedStage<'_>,
) -> std::fmt::Result {
    write!(
        page,
        "<section class=\"card screen\"><h2>{}</h2><p class=\"soft\">{}</p>",
        Escaped(stage.name),
        Escaped(&stage.common)
    )?;
    let charts = stage.questions.iter().map(|question| bar_chart(compared, stage, question.phase.name()));
    write_charts(page, &charts.collect::<Vec<Chart>>(), Arrangement::Beside)?;
    write_cells(page, compared, stage)?;
    for of in &stage.lone {
        write!(page, "<p class=\"soft\">{}</p>", Escaped(&lone(of)))?;
    }
    page.push_str("</section>");
    Ok(())
}

fn bar_chart(compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>, phase: &str) -> Chart {
    let rows = stage.rows.iter().filter(|row| row.phase.name() == phase).take(CELLS_MOST);
    let groups = rows.map(|row| {
        let bars = compared.shown.iter().filter_map(|&subject| {
            let outcome = row.outcome(subject)?;
            let question = stage.questions.iter().find(|question| question.phase == row.phase)?;
            let summary = outcome.summary(question.quantity);
            Some(Bar {
                series: subject,
                name: letter(subject),
                value: summary.map(|summary| summary.mean),
                interval: summary.as_ref().and_then(interval),
                repeats: outcome.usable().map(|measured| question.quantity.of(&measured.sample)).collect(),
                text: words::rate_or_bound(outcome, question.quantity),
            })
        });
        (clipped(&row.label, LETTERS), bars.collect())
    });
    let description = format!("{}, {phase}: rates", stage.name);
    Chart::Bars(Bars { title: phase.into(), description, groups: groups.collect() })
}

fn write_cells(
    page: &mut String,
    compared: &RecordsCompared<'_>,
    stage: &AlignedStage<'_>,
) -> std::fmt::Result {
    let open = if stage.rows.len() <= ROWS_OPEN { " open=\"\"" } else { "" };
    write!(page, "<details{open}><summary>Cell by cell</summary>")?;
    write_figures_head(page, &compared.shown)?;
    for (index, row) in stage.rows.iter().enumerate() {
        write!(page, "<tr><td>{}</td>", Escaped(&row.words()))?;
        for subject in &compared.shown {
            write!(page, "<td class=\"f\">{}</td>", Escaped(&figure(stage, row, *subject)))?;
        }
        if let Some(effect) = cell_effect(compared, stage, index) {
            write!(page, "<td class=\"f\">{}</td>", against_first(&effect, compared.margin))?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div></details>");
    Ok(())
}

fn write_figures_head(page: &mut String, shown: &[usize]) -> std::fmt::Result {
    page.push_str("<div class=\"scroll\"><table><thead><tr><th>cell</th>");
    for subject in shown {
        write!(page, "<th class=\"f\">{}</th>", letter(*subject))?;
    }
    if let [first, second] = *shown {
        write!(page, "<th class=\"f\">{} to {}</th>", letter(second), letter(first))?;
    }
    page.push_str("</tr></thead><tbody>");
    Ok(())
}

fn write_network(
    page: &mut String,
    compared: &RecordsCompared<'_>,
    network: &AlignedNetwork,
) -> std::fmt::Result {
    let heading = compared_network::heading(network);
    write!(page, "<section class=\"card\"><h2>{}</h2>", Escaped(&heading))?;
    write!(page, "<p class=\"soft\">{}.</p>", compared_network::NOTE)?;
    let shown = compared_network::shown(compared, network);
    write_figures_head(page, &shown)?;
    for (number, row) in network.rows.iter().enumerate() {
        write!(page, "<tr><td>{}</td>", Escaped(&row.words))?;
        for subject in &shown {
            let figure = compared_network::figure(row, *subject);
            write!(page, "<td class=\"f\">{}</td>", Escaped(&figure))?;
        }
        if let Some(effect) = compared_network::row_effect(network, number, &shown) {
            write!(page, "<td class=\"f\">{}</td>", against_first(&effect, compared.margin))?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    for row in &network.rows {
        for (subject, why) in shown.iter().filter_map(|of| Some((*of, compared_network::failed(row, *of)?))) {
            write!(
                page,
                "<p class=\"soft\">{}, {}: {}</p>",
                letter(subject),
                Escaped(&row.words),
                Escaped(&why)
            )?;
        }
    }
    for of in &network.lone {
        write!(page, "<p class=\"soft\">{}</p>", Escaped(&lone(of)))?;
    }
    page.push_str("</section>");
    Ok(())
}

fn write_histories(page: &mut String, compared: &RecordsCompared<'_>) -> std::fmt::Result {
    for history in &compared.histories {
        write!(
            page,
            "<section class=\"card\"><h2>{} in {} runs</h2><ul class=\"warn\">",
            Escaped(&history.path),
            history.runs.len()
        )?;
        for sequence in &history.sequences {
            for of in &sequence.steps {
                write!(page, "<li class=\"no\"><b>step</b>{}</li>", Escaped(&step(compared, sequence, of)))?;
            }
            if sequence.steps.is_empty() {
                write!(page, "<li class=\"note\">{}</li>", Escaped(&without_step(compared, sequence)))?;
            }
        }
        write!(page, "</ul><p class=\"soft\">{}</p>", Escaped(&history_note(compared)))?;
        let charts = history.sequences.iter().map(|sequence| trend_chart(compared, history, sequence));
        write_charts(page, &charts.collect::<Vec<Chart>>(), Arrangement::Beside)?;
        page.push_str("</section>");
    }
    Ok(())
}

/// The runs from left to right, the oldest first; where it steps, both sides of it are marked.
fn trend_chart(compared: &RecordsCompared<'_>, history: &TargetHistory, sequence: &RunSequence) -> Chart {
    let times: Vec<f64> = sequence.points.iter().map(|point| place(compared, history, point)).collect();
    let points = sequence.points.iter().zip(&times).map(|(point, x)| Point {
        x: *x,
        y: sequence.quantity.drawn(point.rate()),
        interval: point.interval().map(|(low, high)| sequence.quantity.drawn_interval(low, high)),
        title: format!("{}: {}", compared.name(point.subject), sequence.quantity.show(point.rate())),
        label: String::new(),
    });
    let points: Vec<Point> = points.collect();
    let title = format!("{}, {}", sequence.stage, sequence.phase.name());
    let x = Axis::of_parameter("run", &ticks(compared, sequence, &times));
    let highest = |point: &Point| point.interval.map_or(point.y, |(_, high)| high);
    let y = Axis::from_zero(unit(sequence.quantity), points.iter().map(highest).fold(0.0, f64::max));
    let at = |subject: usize| {
        let index = sequence.points.iter().position(|point| point.subject == subject).unwrap_or(0);
        times[index]
    };
    let spans = sequence.steps.iter().map(|of| Span {
        series: 1,
        from: at(of.before),
        to: at(of.after),
        title: step(compared, sequence, of),
    });
    Chart::Plot(Plot {
        description: format!("{title}: the rate of each run"),
        title: clipped(&title, LETTERS),
        x,
        y,
        spans: spans.collect(),
        lines: vec![Line { series: 0, name: String::new(), points, style: Style::Marked }],
        width: WIDE,
    })
}

/// In days where all records say when they were begun, else by number.
fn place(compared: &RecordsCompared<'_>, history: &TargetHistory, point: &RunPoint) -> f64 {
    let day = |subject: usize| {
        let moment: Moment = compared.results(subject).started.parse().ok()?;
        Some(moment.0.seconds() / 86_400.0)
    };
    let all: Option<Vec<f64>> = history.runs.iter().map(|run| day(*run)).collect();
    let index = history.runs.iter().position(|run| *run == point.subject).unwrap_or(0);
    all.map_or(index as f64, |days| days[index])
}

/// The first day, the last, and some between them.
fn ticks(compared: &RecordsCompared<'_>, sequence: &RunSequence, times: &[f64]) -> Vec<(f64, String)> {
    let day = |subject: usize| {
        let started = &compared.results(subject).started;
        started.get(5..10).map_or_else(|| letter(subject), str::to_owned)
    };
    let named = sequence.points.iter().zip(times).map(|(point, at)| (*at, day(point.subject)));
    let mut ticks: Vec<(f64, String)> = named.collect();
    ticks.dedup_by(|later, earlier| later.1 == earlier.1);
    ticks
}

/// The colour, and the sign that says the same without it.
const fn class_and_sign(decision: Decision) -> (&'static str, &'static str) {
    match decision {
        Decision::Carries => ("yes", "✓"),
        Decision::DoesNotCarry => ("no", "✗"),
        Decision::NotDecided => ("maybe", "?"),
    }
}
