//! The comparison of records for programs. Every number has its unit in its name. Intervals are at 95 %, those
//! of `against` at a confidence that holds for all of its figures together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Numbers, Ratio, Unusable,
    compared_cells::{Only, Pair, letters, pair_of, unit},
    compared_network::{ComparedNetwork, compared_network},
    numbers, ratio, unusable,
};
use crate::compared::{fact, need, pair, step};
use nilometer_analysis::{
    AcrossQuestion, AgainstBaseline, AlignedStage, CellOutcome, ChangeTest, Decision, LeftFigure,
    NamedRecord, NamedStep, Quantity, RecordsCompared, RunPoint, RunSequence, TargetHistory, Verdict, letter,
};

/// Increase it when a field is renamed, removed or changes its meaning; not when one is added.
pub const COMPARISON_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    /// `nilometer-comparison`.
    format: &'static str,
    format_version: u32,
    /// No difference smaller than this counts as one.
    margin_percent: f64,
    records: Vec<Origin<'a>>,
    /// Each target of each record. Other fields refer to them by letter.
    subjects: Vec<Named<'a>>,
    /// Facts that differ between the records.
    differing: Vec<Differing<'a>>,
    /// One for each phase of each stage.
    comparisons: Vec<Compared<'a>>,
    recordings: Vec<Recorded<'a>>,
    /// One for each stage that measures the network between machines, under the first target of each record.
    networks: Vec<ComparedNetwork<'a>>,
    /// Histories of targets that at least three records have measured.
    histories: Vec<History<'a>>,
    /// The first record's cells compared with the others; null if not requested.
    against: Option<Against<'a>>,
}

#[derive(Serialize)]
struct Origin<'a> {
    record: &'a str,
    title: &'a str,
    /// UTC, ISO 8601.
    started: &'a str,
    nilometer: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    letter: String,
    name: &'a str,
    /// Index into `records`.
    record: usize,
    path: &'a str,
    file_system: &'a str,
}

#[derive(Serialize)]
struct Differing<'a> {
    what: &'a str,
    values: Vec<Differed<'a>>,
    words: String,
}

#[derive(Serialize)]
struct Differed<'a> {
    value: &'a str,
    subjects: Vec<String>,
}

#[derive(Serialize)]
struct Compared<'a> {
    stage: &'a str,
    phase: &'static str,
    /// `bytes_per_second` or `operations_per_second`, for all figures.
    unit: &'static str,
    /// The fastest first.
    order: Vec<String>,
    pairs: Vec<Pair>,
    /// Processor time of the machine for a GB. A larger one is no advantage.
    processor_time: Vec<Pair>,
    cells: Vec<Cell>,
    /// Cells that some records lack, grouped by the records that have them.
    only: Vec<Only<'a>>,
}

#[derive(Serialize)]
struct Cell {
    cell: String,
    /// By the letter of the subject.
    figures: BTreeMap<String, Figure>,
}

#[derive(Serialize)]
struct Figure {
    /// Null if no repeat is valid.
    rate: Option<Numbers>,
    valid: usize,
    invalid: Vec<Unusable>,
    machine_cpu_s_per_gigabyte: Option<f64>,
}

#[derive(Serialize)]
struct Recorded<'a> {
    instrument: &'a str,
    /// By the letter of the subject.
    verdicts: BTreeMap<String, Answered>,
    /// Pairs of sustained rates.
    pairs: Vec<LongRun>,
}

#[derive(Serialize)]
struct Answered {
    /// `carries`, `does not carry` or `not decided`.
    decision: &'static str,
    claim: String,
    bytes_per_second: Option<f64>,
    bytes_per_second_low: Option<f64>,
    bytes_per_second_high: Option<f64>,
    frames_due: Option<u64>,
    frames_lost: Option<u64>,
    longest_stall_s: Option<f64>,
}

#[derive(Serialize)]
struct LongRun {
    first: String,
    second: String,
    #[serde(flatten)]
    ratio: Ratio,
}

#[derive(Serialize)]
struct History<'a> {
    path: &'a str,
    /// The oldest first.
    runs: Vec<String>,
    sequences: Vec<SequenceOf<'a>>,
}

#[derive(Serialize)]
struct SequenceOf<'a> {
    stage: &'a str,
    phase: &'static str,
    unit: &'static str,
    /// Number of cells that a point averages.
    cells: usize,
    points: Vec<RunFigure<'a>>,
    steps: Vec<Step>,
    /// The last run against the first by a straight line, if it rises or falls significantly and has no step.
    trend: Option<Ratio>,
}

