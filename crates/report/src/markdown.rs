//! The report for pasting into an issue, a wiki or a document: GitHub's Markdown.

use std::fmt::Write;

use nilometer_analysis::{
    CellOutcome, Grade, ShortAnswers, StorageMatrix, Study, StudyStage, letter, network_outcomes,
};

use super::{growth, network, observed, prospects, words};

/// The answers first, then a table a stage.
pub fn markdown(study: &Study<'_>) -> String {
    let mut text = String::new();
    write_report(&mut text, study).expect("writing to a string does not fail");
    text
}

fn write_report(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let results = study.results;
    let short = ShortAnswers::of(study);
    let plan = if short.answers.is_empty() { String::new() } else { format!("{}; ", results.title) };
    let origin = format!("{plan}{}", words::origin(results));
    writeln!(text, "# {}\n\n{}\n", plain(&short.question), plain(&origin))?;
    for index in 0..results.targets.len() {
        writeln!(text, "- **{}** {}", letter(index), plain(&words::target(results, index)))?;
    }
    write_missing(text, study)?;
    write_verdicts(text, study)?;
    write_comparisons(text, study)?;
    write_prospects(text, study)?;
    write_warnings(text, study)?;
    write_network(text, study)?;
    write_observed(text, study)?;
    for stage in &study.stages {
        write_stage(text, stage)?;
        write_growths(text, study, stage)?;
    }
    write_storage(text, study)?;
    write_environment(text, study)
}

/// What the targets are and offer, beside each other.
fn write_storage(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let matrix = StorageMatrix::of(study.results);
    if matrix.rows.is_empty() {
        return Ok(());
    }
    let letters: Vec<&str> = matrix.targets.iter().map(|(letter, _)| letter.as_str()).collect();
    writeln!(
        text,
        "\n## The storage\n\n| | {} |\n|---|{}",
        letters.join(" | "),
        "---|".repeat(letters.len())
    )?;
    for row in &matrix.rows {
        let answers: Vec<String> = row.answers.iter().map(|answer| plain(&words::answer(answer))).collect();
        writeln!(text, "| {} | {} |", plain(&row.name), answers.join(" | "))?;
    }
    writeln!(text, "\n{}", words::MATRIX)
}

/// Which machines were observed, and what was the limit of each figure.
fn write_observed(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let Some(run) = &study.observed else { return Ok(()) };
    writeln!(text, "\n## {}\n", observed::TITLE)?;
    for machine in &run.machines {
        writeln!(text, "- **{}**: {}", plain(&machine.header.host), plain(&machine.words()))?;
        for sentence in std::iter::once(&machine.clock).chain(&machine.notes) {
            writeln!(text, "  - {}", plain(sentence))?;
        }
    }
    writeln!(text, "\n| measured | limit |\n|---|---|")?;
    for cell in &run.cells {
        writeln!(text, "| {} | {} |", plain(&cell.what), plain(&run.sentences(cell).join("; ")))?;
    }
    Ok(())
}

fn write_missing(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.missing.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## {}\n", study.missing.title())?;
    for sentence in study.missing.sentences() {
        writeln!(text, "- {}", plain(&sentence))?;
    }
    Ok(())
}

/// What was recorded stands in bold letters.
fn write_prospects(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let predictions = &study.predictions;
    if predictions.rows.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## {}: {}\n", prospects::title(predictions), prospects::SUBTITLE)?;
    if prospects::is_table(predictions) {
        write_table(text, study)?;
    }
    let notes = prospects::notes(study).into_iter();
    let recorded = predictions.records() && predictions.predicts();
    for (number, note) in notes.enumerate() {
        let bold = if recorded && number == 0 { "**Recorded.** " } else { "" };
        writeln!(text, "\n{bold}{}", plain(&note))?;
    }
    Ok(())
}

