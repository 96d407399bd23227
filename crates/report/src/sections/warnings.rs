//! Warnings for users of the figures.

use nilometer_analysis::{Grade, Warning};

use crate::document::{Block, Detail, Heading, Section, Sentence, Tone};

/// A short report only counts mere notes.
pub(crate) fn warnings(warnings: &[Warning], detail: Detail) -> Vec<Section> {
    let is_shown = |warning: &&Warning| detail >= Detail::Full || warning.grade() != Grade::Note;
    let mut notes: Vec<Sentence> = warnings.iter().filter(is_shown).map(note).collect();
    let hidden = warnings.len() - notes.len();
    notes.extend((hidden > 0).then(|| Sentence::new(more(hidden))));
    if notes.is_empty() {
        return Vec::new();
    }
    vec![Section::new(Heading::of("Keep in mind"), vec![Block::List(notes)]).at("mind", "")]
}

/// Counts the notes that only a full report has.
fn more(count: usize) -> String {
    let notes = if count == 1 { "note" } else { "notes" };
    format!("{count} {notes} more with --all")
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
