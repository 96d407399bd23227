//! The comparison of records: figures and sentences for every format.

use nilometer_model::statistics::CONFIDENCE;

use nilometer_analysis::{
    AlignedCell, AlignedRecording, AlignedStage, ChangeTest, DifferingFact, LoneCells, NamedStep, PairBasis,
    Quantity, RateUnit, RecordsCompared, RunSequence, SubjectPair, TargetHistory, Verdict,
    effect::{Answer, Effect},
    letter, rate_words,
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
        "A difference below {} % does not count. In brackets: {percent:.0} % intervals of the ratio, {method}. \
         Ratios are of geometric means, in which one far value counts less than in the means of the tables.",
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
        |(outcome, question)| words::rate_or_bound(outcome, row_unit(row, question.quantity)),
    )
}

/// The unit that the figures of a row share.
pub(super) fn row_unit(row: &AlignedCell<'_>, quantity: Quantity) -> RateUnit {
    words::unit_of(row.outcomes.iter().flatten(), quantity)
}

/// Returns `carries it 1.23 times (1.19 to 1.28)`, with the evidence.
pub(super) fn verdict(verdict: &Verdict) -> String {
    let lost = verdict.trial().map(|trial| match trial.lost {
        0 => format!("; no frame of {} lost in {}", trial.due, trial.duration),
        lost => format!("; {lost} of {} frames lost", trial.due),
    });
    let limit = verdict.limit.map(|limit| format!("; sustained {}", rate_words(&limit)));
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
        format!("sustained rate: {}", pair.effect.words(margin, &first, &second))
    });
    words.collect()
}

/// The sentence of a step, told forwards: `large, write: STEP, 27 % slower since 2 Nov (66 to 49 MB/s); p < 0.001`.
pub(super) fn step(compared: &RecordsCompared<'_>, sequence: &RunSequence, step: &NamedStep) -> String {
    let test = match step.test {
        ChangeTest::Permutation => "by permutations of the runs",
        ChangeTest::Normal => "by Student's t: so few runs have too few permutations",
    };
    let p = if step.p < 0.001 { "p < 0.001".into() } else { format!("p = {:.3}", step.p) };
    let last = if step.is_last { "; it is the last run: one more tells a step from a bad day" } else { "" };
    let change = step.effect.change_words();
    let rates = [step.rate_before(), step.rate_after()];
    let unit = RateUnit::shared(sequence.quantity, rates);
    format!(
        "{}, {}: STEP, {change} since {} ({} to {}); {p}, {test}{last}",
        sequence.stage,
        sequence.phase.name(),
        since(compared, step.after),
        without_unit(&unit.show(rates[0]), &unit.show(rates[1])),
        words::of_things(sequence.phase, &unit.show(rates[1])),
    )
}

/// The first of two figures, without its unit if the second has the same.
fn without_unit(first: &str, second: &str) -> String {
    let unit = |figure: &str| figure.split_once(' ').map(|(_, unit)| unit.to_owned());
    let number = first.split_once(' ').filter(|_| unit(first) == unit(second)).map(|(number, _)| number);
    number.unwrap_or(first).to_owned()
}

/// The first run after a step: `2 Nov, run G`, with the time of day if several runs share the day.
fn since(compared: &RecordsCompared<'_>, subject: usize) -> String {
    let Some(day) = compared.day(subject) else { return format!("run {}", letter(subject)) };
    let beside = (0..compared.subjects.len()).filter(|other| compared.day(*other) == Some(day));
    let is_alone = beside.count() < 2;
    let time = compared.results(subject).started.get(11..16).filter(|_| !is_alone);
    let time = time.map_or_else(String::new, |time| format!(" {time}"));
    format!("{}{time}, run {}", words::day(day, spans_years(compared)), letter(subject))
}

/// True if not all records are of one year.
fn spans_years(compared: &RecordsCompared<'_>) -> bool {
    let mut years = (0..compared.subjects.len()).filter_map(|subject| compared.day(subject)?.get(..4));
    let first = years.next();
    years.any(|year| Some(year) != first)
}

/// Describes all sequences without a step and without a trend in one sentence, so that a step stands out. `None` if
/// there are none.
pub(super) fn unchanged(compared: &RecordsCompared<'_>, history: &TargetHistory) -> Option<String> {
    let mut stages: Vec<(&str, Vec<&str>)> = Vec::new();
    for sequence in history.sequences.iter().filter(|of| of.steps.is_empty() && of.trend.is_none()) {
        let phase = sequence.phase.name();
        match stages.last_mut().filter(|(stage, _)| *stage == sequence.stage) {
            Some((_, phases)) => phases.push(phase),
            None => stages.push((&sequence.stage, vec![phase])),
        }
    }
    let stages: Vec<String> =
        stages.iter().map(|(stage, phases)| format!("{stage}, {}", phases.join(", "))).collect();
    let margin = compared.margin;
    (!stages.is_empty()).then(|| {
        format!("{}: no step and no trend above {margin} % that noise does not explain", stages.join("; "))
    })
}

/// Describes the trend of a sequence without a step. `None` without a trend.
pub(super) fn trend(sequence: &RunSequence) -> Option<String> {
    let what = format!("{}, {}", sequence.stage, sequence.phase.name());
    let trend = sequence.trend.as_ref()?;
    let moves = if trend.log_ratio > 0.0 { "rises" } else { "falls" };
    let change = trend.change_words();
    Some(format!(
        "{what}: no step; it {moves}: the last run is {change} than the first, by a straight line through all runs"
    ))
}

/// Explains the basis of the steps in all histories.
pub(super) fn history_note(compared: &RecordsCompared<'_>) -> String {
    let count: usize = compared.histories.iter().map(|history| history.sequences.len()).sum();
    format!(
        "A step is listed if its p-value, over all {count} sequences, is at most 5 % and it is larger than \
         {} %. The unit is the run. Each run has the 95 % interval of its own repeats: ± in tables, a band in \
         charts. An arrow shows that a band goes on.",
        compared.margin
    )
}
