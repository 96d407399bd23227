//! The acceptance of each offer: each target with all criteria, those not met first.

use std::cmp::Reverse;

use nilometer_analysis::{AcceptanceVerdict, CriterionAnswer, Study, letter};

use crate::{
    acceptance::{offer, tone},
    document::{Block, Heading, Section, Sentence, Tone},
    figure_key::criterion_tooltip,
};

pub(crate) fn acceptance(study: &Study<'_>, verdicts: &[AcceptanceVerdict]) -> Vec<Section> {
    verdicts.iter().map(|verdict| of_target(study, verdict)).collect()
}

fn of_target(study: &Study<'_>, verdict: &AcceptanceVerdict) -> Section {
    let tone = tone(verdict.answer());
    let mut criteria: Vec<_> = verdict.criteria.iter().collect();
    criteria.sort_by_key(|judged| Reverse(judged.answer));
    let more = criteria.into_iter().map(|judged| {
        let tone = if judged.answer == CriterionAnswer::Met { Tone::Soft } else { Tone::Plain };
        let origin = criterion_tooltip(study, &judged.criterion, verdict.target);
        Sentence::toned(tone, judged.to_string()).from(origin)
    });
    let answer = Sentence { more: more.collect(), ..Sentence::toned(tone, verdict.answer().name()) };
    let heading = format!(" of {} {}", letter(verdict.target), offer(study.results, verdict));
    Section::new(Heading::with("Acceptance", heading), vec![Block::Paragraph(answer)])
}
