//! The trials of a search for the highest rate: the end of each trial, and the interval found.

use nilometer_model::Goal;
use nilometer_plan::{
    Measured,
    search::{RateLimit, SearchEnd, Trial},
};

use nilometer_analysis::{Study, StudyRecording, Verdict, letter};

use super::super::latency::reference;
use crate::{
    chart::{Axis, Chart, Line, Plot, Point, Style, Unit, WIDE},
    document::{Block, Heading, KeyEntry, Section},
};

/// The ends of trials, each with its sign and its word.
const ENDS: [(SearchEnd, usize, &str); 3] = [
    (SearchEnd::Carried, 2, "carried"),
    (SearchEnd::Lost, 1, "lost frames"),
    (SearchEnd::Invalid, 6, "invalid"),
];

/// Draws a chart for each target and states the result in words.
pub(super) fn trials(study: &Study<'_>, recording: &StudyRecording<'_>) -> Option<Section> {
    let searched = |measured: &&&Measured| {
        measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == Goal::Search)
    };
    let mut samples: Vec<&Measured> = recording.samples.iter().filter(searched).copied().collect();
    // The first search counts, like in the verdict.
    let first = samples.iter().map(|measured| measured.key.cell).min()?;
    samples.retain(|measured| measured.key.cell == first);
    let of_targets: Vec<&[&Measured]> = samples.chunk_by(|a, b| a.key.target == b.key.target).collect();
    let limit = |target: usize| found(study, recording, target);
    let charts = of_targets.iter().map(|samples| chart(samples, limit(samples[0].key.target)));
    let found = of_targets.iter().filter_map(|samples| {
        let target = samples[0].key.target;
        Some(Block::soft(format!("{} {}.", letter(target), limit(target)?)))
    });
    let mut blocks = vec![Block::Key(key()), Block::charts(charts.collect())];
    blocks.extend(found);
    blocks.push(Block::soft("Dashed: the ends of the interval."));
    Some(Section::part(Heading::of("Search for the highest rate"), blocks))
}

fn key() -> Vec<KeyEntry> {
    let entry = |(_, series, word): (SearchEnd, usize, &str)| KeyEntry {
        series,
        letter: String::new(),
        text: word.to_owned(),
    };
    ENDS.map(entry).into()
}

fn found(study: &Study<'_>, recording: &StudyRecording<'_>, target: usize) -> Option<RateLimit> {
    let of = |verdict: &&Verdict| verdict.target == target && verdict.instrument == recording.instrument;
    study.verdicts.iter().find(of)?.highest
}

/// Draws a sign for each trial with this end.
fn signs(trials: &[Trial], ended: SearchEnd, series: usize, word: &str) -> Line {
    let those = (1_u32..).zip(trials).filter(|(_, trial)| trial.ended == ended);
    let points = those.map(|(number, trial)| Point {
        x: f64::from(number),
        y: trial.rate.0,
        title: format!("trial {number} at {}: {word}", trial.rate),
        ..Point::default()
    });
    Line { series, name: String::new(), points: points.collect(), style: Style::Signs }
}

fn chart(samples: &[&Measured], limit: Option<RateLimit>) -> Chart {
    let trials: Vec<Trial> = samples.iter().filter_map(|measured| Trial::of(&measured.sample)).collect();
    let mut lines: Vec<Line> =
        ENDS.into_iter().map(|(ended, series, word)| signs(&trials, ended, series, word)).collect();
    let end = trials.len() as f64 + 1.0;
    let mut x = Axis::from_zero(Unit::Count("number of the trial"), end);
    x.until(end);
    let ends = limit.iter().flat_map(|limit| [limit.carried, limit.lost]).flatten();
    lines.extend(ends.map(|rate| reference(rate.0, end)));
    let most = trials.iter().map(|trial| trial.rate.0).fold(0.0, f64::max);
    let title = format!("{}: the rate of each trial", letter(samples[0].key.target));
    Chart::Plot(Plot {
        description: format!("{title}, by how it ended"),
        title,
        x,
        y: Axis::from_zero(Unit::ByteRate, most).named("rate tried"),
        lines,
        spans: Vec::new(),
        width: WIDE,
    })
}
