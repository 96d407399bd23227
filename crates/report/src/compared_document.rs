//! Records beside each other as a document.

use nilometer_analysis::{
    AlignedCell, AlignedNetwork, AlignedRecording, AlignedStage, AlignedTraffic, RateUnit, RecordsCompared,
    RunPoint, RunSequence, SubjectPair, TargetHistory, effect::Effect, letter,
};

use crate::{
    chart::Chart,
    compared::{
        against_first, cell_effect, fact, figure, history_note, lone, long_run, need, note, origin, pair,
        step, title, trend, unchanged, verdict,
    },
    compared_charts::{bar_chart, trend_chart},
    compared_network,
    document::{
        Block, Cell, Column, Detail, Document, Fold, Glance, Heading, Role, Row, RowNote, Section, Sentence,
        Table, TargetLine, Tone,
    },
    order::Answers,
    sections::{answer_row, answer_table, effect_tone, papers, tone},
    words,
};

/// Letters of a figure, and of a difference.
const FIGURE: usize = 17;
const AGAINST: usize = 15;
/// Limit on the number of runs shown in a terminal.
const RUNS_MOST: usize = 20;
/// Percent. An interval that is wider has this bound instead of a figure.
const SPREAD_MOST: f64 = 100.0;
/// Characters of the longest bar of a terminal.
const BAR_MOST: usize = 30;
/// Longer tables start closed.
const ROWS_OPEN: usize = 24;

/// The document of a comparison of records.
pub(crate) fn compared_document(
    compared: &RecordsCompared<'_>,
    answers: Answers,
    detail: Detail,
) -> Document {
    let targets = compared.subjects.iter().enumerate().map(|(index, subject)| TargetLine {
        letter: letter(index),
        text: format!("{}: {}", subject.name, origin(compared, index)),
        left_out: String::new(),
    });
    let details = [
        differing(compared),
        shown_stages(compared).map(|stage| of_stage(compared, stage, detail)).collect(),
        compared.networks.iter().map(|network| of_network(compared, network)).collect(),
        papers(&compared.papers),
    ];
    let histories = compared.histories.iter().map(|history| of_history(compared, history, detail)).collect();
    let said =
        [answered(compared, detail), compared.recordings.iter().map(|of| recorded(compared, of)).collect()];
    let all: Vec<Vec<Section>> = match answers {
        Answers::Last => details.into_iter().chain([histories]).chain(said).collect(),
        Answers::First => std::iter::once(histories).chain(said).chain(details).collect(),
    };
    Document {
        title: title(compared),
        origin: String::new(),
        targets: targets.collect(),
        sections: all.into_iter().flatten().collect(),
    }
}

fn differing(compared: &RecordsCompared<'_>) -> Vec<Section> {
    if compared.differing.is_empty() {
        return Vec::new();
    }
    let facts = Block::list(compared.differing.iter().map(fact));
    vec![Section::new(Heading::of("What differs besides"), vec![facts])]
}

/// All stages; beside the tables of a published study only those that two records share, since the tables have the
/// figures of the others.
fn shown_stages<'a, 'b>(
    compared: &'a RecordsCompared<'b>,
) -> impl Iterator<Item = &'a AlignedStage<'b>> + use<'a, 'b> {
    let record = |subject: usize| compared.subjects[subject].record;
    let is_shared = move |pair: &SubjectPair| record(pair.first) != record(pair.second);
    compared.stages.iter().filter(move |stage| {
        let mut pairs = stage.questions.iter().flat_map(|question| &question.pairs);
        compared.papers.is_empty() || pairs.any(is_shared)
    })
}

fn of_stage(compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>, detail: Detail) -> Section {
    let mut blocks = vec![Block::soft(&stage.common)];
    let rows = stage.rows.iter().enumerate().map(|(index, row)| stage_row(compared, stage, index, row));
    let table = Block::Table(table(&compared.shown, rows.collect()));
    if detail == Detail::Page {
        let charts = stage.questions.iter().map(|question| bar_chart(compared, stage, question.phase.name()));
        blocks.push(Block::charts(charts.collect::<Vec<Chart>>()));
        let is_open = stage.rows.len() <= ROWS_OPEN;
        blocks.push(Block::Fold(Fold { summary: "Cell by cell".into(), is_open, blocks: vec![table] }));
    } else {
        blocks.push(table);
    }
    blocks.extend(lone_cells(&stage.lone));
    Section::new(Heading::of(stage.name), blocks).on_screen()
}

/// Lists the cells that only some records have.
fn lone_cells(all: &[nilometer_analysis::LoneCells]) -> Option<Block> {
    let sentences = all.iter().map(|of| Sentence::toned(Tone::Doubtful, lone(of)));
    (!all.is_empty()).then(|| Block::List(sentences.collect()))
}

