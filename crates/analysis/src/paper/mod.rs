//! The tables of published studies, with one's own figures of the same plans beside the published ones.
//!
//! ```text
//! reference/NAME.toml, NAME.csv -> PublishedStudy --.
//! targets of records that measured its plans ------+--> PaperStudy: tables in the study's lines, columns and units
//! ```
//!
//! No table has a ratio of a published and an own figure: machines, years and mostly sizes differ.

mod arrange;
mod own_figure;
mod repeated;
mod table;

use nilometer_plan::{PublishedStudy, Results, ShownScale};

pub use own_figure::OwnFigure;
pub use table::{OwnTarget, PaperCell, PaperLine, PaperStudy, PaperTable};

use arrange::arranged;
use repeated::RepeatedPlans;

/// The studies that these targets measured again, or that these records were imported from, with their tables.
pub(crate) fn paper_studies(own: &[OwnTarget<'_>], imported: &[&Results]) -> Vec<PaperStudy> {
    let plans = RepeatedPlans::built_in();
    let studies = PublishedStudy::all();
    studies.iter().filter_map(|study| paper_study(study, &plans, own, imported)).collect()
}

fn paper_study(
    study: &PublishedStudy,
    plans: &RepeatedPlans,
    own: &[OwnTarget<'_>],
    imported: &[&Results],
) -> Option<PaperStudy> {
    let of_plan = |plan: &str, target: &OwnTarget<'_>| plans.is_in(plan, target.results);
    let names = plans_of(study);
    let own: Vec<OwnTarget<'_>> =
        own.iter().filter(|target| names.iter().any(|plan| of_plan(plan, target))).cloned().collect();
    let is_imported = imported.iter().any(|results| is_from(study, results));
    if own.is_empty() && !is_imported {
        return None;
    }
    let is_measured = |plan: &str| own.is_empty() || own.iter().any(|target| of_plan(plan, target));
    let (shown, others): (Vec<_>, Vec<_>) =
        study.tables.iter().partition(|table| table.line.iter().any(|line| is_measured(&line.plan)));
    let tables = shown.into_iter().map(|table| arranged(study, table, plans, &own));
    let elsewhere = others
        .into_iter()
        .map(|table| format!("table {}: the plan {} measures it again", table.name, table.line[0].plan));
    let mut elsewhere: Vec<String> = elsewhere.collect();
    elsewhere.extend(study.left_out.iter().map(|rows| match &rows.test {
        Some(test) => format!("table {}, {test}: {}", rows.table, rows.why),
        None => format!("table {}: {}", rows.table, rows.why),
    }));
    Some(PaperStudy {
        title: study.title.clone(),
        name: study.name,
        own: scales(&own),
        is_imported,
        tables: tables.collect(),
        elsewhere,
    })
}

/// The built-in plans that measure a study again, each once.
fn plans_of(study: &PublishedStudy) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in study.tables.iter().flat_map(|table| &table.line) {
        if !names.contains(&line.plan.as_str()) {
            names.push(&line.plan);
        }
    }
    names
}

/// Returns true if results were imported from the table of a study.
fn is_from(study: &PublishedStudy, results: &Results) -> bool {
    let mut imported = results.cells.iter().filter_map(|cell| cell.as_imported());
    imported.any(|run| run.source == study.name)
}

/// The scale of each target's figures, with its number of nodes, in words.
fn scales(own: &[OwnTarget<'_>]) -> Vec<String> {
    let words = |target: &OwnTarget<'_>| {
        let scale = target.scale();
        let size = if (scale - 1.0).abs() < f64::EPSILON {
            "at full size".to_owned()
        } else {
            let scale = ShownScale(scale);
            format!(
                "at scale {scale}: sizes and counts are {scale} of the plan's full size, times are those of this work"
            )
        };
        let nodes = match target.nodes() {
            1 => "one machine".to_owned(),
            count => format!("{count} machines"),
        };
        format!("{}: own figures, {size}; {nodes}", target.letter)
    };
    own.iter().map(words).collect()
}
