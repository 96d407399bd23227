//! What to keep in mind before a figure is used.

use nilometer_analysis::{Grade, Study, Warning};

use crate::document::{Block, Heading, Section, Sentence, Tone};

pub(crate) fn warnings(study: &Study<'_>) -> Vec<Section> {
    if study.warnings.is_empty() {
        return Vec::new();
    }
    let notes = study.warnings.iter().map(note).collect();
    vec![Section::new(Heading::of("Keep in mind"), vec![Block::List(notes)])]
}

fn note(warning: &Warning) -> Sentence {
    let tone = match warning.grade() {
        Grade::Grave => Tone::Bad,
        Grade::Caution => Tone::Doubtful,
        Grade::Note => Tone::Plain,
    };
    let advice = warning.advice().map(|advice| format!(" ({advice})")).unwrap_or_default();
    Sentence::toned(tone, format!("{warning}{advice}"))
}
