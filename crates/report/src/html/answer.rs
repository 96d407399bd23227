//! The top of the page: the question, an answer for each target, and the two things to keep in mind. It fits on one screen.

use std::fmt::Write;

use nilometer_analysis::{Decision, ShortAnswer, ShortAnswers, Study, letter};

use super::super::{chart::Escaped, words};

/// So many warnings stand beside the answer; the rest follow below.
const NOTES: usize = 2;

/// What a reader takes home.
pub(super) fn write(page: &mut String, study: &Study<'_>, short: &ShortAnswers) -> std::fmt::Result {
    if short.answers.is_empty() {
        return Ok(());
    }
    page.push_str("<section id=\"answer\">");
    let several = short.answers.iter().any(|answer| answer.instrument != short.answers[0].instrument);
    for answer in &short.answers {
        write_answer(page, study, answer, several)?;
    }
    write_notes(page, study)?;
    page.push_str("</section>");
    Ok(())
}

/// The colour, and the sign that says the same without it.
pub(super) const fn class_and_sign(decision: Decision) -> (&'static str, &'static str) {
    match decision {
        Decision::Carries => ("yes", "✓"),
        Decision::DoesNotCarry => ("no", "✗"),
        Decision::NotDecided => ("maybe", "?"),
    }
}

fn write_answer(
    page: &mut String,
    study: &Study<'_>,
    answer: &ShortAnswer,
    names_instrument: bool,
) -> std::fmt::Result {
    let (class, sign) = class_and_sign(answer.decision);
    // What is not decided is followed by why, and not by a verb.
    let colon = if answer.decision == Decision::NotDecided { ":" } else { "" };
    let instrument = if names_instrument { format!("{}: ", answer.instrument) } else { String::new() };
    write!(
        page,
        "<div class=\"answer {class}\"><p class=\"reply\">{sign} {}</p><div><p class=\"claim\">{}<b>{} {}</b>{colon} {}</p><ul>",
        answer.decision.reply(),
        Escaped(&instrument),
        letter(answer.target),
        Escaped(&words::target(study.results, answer.target)),
        Escaped(&answer.claim)
    )?;
    for sentence in &answer.evidence {
        write!(page, "<li>{}</li>", Escaped(sentence))?;
    }
    page.push_str("</ul></div></div>");
    Ok(())
}

fn write_notes(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.warnings.is_empty() {
        return Ok(());
    }
    page.push_str("<div class=\"mind\"><b>Keep in mind</b><ul>");
    for warning in study.warnings.iter().take(NOTES) {
        write!(page, "<li>{}</li>", Escaped(&warning.to_string()))?;
    }
    let more = study.warnings.len().saturating_sub(NOTES);
    if more > 0 {
        write!(page, "<li><a href=\"#mind\">{more} more below</a></li>")?;
    }
    page.push_str("</ul></div>");
    Ok(())
}
