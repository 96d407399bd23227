//! The first screen of an evaluation without an instrument. It has the best figure of each target, and the largest
//! instrument of the catalogue that it would carry.

use nilometer_analysis::{CarriedInstrument, Headline, NoInstrument, Quantity, Study, headlines, letter};

use super::answer::notes;
use crate::{
    document::{Answer, Block, Detail, Heading, Section, Sentence, Tone},
    prospects, words,
};

pub(crate) fn headline(study: &Study<'_>, detail: Detail) -> Vec<Section> {
    let all = headlines(study);
    if all.is_empty() {
        return Vec::new();
    }
    if detail == Detail::Page {
        let answers = all.iter().map(|of| Block::Answer(answer(study, of)));
        let blocks = answers.chain(notes(study)).collect();
        return vec![Section::new(Heading::of(""), blocks).at("answer", "")];
    }
    let blocks = all.iter().map(|of| Block::Paragraph(paragraph(study, of)));
    vec![Section::new(Heading::of("In short"), blocks.collect())]
}

fn answer(study: &Study<'_>, of: &Headline) -> Answer {
    let claim = Sentence::new(format!(": the highest write rate measured, {}", basis(of)));
    Answer {
        tone: Tone::Plain,
        reply: Quantity::Bytes.show(of.rate),
        sentence: Sentence { more: carries(of), ..claim.led(lead(study, of)) },
    }
}

fn paragraph(study: &Study<'_>, of: &Headline) -> Sentence {
    let rate = Quantity::Bytes.show(of.rate);
    let figure = format!("{rate} is the highest write rate measured, {}", basis(of));
    Sentence { more: carries(of), ..Sentence::new(figure).led(lead(study, of)) }
}

fn lead(study: &Study<'_>, of: &Headline) -> String {
    format!("{} {}", letter(of.target), words::target(study.results, of.target))
}

/// `large files, workers 2 (±3 %, 6 of 6 repeats)`.
fn basis(of: &Headline) -> String {
    let spread = of.spread.map_or_else(String::new, |spread| format!("±{:.0} %, ", 100.0 * spread));
    let [valid, all] = of.repeats;
    format!("{} ({spread}{valid} of {all} repeats)", of.stage)
}

/// The instrument that it would carry, and the basis of that; or the reason why there is none.
fn carries(of: &Headline) -> Vec<Sentence> {
    let sentences = match &of.carries {
        Ok(carried) => instrument(of.target, carried),
        Err(NoInstrument::Withheld(why)) => vec![format!("No instrument is predicted: {why}")],
        Err(NoInstrument::NoneCarried) => {
            vec!["It is predicted to carry no instrument of the catalogue".into()]
        }
        Err(NoInstrument::NoCatalogue) => Vec::new(),
    };
    sentences.into_iter().map(Sentence::new).collect()
}

fn instrument(target: usize, CarriedInstrument { row, margin, limit }: &CarriedInstrument) -> Vec<String> {
    // A larger one may depend on a network or on packing.
    let which = if row.are_promising(target..target + 1) {
        "depends on storage alone and that it would carry with a margin"
    } else {
        "it would carry"
    };
    let assumed = match row.assumed.len() {
        0 => "",
        _ => "; its rate depends on assumed values",
    };
    vec![
        format!(
            "The largest instrument of the catalogue that {which}: {}, {}, {margin:.1} times{assumed}",
            row.instrument,
            prospects::rate(row)
        ),
        format!(
            "Predicted from {}, without stalls: --for {} records it",
            prospects::limit(limit),
            row.instrument
        ),
    ]
}