#[derive(Serialize)]
struct RunFigure<'a> {
    subject: String,
    started: &'a str,
    rate: f64,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct Step {
    before: String,
    after: String,
    /// The runs after the step against those before.
    #[serde(flatten)]
    ratio: Ratio,
    /// p over all sequences tested.
    p: f64,
    /// `permutation` or `student`.
    test: &'static str,
    words: String,
}

#[derive(Serialize)]
struct Against<'a> {
    threshold_percent: f64,
    /// Number of figures of the baseline.
    figures: usize,
    /// Number of these that are decided.
    compared: usize,
    worse: Vec<Worse<'a>>,
    not_decided: Vec<Undecided<'a>>,
    not_compared: Vec<String>,
    /// Null with one baseline, which does not show how much runs differ.
    spread: Option<BaselineSpread>,
}

/// A figure that may have got worse, or not.
#[derive(Serialize)]
struct Undecided<'a> {
    subject: String,
    what: &'a str,
    words: String,
    /// Null if no rate determines it.
    percent: Option<f64>,
}

/// The loss that several baselines can show: of the steadiest figure, and of the one that differs most between
/// runs.
#[derive(Serialize)]
struct BaselineSpread {
    baselines: usize,
    loss_seen_least_percent: f64,
    loss_seen_most_percent: f64,
}

#[derive(Serialize)]
struct Worse<'a> {
    subject: String,
    what: &'a str,
    words: &'a str,
    /// Null if a verdict changed.
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// The comparison as one JSON document; its fields are those above.
pub fn compared_json(compared: &RecordsCompared<'_>, against: Option<&AgainstBaseline>) -> String {
    let questions = compared
        .stages
        .iter()
        .flat_map(|stage| stage.questions.iter().map(move |question| comparison(compared, stage, question)));
    let document = Document {
        format: "nilometer-comparison",
        format_version: COMPARISON_VERSION,
        margin_percent: compared.margin,
        records: origins(compared),
        subjects: named(compared),
        differing: differing(compared),
        comparisons: questions.collect(),
        recordings: recordings(compared),
        networks: compared.networks.iter().map(|of| compared_network(of, compared.margin)).collect(),
        histories: compared.histories.iter().map(|of| history(compared, of)).collect(),
        against: against.map(against_baseline),
    };
    serde_json::to_string_pretty(&document).expect("all keys are texts") + "\n"
}

fn origins<'a>(compared: &RecordsCompared<'a>) -> Vec<Origin<'a>> {
    compared.records.iter().map(origin).collect()
}

fn origin<'a>(record: &NamedRecord<'a>) -> Origin<'a> {
    Origin {
        record: record.name,
        title: &record.results.title,
        started: &record.results.started,
        nilometer: &record.results.version,
    }
}

fn named<'a>(compared: &'a RecordsCompared<'_>) -> Vec<Named<'a>> {
    let subjects = compared.subjects.iter().enumerate();
    subjects
        .map(|(index, subject)| {
            let entry = subject.entry(&compared.records);
            Named {
                letter: letter(index),
                name: &subject.name,
                record: subject.record,
                path: &entry.path,
                file_system: &entry.file_system,
            }
        })
        .collect()
}

fn differing<'a>(compared: &'a RecordsCompared<'_>) -> Vec<Differing<'a>> {
    let facts = compared.differing.iter().map(|of| Differing {
        what: &of.what,
        values: of.values.iter().map(|(value, who)| Differed { value, subjects: letters(who) }).collect(),
        words: fact(of),
    });
    facts.collect()
}

fn comparison<'a>(
    compared: &RecordsCompared<'_>,
    stage: &'a AlignedStage<'_>,
    question: &AcrossQuestion,
) -> Compared<'a> {
    let rows: Vec<usize> = stage.of_phase(question.phase).map(|(row, _)| row).collect();
    let margin = compared.margin;
    let only = stage.lone.iter().map(|lone| Only { subjects: letters(&lone.subjects), cells: &lone.cells });
    Compared {
        stage: stage.name,
        phase: question.phase.name(),
        unit: unit(question.quantity),
        order: letters(&question.order),
        pairs: question.pairs.iter().map(|of| pair_of(of, &rows, margin, pair(of, margin))).collect(),
        processor_time: question
            .needs
            .iter()
            .map(|of| pair_of(of, &rows, margin, need(of, margin)))
            .collect(),
        cells: rows.iter().map(|row| cell(compared, stage, *row, question.quantity)).collect(),
        only: only.collect(),
    }
}

fn cell(compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>, row: usize, quantity: Quantity) -> Cell {
    let row = &stage.rows[row];
    let figure = |subject: usize| Some((letter(subject), figure_of(row.outcome(subject)?, quantity)));
    Cell { cell: row.cell.to_string(), figures: (0..compared.subjects.len()).filter_map(figure).collect() }
}

