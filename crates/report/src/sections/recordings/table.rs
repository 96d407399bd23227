//! The figures of all recordings of an instrument, with the trials of searches in a separate table.

use nilometer_analysis::{Study, StudyRecording, letter};
use nilometer_model::{ByteRate, Bytes, Goal, Ingest};
use nilometer_plan::{
    Measured,
    search::{SearchEnd, Trial},
};

use super::{Setting, passes::Pass};
use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Sentence, Table, Tone},
    figure_key::recording_tooltip,
    words::{self, NONE, percent},
};

const FIGURES: [&str; 11] = [
    "rate",
    "frames due",
    "stored",
    "lost",
    "late",
    "long stalls",
    "in all",
    "longest stall",
    "slowest second",
    "most of the buffer",
    "cores",
];

/// The recordings, then the trials.
pub(super) fn table(study: &Study<'_>, recording: &StudyRecording<'_>) -> Section {
    let made =
        recording.samples.iter().filter_map(|&measured| Some((measured, measured.sample.ingest.as_ref()?)));
    let (trials, others): (Vec<_>, Vec<_>) = made.partition(|(_, ingest)| ingest.goal.searches());
    let has_marks = others.iter().any(|(measured, _)| measured.sample.invalid.is_some());
    let pass = |measured: &Measured| Pass::of(recording, measured).filter(|pass| pass.is_one_of_several());
    let has_passes = others.iter().any(|(measured, _)| pass(measured).is_some());
    let mut columns = Vec::new();
    columns.extend(has_marks.then(|| Column::new(Role::Mark, "")));
    columns.extend(["target", "pace", "meanwhile"].map(|name| Column::new(Role::Name, name)));
    columns.extend(has_passes.then(|| Column::figure("pass")));
    columns.extend(FIGURES.map(Column::figure));
    let origin = |measured: &Measured| recording_tooltip(study.results, recording, measured);
    let row = |(measured, ingest): &(&Measured, &Ingest)| {
        let pass = has_passes.then(|| pass(measured).map_or_else(|| NONE.into(), Pass::words));
        row(measured, ingest, has_marks, pass, &origin(measured))
    };
    let rows = others.iter().map(row);
    let mut blocks = vec![Block::Table(Table { columns, rows: rows.collect() })];
    let reasons = others.iter().filter_map(|(measured, _)| reason(measured));
    blocks.extend(has_marks.then(|| Block::List(distinct(reasons))));
    blocks.extend((!trials.is_empty()).then(|| {
        Block::closed(
            format!("{} trials of searches", trials.len()),
            vec![Block::Table(trial_table(&trials, &origin))],
        )
    }));
    Section::part(Heading::of("All recordings"), blocks).on_screen()
}

fn row(measured: &Measured, ingest: &Ingest, has_marks: bool, pass: Option<String>, origin: &str) -> Row {
    let sample = &measured.sample;
    let is_paced = ingest.goal == Goal::Pace;
    let named = [
        letter(measured.key.target),
        if is_paced { "its own" } else { "full speed" }.to_owned(),
        Setting::of(ingest).to_string(),
    ];
    let mark = has_marks.then(|| words::marked(sample.invalid.as_ref().map(|_| "INVALID".to_owned())));
    // Figures that must not be used are not in the colour of figures.
    let tone = if sample.invalid.is_some() { Tone::Soft } else { Tone::Plain };
    let figures = pass.into_iter().chain(figures(measured, ingest, is_paced));
    let figures = figures.map(|figure| Cell::toned(tone, figure).from(origin));
    Row::of(mark.into_iter().chain(named.map(Cell::new)).chain(figures))
}

/// The reason why a recording must not be used: `A: INVALID: the tool waited for a processor`.
fn reason(measured: &Measured) -> Option<Sentence> {
    let why = measured.sample.invalid.as_ref()?;
    let text = format!("{}: INVALID: {why}", letter(measured.key.target));
    Some(Sentence::toned(Tone::Bad, text))
}

/// Each sentence once.
fn distinct(sentences: impl Iterator<Item = Sentence>) -> Vec<Sentence> {
    let mut all: Vec<Sentence> = Vec::new();
    for sentence in sentences {
        if !all.contains(&sentence) {
            all.push(sentence);
        }
    }
    all
}

/// Returns the figures in the order of [`FIGURES`].
fn figures(measured: &Measured, ingest: &Ingest, is_paced: bool) -> [String; 11] {
    let sample = &measured.sample;
    let slowest = ingest.slowest_second.map(|bytes: Bytes| ByteRate(bytes.0 as f64).to_string());
    let cores = (sample.user + sample.system).seconds() / sample.wall.seconds().max(1e-9);
    [
        sample.sustained_rate().to_string(),
        ingest.due.to_string(),
        ingest.stored.to_string(),
        ingest.lost.to_string(),
        if is_paced { ingest.late.to_string() } else { NONE.into() },
        ingest.stall_count.to_string(),
        ingest.stalled.to_string(),
        ingest.longest_stall.to_string(),
        slowest.unwrap_or_else(|| NONE.into()),
        percent(ingest.slots_high as f64 / ingest.slots.max(1) as f64),
        format!("{cores:.2}"),
    ]
}

fn trial_table(trials: &[(&Measured, &Ingest)], origin: &dyn Fn(&Measured) -> String) -> Table {
    let names = ["target", "searched for"].map(|name| Column::new(Role::Name, name));
    let has_marks = trials.iter().any(|(measured, _)| measured.sample.invalid.is_some());
    let mark = has_marks.then(|| Column::new(Role::Mark, ""));
    let figures = ["rate", "slots", "most in use", "frames due", "lost"].map(Column::figure);
    let ended = Column::new(Role::Sentence, "ended");
    let columns = mark.into_iter().chain(names).chain(figures).chain([ended]).collect();
    let row =
        |(measured, ingest): &(&Measured, &Ingest)| trial_row(measured, ingest, has_marks, &origin(measured));
    Table { columns, rows: trials.iter().filter_map(row).collect() }
}

fn trial_row(measured: &Measured, ingest: &Ingest, has_marks: bool, origin: &str) -> Option<Row> {
    let trial = Trial::of(&measured.sample)?;
    let invalid = measured.sample.invalid.as_ref();
    let mark = has_marks.then(|| words::marked(invalid.map(|_| "INVALID".to_owned())));
    let why = invalid.map(|why| format!(": {why}")).unwrap_or_default();
    let ended = match trial.ended {
        SearchEnd::Carried => "carried",
        SearchEnd::Lost if ingest.lost == 0 => "lost: the ring was still filling",
        SearchEnd::Lost => "lost",
        SearchEnd::Invalid => "invalid",
    };
    let named =
        [letter(measured.key.target), if ingest.goal == Goal::Search { "rate" } else { "buffer" }.to_owned()];
    let figures = [
        trial.rate.to_string(),
        ingest.slots.to_string(),
        ingest.slots_high.to_string(),
        ingest.due.to_string(),
        ingest.lost.to_string(),
    ];
    let figures = figures.map(|figure| Cell::new(figure).from(origin));
    let ended = Cell::new(format!("{ended}{why}"));
    Some(Row::of(mark.into_iter().chain(named.map(Cell::new)).chain(figures).chain([ended])))
}
