//! The parameters that explain the rates of a matrix, in words and drawn. It shows the share of all differences
//! that each explains. For the parameter that explains most, it shows the best cell with each value, with its
//! interval.

use nilometer_analysis::{StageFigures, StageOptimum, ValueRate};

use crate::{
    chart::{Bar, Bars, Chart, LETTERS, clipped, interval},
    document::{Block, Detail, Heading, Section},
    optimum::heading,
    words::{parameter, percent},
};

/// Limit on values. More form a curve, which is drawn above.
const VALUES_MOST: usize = 10;

pub(super) fn parameters(stage: &StageFigures<'_>, optima: &[StageOptimum], detail: Detail) -> Vec<Section> {
    optima.iter().map(|of| section(of, &heading(stage, of), detail)).collect()
}

fn section(of: &StageOptimum, heading: &str, detail: Detail) -> Section {
    let mut blocks = vec![Block::list(of.sentences())];
    blocks.extend((detail == Detail::Page).then(|| Block::charts(charts(of, heading))));
    Section::part(Heading::with("Parameters", format!(": {heading}")), blocks)
}

fn charts(of: &StageOptimum, heading: &str) -> Vec<Chart> {
    let mut charts = vec![shares(of, heading)];
    charts.extend((2..=VALUES_MOST).contains(&of.by_value.len()).then(|| values(of, heading)));
    charts
}

/// Draws shares of all differences, which add up to 100 %.
fn shares(of: &StageOptimum, heading: &str) -> Chart {
    let parameters = of.shares.iter().map(|share| (parameter(&share.parameter), share.share, 0));
    let together = (of.shares.len() > 1).then(|| ("their interactions".to_owned(), of.together(), 1));
    let repeats = ("how repeats of a cell differ".to_owned(), 1.0 - of.explained, 6);
    let rows = parameters.chain(together).chain([repeats]);
    let groups =
        rows.map(|(label, share, series)| (clipped(&label, LETTERS), vec![share_bar(share, series)]));
    Chart::Bars(Bars {
        title: "causes of differences in rate".into(),
        description: format!("{heading}: share of all differences that each parameter explains"),
        groups: groups.collect(),
    })
}

fn share_bar(share: f64, series: usize) -> Bar {
    Bar {
        series,
        name: String::new(),
        value: Some(share.clamp(0.0, 1.0)),
        interval: None,
        repeats: Vec::new(),
        text: percent(share),
    }
}

/// The best cell with each value.
fn values(of: &StageOptimum, heading: &str) -> Chart {
    let group = |value: &ValueRate| (clipped(&value_label(of, value), LETTERS), vec![value_bar(of, value)]);
    Chart::Bars(Bars {
        title: "the best cell with each value".into(),
        description: format!(
            "{heading}: the highest rate with each value of the parameter that explains most"
        ),
        groups: of.by_value.iter().map(group).collect(),
    })
}

fn value_label(of: &StageOptimum, value: &ValueRate) -> String {
    if value.is_best { format!("best: {}", of.best) } else { value.label.clone() }
}

fn value_bar(of: &StageOptimum, value: &ValueRate) -> Bar {
    Bar {
        series: if value.is_best { 2 } else { 0 },
        name: String::new(),
        value: Some(value.rate.mean),
        interval: interval(&value.rate),
        repeats: value.repeats.clone(),
        text: of.quantity.show(value.rate.mean).trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, Phase, Sample};
    use nilometer_plan::{Key, Measured, Results};

    use super::*;
    use nilometer_analysis::{Study, made_up::stage};

    #[test]
    fn shares_and_the_best_cell_with_each_value_are_drawn() {
        let text = "workers = [1, 2, 4]\n[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = [\"128 KiB\", \"1 MiB\"]\naccess = \"best\"\n";
        let cells = stage("files", text);
        let mut samples = Vec::new();
        for (cell, entry) in cells.iter().enumerate() {
            let workers = entry.as_workload().map_or(1, |run| u64::from(run.workers));
            for repeat in 0..4 {
                let key = Key { target: 0, cell, repeat, phase: Phase::Write };
                let bytes = 100_000_000 * workers + u64::from(repeat) * 1_000_000 + cell as u64;
                let sample =
                    Sample { bytes, operations: 100, wall: Nanos(1_000_000_000), ..Sample::new(Nanos(0)) };
                samples.push(Measured { key, sample });
            }
        }
        let results = Results { cells, samples, margin: 5.0, repeats: 4, ..Results::default() };
        let study = Study::of(&results);
        let stage = &study.stages[0];
        let charts = charts(&stage.optima[0], &heading(&stage.figures, &stage.optima[0]));
        let page: String = charts.iter().map(Chart::svg).collect();
        assert_eq!(page.matches("<svg").count(), 2, "{page}");
        for part in
            [">workers<", ">block size<", ">their interactions<", ">how repeats of a cell differ<", ">100 %<"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(page.contains("best: workers 4, block size 1 MiB"), "{page}");
        assert_eq!(page.matches("<circle").count(), 3 * 4, "each repeat of three cells: {page}");
    }
}
