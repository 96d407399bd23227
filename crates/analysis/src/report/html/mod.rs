//! The report as one HTML file: opens offline, without scripts, on a telephone and on paper.
//!
//! The answer comes first, then a section a stage with its charts, then all the numbers and how to repeat them.

mod appendix;
mod latency;
mod packets;
mod recording;
mod stage;
mod summary;

use std::fmt::Write;

use crate::{Study, letter};

use super::{
    chart::{Escaped, sign},
    words,
};

const STYLE: &str = include_str!("page.css");

/// On paper everything is open. The page needs no script for anything else.
const SCRIPT: &str =
    "addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))";

/// The page.
pub fn html(study: &Study<'_>) -> String {
    let mut page = String::new();
    write_page(&mut page, study).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let title = Escaped(&study.results.title);
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{title} – Nilometer</title><style>{STYLE}</style></head><body>"
    )?;
    write_header(page, study)?;
    page.push_str("<main>");
    summary::write(page, study)?;
    for (number, recording) in study.recordings.iter().enumerate() {
        recording::write(page, study, recording, number)?;
    }
    packets::write(page, study)?;
    for (number, stage) in study.stages.iter().enumerate() {
        stage::write(page, study, stage, number)?;
    }
    appendix::write(page, study)?;
    writeln!(
        page,
        "</main><footer><p>Written by Nilometer {}. This page holds everything it shows and opens offline.</p></footer>\
         <script>{SCRIPT}</script></body></html>",
        Escaped(env!("CARGO_PKG_VERSION"))
    )
}

fn write_header(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let results = study.results;
    write!(
        page,
        "<header><p class=\"brand\">Nilometer</p><h1>{}</h1><p class=\"soft\">{}</p><ul class=\"targets\">",
        Escaped(&results.title),
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
    page.push_str("</ul><nav aria-label=\"Sections\">");
    for (number, recording) in study.recordings.iter().enumerate() {
        write!(page, "<a href=\"#recording-{number}\">{}</a>", Escaped(&recording.instrument.to_string()))?;
    }
    if !study.curves.is_empty() {
        page.push_str("<a href=\"#packets\">packets</a>");
    }
    for (number, stage) in study.stages.iter().enumerate() {
        write!(page, "<a href=\"#stage-{number}\">{}</a>", Escaped(stage.name))?;
    }
    page.push_str(
        "<a href=\"#numbers\">all numbers</a><a href=\"#repeat\">how to repeat it</a></nav></header>",
    );
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
