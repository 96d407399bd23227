//! What the network between machines carried: bars for the patterns, a table, and what follows.

use std::fmt::Write;

use nilometer_model::{NetworkResults, NetworkStage};

use nilometer_analysis::{NetworkOutcome, Study, network_outcomes};

use super::{
    super::{
        chart::{Bar, Bars, Escaped, bars},
        network::{COLUMNS, LEGEND, machine_words, rate_words, sentences, tables},
    },
    clipped,
    stage::interval,
    write_charts,
};

/// Letters that a label has room for.
const LETTERS: usize = 52;
/// More bars than this are no drawing.
const BARS_MOST: usize = 40;

/// A section for each stage that measured it.
pub(super) fn write(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    for (number, stage) in study.results.network.iter().enumerate() {
        write_stage(page, stage, number)?;
    }
    if study.results.network.is_empty() || study.network_shares.is_empty() {
        return Ok(());
    }
    page.push_str("<section class=\"card\"><h2>The storage and the network</h2><ul>");
    for share in &study.network_shares {
        write!(page, "<li>{}</li>", Escaped(&share.to_string()))?;
    }
    page.push_str("</ul></section>");
    Ok(())
}

fn write_stage(page: &mut String, stage: &NetworkStage, number: usize) -> std::fmt::Result {
    let NetworkStage { stage: name, results } = stage;
    let outcomes = network_outcomes(results);
    write!(
        page,
        "<section class=\"card\" id=\"network-{number}\"><h2>{}: the network between machines</h2>",
        Escaped(name)
    )?;
    let machines: Vec<String> = results.machines.iter().map(machine_words).collect();
    write!(page, "<p class=\"soft\">{}</p>", Escaped(&machines.join("; ")))?;
    write_charts(page, &charts(results, &outcomes))?;
    write!(page, "<p class=\"soft\">{}.</p>", Escaped(LEGEND))?;
    write_tables(page, results, &outcomes)?;
    page.push_str("<ul>");
    for sentence in sentences(results, &outcomes) {
        write!(page, "<li>{}</li>", Escaped(&sentence))?;
    }
    page.push_str("</ul></section>");
    Ok(())
}

/// One for each number of flows.
fn charts(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> Vec<String> {
    let groups = outcomes.chunk_by(|one, other| one.cell.flows == other.cell.flows);
    groups.filter(|group| group.len() <= BARS_MOST).map(|group| chart(results, group)).collect()
}

fn chart(results: &NetworkResults, outcomes: &[NetworkOutcome]) -> String {
    let names = results.names();
    let flows = outcomes.first().map_or(0, |outcome| outcome.cell.flows);
    let title = if flows == 1 { "one flow".into() } else { format!("{flows} flows") };
    let group = |outcome: &NetworkOutcome| {
        (clipped(&outcome.cell.pattern.words(&names), LETTERS), vec![bar(results, outcome)])
    };
    let groups = outcomes.iter().map(group).collect();
    let description = format!("what the network carried with {title} from each machine to each other");
    bars(&Bars { title, description, groups })
}

fn bar(results: &NetworkResults, outcome: &NetworkOutcome) -> Bar {
    let valid = results.of_cell(outcome.number).filter(|sample| sample.failed().is_none());
    Bar {
        series: 0,
        name: String::new(),
        value: outcome.rate.map(|rate| rate.mean),
        interval: outcome.rate.as_ref().and_then(interval),
        repeats: valid.map(|sample| sample.rate().0).collect(),
        text: rate_words(outcome),
    }
}

fn write_tables(
    page: &mut String,
    results: &NetworkResults,
    outcomes: &[NetworkOutcome],
) -> std::fmt::Result {
    for table in tables(results, outcomes) {
        write!(page, "<h3>{}</h3><div class=\"scroll\"><table><thead><tr>", Escaped(&table.heading))?;
        for column in COLUMNS {
            write!(page, "<th>{column}</th>")?;
        }
        page.push_str("</tr></thead><tbody>");
        for row in &table.rows {
            page.push_str("<tr>");
            for cell in row {
                write!(page, "<td>{}</td>", Escaped(cell))?;
            }
            page.push_str("</tr>");
        }
        page.push_str("</tbody></table></div>");
    }
    Ok(())
}
