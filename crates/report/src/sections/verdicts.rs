//! The answers: which targets carry which instruments, and the questions still open.

use nilometer_analysis::{FullSpeed, OpenQuestion, Study, Verdict};
use nilometer_plan::RecordedInstrument;

use super::answer::tone;
use crate::{
    document::{Block, Heading, Section, Sentence, Tone},
    figure_key::instrument_tooltip,
    words,
};

pub(crate) fn verdicts(
    study: &Study<'_>,
    verdicts: &[Verdict],
    full_speeds: &[FullSpeed],
    open: &[OpenQuestion],
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for verdict in verdicts {
        let heading = Heading::with("Verdict", format!(" for {}", words::instrument(verdict)));
        add(&mut sections, heading, answer(study, verdict));
    }
    for of in full_speeds {
        add(&mut sections, Heading::with("At full speed", format!(": {}", of.instrument)), taken(study, of));
    }
    for open in open {
        let heading = Heading::with("Verdict", format!(" for {}, {}", open.instrument, open.rate));
        let sentence = Sentence::toned(Tone::Doubtful, format!("{open}."));
        add(&mut sections, heading, about(study, sentence, &open.instrument, open.target));
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

fn answer(study: &Study<'_>, verdict: &Verdict) -> Sentence {
    let tone = tone(verdict.decision());
    let more = verdict.more().into_iter().map(|more| Sentence::toned(Tone::Soft, more)).collect();
    let sentence = Sentence { more, ..Sentence::toned(tone, format!("{verdict}.")) };
    about(study, sentence, &verdict.instrument, verdict.target)
}

fn taken(study: &Study<'_>, of: &FullSpeed) -> Sentence {
    let sentence = Sentence::toned(Tone::Doubtful, format!("{of}."));
    about(study, sentence, &of.instrument, of.target)
}

/// A sentence about recordings of an instrument on a target.
fn about(study: &Study<'_>, sentence: Sentence, instrument: &RecordedInstrument, target: usize) -> Sentence {
    let origin = instrument_tooltip(study, &instrument.to_string(), target);
    sentence.led(words::target(study.results, target)).from(origin)
}