/// Makes a table with a column for each subject. With two subjects a further column has the difference of the
/// second from the first.
fn table(shown: &[usize], rows: Vec<Row>) -> Table {
    let mut columns = vec![Column::new(Role::Label, "cell")];
    columns.extend(shown.iter().map(|subject| Column::figure(letter(*subject)).at_least(FIGURE)));
    if let [first, second] = *shown {
        let heading = format!("{} to {}", letter(second), letter(first));
        columns.push(Column::figure(heading).at_least(AGAINST).ranked(1));
    }
    Table { columns, rows }
}

/// The cells of a row of such a table.
fn cells(
    words: String,
    shown: &[usize],
    figure: impl Fn(usize) -> String,
    effect: Option<Effect>,
    margin: f64,
) -> Vec<Cell> {
    let difference = (shown.len() == 2)
        .then(|| Cell::new(effect.map(|effect| against_first(&effect, margin)).unwrap_or_default()));
    let figures = shown.iter().map(|subject| Cell::new(figure(*subject)));
    std::iter::once(Cell::new(words)).chain(figures).chain(difference).collect()
}

fn stage_row(
    compared: &RecordsCompared<'_>,
    stage: &AlignedStage<'_>,
    index: usize,
    row: &AlignedCell<'_>,
) -> Row {
    let effect = cell_effect(compared, stage, index);
    let of = |subject: usize| figure(stage, row, subject);
    let notes = compared.shown.iter().flat_map(|subject| {
        let lines = row.outcome(*subject).into_iter().flat_map(words::invalid);
        lines.map(|line| row_note(*subject, line))
    });
    Row { cells: cells(row.words(), &compared.shown, of, effect, compared.margin), notes: notes.collect() }
}

fn row_note(subject: usize, why: String) -> RowNote {
    RowNote { text: format!("{} {why}", letter(subject)), reason: why }
}

fn of_network(compared: &RecordsCompared<'_>, network: &AlignedNetwork) -> Section {
    let shown = compared_network::shown(compared, network);
    let rows = network.rows.iter().enumerate().map(|(number, row)| {
        let effect = compared_network::row_effect(network, number, &shown);
        traffic_row(row, &shown, effect, compared.margin)
    });
    let mut blocks = vec![Block::soft(format!("{}.", compared_network::NOTE))];
    blocks.push(Block::Table(table(&shown, rows.collect())));
    blocks.extend(lone_cells(&network.lone));
    Section::new(Heading::of(compared_network::heading(network)), blocks)
}

fn traffic_row(row: &AlignedTraffic, shown: &[usize], effect: Option<Effect>, margin: f64) -> Row {
    let failed =
        shown.iter().filter_map(|subject| Some(row_note(*subject, compared_network::failed(row, *subject)?)));
    let of = |subject: usize| compared_network::figure(row, subject);
    Row { cells: cells(row.words.clone(), shown, of, effect, margin), notes: failed.collect() }
}

fn of_history(compared: &RecordsCompared<'_>, history: &TargetHistory, detail: Detail) -> Section {
    let mut blocks = Vec::new();
    if detail < Detail::Page {
        blocks.extend(history.sequences.iter().flat_map(|sequence| runs(compared, sequence)));
    }
    blocks.push(Block::List(changes(compared, history)));
    blocks.push(Block::soft(history_note(compared)));
    if detail == Detail::Page {
        let charts = history.sequences.iter().map(|sequence| trend_chart(compared, history, sequence));
        blocks.push(Block::charts(charts.collect()));
    }
    let heading = Heading::with("History", format!(" of {}: {} runs", history.path, history.runs.len()));
    Section::new(heading, blocks)
}

/// The steps, then the trends, then all sequences without either.
fn changes(compared: &RecordsCompared<'_>, history: &TargetHistory) -> Vec<Sentence> {
    let steps = history.sequences.iter().flat_map(|sequence| steps(compared, sequence));
    let level = history.sequences.iter().filter(|sequence| sequence.steps.is_empty());
    let trends = level.filter_map(trend).chain(unchanged(compared, history)).map(Sentence::new);
    steps.chain(trends).collect()
}

fn steps(compared: &RecordsCompared<'_>, sequence: &RunSequence) -> Vec<Sentence> {
    let sentence = |of| Sentence::toned(Tone::Bad, step(compared, sequence, of));
    sequence.steps.iter().map(sentence).collect()
}

