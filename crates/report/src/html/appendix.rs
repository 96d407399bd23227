//! All the numbers, what was measured on what, how to repeat it, and how to read it.

use std::fmt::Write;

use nilometer_model::Coldness;
use serde_json::Value as Json;

use nilometer_analysis::{CellOutcome, StorageMatrix, Study, StudyStage, letter};

use super::super::{
    chart::Escaped,
    network::links,
    words::{self, NONE},
};

/// The sections below the stages.
pub(super) fn write(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    write_numbers(page, study)?;
    write_machines(page, study)?;
    write_storage(page, study)?;
    write_environment(page, study)?;
    write_repeat(page, study)?;
    page.push_str(if study.results.is_imported() { IMPORTED_METHOD } else { METHOD });
    Ok(())
}

/// Of what comes from elsewhere: nobody here knows how it was measured.
const IMPORTED_METHOD: &str = "<section class=\"card\"><h2>How to read it</h2><ol class=\"method\">\
    <li>The figures are those of another program or of a publication: whether a write was durable, a read cold and the machine \
    idle is not known here.</li>\
    <li>A repeat is a run. ± is half the 95 % interval of the mean over runs (Student's t). Dots are the runs, whiskers the \
    intervals.</li>\
    <li>No two runs of different targets belong together: they are compared by Welch's method on the logarithms, with the spread \
    of the runs of each. A single run of each decides nothing.</li>\
    <li>A task, and an operation that is done less than once a second, is shown by the time that one takes, on all targets of a phase.</li></ol></section>";

const METHOD: &str = "<section class=\"card\"><h2>How to read it</h2><ol class=\"method\">\
<li><b>±</b> is half the 95 % interval of the mean over repeats (Student's t). A repeat is the unit: workers and \
operations within one are not independent. Dots are the repeats, bands and whiskers the intervals.</li>\
<li><b>A write</b> is done when it is durable, unless its cell says that it is never synced, or the target is memory. \
<b>A read</b> is cold: \
the cache is dropped before and looked into, so that coldness is proved, contradicted or not provable here.</li>\
<li><b>INVALID</b> stands where a figure must not be used, with the reason; such repeats are in no mean and no \
comparison.</li>\
<li><b>Comparisons</b> use the ratio of two targets in the same round, so that what drifts for both cancels. A round \
counts once, for its cells are measured in the same minutes: a stage is decided by Student's t over the means of rounds. A \
cell is decided by its own rounds, with what the other cells add to know their spread. Each is held at 95 % by \
itself.</li>\
<li><b>Cores</b> are processors kept busy: by the program, by what serves the file system in this machine, and by the \
whole machine above its idle level.</li>\
<li><b>Real, user, system, wait</b> are means over repeats, as the shell's <code>time</code> shows them; wait is what \
neither of the others is: real times workers, less user and system.</li></ol></section>";

const COLUMNS: [&str; 24] = [
    "stage",
    "parameters",
    "phase",
    "target",
    "n",
    "mean",
    "±",
    "median",
    "least",
    "greatest",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "longest",
    words::TIMES[0],
    words::TIMES[1],
    words::TIMES[2],
    words::TIMES[3],
    "cores",
    "client",
    "machine",
    "CPU s/GB",
    "waiting",
];

fn write_numbers(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let rows: usize = study.stages.iter().map(|stage| stage.outcomes.len()).sum();
    write!(
        page,
        "<section class=\"card screen\" id=\"numbers\"><h2>All numbers</h2><details><summary>A table of {rows} rows</summary>\
         <div class=\"scroll\"><table><thead><tr>"
    )?;
    for (number, name) in COLUMNS.iter().enumerate() {
        write!(page, "<th{}>{name}</th>", if number < 4 { "" } else { " class=\"f\"" })?;
    }
    page.push_str(
        "<th class=\"f\">first and last worker done</th><th>read is cold</th><th></th></tr></thead><tbody>",
    );
    for stage in &study.stages {
        for outcome in &stage.outcomes {
            write_row(page, stage, outcome)?;
        }
    }
    page.push_str("</tbody></table></div></details></section>");
    Ok(())
}

fn write_row(page: &mut String, stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> std::fmt::Result {
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    write!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        Escaped(stage.name),
        Escaped(label),
        outcome.phase.name(),
        letter(outcome.target)
    )?;
    for figure in figures(stage, outcome) {
        write!(page, "<td class=\"f\">{figure}</td>")?;
    }
    let cold = outcome.coldness.map_or(NONE, Coldness::name);
    let invalid = words::invalid(outcome).join("; ");
    write!(page, "<td>{cold}</td><td class=\"bad\">{}</td></tr>", Escaped(&invalid))
}

fn figures(stage: &StudyStage<'_>, outcome: &CellOutcome<'_>) -> Vec<String> {
    let quantity = stage.quantity(outcome);
    let mut figures = vec![outcome.valid.to_string()];
    if let Some(summary) = outcome.summary(quantity) {
        let [least, most] = quantity.show_range(summary.range.0, summary.range.1);
        figures.extend([
            quantity.show(summary.mean),
            words::interval(&summary).replace('±', ""),
            quantity.show(summary.median),
            least,
            most,
        ]);
    } else {
        figures.push(words::at_least(outcome, quantity).unwrap_or_else(|| NONE.into()));
        figures.extend([NONE; 4].map(str::to_owned));
    }
    figures.extend([0.5, 0.99, 0.999, 0.9999, 1.0].map(|fraction| words::quantile(outcome, fraction)));
    figures.extend(words::times(outcome));
    figures.push(words::cores(outcome, |cores| cores.own));
    figures.push(words::cores(outcome, |cores| cores.client));
    figures.push(words::cores(outcome, |cores| cores.machine));
    let cost = outcome.cores.and_then(|cores| cores.for_gigabyte);
    figures.push(cost.map_or_else(|| NONE.into(), |cost| format!("{cost:.2}")));
    figures.push(format!("{:.0} %", 100.0 * outcome.wait));
    figures.push(outcome.finished.map_or_else(|| NONE.into(), |(first, last)| format!("{first}, {last}")));
    figures
}

