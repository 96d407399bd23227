//! A sizing for a terminal: the answer first, then the stages, then its basis.

use nilometer_model::Nanos;
use nilometer_plan::sizing::{BufferCapacity, Kind, Place, SizingStage};

use super::{
    Checked, Sized,
    basis::{basis, counted, decimal, detail, is_assumed, origin, word},
};
use crate::{
    render::{Page, TextLayout, YELLOW},
    words::percent,
};

const BOLD: &str = "1";
const DIM: &str = "2";

/// Writes the sizing as text.
pub fn sizing_text(sized: &Sized<'_>, layout: TextLayout) -> String {
    let mut page = Page::new(layout);
    page.paragraph(BOLD, "", &format!("SIZING for {}", sized.title));
    page.paragraph("", "  ", &comes(sized));
    page.line("", "");
    for sentence in answer(sized) {
        page.paragraph(BOLD, "  ", &sentence);
    }
    for remark in sized.remarks {
        page.paragraph(YELLOW, "  ", remark);
    }
    page.line("", "");
    stages(&mut page, sized);
    page.line("", "");
    page.line(BOLD, "THIS RESTS ON");
    for row in basis(sized) {
        let first = format!("  {:<21}", row.what);
        let from = format!("{}: {}", word(&row.from), detail(&row.from));
        page.paragraph("", &first, &format!("{} ({from})", row.value));
    }
    if let Some(checked) = &sized.checked {
        page.line("", "");
        page.line(BOLD, "CHECKED IN A SIMULATION");
        for sentence in told(sized, checked) {
            page.paragraph("", "  ", &sentence);
        }
    }
    page.text()
}

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

/// Width of the table that includes the source of each limit.
const STAGES_WIDTH: usize = 97;

fn stages(page: &mut Page, sized: &Sized<'_>) {
    let wide = page.width() >= STAGES_WIDTH;
    let origin_heading = if wide { "  limit is" } else { "" };
    let head = format!(
        "{:<16} {:>13}  {:<26} {:>8} {:>8}{origin_heading}",
        "STAGE", "asked for", "one element gives", "needed", "left"
    );
    page.line(BOLD, &head);
    let limiting = sized.sizing.limiting().place;
    for stage in &sized.sizing.stages {
        let gives = format!("{} a {}", stage.limit, stage.place.element());
        let left = percent(1.0 - stage.used);
        let mark = match (stage.place == limiting, wide) {
            (false, _) => "",
            (true, true) => "  <- limits",
            (true, false) => " <",
        };
        let code = if stage.place == limiting { BOLD } else { "" };
        let from = origin(stage.place, sized.limits);
        let from = if wide { format!("  {from:<8}") } else { String::new() };
        page.line(
            code,
            &format!(
                "{:<16} {:>13}  {gives:<26} {:>8} {left:>8}{from}{mark}",
                stage.place.what(),
                asked(stage, sized),
                stage.needed
            ),
        );
    }
    page.paragraph(
        DIM,
        "",
        "needed: elements for this stage alone. left: on the fullest element, with the numbers above. ~ \
         depends on assumed values, see below.",
    );
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
