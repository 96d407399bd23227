//! A document says the same in every format, and every finding is in a document.

use std::collections::BTreeSet;

use nilometer_analysis::{StageFigures, StudyStage};
use nilometer_model::Nanos;
use serde_json::Value as Json;

use super::zoo::zoo;
use crate::{
    document::{Block, Detail, Document, Heading, Level, Sentence, Table},
    json,
    order::{ALL, Answers, document, sections_of},
    render::{TextLayout, html_text, markdown_text, terminal_text},
};

/// Letters and digits only: renderers break lines, escape signs and align columns.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Blocks with those in folds.
fn unfolded(blocks: &[Block]) -> Vec<&Block> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Fold(fold) => all.extend(unfolded(&fold.blocks)),
            other => all.push(other),
        }
    }
    all
}

fn sentences(blocks: &[Block]) -> Vec<&Sentence> {
    let all = unfolded(blocks).into_iter().flat_map(sentences_in);
    all.flat_map(|sentence| std::iter::once(sentence).chain(&sentence.more)).collect()
}

fn sentences_in(block: &Block) -> &[Sentence] {
    match block {
        Block::Paragraph(sentence) => std::slice::from_ref(sentence),
        Block::List(sentences) => sentences,
        _ => &[],
    }
}

/// The texts of a table's cells. A terminal clips those of some columns.
fn cells(table: &Table) -> impl Iterator<Item = String> {
    let texts = table.rows.iter().flat_map(|row| table.columns.iter().zip(&row.cells));
    texts.flat_map(|(column, cell)| {
        let most = column.most.map_or(usize::MAX, |most| most - 1);
        cell.lines.iter().map(move |line| line.chars().take(most).collect())
    })
}

fn assert_all_in(name: &str, document: &Document, text: &str) {
    let text = letters(text);
    for section in &document.sections {
        let heading = format!("{}{}", section.heading.label, section.heading.rest);
        let said = sentences(&section.blocks).into_iter().map(|sentence| sentence.text.clone());
        let tables = unfolded(&section.blocks).into_iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        for part in std::iter::once(heading.clone()).chain(said).chain(tables.flat_map(cells)) {
            assert!(text.contains(&letters(&part)), "{name}, {heading}: {part} is missing");
        }
    }
}

/// Text of a page or of Markdown without its marks.
fn unescaped(page: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    escapes.into_iter().fold(page.to_owned(), |text, (escape, sign)| text.replace(escape, sign))
}

#[test]
fn every_section_is_in_every_format_with_its_figures() {
    for specimen in zoo() {
        let name = specimen.name;
        let study = specimen.study();
        for answers in [Answers::First, Answers::Last] {
            let document = document(&study, answers, Detail::Full);
            assert_all_in(name, &document, &unescaped(&markdown_text(&document)));
            assert_all_in(name, &document, &terminal_text(&document, TextLayout::unbroken()));
        }
        let page = document(&study, Answers::First, Detail::Page);
        assert_all_in(name, &page, &unescaped(&html_text(&page)));
    }
}

#[test]
fn every_finding_has_a_specimen() {
    let zoo = zoo();
    let studies: Vec<_> = zoo.iter().map(super::zoo::Specimen::study).collect();
    for finding in ALL {
        let is_shown = |study| !sections_of(finding, study, Detail::Page).is_empty();
        assert!(studies.iter().any(is_shown), "{finding:?} has no specimen");
    }
    let mut shown = BTreeSet::new();
    for stage in studies.iter().flat_map(|study| &study.stages) {
        shown.extend(kinds(stage));
    }
    assert_eq!(shown.into_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>(), "findings of stages");
}

/// The numbers of the findings that a stage has. A new field does not compile until it has a number.
fn kinds(stage: &StudyStage<'_>) -> Vec<usize> {
    let StudyStage { figures, ceiling, growths, optima, interferences, siblings, limits } = stage;
    let StageFigures { name: _, common: _, varying: _, cells: _, outcomes, questions } = figures;
    let there = [
        !outcomes.is_empty(),
        !questions.is_empty(),
        ceiling.is_some(),
        !growths.is_empty(),
        !optima.is_empty(),
        !interferences.is_empty(),
        !siblings.is_empty(),
        !limits.is_empty(),
    ];
    there.into_iter().enumerate().filter_map(|(number, is_there)| is_there.then_some(number)).collect()
}

