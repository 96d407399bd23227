//! The comparison of records: figures and sentences for every format.

use nilometer_model::statistics::CONFIDENCE;

use nilometer_analysis::{
    AlignedCell, AlignedRecording, AlignedStage, ChangeTest, DifferingFact, LoneCells, NamedStep, PairBasis,
    RecordsCompared, RunSequence, SubjectPair, Verdict,
    effect::{Answer, Effect},
    letter,
};

use super::words;

/// Number of cells listed that some records lack; the rest are counted.
const LONE_MOST: usize = 3;
/// Number of values listed for a fact; the rest are counted.
const VALUES_MOST: usize = 4;

/// Explains the intervals and their limits.
pub(super) fn note(compared: &RecordsCompared<'_>) -> String {
    let mut questions = compared.stages.iter().flat_map(|stage| &stage.questions);
    let across = questions.any(|question| question.pairs.iter().any(|pair| pair.basis == PairBasis::Repeats));
    let across = across || compared.networks.iter().any(|network| !network.pairs.is_empty());
    let method = if across {
        "from pairs of the same round within a record, by Welch's method between records. They exclude \
         differences between days, which three records or more of a target show"
    } else {
        "from pairs of the same round"
    };
    let percent = 100.0 * CONFIDENCE;
    format!(
        "A difference below {} % does not count. In brackets: {percent:.0} % intervals of the ratio, {method}.",
        compared.margin
    )
}

/// `ext4, begun 2026-11-20 10:00:00 UTC, 6 rounds, on n1, nilometer 0.1.0; a.sqlite`.
pub(super) fn origin(compared: &RecordsCompared<'_>, subject: usize) -> String {
    let of = &compared.subjects[subject];
    let record = &compared.records[of.record];
    let system = words::file_system(of.entry(&compared.records));
    let origin = words::origin(record.results);
    let parts = [system, &origin].into_iter().filter(|part| !part.is_empty());
    format!("{}; {}", parts.collect::<Vec<_>>().join(", "), record.name)
}

/// `2 targets of 2 records`.
pub(super) fn title(compared: &RecordsCompared<'_>) -> String {
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let targets = count(compared.subjects.len(), "target");
    format!("{targets} of {} compared", count(compared.records.len(), "record"))
}

fn letters(subjects: &[usize]) -> String {
    subjects.iter().map(|subject| letter(*subject)).collect::<Vec<_>>().join(", ")
}