/// What each machine had of figures that several processes came to.
fn write_machines(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let stages = study.stages.iter().map(|stage| (stage, words::across_machines(stage)));
    let stages: Vec<_> = stages.filter(|(_, rows)| !rows.is_empty()).collect();
    if stages.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<section class=\"card screen\" id=\"machines\"><h2>Over processes and machines</h2><div class=\"scroll\"><table><thead>\
         <tr><th>stage</th><th>parameters</th><th>phase</th><th>target</th><th>each machine</th></tr></thead><tbody>",
    );
    for (stage, rows) in stages {
        for (outcome, words) in rows {
            let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
            write!(
                page,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                Escaped(stage.name),
                Escaped(label),
                outcome.phase.name(),
                letter(outcome.target),
                Escaped(&words)
            )?;
        }
    }
    page.push_str("</tbody></table></div></section>");
    Ok(())
}

/// What the targets are and offer, beside each other.
fn write_storage(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let matrix = StorageMatrix::of(study.results);
    if matrix.rows.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<section class=\"card screen\" id=\"storage\"><h2>The storage</h2><div class=\"scroll\"><table><thead><tr><th></th>",
    );
    for (letter, path) in &matrix.targets {
        write!(page, "<th>{letter}: {}</th>", Escaped(path))?;
    }
    page.push_str("</tr></thead><tbody>");
    for row in &matrix.rows {
        write!(page, "<tr><th>{}</th>", Escaped(&row.name))?;
        for answer in &row.answers {
            let class = if answer.is_published { " class=\"soft\"" } else { "" };
            write!(page, "<td{class}>{}</td>", Escaped(&words::answer(answer)))?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    write!(page, "<p class=\"soft\">{}</p></section>", words::MATRIX)
}

fn write_environment(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    page.push_str(
        "<section class=\"card screen\"><h2>Measured on</h2><div class=\"scroll\"><table class=\"facts\"><tbody>",
    );
    for (key, value) in &study.results.environment {
        write!(page, "<tr><td>{}</td><td>{}</td></tr>", Escaped(key), Escaped(value))?;
    }
    for (name, link) in links(&study.results.machines) {
        write!(page, "<tr><td>link {}</td><td>{}</td></tr>", Escaped(&name), Escaped(&link.to_string()))?;
    }
    page.push_str("</tbody></table></div>");
    for (index, target) in study.results.targets.iter().enumerate() {
        let name = words::target(study.results, index);
        write!(page, "<h3>Target {}: {}</h3>", letter(index), Escaped(&name))?;
        page.push_str("<div class=\"scroll\"><table class=\"facts\"><tbody>");
        let mut description = serde_json::to_value(&target.description).unwrap_or(Json::Null);
        // It is the table of the storage.
        if let Some(fields) = description.as_object_mut() {
            fields.remove("profile");
        }
        for (key, value) in facts("", &description) {
            write!(page, "<tr><td>{}</td><td>{}</td></tr>", Escaped(&key), Escaped(&value))?;
        }
        page.push_str("</tbody></table></div>");
    }
    page.push_str("</section>");
    Ok(())
}

/// The leaves of a JSON document with the names on the way to them.
fn facts(name: &str, json: &Json) -> Vec<(String, String)> {
    match json {
        Json::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| facts(format!("{name} {}", key.replace('_', " ")).trim(), value))
            .collect(),
        Json::Null => Vec::new(),
        Json::String(text) => vec![(name.into(), quantity(text))],
        other => vec![(name.into(), other.to_string())],
    }
}

/// A size as people write it, where the text is one.
fn quantity(text: &str) -> String {
    text.parse::<nilometer_model::Bytes>().map_or_else(|_| text.to_owned(), |bytes| bytes.to_string())
}

fn write_repeat(page: &mut String, study: &Study<'_>) -> std::fmt::Result {
    let results = study.results;
    page.push_str("<section class=\"card\" id=\"repeat\"><h2>How to repeat it</h2>");
    if let Some(command) = words::fact(results, "command") {
        write!(page, "<pre>{}</pre>", Escaped(command))?;
    }
    let seed = results.campaign.as_ref().map(|campaign| campaign.plan.seed);
    let seed = seed.map(|seed| format!(" The seed of all random decisions was {seed}.")).unwrap_or_default();
    write!(
        page,
        "<p>{} nilometer {}.{seed} The record is an SQLite file, which holds every sample:</p>\
         <pre>nilometer report RECORD --format csv\nsqlite3 RECORD \"SELECT path, stage, name, phase, \
         avg(megabytes_per_second) FROM rate WHERE invalid IS NULL GROUP BY 1, 2, 3, 4\"</pre>",
        if results.is_imported() { "Imported with" } else { "Measured with" },
        Escaped(&results.version)
    )?;
    if let Some(campaign) = &results.campaign {
        let mut text = serde_json::to_string_pretty(campaign).unwrap_or_default();
        if text.len() > PRETTY_MOST {
            text = serde_json::to_string(campaign).unwrap_or_default();
        }
        write!(page, "<details><summary>The resolved plan</summary><pre>{}</pre></details>", Escaped(&text))?;
    }
    page.push_str("</section>");
    Ok(())
}

/// Longer plans are not spread over lines.
const PRETTY_MOST: usize = 100_000;
