//! What the answers rest on: verdicts in full, how the targets compare, what is predicted, what to keep in mind.

use std::fmt::Write;

use nilometer_model::Results;

use nilometer_analysis::{
    Basis, CellOutcome, Grade, Predictions, Prospect, Quantity, Question, Study, StudyStage, Verdict,
    Withheld, effect::Answer, letter,
};

use super::{
    super::{chart::Escaped, prospects, words},
    answer::class_and_sign,
};

/// The sections above the stages.
pub(super) fn write(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    write_questions(page, study)?;
    write_prospects(page, study)?;
    write_warnings(page, study)
}

/// What a reader would else take for measured.
pub(super) fn write_missing(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.missing.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<section class=\"card\" id=\"missing\"><h2>{}</h2><ul class=\"warn\">",
        study.missing.title()
    )?;
    let class = if study.missing.is_incomplete() { "no" } else { "note" };
    for sentence in study.missing.sentences() {
        write!(page, "<li class=\"{class}\">{}</li>", Escaped(&sentence))?;
    }
    page.push_str("</ul></section>");
    Ok(())
}

/// The table of instruments and targets.
fn write_prospects(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let predictions = &study.predictions;
    if predictions.rows.is_empty() {
        return Ok(());
    }
    let title = prospects::title(predictions);
    let subtitle = prospects::SUBTITLE;
    write!(page, "<section class=\"card\"><h2>{title}</h2><p class=\"soft\">{subtitle}</p>")?;
    if prospects::is_table(predictions) {
        write_table(page, study)?;
    }
    if predictions.records() && predictions.predicts() {
        page.push_str("<p class=\"soft\">Filled: recorded, see the verdict. Others are predicted.</p>");
    }
    for note in prospects::notes(study) {
        write!(page, "<p class=\"soft\">{}</p>", Escaped(&note))?;
    }
    page.push_str("</section>");
    Ok(())
}

