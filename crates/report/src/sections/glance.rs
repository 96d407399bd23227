//! The rates of all stages at a glance: a bar for each target, beside the comparison that follows from its rounds.

use nilometer_analysis::{CellOutcome, Quantity, Question, RateUnit, StageFigures, letter};
use nilometer_plan::Results;

use super::{answer::effect_tone, stage::stage_id};
use crate::{
    document::{Block, Cell, Glance, GlanceRate, Heading, Section, Sentence, Tone},
    figure_key::tooltip,
    words,
};

const TIMES: &str = "Beside times, a longer bar took less time. ";
const FEW: &str = "A figure with (1 of 6) rests on one valid repeat of six. ";

pub(super) fn glance(results: &Results, stages: &[&StageFigures<'_>]) -> Vec<Section> {
    if stages.is_empty() {
        return Vec::new();
    }
    let compared = stages.iter().flat_map(|stage| &stage.questions).any(|q| !q.comparisons.is_empty());
    let title = if compared { "How they compare" } else { "At a glance" };
    let several = stages.iter().any(|stage| stage.cells.len() > 1);
    let best = if several { "If a stage has several cells, its row shows the fastest. " } else { "" };
    let note = if compared { words::margin_note(results) } else { String::new() };
    let rows = stages.iter().enumerate().flat_map(|(number, stage)| rows(results.margin, number, stage));
    let outcomes = stages.iter().flat_map(|stage| &stage.outcomes);
    let few = if outcomes.into_iter().any(words::rests_on_few) { FEW } else { "" };
    let mut questions = stages.iter().flat_map(|stage| &stage.questions);
    let has_times = questions.any(|question| question.quantity == Quantity::Time);
    let times = if has_times { TIMES } else { "" };
    let blocks = vec![Block::soft(format!("{best}{times}{few}{note}")), Block::Glance(rows.collect())];
    vec![Section::new(Heading::of(title), blocks)]
}

fn rows(margin: f64, number: usize, stage: &StageFigures<'_>) -> Vec<Glance> {
    let rows = stage.questions.iter().map(|question| Glance {
        name: String::new(),
        id: stage_id(number),
        phase: question.phase.name().to_owned(),
        rates: rates(stage, question),
        sentences: sentences(question, margin),
    });
    let mut rows: Vec<Glance> = rows.collect();
    if let Some(first) = rows.first_mut() {
        first.name = stage.name.into();
    }
    rows
}

fn rates(stage: &StageFigures<'_>, question: &Question) -> Vec<GlanceRate> {
    // A target whose valid repeats moved nothing has no best cell, and is not INVALID.
    let stopped = |target: usize| {
        let of = |outcome: &&CellOutcome<'_>| (outcome.phase, outcome.target) == (question.phase, target);
        stage.outcomes.iter().filter(of).find(|outcome| outcome.valid > 0)
    };
    let best = stage.targets().into_iter();
    let best = best.map(|target| (target, stage.best(question.phase, target).or_else(|| stopped(target))));
    let best: Vec<(usize, Option<&CellOutcome<'_>>)> = best.collect();
    let unit = words::unit_of(best.iter().filter_map(|(_, outcome)| *outcome), question.quantity);
    let mean = |outcome: &CellOutcome<'_>| outcome.summary(question.quantity).map_or(0.0, |s| s.mean);
    let most = best.iter().filter_map(|(_, outcome)| outcome.map(mean)).fold(f64::MIN_POSITIVE, f64::max);
    // A single bar is always of full length and says nothing.
    let lone = best.len() < 2;
    let rate = |(target, outcome): (usize, Option<&CellOutcome<'_>>)| GlanceRate {
        target,
        share: outcome.filter(|_| !lone).map_or(0.0, |outcome| mean(outcome) / most),
        cell: cell(stage, outcome, unit),
    };
    best.into_iter().map(rate).collect()
}

/// The best rate of a target. A figure that rests on few repeats has their number instead of its interval.
fn cell(stage: &StageFigures<'_>, outcome: Option<&CellOutcome<'_>>, unit: RateUnit) -> Cell {
    let Some(outcome) = outcome else { return Cell::toned(Tone::Bad, "INVALID") };
    let origin = tooltip(stage, outcome);
    if let Some(summary) = outcome.summary(unit.quantity()).filter(|_| words::rests_on_few(outcome)) {
        let few = format!("{} ({} of {})", unit.show(summary.mean), outcome.valid, outcome.samples.len());
        return Cell::toned(Tone::Doubtful, few).from(origin);
    }
    let text = words::rate_or_bound(outcome, unit);
    let tone = if text == "INVALID" { Tone::Bad } else { Tone::Plain };
    Cell::toned(tone, text).from(origin)
}

/// The order of all targets, and a sentence for each pair.
fn sentences(question: &Question, margin: f64) -> Vec<Sentence> {
    let ranking = question.ranking(margin, letter).map(Sentence::new);
    let pairs = question.comparisons.iter().map(|comparison| {
        let tone = effect_tone(&comparison.effect, margin);
        Sentence::toned(tone, comparison.words(margin, &letter(comparison.first), &letter(comparison.second)))
    });
    let apart = question.apart(letter).map(|text| Sentence::toned(Tone::Doubtful, text));
    ranking.into_iter().chain(pairs).chain(apart).collect()
}
