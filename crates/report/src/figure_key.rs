//! Keys by which a reader requests the samples behind a figure: `STAGE/PHASE/TARGET`, with the cell after the
//! stage if there are several: `large files/workers 2/write/A`.

use nilometer_analysis::{
    CellOutcome, LimitKind, LimitSource, MeasuredLimit, StageFigures, Study, StudyRecording, letter,
};
use nilometer_model::Phase;
use nilometer_plan::{Criterion, Measured, Results};

/// The key of a stage's figure.
pub(crate) fn figure_key(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> String {
    let cell = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let parts = [stage.name, cell, outcome.phase.name(), &letter(outcome.target)];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// The key of all cells of a stage in a phase on a target.
pub(crate) fn stage_key(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> String {
    [stage.name, outcome.phase.name(), &letter(outcome.target)].join("/")
}

/// The key of all recordings of an instrument on a target: `pilatus-6m/A`.
pub(crate) fn recording_key(recording: &StudyRecording<'_>, of: &Measured) -> String {
    instrument_key(&recording.instrument.to_string(), of.key.target)
}

fn instrument_key(instrument: &str, target: usize) -> String {
    format!("{instrument}/{}", letter(target))
}

/// The number of samples behind a figure, and the command that shows them. A page shows it under the pointer.
pub(crate) fn tooltip(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> String {
    let all = outcome.samples.len();
    let of = if outcome.valid == all { String::new() } else { format!(" of {all}") };
    let samples = if all == 1 { "sample" } else { "samples" };
    let key = figure_key(stage, outcome);
    format!("from {}{of} {samples}: nilometer report RECORD --why '{key}'", outcome.valid)
}

/// The stage and round of a recording, and the command that shows it beside the others of its instrument.
pub(crate) fn recording_tooltip(results: &Results, recording: &StudyRecording<'_>, of: &Measured) -> String {
    let key = recording_key(recording, of);
    format!("from the recording of {}: nilometer report RECORD --why '{key}'", stage_rounds(results, &[of]))
}

/// The recordings behind a statement about an instrument on a target, and the command that shows them. Empty if the
/// study has none.
pub(crate) fn instrument_tooltip(study: &Study<'_>, instrument: &str, target: usize) -> String {
    let is_of_it = |recording: &&StudyRecording<'_>| recording.instrument.to_string() == instrument;
    let recordings = study.recordings.iter().filter(is_of_it).flat_map(|recording| &recording.samples);
    let samples: Vec<&Measured> = recordings.copied().filter(|of| of.key.target == target).collect();
    let recordings = match samples.len() {
        0 => return String::new(),
        1 => "1 recording".to_owned(),
        count => format!("{count} recordings"),
    };
    let rounds = stage_rounds(study.results, &samples);
    let key = instrument_key(instrument, target);
    format!("from {recordings} of {rounds}: nilometer report RECORD --why '{key}'")
}

/// The samples behind a criterion of a stage on a target: its figures, or its recordings. Empty if there are none.
pub(crate) fn criterion_tooltip(study: &Study<'_>, criterion: &Criterion, target: usize) -> String {
    let stage = study.stages.iter().find(|stage| stage.figures.name == criterion.stage);
    let mut outcomes = stage.iter().flat_map(|stage| &stage.figures.outcomes);
    let is_meant =
        |outcome: &&CellOutcome<'_>| (outcome.target, Some(outcome.phase)) == (target, criterion.phase);
    if let Some((stage, first)) = stage.zip(outcomes.find(is_meant)) {
        let key = stage_key(&stage.figures, first);
        let samples =
            first.samples.len() + outcomes.filter(is_meant).map(|of| of.samples.len()).sum::<usize>();
        return format!("from {samples} samples: nilometer report RECORD --why '{key}'");
    }
    let is_of_stage = |of: &Measured| {
        let cell = study.results.cells.get(of.key.cell);
        of.key.target == target && cell.is_some_and(|cell| cell.stage == criterion.stage)
    };
    let recording =
        study.recordings.iter().find(|recording| recording.samples.iter().any(|of| is_of_stage(of)));
    recording.map_or_else(String::new, |recording| {
        instrument_tooltip(study, &recording.instrument.to_string(), target)
    })
}

/// The samples behind a limit from which reports predict, and the command that shows them.
pub(crate) fn limit_tooltip(study: &Study<'_>, limit: &MeasuredLimit) -> String {
    let stage = match &limit.from {
        LimitSource::Recording(who) => return instrument_tooltip(study, who, limit.target),
        LimitSource::Stage(stage) => stage,
    };
    let stage = study.stages.iter().find(|known| known.figures.name == stage);
    let mut outcomes = stage.iter().flat_map(|stage| &stage.figures.outcomes);
    let first =
        outcomes.find(|outcome| outcome.target == limit.target && outcome.phase == limited_phase(limit.kind));
    let key = stage.zip(first).map(|(stage, outcome)| stage_key(&stage.figures, outcome));
    key.map_or_else(String::new, |key| format!("nilometer report RECORD --why '{key}'"))
}

/// The phase in which a stage meets such a limit.
const fn limited_phase(kind: LimitKind) -> Phase {
    match kind {
        LimitKind::Files => Phase::CreateFiles,
        LimitKind::Written | LimitKind::Shared | LimitKind::Packed => Phase::Write,
    }
}

/// `large files, rounds 1 to 3; search, round 1`.
fn stage_rounds(results: &Results, samples: &[&Measured]) -> String {
    let mut stages: Vec<(&str, Vec<u32>)> = Vec::new();
    for of in samples {
        let stage = results.cells.get(of.key.cell).map_or("", |cell| &cell.stage);
        let round = of.key.repeat + 1;
        match stages.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, rounds)) => rounds.push(round),
            None => stages.push((stage, vec![round])),
        }
    }
    let words = stages.into_iter().map(|(stage, rounds)| format!("{stage}, {}", rounds_words(rounds)));
    words.collect::<Vec<_>>().join("; ")
}

/// `round 2`, `rounds 1 to 3` or `rounds 1, 3`.
fn rounds_words(mut rounds: Vec<u32>) -> String {
    rounds.sort_unstable();
    rounds.dedup();
    let is_contiguous = rounds.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match rounds[..] {
        [] => String::new(),
        [only] => format!("round {only}"),
        [first, .., last] if is_contiguous => format!("rounds {first} to {last}"),
        _ => format!("rounds {}", rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_named_by_their_ends_if_none_is_missing() {
        assert_eq!(rounds_words(vec![2]), "round 2");
        assert_eq!(rounds_words(vec![3, 1, 2, 2]), "rounds 1 to 3");
        assert_eq!(rounds_words(vec![1, 3]), "rounds 1, 3");
    }
}