/// `kernel: 6.1 (A), 6.12 (B)`.
pub(super) fn fact(fact: &DifferingFact) -> String {
    if fact.values.len() > VALUES_MOST {
        return format!("{}: {} different values", fact.what, fact.values.len());
    }
    let value = |(value, subjects): &(String, Vec<usize>)| {
        let value = if value.is_empty() { "not said" } else { value };
        format!("{value} ({})", letters(subjects))
    };
    format!("{}: {}", fact.what, fact.values.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// `only A has: block size 1 MiB, write, and 3 more`.
pub(super) fn lone(lone: &LoneCells) -> String {
    let has = if lone.subjects.len() == 1 { "has" } else { "have" };
    let shown = lone.cells.iter().take(LONE_MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = lone.cells.len().saturating_sub(LONE_MOST);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("only {} {has}: {shown}{more}", letters(&lone.subjects))
}

/// Returns the sentence of a pair, and says if cells contradict each other.
pub(super) fn pair(pair: &SubjectPair, margin: f64) -> String {
    let [first, second] = [pair.first, pair.second].map(letter);
    let words = pair.effect.words(margin, &first, &second);
    let count = |answer| pair.cells.iter().filter(|cell| cell.effect.answer(margin) == answer).count();
    let faster = count(Answer::Faster);
    let slower = count(Answer::Slower);
    if faster == 0 || slower == 0 {
        return words;
    }
    let all = pair.cells.len();
    format!(
        "{words}; it depends on the parameters: {first} is faster in {faster}, {second} in {slower} of {all} cells"
    )
}

/// Returns the sentence of a pair about resources needed.
pub(super) fn need(pair: &SubjectPair, margin: f64) -> String {
    let [first, second] = [pair.first, pair.second].map(letter);
    format!("processor time for a GB: {}", pair.effect.need_words(margin, &first, &second))
}

/// Compares the second record shown with the first: `+12 % faster`, `=` if no difference counts, or `?` if the
/// data do not decide.
pub(super) fn against_first(effect: &Effect, margin: f64) -> String {
    let ratio = effect.log_ratio.exp();
    let size =
        if ratio >= 2.0 { format!("x {ratio:.1}") } else { format!("{:+.1} %", 100.0 * (ratio - 1.0)) };
    let word = match effect.answer(margin) {
        Answer::Faster => "faster",
        Answer::Slower => "slower",
        Answer::Alike => "=",
        Answer::Undecided => "?",
    };
    format!("{size} {word}")
}

/// Compares the second record shown with the first in a cell; `None` unless there are two.
pub(super) fn cell_effect(
    compared: &RecordsCompared<'_>,
    stage: &AlignedStage<'_>,
    row: usize,
) -> Option<Effect> {
    let [first, second] = compared.shown[..] else { return None };
    let phase = stage.rows[row].phase;
    let question = stage.questions.iter().find(|question| question.phase == phase)?;
    let pair = question.pairs.first()?;
    let cell = pair.cells.iter().find(|cell| cell.row == row)?;
    let is_as_shown = (pair.first, pair.second) == (second, first);
    Some(if is_as_shown { cell.effect } else { cell.effect.reversed() })
}

/// Returns the rate of a subject in a row, or the reason why there is none.
pub(super) fn figure(stage: &AlignedStage<'_>, row: &AlignedCell<'_>, subject: usize) -> String {
    let question = stage.questions.iter().find(|question| question.phase == row.phase);
    let known = row.outcome(subject).zip(question);
    known.map_or_else(
        || words::NONE.into(),
        |(outcome, question)| words::rate_or_bound(outcome, question.quantity),
    )
}

/// Returns `carries it 1.23 times (1.19 to 1.28)`, with the evidence.
pub(super) fn verdict(verdict: &Verdict) -> String {
    let lost = verdict.trial().map(|trial| match trial.lost {
        0 => format!("; no frame of {} lost in {}", trial.due, trial.duration),
        lost => format!("; {lost} of {} frames lost", trial.due),
    });
    let limit = verdict
        .limit
        .map(|limit| format!("; in the long run {} ({} to {})", limit.rate, limit.low, limit.high));
    format!(
        "{}: {}{}{}",
        verdict.decision().reply(),
        verdict.claim(),
        limit.unwrap_or_default(),
        lost.unwrap_or_default()
    )
}

/// Returns the sentences about the sustained rate.
pub(super) fn long_run(recording: &AlignedRecording, margin: f64) -> Vec<String> {
    let words = recording.pairs.iter().map(|pair| {
        let [first, second] = [pair.first, pair.second].map(letter);
        format!("in the long run {}", pair.effect.words(margin, &first, &second))
    });
    words.collect()
}

/// The sentence of a step.
pub(super) fn step(compared: &RecordsCompared<'_>, sequence: &RunSequence, step: &NamedStep) -> String {
    let name = |subject: usize| format!("{} ({})", letter(subject), compared.name(subject));
    let words = step.effect.words(compared.margin, "the later part", "the earlier part");
    let p = if step.p < 0.001 { "p < 0.001".into() } else { format!("p = {:.3}", step.p) };
    let test = match step.test {
        ChangeTest::Permutation => "permutations of the runs",
        ChangeTest::Normal => "Student's t, since so few runs have too few permutations",
    };
    let last = if step.is_last { "; it is the last run: one more tells a step from a bad day" } else { "" };
    format!(
        "{}, {}: STEP between {} and {}: {words}; {p} ({test}){last}",
        sequence.stage,
        sequence.phase.name(),
        name(step.before),
        name(step.after)
    )
}

/// Describes a sequence without a step.
pub(super) fn without_step(compared: &RecordsCompared<'_>, sequence: &RunSequence) -> String {
    let what = format!("{}, {}", sequence.stage, sequence.phase.name());
    let margin = compared.margin;
    let Some(trend) = &sequence.trend else {
        return format!("{what}: no step and no trend above {margin} % that noise does not explain");
    };
    let moves = if trend.log_ratio > 0.0 { "rises" } else { "falls" };
    let words = trend.words(margin, "the last run", "the first");
    format!("{what}: no step; it {moves}: by a straight line through all runs {words}")
}

/// Explains the basis of the steps in all histories.
pub(super) fn history_note(compared: &RecordsCompared<'_>) -> String {
    let count: usize = compared.histories.iter().map(|history| history.sequences.len()).sum();
    format!(
        "A step is listed if its p-value, over all {count} sequences, is at most 5 % and it is larger than \
         {} %. The unit is the run.",
        compared.margin
    )
}
