//! The basis of a sizing: one line for each assumption, with its value and source.

use crate::words::percent;
use nilometer_model::ByteRate;
use nilometer_plan::sizing::{Demand, Figure, Kind, LimitOrigin, Limits, Place};

use super::Sized;

/// One assumption.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Basis {
    /// The subject of the assumption.
    pub(super) what: &'static str,
    /// The assumed value.
    pub(super) value: String,
    /// The source of the value.
    pub(super) from: LimitOrigin,
}

/// Returns all assumptions, the figures first.
pub(super) fn basis(sized: &Sized<'_>) -> Vec<Basis> {
    let mut all: Vec<Basis> = sized.demand.kinds.iter().filter_map(what_is_written).collect();
    all.extend(figures(sized));
    all.extend(rules(sized));
    all
}

/// Describes the written size of a kind's frames, if it is packed or assumed.
fn what_is_written(kind: &Kind) -> Option<Basis> {
    let packs = kind.is_packed();
    if !packs && kind.assumed.is_empty() {
        return None;
    }
    let rate = ByteRate(kind.written());
    let packed = if packs { format!(", packed {:.1} times", kind.packing.value) } else { String::new() };
    let of_stream = if kind.streams > 1 { "a stream of " } else { "" };
    let assumed = || LimitOrigin::Assumed(format!("{} of its file have no source", kind.assumed.join(", ")));
    let from = if packs { kind.packing.from.clone() } else { assumed() };
    Some(Basis { what: "written rate", value: format!("{rate} of {of_stream}{}{packed}", kind.name), from })
}

/// Describes the processor cost of recording, once if it is the same for all kinds.
fn costs(demand: &Demand) -> Vec<Basis> {
    let alike = demand.kinds.windows(2).all(|pair| pair[0].cost == pair[1].cost);
    let kinds = if alike { &demand.kinds[..1] } else { &demand.kinds[..] };
    let of = |kind: &Kind| if alike { String::new() } else { format!(" of {}", kind.name) };
    let row = |kind: &Kind| Basis {
        what: "cores for 1 GB/s",
        value: format!("{:.3}{}", kind.cost.value, of(kind)),
        from: kind.cost.from.clone(),
    };
    kinds.iter().map(row).collect()
}

fn figures(sized: &Sized<'_>) -> Vec<Basis> {
    let limits = sized.limits;
    let rate = |figure: &Figure<ByteRate>| figure.value.to_string();
    let row = |what, value: String, from: &LimitOrigin| Basis { what, value, from: from.clone() };
    let mut rows = vec![
        row("a network link", limits.link.value.bits(), &limits.link.from),
        row("links of a recorder", limits.links.value.to_string(), &limits.links.from),
        row("cores of a recorder", limits.cores.value.to_string(), &limits.cores.from),
    ];
    rows.extend(costs(sized.demand));
    rows.extend([
        row("memory for frames", limits.memory.value.to_string(), &limits.memory.from),
        row("longest stall", limits.stall.value.to_string(), &limits.stall.from),
        row("a writer stream", rate(&limits.writer), &limits.writer.from),
        row("writer streams", limits.writers.value.to_string(), &limits.writers.from),
        row("a server writes", rate(&limits.write), &limits.write.from),
        row("a server reads", rate(&limits.read), &limits.read.from),
    ]);
    let space = limits.space.as_ref();
    rows.extend(space.map(|space| row("a server holds", space.value.to_string(), &space.from)));
    rows.push(row("kept free", percent(limits.headroom.value), &limits.headroom.from));
    rows
}

/// Describes how the elements work together, which is assumed and not in any figure.
fn rules(sized: &Sized<'_>) -> Vec<Basis> {
    let rule = |what, value: &str, why: &str| Basis {
        what,
        value: value.into(),
        from: LimitOrigin::Assumed(why.into()),
    };
    let mut rules = vec![
        rule("bursts", "all at once", "instruments do not coordinate"),
        rule("a stream", "goes whole over one link to one recorder", "flows of TCP and UDP do so"),
        rule(
            "a link",
            "carries as much out as in, at once",
            "full duplex: writing to storage takes nothing from it",
        ),
    ];
    if sized.demand.kinds.len() > 1 {
        let shared = format!("one kind of instrument; shared by all, at least {}", sized.sizing.shared_least);
        rules.push(rule("a recorder", &shared, "one kind must not slow another"));
    }
    if sized.demand.reading().0 > 0.0 {
        let value = format!("{} while it is written", sized.demand.reading());
        rules.push(rule("reading", &value, "readers and the copy take their share of the servers' time"));
    }
    rules.push(rule("servers", "share the load evenly", "files are spread over all of them"));
    rules.push(rule("a stall", "stops all servers, rarely", "there is time to catch up before the next"));
    rules
}

/// Names the source of one element's capacity in a word: the least certain of its figures.
pub(super) fn origin(place: Place, limits: &Limits) -> &'static str {
    let Limits { link, cores, memory, writer, writers, write, space, .. } = limits;
    let origins: Vec<&LimitOrigin> = match place {
        Place::Network => vec![&link.from],
        Place::Processor => vec![&cores.from],
        Place::Memory => vec![&memory.from],
        Place::Writers => vec![&writer.from, &writers.from],
        Place::Storage => vec![&write.from],
        Place::Space => space.iter().map(|space| &space.from).collect(),
    };
    let words = origins.into_iter().map(word);
    words.max_by_key(|word| WORDS.iter().position(|known| known == word)).unwrap_or(WORDS[0])
}

/// Returns true if a stage's demand depends on an assumption about instruments, the cost of recording, or
/// stalls of the storage.
pub(super) fn is_assumed(place: Place, sized: &Sized<'_>) -> bool {
    let kinds = &sized.demand.kinds;
    let is_word = |from: &LimitOrigin| matches!(from, LimitOrigin::Assumed(_));
    let packed = |kind: &Kind| kind.is_packed() && is_word(&kind.packing.from);
    match place {
        _ if kinds.iter().any(|kind| !kind.assumed.is_empty() && !kind.is_packed()) => true,
        Place::Network => false,
        Place::Processor => kinds.iter().any(|kind| is_word(&kind.cost.from)),
        Place::Memory => is_word(&sized.limits.stall.from),
        Place::Writers | Place::Storage | Place::Space => kinds.iter().any(packed),
    }
}

/// The sources from the most to the least certain.
const WORDS: [&str; 4] = ["measured", "written", "given", "assumed"];

pub(super) fn word(from: &LimitOrigin) -> &'static str {
    match from {
        LimitOrigin::Measured(_) => WORDS[0],
        LimitOrigin::Written(_) => WORDS[1],
        LimitOrigin::Given(_) => WORDS[2],
        LimitOrigin::Assumed(_) => WORDS[3],
    }
}

/// Returns the text next to the word.
pub(super) fn detail(from: &LimitOrigin) -> &str {
    match from {
        LimitOrigin::Measured(text)
        | LimitOrigin::Written(text)
        | LimitOrigin::Given(text)
        | LimitOrigin::Assumed(text) => text,
    }
}

/// Formats bytes in powers of 1000, like rates.
pub(super) fn decimal(bytes: f64) -> String {
    ByteRate(bytes).to_string().replace("/s", "")
}

/// `1 recorder`, `2 recorders`.
pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