/// Returns true if a program finds something in a value.
fn is_filled(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Array(values) => !values.is_empty(),
        Json::Object(values) => !values.is_empty(),
        Json::String(text) => !text.is_empty(),
        Json::Bool(_) | Json::Number(_) => true,
    }
}

#[test]
fn every_key_of_json_has_a_value_in_some_specimen() {
    let mut all = BTreeSet::new();
    let mut filled = BTreeSet::new();
    for specimen in zoo() {
        let Ok(Json::Object(document)) = serde_json::from_str(&json(&specimen.study())) else {
            panic!("{}: no object", specimen.name)
        };
        for (key, value) in document {
            filled.extend(is_filled(&value).then(|| key.clone()));
            all.insert(key);
        }
    }
    let empty: Vec<&String> = all.difference(&filled).collect();
    assert_eq!(empty, Vec::<&String>::new());
}

#[test]
fn a_short_document_has_no_more_than_the_full_one() {
    for specimen in zoo() {
        let name = specimen.name;
        let study = specimen.study();
        let of = |detail| document(&study, Answers::Last, detail).sections;
        let headings = |detail| of(detail).into_iter().map(|section| section.heading).collect::<Vec<_>>();
        let full = headings(Detail::Full);
        // All stages share a table in the short one.
        let is_own = |heading: &Heading| heading.label == "Figures";
        assert!(
            headings(Detail::Short).iter().all(|heading| is_own(heading) || full.contains(heading)),
            "{name}"
        );
        assert!(of(Detail::Full).first().is_none_or(|section| section.level == Level::Section), "{name}");
    }
}

fn json_of(name: &str) -> Json {
    let specimen = zoo().into_iter().find(|specimen| specimen.name == name).expect("it is in the zoo");
    serde_json::from_str(&json(&specimen.study())).expect("JSON")
}

#[test]
fn json_has_own_figures_beside_published_ones() {
    let document = json_of("a published study");
    let study = &document["papers"][0];
    let table = &study["tables"][0];
    assert_eq!((&study["study"], &table["columns"][3]), (&"nus-gpfs".into(), &"A".into()));
    let [real, user] = [0, 3].map(|line| &table["lines"][line]);
    assert_eq!((&real["row"], &real["on"]), (&"4 GB".into(), &"real [s]".into()));
    let published = &real["cells"][0];
    assert_eq!((&published["is_own"], &published["shown"]), (&false.into(), &"161.46".into()));
    assert!(published["value"].is_null(), "{published}");
    let own = [&real["cells"][3], &user["cells"][3]];
    assert_eq!(own.map(|cell| cell["value"].as_f64()), [Some(1.0), Some(0.5)]);
    assert_eq!((&own[0]["is_own"], &own[0]["repeats"]), (&true.into(), &serde_json::json!([1, 1])));
}

#[test]
fn json_has_all_recordings_and_the_loss_of_packets() {
    let recorded = json_of("recorded");
    let samples = recorded["recordings"][0]["samples"].as_array().expect("a list");
    assert_eq!(samples.len(), 9);
    let paced = &samples[2];
    assert_eq!((&paced["goal"], &paced["repeat"]), (&"pace".into(), &3.into()));
    assert_eq!((&paced["frames_lost"], &paced["frames_late"]), (&1.into(), &7.into()));
    assert_eq!(
        (&paced["longest_stall_s"], &paced["slowest_second_bytes"]),
        (&Nanos::from_millis(30).seconds().into(), &321_000_000.into())
    );
    assert_eq!(samples[3]["readers"], 2);
    let packets = json_of("packets");
    let curve = &packets["packet_curves"][0];
    assert_eq!((&curve["packet_bytes"], &curve["onto_nothing"]), (&1000.into(), &false.into()));
    let lossy = &curve["rates"][1];
    assert_eq!((&lossy["lost_share"], &lossy["lossy"]), (&0.5.into(), &1.into()));
    assert_eq!(curve["lost_bytes_per_second"].as_f64(), lossy["bytes_per_second"].as_f64());
}

#[test]
fn json_has_the_figure_closest_to_the_tools_own_rate() {
    let document = json_of("a ceiling");
    let nearest = &document["nearest_ceilings"][0];
    assert_eq!((&nearest["stage"], &nearest["phase"]), (&"one".into(), &"write".into()));
    assert!(nearest["times"].as_f64().is_some_and(|times| (1.0..1.3).contains(&times)), "{nearest}");
    assert_eq!(nearest["is_near"], true);
}