/// A row for each instrument.
fn write_table(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let predictions = &study.predictions;
    let letters: Vec<String> = (0..study.results.targets.len()).map(letter).collect();
    let rules = "--:|".repeat(letters.len());
    writeln!(text, "| instrument | rate | {} |\n|---|--:|{rules}", letters.join(" | "))?;
    let targets: Vec<usize> = (0..study.results.targets.len()).collect();
    for row in prospects::known_rows(predictions, &targets) {
        write!(text, "| {} | {} |", plain(&row.instrument), prospects::rate(row))?;
        for prospect in row.on.iter().map(|prospect| prospect.as_ref().ok()) {
            let bold = if prospects::is_recorded(prospect) { "**" } else { "" };
            write!(text, " {bold}{}{bold} |", prospects::says(prospect))?;
        }
        text.push('\n');
    }
    Ok(())
}

fn write_verdicts(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let mut last = String::new();
    for verdict in &study.verdicts {
        let instrument = words::instrument(verdict);
        if instrument != last {
            writeln!(text, "\n## Verdict for {}\n", plain(&instrument))?;
            last = instrument;
        }
        let target = words::target(study.results, verdict.target);
        writeln!(text, "- **{}**: {}.", plain(&target), plain(&verdict.to_string()))?;
        for sentence in verdict.more() {
            writeln!(text, "  - {}", plain(&sentence))?;
        }
    }
    last = String::new();
    for of in &study.full_speeds {
        let target = words::target(study.results, of.target);
        let instrument = of.instrument.to_string();
        if instrument != last {
            writeln!(text, "\n## {} at full speed\n", plain(&instrument))?;
            last = instrument;
        }
        writeln!(text, "- **{}**: {}.", plain(&target), plain(&of.to_string()))?;
    }
    for open in &study.missing.open {
        let target = words::target(study.results, open.target);
        writeln!(text, "\n## Verdict for {}, {}\n", plain(&open.instrument.to_string()), open.rate)?;
        writeln!(text, "- **{}**: {}.", plain(&target), plain(&open.to_string()))?;
    }
    Ok(())
}

fn write_comparisons(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let comparisons = words::comparisons(study);
    if comparisons.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## Compared\n\n| stage | phase | answer |\n|---|---|---|")?;
    for (stage, phase, sentences) in comparisons {
        let sentences: Vec<String> = sentences.iter().map(|sentence| plain(sentence)).collect();
        writeln!(text, "| {} | {phase} | {} |", plain(stage), sentences.join("<br>"))?;
    }
    writeln!(text, "\n{}", words::margin_note(study.results))
}

fn write_warnings(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.warnings.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## Keep in mind\n")?;
    for warning in &study.warnings {
        let grave = if warning.grade() == Grade::Grave { "**Grave:** " } else { "" };
        let advice = warning.advice().map(|advice| format!(" ({advice})")).unwrap_or_default();
        writeln!(text, "- {grave}{}{advice}", plain(&warning.to_string()))?;
    }
    Ok(())
}

