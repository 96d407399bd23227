//! The figures of all recordings of an instrument, with the trials of searches in a separate table.

use nilometer_analysis::{StudyRecording, letter};
use nilometer_model::{ByteRate, Bytes, Goal, Ingest};
use nilometer_plan::{
    Measured,
    search::{SearchEnd, Trial},
};

use super::Setting;
use crate::{
    document::{Block, Cell, Column, Heading, Role, Row, Section, Table, Tone},
    words::{NONE, percent},
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
pub(super) fn table(recording: &StudyRecording<'_>) -> Section {
    let made =
        recording.samples.iter().filter_map(|&measured| Some((measured, measured.sample.ingest.as_ref()?)));
    let (trials, others): (Vec<_>, Vec<_>) = made.partition(|(_, ingest)| ingest.goal.searches());
    let names = ["target", "pace"].map(|name| Column::new(Role::Name, name));
    let mut columns: Vec<Column> = names.into();
    columns.push(Column::new(Role::Sentence, "meanwhile"));
    columns.extend(FIGURES.map(Column::figure));
    columns.push(Column::new(Role::Sentence, ""));
    let rows = others.into_iter().map(|(measured, ingest)| row(measured, ingest));
    let mut blocks = vec![Block::Table(Table { columns, rows: rows.collect() })];
    blocks.extend((!trials.is_empty()).then(|| {
        Block::closed(
            format!("{} trials of searches", trials.len()),
            vec![Block::Table(trial_table(&trials))],
        )
    }));
    Section::part(Heading::of("All recordings"), blocks).on_screen()
}

fn row(measured: &Measured, ingest: &Ingest) -> Row {
    let sample = &measured.sample;
    let is_paced = ingest.goal == Goal::Pace;
    let named = [
        letter(measured.key.target),
        if is_paced { "its own" } else { "as taken" }.to_owned(),
        Setting::of(ingest).to_string(),
    ];
    let invalid = sample.invalid.as_ref().map(|why| format!("INVALID: {why}")).unwrap_or_default();
    let cells = named.into_iter().chain(figures(measured, ingest, is_paced)).map(Cell::new);
    Row::of(cells.chain([Cell::toned(Tone::Bad, invalid)]))
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

fn trial_table(trials: &[(&Measured, &Ingest)]) -> Table {
    let names = ["target", "searched for"].map(|name| Column::new(Role::Name, name));
    let figures = ["rate", "slots", "most in use", "frames due", "lost"].map(Column::figure);
    let ended = Column::new(Role::Sentence, "ended");
    let columns = names.into_iter().chain(figures).chain([ended]).collect();
    let row = |(measured, ingest): &(&Measured, &Ingest)| trial_row(measured, ingest);
    Table { columns, rows: trials.iter().filter_map(row).collect() }
}

fn trial_row(measured: &Measured, ingest: &Ingest) -> Option<Row> {
    let trial = Trial::of(&measured.sample)?;
    let why = measured.sample.invalid.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let ended = match trial.ended {
        SearchEnd::Carried => "carried",
        SearchEnd::Lost if ingest.lost == 0 => "lost: the ring was still filling",
        SearchEnd::Lost => "lost",
        SearchEnd::Invalid => "INVALID",
    };
    let cells = [
        letter(measured.key.target),
        if ingest.goal == Goal::Search { "rate" } else { "buffer" }.to_owned(),
        trial.rate.to_string(),
        ingest.slots.to_string(),
        ingest.slots_high.to_string(),
        ingest.due.to_string(),
        ingest.lost.to_string(),
        format!("{ended}{why}"),
    ];
    Some(Row::of(cells.map(Cell::new)))
}
