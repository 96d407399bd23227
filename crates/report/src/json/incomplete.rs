//! The missing parts of a campaign, for programs.

use serde::Serialize;

use nilometer_analysis::{EvidenceGap, MissingEvidence, NetworkGap, OpenQuestion, Unused, letter};

/// The planned parts that are missing.
#[derive(Serialize)]
pub(super) struct Incomplete<'a> {
    /// Repeats of cells on targets that were planned; a search is one.
    planned: usize,
    /// The number of these that were measured or failed.
    measured: usize,
    /// The reason why others were not measured, if the record has one.
    why: Option<&'a str>,
    parts: Vec<Part<'a>>,
    /// Stages of the network between machines.
    network: Vec<NetworkPart<'a>>,
    /// Cells that a target has no use for.
    not_applicable: Vec<NotApplicable<'a>>,
    /// Instruments that should have been recorded, and not yet at their own pace.
    undecided: Vec<Undecided>,
}

/// A stage, or the recordings of an instrument for one purpose, on a target.
#[derive(Serialize)]
struct Part<'a> {
    what: &'a str,
    target: String,
    measured: usize,
    planned: usize,
}

/// A stage of network measurements that is not complete.
#[derive(Serialize)]
struct NetworkPart<'a> {
    stage: &'a str,
    measured: usize,
    planned: usize,
}

#[derive(Serialize)]
struct NotApplicable<'a> {
    stage: &'a str,
    target: String,
    cells: usize,
    of: usize,
    sentence: String,
}

#[derive(Serialize)]
struct Undecided {
    instrument: String,
    target: String,
    bytes_per_second: f64,
    /// The storage's full speed in each valid pass.
    limit_bytes_per_second: Vec<f64>,
    sentence: String,
}

/// Returns the missing parts, or `None` if everything planned is there.
pub(super) fn incomplete(missing: &MissingEvidence) -> Option<Incomplete<'_>> {
    if missing.is_empty() && missing.open.is_empty() {
        return None;
    }
    Some(Incomplete {
        planned: missing.planned,
        measured: missing.measured,
        why: missing.why.as_deref(),
        parts: missing.gaps.iter().flat_map(parts).collect(),
        network: missing.network.iter().map(network_part).collect(),
        not_applicable: missing.unused.iter().map(not_applicable).collect(),
        undecided: missing.open.iter().map(undecided).collect(),
    })
}

fn parts(gap: &EvidenceGap) -> impl Iterator<Item = Part<'_>> {
    gap.on.iter().map(|share| Part {
        what: &gap.what,
        target: letter(share.target),
        measured: share.measured,
        planned: share.planned,
    })
}

fn network_part(gap: &NetworkGap) -> NetworkPart<'_> {
    NetworkPart { stage: &gap.stage, measured: gap.measured, planned: gap.planned }
}

fn not_applicable(unused: &Unused) -> NotApplicable<'_> {
    NotApplicable {
        stage: &unused.stage,
        target: letter(unused.target),
        cells: unused.cells,
        of: unused.of,
        sentence: unused.to_string(),
    }
}

fn undecided(open: &OpenQuestion) -> Undecided {
    Undecided {
        instrument: open.instrument.to_string(),
        target: letter(open.target),
        bytes_per_second: open.rate.0,
        limit_bytes_per_second: open.limits.iter().map(|limit| limit.0).collect(),
        sentence: open.to_string(),
    }
}
