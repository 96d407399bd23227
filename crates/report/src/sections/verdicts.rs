//! The answers: which targets carry which instruments, and the questions still open.

use nilometer_analysis::{FullSpeed, OpenQuestion, Verdict};
use nilometer_plan::Results;

use super::answer::tone;
use crate::{
    document::{Block, Heading, Section, Sentence, Tone},
    words,
};

pub(crate) fn verdicts(
    results: &Results,
    verdicts: &[Verdict],
    full_speeds: &[FullSpeed],
    open: &[OpenQuestion],
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for verdict in verdicts {
        let heading = Heading::with("Verdict", format!(" for {}", words::instrument(verdict)));
        add(&mut sections, heading, answer(results, verdict));
    }
    for of in full_speeds {
        add(
            &mut sections,
            Heading::with("At full speed", format!(": {}", of.instrument)),
            taken(results, of),
        );
    }
    for open in open {
        let heading = Heading::with("Verdict", format!(" for {}, {}", open.instrument, open.rate));
        let target = words::target(results, open.target);
        add(&mut sections, heading, Sentence::toned(Tone::Doubtful, format!("{open}.")).led(target));
    }
    sections
}

/// Puts all targets of one instrument below one heading.
fn add(sections: &mut Vec<Section>, heading: Heading, sentence: Sentence) {
    match sections.last_mut().filter(|last| last.heading == heading) {
        Some(section) => section.blocks.push(Block::Paragraph(sentence)),
        None => sections.push(Section::new(heading, vec![Block::Paragraph(sentence)])),
    }
}

fn answer(results: &Results, verdict: &Verdict) -> Sentence {
    let tone = tone(verdict.decision());
    let more = verdict.more().into_iter().map(|more| Sentence::toned(Tone::Soft, more)).collect();
    let sentence = Sentence::toned(tone, format!("{verdict}."));
    Sentence { more, ..sentence.led(words::target(results, verdict.target)) }
}

fn taken(results: &Results, of: &FullSpeed) -> Sentence {
    let sentence = Sentence::toned(Tone::Doubtful, format!("{of}."));
    sentence.led(words::target(results, of.target))
}
