//! A sizing as a document: the answer first, then the stages, then its basis.

use nilometer_model::Nanos;
use nilometer_plan::sizing::{BufferCapacity, Kind, Place, SizingStage};

use super::{
    Checked, Sized,
    basis::{Basis, basis, counted, decimal, detail, is_assumed, origin, word},
};
use crate::{
    document::{Block, Cell, Column, Detail, Document, Heading, Role, Row, Section, Sentence, Table, Tone},
    words::percent,
};

/// The document of a sizing. A page has room for a column with the origin of each assumption.
pub(crate) fn sizing_document(sized: &Sized<'_>, medium: Detail) -> Document {
    let remarks = sized.remarks.iter().map(|remark| Sentence::toned(Tone::Doubtful, remark));
    let answers = answer(sized).into_iter().map(Sentence::new).chain(remarks).collect();
    let mut sections = vec![
        Section::new(Heading::of("You need"), vec![Block::List(answers)]),
        Section::new(Heading::of("Stages"), vec![Block::Table(stages(sized)), Block::soft(LEGEND)]),
        Section::new(Heading::of("This rests on"), vec![Block::Table(assumptions(sized, medium))]),
    ];
    sections.extend(sized.checked.as_ref().map(|checked| {
        Section::new(Heading::of("Checked in a simulation"), vec![Block::list(told(sized, checked))])
    }));
    Document {
        title: format!("Sizing for {}", sized.title),
        origin: comes(sized),
        sections,
        ..Document::default()
    }
}

const LEGEND: &str = "needed: elements for this stage alone. left: on the fullest element, with the numbers above. ~ \
                      depends on assumed values, see below.";

/// Describes the demand in a sentence.
fn comes(sized: &Sized<'_>) -> String {
    let peak = sized.demand.peak();
    let mean = sized.demand.mean();
    let streams = counted(sized.demand.streams(), "stream");
    let bring = if sized.demand.streams() == 1 { "brings" } else { "bring" };
    let pauses = if peak.0 > mean.0 * 1.001 { format!(", {mean} with their pauses") } else { String::new() };
    let written = sized.demand.written();
    let packs = sized.demand.kinds.iter().any(Kind::is_packed);
    let marked = |place| if is_assumed(place, sized) { "~" } else { "" };
    let mark = marked(Place::Network);
    let guess = marked(Place::Storage);
    let written = if packs { format!(", of which {guess}{written} are written") } else { String::new() };
    let read = sized.demand.reading();
    let read = if read.0 > 0.0 { format!("; {read} are read meanwhile") } else { String::new() };
    format!("{streams} {bring} {mark}{peak} ({}){pauses}{written}{read}.", peak.bits())
}

/// The answer, in a few sentences.
pub(super) fn answer(sized: &Sized<'_>) -> Vec<String> {
    let (sizing, spare) = (sized.sizing, sized.limits.spare.value);
    let more = if spare == 0 { String::new() } else { format!(", and {spare} of each to spare") };
    let recorders = counted(sizing.recorder_count(), "recorder");
    let links = counted(sizing.links(), "network link");
    let servers = counted(sizing.servers, "storage server");
    let mut sentences = vec![format!("{recorders} with {links} in all, and {servers}{more}.")];
    sentences.extend(space(sized, &sizing.buffer));
    let SizingStage { place, used, .. } = sizing.limiting();
    let free = percent(sized.limits.headroom.value);
    sentences.push(format!(
        "The tightest part is the {}: {} used, and {free} must stay free.",
        place.what(),
        percent(*used)
    ));
    sentences
}

fn space(sized: &Sized<'_>, buffer: &BufferCapacity) -> Vec<String> {
    let mut sentences = Vec::new();
    let kept =
        sized.demand.retention.map_or("waits for the copy".to_owned(), |keep| format!("comes in {keep}"));
    if let Some(needed) = buffer.needed.filter(|needed| needed.0 > 0) {
        let free = decimal(needed.0 as f64 / sized.limits.usable());
        let mark = if is_assumed(Place::Space, sized) { "~" } else { "" };
        let headroom = percent(sized.limits.headroom.value);
        sentences.push(format!(
            "A buffer of {mark}{} for data that {kept}: {mark}{free} with {headroom} free.",
            decimal(needed.0 as f64)
        ));
    }
    if let Some((full, space)) = buffer.full_after.zip(sized.demand.capacity) {
        sentences.push(format!("The existing {space} may be full after {full}."));
    }
    if buffer.growth.0 > 0.0 && sized.demand.copy_out.is_some() {
        let day = decimal(buffer.growth.0 * 86_400.0);
        sentences.push(format!(
            "The copy is slower than the incoming data, {} on average: the buffer grows by {day} a day.",
            buffer.inflow
        ));
    }
    sentences
}

