//! The findings of a report and their order. This is the only list of them.

use nilometer_analysis::{ShortAnswers, Study, letter};

use crate::{
    document::{Detail, Document, Section, TargetLine},
    sections, words,
};

/// Something that a study found, with a section of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Missing,
    Answer,
    Headline,
    Stages,
    Recordings,
    Packets,
    Network,
    Migration,
    Observed,
    Storage,
    Warnings,
    Comparisons,
    Papers,
    Predictions,
    Verdicts,
    Acceptance,
    Numbers,
    Machines,
    Environment,
    Repeat,
}

impl Finding {
    /// The least detailed report that has it. A section of it may want more.
    const fn least(self) -> Detail {
        match self {
            Finding::Answer
            | Finding::Recordings
            | Finding::Numbers
            | Finding::Machines
            | Finding::Repeat => Detail::Page,
            Finding::Papers => Detail::Full,
            _ => Detail::Short,
        }
    }
}

const COUNT: usize = 20;

/// All findings, in any order.
#[cfg(test)]
pub(crate) const ALL: [Finding; COUNT] = ANSWERS_LAST;

/// In a terminal the answers come last, where the reader sees them.
const ANSWERS_LAST: [Finding; COUNT] = [
    Finding::Missing,
    Finding::Stages,
    Finding::Recordings,
    Finding::Packets,
    Finding::Network,
    Finding::Migration,
    Finding::Observed,
    Finding::Storage,
    Finding::Numbers,
    Finding::Machines,
    Finding::Environment,
    Finding::Repeat,
    Finding::Papers,
    Finding::Warnings,
    Finding::Comparisons,
    Finding::Predictions,
    Finding::Verdicts,
    Finding::Acceptance,
    Finding::Answer,
    Finding::Headline,
];

/// On a page the answers come first.
const ANSWERS_FIRST: [Finding; COUNT] = [
    Finding::Missing,
    Finding::Answer,
    Finding::Headline,
    Finding::Acceptance,
    Finding::Verdicts,
    Finding::Recordings,
    Finding::Migration,
    Finding::Comparisons,
    Finding::Papers,
    Finding::Predictions,
    Finding::Warnings,
    Finding::Packets,
    Finding::Network,
    Finding::Observed,
    Finding::Stages,
    Finding::Numbers,
    Finding::Machines,
    Finding::Storage,
    Finding::Environment,
    Finding::Repeat,
];

/// The position of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    First,
    Last,
}

/// The report of a study.
pub(crate) fn document(study: &Study<'_>, answers: Answers, detail: Detail) -> Document {
    let order = match answers {
        Answers::First => ANSWERS_FIRST,
        Answers::Last => ANSWERS_LAST,
    };
    let sections = order.into_iter().flat_map(|finding| sections_of(finding, study, detail));
    let (title, origin) = head(study, answers);
    Document {
        title,
        origin,
        targets: targets(study),
        sections: sections.filter(|section| section.detail <= detail).collect(),
    }
}

/// The document with the tables of published studies alone.
pub(crate) fn papers_document(study: &Study<'_>) -> Document {
    Document {
        title: study.results.title.clone(),
        origin: words::origin(study.results),
        targets: targets(study),
        sections: sections::papers(&study.papers),
    }
}

/// Returns the title and the origin, which stand above the answers.
fn head(study: &Study<'_>, answers: Answers) -> (String, String) {
    let origin = words::origin(study.results);
    let short = ShortAnswers::of(study);
    match answers {
        Answers::First if !short.answers.is_empty() => {
            (short.question, format!("{}; {origin}", study.results.title))
        }
        Answers::First => (short.question, origin),
        Answers::Last => (study.results.title.clone(), origin),
    }
}

pub(crate) fn targets(study: &Study<'_>) -> Vec<TargetLine> {
    let line = |(index, target): (usize, &nilometer_plan::TargetEntry)| {
        let text = words::target(study.results, index);
        TargetLine { letter: letter(index), text, left_out: target.left_out.clone().unwrap_or_default() }
    };
    study.results.targets.iter().enumerate().map(line).collect()
}

/// A finding of a study without a section is an unused variable, and does not compile.
#[deny(unused_variables)]
pub(crate) fn sections_of(finding: Finding, study: &Study<'_>, detail: Detail) -> Vec<Section> {
    if detail < finding.least() {
        return Vec::new();
    }
    let Study {
        results,
        stages,
        recordings,
        curves,
        acceptance,
        verdicts,
        full_speeds,
        predictions,
        network_shares,
        missing,
        warnings,
        observed,
        migrations,
        papers,
    } = study;
    match finding {
        Finding::Missing => sections::missing(missing),
        Finding::Answer => sections::answer(study),
        Finding::Headline => sections::headline(study, detail),
        Finding::Recordings => sections::recordings(study, recordings),
        Finding::Numbers => sections::numbers(&study.stage_figures()),
        Finding::Machines => sections::machines(&study.stage_figures()),
        Finding::Repeat => sections::repeat(results),
        Finding::Stages => sections::stages(results, stages, detail),
        Finding::Packets => sections::packets(curves, detail),
        Finding::Network => sections::network(results, network_shares, detail),
        Finding::Migration => sections::migrations(migrations, results.margin),
        Finding::Observed => sections::observed(results, observed.as_ref(), detail),
        Finding::Storage => sections::storage(results, detail),
        Finding::Warnings => sections::warnings(warnings, detail),
        Finding::Comparisons => sections::comparisons(results, &study.stage_figures(), detail),
        Finding::Papers => sections::papers(papers),
        Finding::Predictions => sections::predictions(study, predictions, detail),
        Finding::Verdicts => sections::verdicts(study, verdicts, full_speeds, &missing.open),
        Finding::Acceptance => sections::acceptance(study, acceptance),
        Finding::Environment => sections::environment(results, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_have_the_same_findings_once() {
        for finding in ANSWERS_LAST {
            for order in [ANSWERS_FIRST, ANSWERS_LAST] {
                assert_eq!(order.iter().filter(|other| **other == finding).count(), 1, "{finding:?}");
            }
        }
    }
}
