//! The tables of published studies, with one's own figures of the same plans beside the published ones.
//!
//! ```text
//! reference/NAME.toml, NAME.csv -> PublishedStudy --.
//! targets of records that measured its plans ------+--> PaperStudy: tables in the study's lines, columns and units
//! ```
//!
//! No table has a ratio of a published and an own figure: machines, years and mostly sizes differ.

mod arrange;
mod network_table;
mod own_figure;
mod repeated;
mod table;
mod traffic;

use nilometer_plan::{PublishedStudy, Results, ShownScale};

pub use own_figure::OwnFigure;
pub use table::{OwnTarget, PaperCell, PaperLine, PaperStudy, PaperTable};

use arrange::{OwnOutcomes, arranged};
use network_table::network_table;
use repeated::RepeatedPlans;

/// The studies that these targets measured again, or that these records were imported from, with their tables.
pub(crate) fn paper_studies(own: &[OwnTarget<'_>], imported: &[&Results]) -> Vec<PaperStudy> {
    let studies = PublishedStudy::all();
    let plans = RepeatedPlans::of(&studies);
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
    // No line of a study is a recording, and nothing else is made over several targets.
    let of_study =
        |target: &&OwnTarget<'_>| !target.is_joined() && names.iter().any(|plan| of_plan(plan, target));
    let own: Vec<OwnTarget<'_>> = own.iter().filter(of_study).cloned().collect();
    let is_imported = imported.iter().any(|results| is_from(study, results));
    if own.is_empty() && !is_imported {
        return None;
    }
    let is_measured = |plan: &str| own.is_empty() || own.iter().any(|target| of_plan(plan, target));
    let (shown, others): (Vec<_>, Vec<_>) =
        study.tables.iter().partition(|table| table.line.iter().any(|line| is_measured(&line.plan)));
    let outcomes: Vec<OwnOutcomes<'_>> = own.iter().map(OwnOutcomes::of).collect();
    let tables = shown.into_iter().map(|table| {
        if table.is_of_network() {
            network_table(study, table, plans, &own)
        } else {
            arranged(study, table, plans, &outcomes)
        }
    });
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
    own.iter().map(scale_words).collect()
}

fn scale_words(target: &OwnTarget<'_>) -> String {
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
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, Phase, Sample};
    use nilometer_plan::{Key, Measured, PLANS, PlannedCampaign, TargetEntry, parse};

    use super::*;
    use crate::made_up::described;

    /// A campaign of the plan nus at a scale, in which each cell took a second, half of it in user space.
    fn copies(scale: f64) -> Results {
        let text = PLANS.iter().find(|plan| plan.name == "nus").expect("it is built in").text;
        let plan = parse(text, "nus", scale).expect("valid");
        let sample = |cell: usize| {
            let key = Key { target: 0, cell, repeat: 0, phase: Phase::Write };
            let wall = Nanos(1_000_000_000);
            Measured {
                key,
                sample: Sample { wall, bytes: 1, user: Nanos(500_000_000), ..Sample::new(Nanos(0)) },
            }
        };
        Results {
            title: "any".into(),
            samples: (0..plan.cells.len()).map(sample).collect(),
            cells: plan.cells.clone(),
            targets: vec![TargetEntry { path: "/data".into(), ..TargetEntry::default() }],
            campaign: Some(PlannedCampaign::new(plan, vec![described("/data")])),
            ..Results::default()
        }
    }

    fn studies(results: &Results) -> Vec<PaperStudy> {
        paper_studies(&[OwnTarget { letter: "A".into(), results, target: 0 }], &[])
    }

    fn shown(line: &PaperLine) -> Vec<String> {
        let cell = |cell: &PaperCell| match cell {
            PaperCell::Published(text) => text.clone(),
            PaperCell::Unpublished => "none".into(),
            PaperCell::Own(figure, _) => figure.to_string(),
        };
        line.cells.iter().map(cell).collect()
    }

    #[test]
    fn a_campaign_of_a_study_has_its_table_with_own_figures_beside_the_published_ones() {
        let results = copies(0.001);
        let [study] = &studies(&results)[..] else { panic!("one study has this plan") };
        assert_eq!((study.name, study.tables.len()), ("nus-gpfs", 1));
        assert!(study.own[0].starts_with("A: own figures, at scale 1/1000"), "{:?}", study.own);
        let table = &study.tables[0];
        assert_eq!(table.columns, ["GPFS (InfiniBand)", "local disk", "NFS (1 GbE)", "A"]);
        assert_eq!(table.lines.len(), 16);
        assert_eq!((table.lines[0].row.as_str(), table.lines[0].on.as_str()), ("4 GB", "real [s]"));
        assert_eq!(shown(&table.lines[0]), ["161.46", "261.48", "670.42", "1.000"]);
        assert_eq!(shown(&table.lines[3]), ["75.15", "195.90", "623.10", "0.5000"]);
        assert!(table.notes.contains(&"own `4 GB` is 4 MB by 512 B".to_owned()), "{:?}", table.notes);
    }

    #[test]
    fn a_cell_without_a_sample_says_why_and_another_plan_has_no_table() {
        let mut results = copies(1.0);
        results.samples.clear();
        let [study] = &studies(&results)[..] else { panic!("one study has this plan") };
        assert_eq!(shown(&study.tables[0].lines[0])[3], "not measured");
        assert_eq!(study.tables[0].gaps.len(), 1, "{:?}", study.tables[0].gaps);
        assert!(study.tables[0].gaps[0].starts_with("A: 4 cells not measured: the campaign ended before"));
        if let Some(campaign) = &mut results.campaign {
            campaign.plan.title = "another plan".into();
        }
        assert_eq!(studies(&results), []);
    }
}
