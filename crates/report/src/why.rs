//! The samples behind a figure: each repeat, its use, and the calculation of the figure.

use std::fmt;

use nilometer_analysis::{
    CellOutcome, Quantity, RateUnit, StageFigures, Study, StudyRecording, TrialVerdict,
};
use nilometer_model::{
    Goal, StorageRoom,
    statistics::{CONFIDENCE, Summary, poisson_upper, student},
};
use nilometer_plan::{Event, Measured, RecordedInstrument};

use crate::{
    document::{Block, Cell, Column, Document, Heading, Role, Row, Section, Table, Tone},
    figure_key::{figure_key, recording_key, stage_key},
    sections::meanwhile,
    words::{self, NONE},
};

/// A key without a figure, and the valid keys.
#[derive(Debug)]
pub struct UnknownFigure {
    key: String,
    valid: Vec<String>,
}

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no figure '{}' in this record: valid are '{}'", self.key, self.valid.join("', '"))
    }
}

impl std::error::Error for UnknownFigure {}

/// The samples behind the figures of a key, a section for each figure. A key without its cell stands for all cells.
///
/// # Errors
///
/// Returns an error if no figure has the key.
pub(crate) fn why_document(study: &Study<'_>, key: &str) -> Result<Document, UnknownFigure> {
    let mut sections = Vec::new();
    for stage in &study.stages {
        let is_meant = |outcome: &&CellOutcome<'_>| {
            [figure_key(&stage.figures, outcome), stage_key(&stage.figures, outcome)]
                .iter()
                .any(|known| known == key)
        };
        let figures = stage.figures.outcomes.iter().filter(is_meant);
        sections.extend(figures.map(|outcome| of_figure(study, &stage.figures, outcome)));
    }
    for recording in &study.recordings {
        let samples: Vec<&Measured> =
            recording.samples.iter().copied().filter(|of| recording_key(recording, of) == key).collect();
        sections.extend((!samples.is_empty()).then(|| of_recording(study, recording, key, &samples)));
    }
    if sections.is_empty() {
        return Err(UnknownFigure { key: key.to_owned(), valid: keys(study) });
    }
    let title = format!("The samples behind {key}");
    Ok(Document { title, origin: words::origin(study.results), targets: Vec::new(), sections })
}

