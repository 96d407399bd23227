//! The report as one HTML file: opens offline, without scripts, on a telephone and on paper.
//!
//! The question and its answers come first, on one screen; then what they rest on, a section for each instrument and each
//! stage with its charts, all the numbers, and how to repeat them. On paper stand the answers and what they rest on: stages
//! and tables of numbers are left to the screen.

mod answer;
mod appendix;
mod compared;
mod growth;
mod latency;
mod network;
mod observed;
mod optimum;
mod packets;
mod recording;
mod stage;
mod summary;

use std::fmt::Write;

use nilometer_analysis::{ShortAnswers, Study, letter};

use super::{
    chart::{Escaped, sign},
    verdicts, words,
};

pub use compared::compared_html;

pub(super) const STYLE: &str = include_str!("page.css");

/// The page.
pub fn html(study: &Study<'_>) -> String {
    let mut page = String::new();
    write_page(&mut page, study).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let short = ShortAnswers::of(study);
    write_head(page, &short.question)?;
    write_header(page, study, &short)?;
    page.push_str("<main>");
    summary::write_missing(page, study)?;
    answer::write(page, study, &short)?;
    write_contents(page, study)?;
    summary::write_verdicts(page, study)?;
    verdicts::write_full_speeds(page, study)?;
    for (number, recording) in study.recordings.iter().enumerate() {
        recording::write(page, study, recording, number)?;
    }
    packets::write(page, study)?;
    summary::write(page, study)?;
    network::write(page, study)?;
    observed::write(page, study)?;
    for (number, stage) in study.stages.iter().enumerate() {
        stage::write(page, study, stage, number)?;
    }
    appendix::write(page, study)?;
    write_foot(page, " Each stage, all numbers and what was measured on are on the page, not on this paper.")
}

/// Up to where the page's own text begins.
fn write_head(page: &mut String, title: &str) -> std::fmt::Result {
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"generator\" content=\"Nilometer\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{} – Nilometer</title><style>{STYLE}</style></head><body>",
        Escaped(title)
    )
}

/// From its end on; with what only paper has to say.
fn write_foot(page: &mut String, on_paper: &str) -> std::fmt::Result {
    writeln!(
        page,
        "</main><footer><p>Written by Nilometer {}. This page holds everything it shows and opens offline.\
         <span class=\"paper\">{on_paper}</span></p></footer></body></html>",
        Escaped(env!("CARGO_PKG_VERSION"))
    )
}

fn write_header(page: &mut String, study: &Study<'_>, short: &ShortAnswers) -> std::fmt::Result {
    let results = study.results;
    write!(
        page,
        "<header><p class=\"brand\">Nilometer</p><h1>{}</h1><p class=\"soft\">{}{}</p><ul class=\"targets\">",
        Escaped(&short.question),
        Escaped(&if short.answers.is_empty() { String::new() } else { format!("{}; ", results.title) }),
        Escaped(&words::origin(results))
    )?;
    for (index, target) in results.targets.iter().enumerate() {
        let name = words::target(results, index);
        write!(
            page,
            "<li class=\"s{}\">{}<b>{}</b> <span>{}",
            index % 8,
            sign(index),
            letter(index),
            Escaped(&name)
        )?;
        if let Some(why) = &target.left_out {
            write!(page, " <span class=\"left-out\">left out: {}</span>", Escaped(why))?;
        }
        page.push_str("</span></li>");
    }
    page.push_str("</ul></header>");
    Ok(())
}

/// Links to the sections.
fn write_contents(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    page.push_str("<nav aria-label=\"Sections\">");
    for (number, recording) in study.recordings.iter().enumerate() {
        write!(page, "<a href=\"#recording-{number}\">{}</a>", Escaped(&recording.instrument.to_string()))?;
    }
    if !study.curves.is_empty() {
        page.push_str("<a href=\"#packets\">packets</a>");
    }
    for (number, stage) in study.results.network.iter().enumerate() {
        write!(page, "<a href=\"#network-{number}\">{}</a>", Escaped(&stage.stage))?;
    }
    if study.observed.is_some() {
        page.push_str("<a href=\"#observed\">machines observed</a>");
    }
    for (number, stage) in study.stages.iter().enumerate() {
        write!(page, "<a href=\"#stage-{number}\">{}</a>", Escaped(stage.name))?;
    }
    page.push_str("<a href=\"#numbers\">all numbers</a><a href=\"#repeat\">how to repeat it</a></nav>");
    Ok(())
}

/// The signs and letters of the targets, where charts need them.
fn write_key(page: &mut String, study: &Study<'_>, targets: &[usize]) -> std::fmt::Result {
    if targets.len() < 2 {
        return Ok(());
    }
    page.push_str("<p class=\"key\">");
    for &target in targets {
        let path = study.results.targets.get(target).map_or("", |target| &target.path);
        write!(
            page,
            "<span class=\"s{}\">{}<b>{}</b> {}</span>",
            target % 8,
            sign(target),
            letter(target),
            Escaped(path)
        )?;
    }
    page.push_str("</p>");
    Ok(())
}

/// Charts beside each other: large where they are few or in pairs.
fn write_charts(page: &mut String, charts: &[String]) -> std::fmt::Result {
    let class = if matches!(charts.len(), 1 | 2 | 4) { "charts two" } else { "charts" };
    write!(page, "<div class=\"{class}\">")?;
    for chart in charts {
        write!(page, "<figure>{chart}</figure>")?;
    }
    page.push_str("</div>");
    Ok(())
}

/// At most `most` characters: labels in a chart can't wrap.
fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).collect::<String>() + "…"
}