fn figure_of(outcome: &CellOutcome<'_>, quantity: Quantity) -> Figure {
    Figure {
        rate: outcome.summary(quantity).as_ref().map(numbers),
        valid: outcome.valid,
        invalid: outcome.invalid.iter().map(unusable).collect(),
        machine_cpu_s_per_gigabyte: outcome.cores.and_then(|cores| cores.for_gigabyte),
    }
}

fn recordings<'a>(compared: &'a RecordsCompared<'_>) -> Vec<Recorded<'a>> {
    let recorded = compared.recordings.iter().map(|of| {
        let verdicts = of.verdicts.iter().enumerate();
        let verdicts =
            verdicts.filter_map(|(subject, verdict)| Some((letter(subject), answered(verdict.as_ref()?))));
        let pairs = of.pairs.iter().map(|pair| LongRun {
            first: letter(pair.first),
            second: letter(pair.second),
            ratio: ratio(&pair.effect, compared.margin),
        });
        Recorded { instrument: &of.instrument, verdicts: verdicts.collect(), pairs: pairs.collect() }
    });
    recorded.collect()
}

fn answered(verdict: &Verdict) -> Answered {
    let trial = verdict.trial();
    // A lower bound has no upper end.
    let interval = verdict.limit.filter(|limit| !limit.is_lower_bound());
    Answered {
        decision: Decision::name(verdict.decision()),
        claim: verdict.claim(),
        bytes_per_second: verdict.limit.map(|limit| limit.rate.0),
        bytes_per_second_low: verdict.limit.map(|limit| limit.low.0),
        bytes_per_second_high: interval.map(|limit| limit.high.0),
        frames_due: trial.map(|trial| trial.due),
        frames_lost: trial.map(|trial| trial.lost),
        longest_stall_s: trial.map(|trial| trial.longest_stall.seconds()),
    }
}

fn history<'a>(compared: &RecordsCompared<'a>, of: &'a TargetHistory) -> History<'a> {
    let sequences = of.sequences.iter().map(|of| sequence(compared, of));
    History { path: &of.path, runs: letters(&of.runs), sequences: sequences.collect() }
}

fn sequence<'a>(compared: &RecordsCompared<'a>, of: &'a RunSequence) -> SequenceOf<'a> {
    SequenceOf {
        stage: &of.stage,
        phase: of.phase.name(),
        unit: unit(of.quantity),
        cells: of.cells,
        points: of.points.iter().map(|point| run_figure(compared, point)).collect(),
        steps: of.steps.iter().map(|named| step_of(compared, of, named)).collect(),
        trend: of.trend.as_ref().map(|trend| ratio(trend, compared.margin)),
    }
}

fn run_figure<'a>(compared: &RecordsCompared<'a>, point: &RunPoint) -> RunFigure<'a> {
    let interval = point.interval();
    RunFigure {
        subject: letter(point.subject),
        started: &compared.results(point.subject).started,
        rate: point.rate(),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    }
}

fn step_of(compared: &RecordsCompared<'_>, sequence: &RunSequence, named: &NamedStep) -> Step {
    Step {
        before: letter(named.before),
        after: letter(named.after),
        ratio: ratio(&named.effect, compared.margin),
        p: named.p,
        test: match named.test {
            ChangeTest::Permutation => "permutation",
            ChangeTest::Normal => "student",
        },
        words: step(compared, sequence, named),
    }
}

fn against_baseline(against: &AgainstBaseline) -> Against<'_> {
    let worse = against.worse.iter().map(|worse| {
        let effect = worse.effect;
        Worse {
            subject: letter(worse.subject),
            what: &worse.what,
            words: &worse.words,
            ratio: effect.map(|effect| effect.log_ratio.exp()),
            low: effect.map(|effect| effect.low.exp()),
            high: effect.map(|effect| effect.high.exp()),
        }
    });
    let not_decided = against.open.iter().map(|open| Undecided {
        subject: letter(open.subject),
        what: &open.what,
        words: open.change(),
        percent: open.percent.map(|[mean, ..]| mean),
    });
    let not_compared = against.left.iter().map(LeftFigure::words).chain(against.beside.iter().cloned());
    Against {
        threshold_percent: against.threshold,
        figures: against.figures,
        compared: against.compared,
        worse: worse.collect(),
        not_decided: not_decided.collect(),
        not_compared: not_compared.collect(),
        spread: against.spread.map(|spread| BaselineSpread {
            baselines: spread.runs,
            loss_seen_least_percent: spread.seen_least,
            loss_seen_most_percent: spread.seen_most,
        }),
    }
}
