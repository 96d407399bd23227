//! The top of a page: an answer for each target, and the two things to keep in mind. It fits on one screen.

use nilometer_analysis::{
    Decision, ShortAnswer, ShortAnswers, Study,
    effect::{Answer as Faster, Effect},
    letter,
};

use crate::{
    document::{Answer, Aside, Block, Heading, Section, Sentence, Tone},
    figure_key::instrument_tooltip,
    words,
};

/// Maximum number of warnings next to the answer. The rest follow below.
const NOTES: usize = 2;

pub(crate) fn answer(study: &Study<'_>) -> Vec<Section> {
    let short = ShortAnswers::of(study);
    if short.answers.is_empty() {
        return Vec::new();
    }
    let several = short.answers.iter().any(|answer| answer.instrument != short.answers[0].instrument);
    // A short answer has the rate in its name, and is in the order of the verdicts and the open questions.
    let open = study.missing.open.iter().map(|open| &open.instrument);
    let instruments = study.verdicts.iter().map(|verdict| &verdict.instrument).chain(open);
    let answers = short.answers.iter().zip(instruments).map(|(answer, instrument)| {
        let origin = instrument_tooltip(study, &instrument.to_string(), answer.target);
        let of_target = of_target(study, answer, several);
        Block::Answer(Answer { sentence: of_target.sentence.from(origin), ..of_target })
    });
    let blocks = answers.chain(notes(study)).collect();
    vec![Section::new(Heading::of(""), blocks).at("answer", "")]
}

/// The tone of a decision.
pub(crate) const fn tone(decision: Decision) -> Tone {
    match decision {
        Decision::Carries => Tone::Good,
        Decision::DoesNotCarry => Tone::Bad,
        Decision::NotDecided => Tone::Doubtful,
    }
}

/// The tone of a comparison.
pub(crate) fn effect_tone(effect: &Effect, margin: f64) -> Tone {
    match effect.answer(margin) {
        Faster::Faster | Faster::Slower => Tone::Good,
        Faster::Alike => Tone::Soft,
        Faster::Undecided => Tone::Doubtful,
    }
}

fn of_target(study: &Study<'_>, answer: &ShortAnswer, names_instrument: bool) -> Answer {
    // The reason follows an open answer, without a verb.
    let colon = if answer.decision == Decision::NotDecided { ":" } else { "" };
    let instrument = if names_instrument { format!("{}: ", answer.instrument) } else { String::new() };
    let target =
        format!("{instrument}{} {}", letter(answer.target), words::target(study.results, answer.target));
    let sentence = Sentence {
        more: answer.evidence.iter().map(Sentence::new).collect(),
        ..Sentence::new(format!("{colon} {}", answer.claim)).led(target)
    };
    Answer { tone: tone(answer.decision), reply: answer.decision.reply().to_owned(), sentence }
}

/// The gravest warnings.
pub(super) fn notes(study: &Study<'_>) -> Option<Block> {
    let more = study.warnings.len().saturating_sub(NOTES);
    let aside = Aside {
        heading: "Keep in mind".into(),
        sentences: study.warnings.iter().take(NOTES).map(ToString::to_string).collect(),
        more: (more > 0).then(|| (format!("{more} more below"), "mind".to_owned())),
    };
    (!study.warnings.is_empty()).then_some(Block::Aside(aside))
}
