//! One page to file with a purchase: the requirements, the results, and the checksums that identify plan,
//! program and record.

use nilometer_analysis::{
    AcceptanceAnswer, AcceptanceVerdict, CriterionAnswer, JudgedCriterion, Study, letter,
};
use nilometer_model::{FileSystemSpace, TargetDescription, shell_word};
use nilometer_plan::TargetEntry;

use super::offer;
use crate::{
    document::{Answer, Block, Cell, Column, Document, Heading, Role, Row, Section, Sentence, Table, Tone},
    figure_key::criterion_tooltip,
    order::targets,
    render,
    sections::shown_fact,
    words,
};

/// Facts for the page that are not in the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptanceProof {
    /// The SHA-256 of the record's file, in hexadecimal, as `sha256sum` prints it.
    pub record: String,
    /// The name of the record's file.
    pub name: String,
    /// True if the seal is intact; `None` if there is no seal.
    pub is_whole: Option<bool>,
    /// The name of the file with the record's signature; `None` if nobody signed it.
    pub signature: Option<String>,
    /// The name of the page with all results; `None` if there is none beside the record.
    pub details: Option<String>,
}

/// Renders the page as HTML for screen and paper.
pub fn acceptance_page(study: &Study<'_>, proof: &AcceptanceProof) -> String {
    render::html_text(&acceptance_document(study, proof))
}

fn acceptance_document(study: &Study<'_>, proof: &AcceptanceProof) -> Document {
    let mut sections: Vec<Section> =
        study.acceptance.iter().flat_map(|verdict| judged(study, verdict)).collect();
    if sections.is_empty() {
        let none = Block::plain("The plan of this record has no criteria.");
        sections.push(Section::new(Heading::of("Criteria"), vec![none]));
    }
    sections.push(evidence(study, proof));
    sections.push(signatures());
    Document {
        title: format!("Acceptance: {}", study.results.title),
        origin: words::origin(study.results),
        targets: targets(study),
        sections,
    }
}

/// The answer of a target, and its criteria.
fn judged(study: &Study<'_>, verdict: &AcceptanceVerdict) -> [Section; 2] {
    let offer = format!("{} {}", letter(verdict.target), offer(study.results, verdict));
    let reason = verdict.reason().map(|judged| format!(": {}: {}", judged.criterion, judged.found));
    let sentence = Sentence::new(reason.unwrap_or_default()).led(offer.clone());
    let answer = Answer { tone: tone(verdict.answer()), reply: verdict.answer().name().into(), sentence };
    let columns = vec![
        Column::new(Role::Name, "what"),
        Column::new(Role::Name, "demanded"),
        Column::new(Role::Name, "answer"),
        Column::new(Role::Sentence, "found"),
    ];
    let criteria = Table {
        columns,
        rows: verdict.criteria.iter().map(|judged| criterion(study, judged, verdict.target)).collect(),
    };
    [
        Section::new(Heading::of(""), vec![Block::Answer(answer)]),
        Section::new(Heading::with("Criteria", format!(" for {offer}")), vec![Block::Table(criteria)]),
    ]
}

/// The prominence of an answer.
pub(crate) const fn tone(answer: AcceptanceAnswer) -> Tone {
    match answer {
        AcceptanceAnswer::Pass => Tone::Good,
        AcceptanceAnswer::Fail => Tone::Bad,
        AcceptanceAnswer::NotDecided => Tone::Doubtful,
    }
}

fn criterion(study: &Study<'_>, judged: &JudgedCriterion, target: usize) -> Row {
    let JudgedCriterion { criterion, answer, found } = judged;
    let phase = criterion.phase.map(|phase| format!(", {}", phase.name())).unwrap_or_default();
    let tone = if *answer == CriterionAnswer::Violated { Tone::Bad } else { Tone::Plain };
    Row::of([
        Cell::new(format!("{}{phase}", criterion.stage)),
        Cell::new(criterion.demand),
        Cell::toned(tone, answer.name()),
        Cell::new(found).from(criterion_tooltip(study, criterion, target)),
    ])
}

/// Suffix of the names of facts that appear on the page.
const SUM: &str = "sha256";

/// The facts by which others recognize plan, program, record and machine.
fn evidence(study: &Study<'_>, proof: &AcceptanceProof) -> Section {
    let known = &study.results.environment;
    let sums = known.iter().filter(|(key, _)| key.ends_with(SUM));
    let machine = ["command", "host", "kernel", "processor", "processors", "memory"];
    let machine = machine.iter().filter_map(|key| known.iter().find(|(known, _)| known == key));
    let row = |key: &str, value: &str| Row::of([key, value].map(Cell::new));
    let mut rows = vec![row(&format!("record {}, sha256", proof.name), &proof.record)];
    rows.extend(proof.signature.iter().map(|name| row("signature", name)));
    rows.extend(proof.details.iter().map(|name| row("all results", name)));
    rows.extend(sums.chain(machine).map(|(key, value)| Row::of(shown_fact(key, value).map(Cell::new))));
    rows.extend(study.results.targets.iter().enumerate().filter_map(|(target, entry)| {
        let name = format!("storage {}", letter(target));
        Some(row(&name, &storage(entry)?))
    }));
    let columns = [Role::Label, Role::Sentence].map(|role| Column::new(role, "")).to_vec();
    let seal = match proof.is_whole {
        Some(true) if proof.signature.is_some() => {
            "The record is consistent with the seal of its campaign's end. The command below checks who signed it: SIGNERS is \
             a file with the public key."
        }
        Some(true) => {
            "The record is consistent with the seal of its campaign's end. A seal is no signature: anybody can seal a record again."
        }
        Some(false) => "THE RECORD WAS CHANGED AFTER THE CAMPAIGN HAD ENDED.",
        None => "The record has no seal: its campaign has not ended, or `import` made it.",
    };
    let said = "Intervals are at 95 %; docs/acceptance.md explains each criterion. This derives every answer again from the \
                samples of the record:";
    let blocks = vec![
        Block::Table(Table { columns, rows }),
        Block::plain(seal),
        Block::plain(said),
        Block::Code(check_command(proof)),
    ];
    Section::new(Heading::of("Evidence"), blocks)
}

/// Describes the storage of a target: `ext4 on vda, 271 GB, 71.4 GB free at the start`.
fn storage(entry: &TargetEntry) -> Option<String> {
    let TargetDescription { file_system, device, space, .. } = entry.description.as_ref()?;
    let on = device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    let FileSystemSpace { size, free, .. } = space;
    Some(format!("{file_system}{on}, {size}, {free} free at the start"))
}

/// Lines to sign on paper.
fn signatures() -> Section {
    let columns = [Role::Name, Role::Sentence, Role::Sentence, Role::Sentence];
    let headings = ["step", "name", "date", "signature"];
    let columns = columns.into_iter().zip(headings).map(|(role, heading)| Column::new(role, heading));
    // Two empty lines leave room for a pen.
    let empty = || Cell { lines: vec![String::new(), String::new()], ..Cell::new("") };
    let row = |who: &str| Row::of([Cell::new(who), empty(), empty(), empty()]);
    let rows = ["measured", "seen by the vendor", "accepted"].map(row).to_vec();
    let table = Table { columns: columns.collect(), rows };
    Section::new(Heading::of("Signatures"), vec![Block::Table(table)])
}

/// The command that derives every answer again, and checks the signature if there is one.
fn check_command(proof: &AcceptanceProof) -> String {
    let signers = if proof.signature.is_some() { " --signed-by SIGNERS" } else { "" };
    format!("nilometer check {}{signers}", shell_word(&proof.name))
}
