//! One page to file with a purchase: the requirements, the results, and the checksums that identify plan,
//! program and record.

use std::fmt::Write;

use nilometer_analysis::{AcceptanceAnswer, AcceptanceVerdict, CriterionAnswer, Study, letter};

use super::offer;
use crate::{chart::Escaped, render::STYLE, words};

/// Facts for the page that are not in the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptanceProof {
    /// The SHA-256 of the record's file, in hexadecimal, as `sha256sum` prints it.
    pub record: String,
    /// The name of the record's file.
    pub name: String,
    /// True if the seal is intact; `None` if there is no seal.
    pub is_whole: Option<bool>,
}

/// Renders the page as HTML for screen and paper.
pub fn acceptance_page(study: &Study<'_>, proof: &AcceptanceProof) -> String {
    let mut page = String::new();
    write_page(&mut page, study, proof).expect("writing to a string does not fail");
    page
}

fn write_page(page: &mut String, study: &Study<'_>, proof: &AcceptanceProof) -> std::fmt::Result {
    let title = Escaped(&study.results.title);
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"generator\" content=\"Nilometer\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>Acceptance: {title} – Nilometer</title><style>{STYLE}</style></head><body>\
         <header><p class=\"brand\">Nilometer – acceptance</p><h1>{title}</h1><p class=\"soft\">{}</p></header><main>",
        Escaped(&words::origin(study.results))
    )?;
    if study.acceptance.is_empty() {
        page.push_str("<p>The plan of this record has no criteria.</p>");
    }
    for verdict in &study.acceptance {
        write_target(page, study, verdict)?;
    }
    write_proof(page, study, proof)?;
    page.push_str("</main></body></html>\n");
    Ok(())
}

const fn class_of(answer: AcceptanceAnswer) -> &'static str {
    match answer {
        AcceptanceAnswer::Pass => "yes",
        AcceptanceAnswer::Fail => "no",
        AcceptanceAnswer::NotDecided => "maybe",
    }
}

fn write_target(page: &mut String, study: &Study<'_>, verdict: &AcceptanceVerdict) -> std::fmt::Result {
    let answer = verdict.answer();
    write!(
        page,
        "<section class=\"card\"><div class=\"answer {}\"><h2 class=\"reply\">{}</h2><div><p class=\"claim\"><b>{} {}</b></p>\
         <p class=\"soft\">{}</p>",
        class_of(answer),
        answer.name(),
        letter(verdict.target),
        Escaped(&offer(study, verdict)),
        Escaped(&words::target(study.results, verdict.target))
    )?;
    if let Some(reason) = verdict.reason() {
        write!(page, "<p>{}: {}</p>", Escaped(&reason.criterion.to_string()), Escaped(&reason.found))?;
    }
    page.push_str(
        "</div></div><div class=\"scroll\"><table><caption class=\"unseen\">Criteria</caption><tr><th scope=\"col\">what</th>\
         <th scope=\"col\">demanded</th><th scope=\"col\">found</th><th scope=\"col\">answer</th></tr>",
    );
    for judged in &verdict.criteria {
        let criterion = &judged.criterion;
        let phase = criterion.phase.map(|phase| format!(", {}", phase.name())).unwrap_or_default();
        let class = if judged.answer == CriterionAnswer::Violated { " class=\"bad\"" } else { "" };
        write!(
            page,
            "<tr><td class=\"words\">{}{phase}</td><td class=\"words\">{}</td><td class=\"words\">{}</td><td{class}>{}</td></tr>",
            Escaped(&criterion.stage),
            Escaped(&criterion.demand.to_string()),
            Escaped(&judged.found),
            judged.answer.name()
        )?;
    }
    page.push_str("</table></div></section>");
    Ok(())
}

/// Suffix of the names of facts that appear on the page.
const SUM: &str = "sha256";

/// The parts of a row around its name and its value.
const ROW: [&str; 3] = ["<tr><th scope=\"row\">", "</th><td><code>", "</code></td></tr>"];

fn write_proof(page: &mut String, study: &Study<'_>, proof: &AcceptanceProof) -> std::fmt::Result {
    page.push_str("<section class=\"card\"><h2>Evidence</h2><div class=\"scroll\"><table class=\"facts\"><caption class=\"unseen\">Evidence</caption>");
    let [begin, between, end] = ROW;
    let mut row =
        |name: &str, value: &str| write!(page, "{begin}{}{between}{}{end}", Escaped(name), Escaped(value));
    row(&format!("record {}, sha256", proof.name), &proof.record)?;
    for (key, value) in study.results.environment.iter().filter(|(key, _)| key.ends_with(SUM)) {
        row(key, value)?;
    }
    for key in ["command", "host", "kernel", "processor", "processors", "memory"] {
        if let Some((_, value)) = study.results.environment.iter().find(|(known, _)| known == key) {
            row(key, value)?;
        }
    }
    page.push_str("</table></div>");
    let seal = match proof.is_whole {
        Some(true) => {
            "The record is consistent with the seal of its campaign's end. A seal is no signature: anybody can seal a record again."
        }
        Some(false) => "THE RECORD WAS CHANGED AFTER THE CAMPAIGN HAD ENDED.",
        None => "The record has no seal: its campaign has not ended.",
    };
    write!(
        page,
        "<p>{seal} <code>nilometer check {}</code> derives every answer again from its samples. Intervals \
         are at 95 %; docs/acceptance.md explains each criterion.</p></section>",
        Escaped(&proof.name)
    )
}