/// Terminals without room drop the columns of the lowest rank.
const ORIGIN_RANK: u8 = 1;
/// Letters of the longest name of an assumption.
const BASIS_NAME: usize = 21;

fn stages(sized: &Sized<'_>) -> Table {
    let columns = vec![
        Column::new(Role::Name, "stage"),
        Column::figure("asked for"),
        Column::new(Role::Name, "one element gives"),
        Column::figure("needed"),
        Column::figure("left"),
        Column::new(Role::Name, "limit is").ranked(ORIGIN_RANK),
        Column::new(Role::Name, ""),
    ];
    Table { columns, rows: sized.sizing.stages.iter().map(|stage| stage_row(stage, sized)).collect() }
}

fn stage_row(stage: &SizingStage, sized: &Sized<'_>) -> Row {
    let is_limiting = stage.place == sized.sizing.limiting().place;
    let cells = [
        stage.place.what().to_owned(),
        asked(stage, sized),
        format!("{} a {}", stage.limit, stage.place.element()),
        stage.needed.to_string(),
        percent(1.0 - stage.used),
        origin(stage.place, sized.limits).to_owned(),
        if is_limiting { "<- limits".to_owned() } else { String::new() },
    ];
    Row::of(cells.map(Cell::new))
}

fn assumptions(sized: &Sized<'_>, medium: Detail) -> Table {
    let rows = basis(sized);
    if medium == Detail::Page {
        let columns = vec![
            Column::new(Role::Name, "assumption"),
            Column::new(Role::Sentence, "value"),
            Column::new(Role::Sentence, "from"),
        ];
        let row = |row: &Basis| Row::of([row.what.to_owned(), row.value.clone(), source(row)].map(Cell::new));
        return Table { columns, rows: rows.iter().map(row).collect() };
    }
    let columns = vec![Column::new(Role::Name, "").at_least(BASIS_NAME), Column::new(Role::Sentence, "")];
    let row = |row: &Basis| {
        Row::of([row.what.to_owned(), format!("{} ({})", row.value, source(row))].map(Cell::new))
    };
    Table { columns, rows: rows.iter().map(row).collect() }
}

/// `given: --headroom`.
fn source(row: &Basis) -> String {
    format!("{}: {}", word(&row.from), detail(&row.from))
}

/// Formats the demand, with a mark if it depends on an assumption.
fn asked(stage: &SizingStage, sized: &Sized<'_>) -> String {
    let mark = if is_assumed(stage.place, sized) { "~" } else { "" };
    format!("{mark}{}", stage.demand)
}

/// Describes the results of the simulation in a few sentences.
pub(super) fn told(sized: &Sized<'_>, checked: &Checked) -> Vec<String> {
    let Checked { trial, found, fewer, days } = checked;
    let streams = counted(sized.demand.streams(), "stream");
    let stall = sized.limits.stall.value;
    let lost = match found.lost {
        _ if found.grows && found.lost == 0 => "more data came than all parts carried".to_owned(),
        0 => "nothing was lost".into(),
        lost => format!("{} of {} pieces were lost", lost, found.came),
    };
    let mut sentences = vec![format!(
        "{} of {streams} at random phases, with a stall of {stall}: {lost}. The most memory in use was {} of {} in a \
         recorder, the longest wait {}; servers were busy {} of the time.",
        trial.duration,
        decimal(found.memory.0 as f64),
        sized.limits.memory.value,
        found.longest_wait,
        percent(found.servers_busy)
    )];
    let element = sized.sizing.limiting().place.element();
    sentences.extend(fewer.as_ref().map(|fewer| {
        let end = if fewer.is_overloaded() {
            "the streams are too much"
        } else {
            "nothing is lost yet: very little is lacking"
        };
        format!("With one {element} fewer, and nothing kept free, {end}{}.", how(fewer.lost_at))
    }));
    sentences
        .extend(days.as_ref().map(|(days, high, full)| over_days(*days, &decimal(high.0 as f64), *full)));
    sentences
}

fn how(lost_at: Option<Place>) -> String {
    match lost_at {
        Some(Place::Memory) => ": memory runs full".into(),
        Some(place) => format!(": the {} loses frames", place.what()),
        None => String::new(),
    }
}

fn over_days(days: u64, high: &str, full: Option<Nanos>) -> String {
    match full {
        Some(full) => format!("The existing space was full after {full}."),
        None => {
            format!(
                "Over {days} days, with each kind's day beginning at random, at most {high} lay in the buffer."
            )
        }
    }
}