/// Makes a row for each run: its record, time and rate, and a bar.
fn runs(compared: &RecordsCompared<'_>, sequence: &RunSequence) -> Vec<Block> {
    let over = if sequence.cells > 1 { format!(", mean of {} cells", sequence.cells) } else { String::new() };
    let mut blocks = vec![Block::soft(format!("{}, {}{over}", sequence.stage, sequence.phase.name()))];
    let most = sequence.points.iter().map(|point| point.log).fold(f64::NEG_INFINITY, f64::max);
    let hidden = sequence.points.len().saturating_sub(RUNS_MOST);
    let note = format!("({hidden} earlier runs are in the page and in JSON)");
    blocks.extend((hidden > 0).then(|| Block::soft(note)));
    let columns = vec![
        Column::new(Role::Name, ""),
        Column::new(Role::Name, "begun"),
        Column::figure("rate"),
        Column::figure("±"),
        Column::new(Role::Name, "").ranked(1),
    ];
    let shown = &sequence.points[hidden..];
    let unit = RateUnit::shared(sequence.quantity, shown.iter().map(RunPoint::rate));
    let rows = shown.iter().map(|point| run(compared, unit, point, most));
    blocks.push(Block::Table(Table { columns, rows: rows.collect() }));
    blocks
}

fn run(compared: &RecordsCompared<'_>, unit: RateUnit, point: &RunPoint, most: f64) -> Row {
    let started: String =
        compared.results(point.subject).started.replace('T', " ").chars().take(16).collect();
    let half = point.half.map_or_else(String::new, spread);
    #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
    let bar = ((point.log - most).exp() * BAR_MOST as f64).round() as usize;
    let rate = unit.show(point.rate());
    Row::of([letter(point.subject), started, rate, half, "#".repeat(bar)].map(Cell::new))
}

/// Half an interval in percent. A wider one only shows that the repeats of the run disagree.
fn spread(half: f64) -> String {
    let percent = 100.0 * half.exp_m1();
    if percent > SPREAD_MOST { format!("> {SPREAD_MOST:.0} %") } else { format!("±{percent:>3.0} %") }
}

fn answered(compared: &RecordsCompared<'_>, detail: Detail) -> Vec<Section> {
    let stages = compared.stages.iter().flat_map(|stage| {
        stage.questions.iter().map(|question| {
            let sentences = sentences(&question.pairs, &question.needs, compared.margin);
            (stage.name.to_owned(), question.phase.name().to_owned(), sentences)
        })
    });
    let networks = compared.networks.iter().map(|network| {
        (network.stage.clone(), "network".to_owned(), sentences(&network.pairs, &[], compared.margin))
    });
    let all: Vec<(String, String, Vec<Sentence>)> =
        stages.chain(networks).filter(|(_, _, sentences)| !sentences.is_empty()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let (title, block) = match detail {
        Detail::Page => ("How they compare", glance(all)),
        _ => ("Compared", answer_table(rows(all))),
    };
    vec![Section::new(Heading::of(title), vec![block, Block::soft(note(compared))])]
}

fn rows(all: Vec<(String, String, Vec<Sentence>)>) -> Vec<Row> {
    let row = |(stage, phase, sentences): (String, String, Vec<Sentence>)| {
        answer_row(&stage, &phase, sentences.into_iter().map(|sentence| sentence.text).collect())
    };
    all.into_iter().map(row).collect()
}

/// A sentence for each pair: which is faster, then which needs less.
fn sentences(pairs: &[SubjectPair], needs: &[SubjectPair], margin: f64) -> Vec<Sentence> {
    let tone = |of: &SubjectPair| effect_tone(&of.effect, margin);
    let faster = pairs.iter().map(|of| Sentence::toned(tone(of), pair(of, margin)));
    faster.chain(needs.iter().map(|of| Sentence::toned(tone(of), need(of, margin)))).collect()
}

/// The row of a stage's first phase has the name of the stage.
fn glance(all: Vec<(String, String, Vec<Sentence>)>) -> Block {
    let mut rows: Vec<Glance> = Vec::new();
    let mut last = String::new();
    for (stage, phase, sentences) in all {
        let name = if stage == last { String::new() } else { stage.clone() };
        rows.push(Glance { name, id: String::new(), phase, rates: Vec::new(), sentences });
        last = stage;
    }
    Block::Glance(rows)
}

fn recorded(compared: &RecordsCompared<'_>, recording: &AlignedRecording) -> Section {
    let verdicts = recording.verdicts.iter().enumerate().filter_map(|(subject, found)| {
        let found = found.as_ref()?;
        let name = format!("{} {}", letter(subject), compared.name(subject));
        Some(Block::Paragraph(Sentence::toned(tone(found.decision()), verdict(found)).led(name)))
    });
    let mut blocks: Vec<Block> = verdicts.collect();
    blocks.push(Block::list(long_run(recording, compared.margin)));
    Section::new(Heading::with("Recorded", format!(": {}", recording.instrument)), blocks)
}