/// The keys of all figures, in the order of the report.
fn keys(study: &Study<'_>) -> Vec<String> {
    let staged = study
        .stages
        .iter()
        .flat_map(|stage| stage.figures.outcomes.iter().map(|outcome| figure_key(&stage.figures, outcome)));
    let recorded = study
        .recordings
        .iter()
        .flat_map(|recording| recording.samples.iter().map(|of| recording_key(recording, of)));
    let mut keys: Vec<String> = staged.collect();
    for key in recorded {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn of_figure(study: &Study<'_>, stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> Section {
    let quantity = stage.quantity(outcome);
    let figure = words::rate_or_bound(outcome, RateUnit::own(quantity));
    let mut blocks = vec![Block::soft(describe(study, outcome)), Block::Table(samples(outcome, quantity))];
    blocks.push(Block::list(formula(outcome, quantity)));
    let again = made_again(study, outcome);
    blocks.extend((!again.is_empty()).then(|| Block::list(again)));
    Section::new(Heading::with(figure_key(stage, outcome), format!(": {figure}")), blocks)
}

/// The cell and the target, in words.
fn describe(study: &Study<'_>, outcome: &CellOutcome<'_>) -> String {
    let cell = study.results.cells.get(outcome.cell).map(ToString::to_string).unwrap_or_default();
    format!("{cell}, on {}", words::target(study.results, outcome.target))
}

fn samples(outcome: &CellOutcome<'_>, quantity: Quantity) -> Table {
    let columns = vec![
        Column::new(Role::Name, "round"),
        Column::figure(quantity_name(quantity)),
        Column::figure("bytes").ranked(1),
        Column::figure("operations").ranked(2),
        Column::figure("wall").ranked(3),
        Column::new(Role::Sentence, "use"),
    ];
    let row = |measured: &&Measured| sample_row(measured, quantity);
    Table { columns, rows: outcome.samples.iter().map(row).collect() }
}

fn sample_row(measured: &Measured, quantity: Quantity) -> Row {
    let sample = &measured.sample;
    let cells = [
        (measured.key.repeat + 1).to_string(),
        quantity.show(quantity.of(sample)),
        sample.bytes.to_string(),
        sample.operations.to_string(),
        sample.wall.to_string(),
    ];
    Row::of(cells.map(Cell::new).into_iter().chain([used(measured)]))
}

const fn quantity_name(quantity: Quantity) -> &'static str {
    if matches!(quantity, Quantity::Time) { "time" } else { "rate" }
}

/// Says if a sample counts in the mean, or why it does not.
fn used(measured: &Measured) -> Cell {
    match &measured.sample.invalid {
        None => Cell::new("used"),
        Some(why) => Cell::toned(Tone::Bad, format!("left out, INVALID: {why}")),
    }
}

/// Shows the calculation of the mean and its interval from the samples used.
fn formula(outcome: &CellOutcome<'_>, quantity: Quantity) -> Vec<String> {
    let Some(summary) = outcome.summary(quantity) else {
        let bound = words::at_least(outcome, RateUnit::own(quantity));
        let none = "no sample can be used, so there is no mean".to_owned();
        let bound = bound.map(|bound| {
            format!("{bound} follows from the samples in which only the tool itself waited for a processor: their mean")
        });
        return std::iter::once(none).chain(bound).collect();
    };
    let mut lines = vec![mean(&summary, quantity)];
    lines.extend(interval(&summary, quantity));
    lines.extend(latencies(outcome));
    lines
}

fn mean(summary: &Summary, quantity: Quantity) -> String {
    let Summary { count, mean, median, range, .. } = *summary;
    let [low, high] = quantity.show_range(range.0, range.1);
    let of = if quantity == Quantity::Time { "rates, as a time" } else { "rates" };
    format!(
        "mean = sum of the {of}, divided by {count}: {}; median {}, from {low} to {high}",
        quantity.show(mean),
        quantity.show(median)
    )
}

/// `± t x s / sqrt n`, with the numbers in it.
fn interval(summary: &Summary, quantity: Quantity) -> Option<String> {
    let half = summary.half_width()?;
    let freedom = summary.count - 1;
    let deviation = summary.spread()? * summary.mean;
    let share = words::percent(half / summary.mean);
    let [deviation, half] = match quantity {
        Quantity::Time => [deviation, half].map(|rate| format!("{rate:.4} 1/s")),
        _ => [deviation, half].map(|rate| quantity.show(rate)),
    };
    Some(format!(
        "interval = ± t x s / sqrt n = {:.3} x {deviation} / sqrt {} = {half}, {share} of the mean \
         (Student's t for {:.0} % and {freedom} degrees of freedom; s: standard deviation of the samples)",
        student(freedom),
        summary.count,
        100.0 * CONFIDENCE,
    ))
}

fn latencies(outcome: &CellOutcome<'_>) -> Option<String> {
    let count = outcome.latency.filter(|latency| latency.count() > 0)?.count();
    Some(format!("latencies: from all {count} operations of the used samples together"))
}

/// Lists measurements of the cell that the machine spoilt and that were repeated in the same round. Their
/// samples are not kept.
fn made_again(study: &Study<'_>, outcome: &CellOutcome<'_>) -> Vec<String> {
    let events = study.results.events.iter().filter(|event| is_of(study, outcome, event));
    events.map(|event| format!("not kept: {}", event.what)).collect()
}

/// Returns true if an event, `measured again: /a, /b: CELL, round 3: why`, belongs to this cell and target.
fn is_of(study: &Study<'_>, outcome: &CellOutcome<'_>, event: &Event) -> bool {
    let known = study.results.cells.get(outcome.cell).zip(study.results.targets.get(outcome.target));
    let Some((cell, target)) = known else { return false };
    let after = event.what.strip_prefix(Event::AGAIN);
    let named = after.and_then(|text| text.split_once(&format!(": {cell}, round ")));
    named.is_some_and(|(targets, _)| targets.split(", ").any(|path| path == target.path))
}

/// The recordings of an instrument on a target, and the statements that follow.
fn of_recording(
    study: &Study<'_>,
    recording: &StudyRecording<'_>,
    key: &str,
    samples: &[&Measured],
) -> Section {
    let target = samples[0].key.target;
    let table = Block::Table(recordings(study, samples));
    let said = statements(study, &recording.instrument, target);
    Section::new(Heading::of(key), vec![table, Block::list(said)])
}

/// The statements about an instrument on a target, with the calculation of their figures.
fn statements(study: &Study<'_>, instrument: &RecordedInstrument, target: usize) -> Vec<String> {
    let is_of_it = |other: &RecordedInstrument, on: usize| (other, on) == (instrument, target);
    let mut verdicts = study.verdicts.iter();
    let verdict = verdicts.find(|verdict| is_of_it(&verdict.instrument, verdict.target));
    let mut said = Vec::new();
    if let Some(verdict) = verdict {
        said.push(format!("{verdict}."));
        said.extend(verdict.more());
        said.extend(verdict.trial().and_then(loss_formula));
        said.extend(verdict.room.as_ref().map(room_formula));
    }
    let full_speeds = study.full_speeds.iter().filter(|of| is_of_it(&of.instrument, of.target));
    said.extend(full_speeds.map(|of| format!("{of}.")));
    let open = study.missing.open.iter().filter(|of| is_of_it(&of.instrument, of.target));
    said.extend(open.map(|of| format!("{of}.")));
    said
}

/// Shows the calculation of the bound on losses; `None` if the recording lost frames or its buffer was filling.
fn loss_formula(trial: &TrialVerdict) -> Option<String> {
    let TrialVerdict { duration, lost, filling, .. } = trial;
    let most = poisson_upper(0);
    (*lost == 0 && !filling).then(|| {
        format!(
            "bound on losses = {most:.2} events / {duration} without loss ({most:.2}: the most events that none seen allows, \
             Poisson, {:.0} %)",
            100.0 * CONFIDENCE
        )
    })
}

/// Shows the calculation of the room for recordings.
fn room_formula(room: &StorageRoom) -> String {
    let StorageRoom { usable, rate } = room;
    format!("{room} = {usable} free beyond the reserve when the campaign began / {rate} written")
}

fn recordings(study: &Study<'_>, samples: &[&Measured]) -> Table {
    let names = ["rate", "frames due", "stored", "lost", "longest stall"];
    let keys = ["stage", "round", "pace", "meanwhile"];
    let mut columns: Vec<Column> = keys.map(|name| Column::new(Role::Name, name)).into();
    columns.extend(names.map(Column::figure));
    columns.push(Column::new(Role::Sentence, "use"));
    let rows = samples.iter().filter_map(|measured| recording_row(study, measured));
    Table { columns, rows: rows.collect() }
}

fn recording_row(study: &Study<'_>, measured: &Measured) -> Option<Row> {
    let ingest = measured.sample.ingest.as_ref()?;
    let stage = study.results.cells.get(measured.key.cell).map_or("", |cell| &cell.stage);
    let cells = [
        stage.to_owned(),
        (measured.key.repeat + 1).to_string(),
        pace(ingest.goal).to_owned(),
        meanwhile(ingest),
        measured.sample.sustained_rate().to_string(),
        ingest.due.to_string(),
        ingest.stored.to_string(),
        if ingest.goal == Goal::Limit { NONE.to_owned() } else { ingest.lost.to_string() },
        ingest.longest_stall.to_string(),
    ];
    Some(Row::of(cells.map(Cell::new).into_iter().chain([used(measured)])))
}

/// The pace of a recording, in a word or two.
const fn pace(goal: Goal) -> &'static str {
    match goal {
        Goal::Limit => "full speed",
        Goal::Pace => "its own",
        Goal::Search => "trial of a rate",
        Goal::Buffer => "trial of a buffer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_analysis::made_up::writes;
    use nilometer_model::{Invalid, Nanos, Phase, Sample};
    use nilometer_plan::{Key, Results, TargetEntry};

    /// Three rounds of 1, 2 and 3 GB/s; the second was spoilt.
    fn results() -> Results {
        let sample = |repeat: u32| {
            let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
            let bytes = u64::from(repeat + 1) * 1_000_000_000;
            let invalid = (repeat == 1).then(|| Invalid::Refused("by nobody".into()));
            let sample = Sample {
                bytes,
                operations: 1000,
                wall: Nanos(1_000_000_000),
                invalid,
                ..Sample::new(Nanos(0))
            };
            Measured { key, sample }
        };
        let cell = writes("large files", "1 MiB", 1);
        Results { cells: vec![cell], samples: (0..3).map(sample).collect(), repeats: 3, ..Results::default() }
    }

    fn text(document: &Document) -> String {
        crate::render::markdown_text(document)
    }

    #[test]
    fn each_sample_and_the_formula_stand_below_the_figure() {
        let results = results();
        let study = Study::of(&results);
        let found = text(&why_document(&study, "large files/write/A").expect("a figure"));
        for part in [
            "2 GB/s",
            "left out, INVALID: ",
            "divided by 2: 2 GB/s",
            // s is sqrt 2 GB/s, so that the half width is t, 12.706, times 1 GB/s.
            "12.706 x 1.41 GB/s / sqrt 2 = 12.7 GB/s, 635 % of the mean",
        ] {
            assert!(found.contains(part), "{part} is not in {found}");
        }
        assert_eq!(found.matches("| used |").count(), 2, "{found}");
    }

    #[test]
    fn a_measurement_that_was_made_again_is_told_of_its_own_cell_and_target_only() {
        let mut results = results();
        let cell = results.cells[0].clone();
        results.targets =
            ["/a", "/b"].map(|path| TargetEntry { path: path.into(), ..TargetEntry::default() }).into();
        let event = |what: String| Event { at: Nanos(0), what };
        results.events = vec![
            event(format!("{}/b: {cell}, round 1: of the other target", Event::AGAIN)),
            event(format!("{}/a: 1{cell}, round 1: of another cell", Event::AGAIN)),
            event(format!("{}/b, /a: {cell}, round 2: both were spoilt", Event::AGAIN)),
        ];
        let found = text(&why_document(&Study::of(&results), "large files/write/A").expect("a figure"));
        assert!(found.contains("both were spoilt"), "{found}");
        assert!(!found.contains("the other target") && !found.contains("another cell"), "{found}");
    }

    #[test]
    fn a_key_that_no_figure_has_is_refused_with_those_that_there_are() {
        let results = results();
        let study = Study::of(&results);
        let error = why_document(&study, "large files/read/A").expect_err("nothing was read");
        assert_eq!(
            error.to_string(),
            "no figure 'large files/read/A' in this record: valid are 'large files/write/A'"
        );
    }
}