/// A row for each instrument, a column for each target.
fn write_table(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let predictions = &study.predictions;
    page.push_str(
        "<div class=\"scroll\"><table class=\"prospects\"><thead><tr><th>instrument</th><th class=\"f\">rate</th>",
    );
    for target in 0..study.results.targets.len() {
        write!(page, "<th class=\"f s{}\"><b>{}</b></th>", target % 8, letter(target))?;
    }
    page.push_str("</tr></thead><tbody>");
    let targets: Vec<usize> = (0..study.results.targets.len()).collect();
    for row in prospects::known_rows(predictions, &targets) {
        let rate = prospects::rate(row);
        write!(page, "<tr><td>{}</td><td class=\"f\">{rate}</td>", Escaped(&row.instrument))?;
        for prospect in &row.on {
            write_prospect(page, predictions, prospect.as_ref())?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn write_prospect(
    page: &mut String,
    predictions: &Predictions,
    prospect: Result<&Prospect, &Withheld>,
) -> std::fmt::Result {
    let class = match prospect {
        Err(_) => "",
        Ok(Prospect { carried: Some(true), .. }) => "yes",
        Ok(Prospect { carried: Some(false), .. }) => "no",
        Ok(Prospect { carried: None, .. }) => "maybe",
    };
    let (basis, why) = match prospect.map(|prospect| prospect.basis) {
        Err(why) => ("", format!("not predicted: {why}")),
        Ok(Basis::Recorded) => (" recorded", "recorded".to_owned()),
        Ok(Basis::Predicted(limit)) => {
            let limit = predictions.limits.get(limit).map(prospects::limit);
            ("", format!("predicted from {}", limit.unwrap_or_default()))
        }
    };
    let says = prospects::says(prospect.ok());
    write!(page, "<td class=\"f {class}{basis}\" title=\"{}\"><span>{says}</span></td>", Escaped(&why))
}

/// Each answer in full.
pub(super) fn write_verdicts(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    for instrument in study.verdicts.chunk_by(|a, b| a.instrument == b.instrument) {
        write!(
            page,
            "<section class=\"card\"><h2>The verdict for {}</h2>",
            Escaped(&words::instrument(&instrument[0]))
        )?;
        for verdict in instrument {
            write_verdict(page, study.results, verdict)?;
        }
        page.push_str("</section>");
    }
    for open in &study.missing.open {
        write!(
            page,
            "<section class=\"card\"><h2>The verdict for {}, {}</h2><div class=\"verdict maybe\"><strong>? Not decided</strong> \
             · {} {}: {}.</div></section>",
            Escaped(&open.instrument.to_string()),
            open.rate,
            letter(open.target),
            Escaped(&words::target(study.results, open.target)),
            Escaped(&open.to_string())
        )?;
    }
    Ok(())
}

fn write_verdict(page: &mut String, results: &Results, verdict: &Verdict) -> std::fmt::Result {
    let (class, sign) = class_and_sign(verdict.decision());
    write!(
        page,
        "<div class=\"verdict {class}\"><strong>{sign} {}</strong> · {} {}: {}.",
        verdict.decision().reply(),
        letter(verdict.target),
        Escaped(&words::target(results, verdict.target)),
        Escaped(&verdict.to_string())
    )?;
    let more = verdict.more();
    if !more.is_empty() {
        page.push_str("<ul>");
        for sentence in &more {
            write!(page, "<li>{}</li>", Escaped(sentence))?;
        }
        page.push_str("</ul>");
    }
    page.push_str("</div>");
    Ok(())
}

fn write_questions(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.stages.is_empty() {
        return Ok(());
    }
    let compared = study.stages.iter().flat_map(|stage| &stage.questions).any(|q| !q.comparisons.is_empty());
    let title = if compared { "How they compare" } else { "At a glance" };
    write!(page, "<section class=\"card\"><h2>{title}</h2>")?;
    let several = study.stages.iter().any(|stage| stage.cells.len() > 1);
    let best = if several { "Of stages with several cells the bars show the fastest cell. " } else { "" };
    let note = if compared { words::margin_note(study.results) } else { String::new() };
    write!(page, "<p class=\"soft\">{best}{}</p>", Escaped(&note))?;
    for (number, stage) in study.stages.iter().enumerate() {
        for (place, question) in stage.questions.iter().enumerate() {
            let name = if place == 0 { stage.name } else { "" };
            write_question(page, study, number, stage, question, name)?;
        }
    }
    page.push_str("</section>");
    Ok(())
}

fn write_question(
    page: &mut String,
    study: &Study<'_>,
    number: usize,
    stage: &StudyStage<'_>,
    question: &Question,
    name: &str,
) -> std::fmt::Result {
    let class = if name.is_empty() { "q" } else { "q first" };
    write!(
        page,
        "<div class=\"{class}\"><div class=\"name\"><a href=\"#stage-{number}\">{}</a><span>{}</span></div><div>",
        Escaped(name),
        question.phase.name()
    )?;
    let best = stage.targets().into_iter().map(|target| (target, stage.best(question.phase, target)));
    let best: Vec<(usize, Option<&CellOutcome<'_>>)> = best.collect();
    let mean = |outcome: &CellOutcome<'_>| outcome.summary(question.quantity).map_or(0.0, |s| s.mean);
    let most = best.iter().filter_map(|(_, outcome)| outcome.map(mean)).fold(f64::MIN_POSITIVE, f64::max);
    // A single bar is always of full length and says nothing.
    let lone = best.len() < 2;
    for (target, outcome) in best {
        let share = outcome.filter(|_| !lone).map_or(0.0, |outcome| 100.0 * mean(outcome) / most);
        write_rate(page, target, outcome, question.quantity, share)?;
    }
    page.push_str("</div><div>");
    write_sentences(page, study.results.margin, question)?;
    page.push_str("</div></div>");
    Ok(())
}

fn write_rate(
    page: &mut String,
    target: usize,
    outcome: Option<&CellOutcome<'_>>,
    quantity: Quantity,
    share: f64,
) -> std::fmt::Result {
    let text =
        outcome.map_or_else(|| "INVALID".to_owned(), |outcome| words::rate_or_bound(outcome, quantity));
    let class = if text == "INVALID" { "bad" } else { "" };
    write!(
        page,
        "<div class=\"rate s{}\"><b>{}</b><i style=\"width:{share:.1}%\"></i><em class=\"{class}\">{text}</em></div>",
        target % 8,
        letter(target)
    )
}

fn write_sentences(page: &mut String, margin: f64, question: &Question) -> std::fmt::Result {
    if let Some(ranking) = question.ranking(margin, letter) {
        write!(page, "<p class=\"says order\">{}</p>", Escaped(&ranking))?;
    }
    for comparison in &question.comparisons {
        let class = match comparison.effect.answer(margin) {
            Answer::Faster | Answer::Slower => "yes",
            Answer::Alike => "alike",
            Answer::Undecided => "open",
        };
        let words = comparison.words(margin, &letter(comparison.first), &letter(comparison.second));
        write!(page, "<p class=\"says {class}\">{}</p>", Escaped(&words))?;
    }
    Ok(())
}

fn write_warnings(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.warnings.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"card\" id=\"mind\"><h2>Keep in mind</h2><ul class=\"warn\">");
    for warning in &study.warnings {
        let (class, word) = match warning.grade() {
            Grade::Grave => ("no", "grave"),
            Grade::Caution => ("maybe", "caution"),
            Grade::Note => ("note", "note"),
        };
        write!(page, "<li class=\"{class}\"><b>{word}</b>{}", Escaped(&warning.to_string()))?;
        if let Some(advice) = warning.advice() {
            write!(page, " <span class=\"soft\">{}</span>", Escaped(advice))?;
        }
        page.push_str("</li>");
    }
    page.push_str("</ul></section>");
    Ok(())
}