fn write_stage(text: &mut String, stage: &StudyStage<'_>) -> std::fmt::Result {
    writeln!(text, "\n## {}\n\n{}\n", plain(stage.name), plain(&stage.common))?;
    let times = words::TIMES.join(" | ");
    writeln!(
        text,
        "| parameters | phase | target | rate | p50 | p99 | p99.9 | p99.99 | max | {times} | cores | machine | CPU s/GB |"
    )?;
    writeln!(text, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
    for outcome in &stage.outcomes {
        write_outcome(text, stage, outcome)?;
    }
    if let Some(ceiling) = stage.ceiling {
        writeln!(text, "\n{}", plain(&ceiling.words(stage)))?;
    }
    for limits in &stage.limits {
        writeln!(text, "\n{}", plain(&limits.words(stage.targets().len() > 1)))?;
    }
    write_machines(text, stage)
}

/// What each machine had of figures that several processes came to.
fn write_machines(text: &mut String, stage: &StudyStage<'_>) -> std::fmt::Result {
    let rows = words::across_machines(stage);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n| parameters | phase | target | over processes |\n|---|---|---|---|")?;
    for (outcome, words) in rows {
        let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
        let phase = outcome.phase.name();
        writeln!(text, "| {} | {phase} | {} | {} |", plain(label), letter(outcome.target), plain(&words))?;
    }
    Ok(())
}

/// How the workloads of a stage grow with the elements that do them at once.
fn write_growths(text: &mut String, study: &Study<'_>, stage: &StudyStage<'_>) -> std::fmt::Result {
    for of in &stage.growths {
        writeln!(text, "\n### Elements at once: {}\n", plain(&growth::heading(of)))?;
        writeln!(text, "| {} |\n|--:|--:|--:|--:|", growth::COLUMNS.join(" | "))?;
        for at in &of.counts {
            writeln!(text, "| {} |", growth::row(of, at).join(" | "))?;
        }
        for sentence in growth::sentences(of, study.results.margin) {
            writeln!(text, "\n{}", plain(&sentence))?;
        }
    }
    Ok(())
}

/// What stages measured of the network, and what targets behind it did of that.
fn write_network(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    for stage in &study.results.network {
        let outcomes = network_outcomes(&stage.results);
        writeln!(text, "\n## {}: the network between machines\n", plain(&stage.stage))?;
        for machine in &stage.results.machines {
            writeln!(text, "- {}", plain(&network::machine_words(machine)))?;
        }
        for table in network::tables(&stage.results, &outcomes) {
            writeln!(text, "\n{}\n", plain(&table.heading))?;
            writeln!(text, "| {} |\n|---|--:|--:|--:|--:|--:|", network::COLUMNS.join(" | "))?;
            for row in &table.rows {
                let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
                writeln!(text, "| {} |", cells.join(" | "))?;
            }
        }
        writeln!(text)?;
        for sentence in network::sentences(&stage.results, &outcomes) {
            writeln!(text, "- {}", plain(&sentence))?;
        }
    }
    if !study.results.network.is_empty() {
        for share in &study.network_shares {
            writeln!(text, "- {}", plain(&share.to_string()))?;
        }
    }
    Ok(())
}

fn write_outcome(text: &mut String, stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> std::fmt::Result {
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let quantity = stage.quantity(outcome);
    let known = words::rate(outcome, quantity).or_else(|| words::at_least(outcome, quantity));
    let mut rate = known.unwrap_or_default();
    for line in words::invalid(outcome) {
        let gap = if rate.is_empty() { "" } else { "<br>" };
        rate = format!("{rate}{gap}**{}**", plain(&line));
    }
    let latencies = [0.5, 0.99, 0.999, 0.9999, 1.0].map(|fraction| words::quantile(outcome, fraction));
    let cost = outcome.cores.and_then(|cores| cores.for_gigabyte);
    writeln!(
        text,
        "| {} | {} | {} | {rate} | {} | {} | {} | {} | {} |",
        plain(label),
        outcome.phase.name(),
        letter(outcome.target),
        latencies.join(" | "),
        words::times(outcome).join(" | "),
        words::cores(outcome, |cores| cores.own),
        words::cores(outcome, |cores| cores.machine),
        cost.map_or_else(|| words::NONE.into(), |cost| format!("{cost:.2}")),
    )
}

fn write_environment(text: &mut String, study: &Study<'_>) -> std::fmt::Result {
    if study.results.environment.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n## Measured on\n\n| | |\n|---|---|")?;
    for (key, value) in &study.results.environment {
        writeln!(text, "| {} | {} |", plain(key), plain(value))?;
    }
    for (name, link) in network::links(&study.results.machines) {
        writeln!(text, "| link {} | {} |", plain(&name), plain(&link.to_string()))?;
    }
    Ok(())
}

/// Text that means nothing else in Markdown or in the HTML that Markdown may hold.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '\n' | '\r' => plain.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => plain.extend(['\\', letter]),
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_become_markup() {
        assert_eq!(plain("a_b|<c> & `d`\n*"), "a\\_b\\|&lt;c> &amp; \\`d\\`  \\*".replace("  ", " "));
    }
}
