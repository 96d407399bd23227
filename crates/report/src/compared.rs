//! Records beside each other: in a terminal, and the sentences that the page has too.

use nilometer_model::statistics::CONFIDENCE;

use nilometer_analysis::{
    AlignedCell, AlignedRecording, AlignedStage, ChangeTest, DifferingFact, LoneCells, NamedStep, PairBasis,
    RecordsCompared, RunSequence, SubjectPair, TargetHistory, Verdict,
    effect::{Answer, Effect},
    letter,
};

use super::{
    compared_network::{network_answers, network_table},
    render::{BOLD, DIM, Page, RED, TextLayout, YELLOW, clipped},
    words,
};

/// Of a figure, and of what is on its left.
const FIGURE: usize = 18;
const LEFT_LEAST: usize = 24;
/// Figures beside each other at the most.
const FIGURES_MOST: usize = 4;
/// Of the second against the first.
const AGAINST: usize = 16;
/// More runs are not shown in a terminal.
const RUNS_MOST: usize = 20;
/// More cells that some lack are counted.
const LONE_MOST: usize = 3;
/// More values of a fact are counted.
const VALUES_MOST: usize = 4;

/// What is said of records beside each other, as text.
pub fn compared_text(compared: &RecordsCompared<'_>, layout: TextLayout) -> String {
    let mut page = Page::new(layout);
    head(&mut page, compared);
    differing(&mut page, compared);
    for stage in &compared.stages {
        table(&mut page, compared, stage);
    }
    for network in &compared.networks {
        network_table(&mut page, compared, network);
    }
    for history in &compared.histories {
        write_history(&mut page, compared, history);
    }
    answers(&mut page, compared);
    recordings(&mut page, compared);
    page.text()
}

/// What the intervals are, and what they do not show.
pub(super) fn note(compared: &RecordsCompared<'_>) -> String {
    let mut questions = compared.stages.iter().flat_map(|stage| &stage.questions);
    let across = questions.any(|question| question.pairs.iter().any(|pair| pair.basis == PairBasis::Repeats));
    let across = across || compared.networks.iter().any(|network| !network.pairs.is_empty());
    let method = if across {
        "from pairs of the same round within a record, by Welch's method between records; how much one day differs from \
         another is not in them, three records or more of a target show that"
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

/// The sentence of a pair; where cells contradict each other it says so.
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

/// The sentence of a pair of what is needed.
pub(super) fn need(pair: &SubjectPair, margin: f64) -> String {
    let [first, second] = [pair.first, pair.second].map(letter);
    format!("processor time for a GB: {}", pair.effect.need_words(margin, &first, &second))
}

/// `+12 % faster`, of the second shown against the first; `=` where no difference counts, `?` where it is not decided.
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

/// What a cell says of the second shown against the first; none unless there are two.
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

/// The rate of a subject in a row, or why there is none.
pub(super) fn figure(stage: &AlignedStage<'_>, row: &AlignedCell<'_>, subject: usize) -> String {
    let question = stage.questions.iter().find(|question| question.phase == row.phase);
    let known = row.outcome(subject).zip(question);
    known.map_or_else(
        || words::NONE.into(),
        |(outcome, question)| words::rate_or_bound(outcome, question.quantity),
    )
}

/// `carries it 1.23 times (1.19 to 1.28)`, with what it rests on.
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

/// The sentences of what is taken in the long run.
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
    let words = step.effect.words(compared.margin, "what follows", "what came before");
    let p = if step.p < 0.001 { "p < 0.001".into() } else { format!("p = {:.3}", step.p) };
    let test = match step.test {
        ChangeTest::Permutation => "permutations of the runs",
        ChangeTest::Normal => "Student's t, for so few runs have too few permutations",
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

/// What is said of a sequence without a step.
pub(super) fn without_step(compared: &RecordsCompared<'_>, sequence: &RunSequence) -> String {
    let what = format!("{}, {}", sequence.stage, sequence.phase.name());
    let margin = compared.margin;
    let Some(trend) = &sequence.trend else {
        return format!("{what}: no step and no trend of more than {margin} % that noise does not explain");
    };
    let moves = if trend.log_ratio > 0.0 { "rises" } else { "falls" };
    let words = trend.words(margin, "the last run", "the first");
    format!("{what}: no step; it {moves}: by a straight line through all runs {words}")
}

/// What the steps of all histories rest on.
pub(super) fn history_note(compared: &RecordsCompared<'_>) -> String {
    let count: usize = compared.histories.iter().map(|history| history.sequences.len()).sum();
    format!(
        "A step is named where its p-value, over all {count} sequences that were looked at, is at most 5 %, and where it is larger \
         than {} %. The unit is the run.",
        compared.margin
    )
}

fn head(page: &mut Page, compared: &RecordsCompared<'_>) {
    page.paragraph(BOLD, "", &title(compared));
    for (index, subject) in compared.subjects.iter().enumerate() {
        let text = format!("{}: {}", subject.name, origin(compared, index));
        page.paragraph("", &format!("  {:<3}", letter(index)), &text);
    }
}

fn differing(page: &mut Page, compared: &RecordsCompared<'_>) {
    if compared.differing.is_empty() {
        return;
    }
    page.line("", "");
    page.line(BOLD, "WHAT DIFFERS BESIDES");
    for differing in &compared.differing {
        page.paragraph("", "  - ", &fact(differing));
    }
}

/// Rates of all that are compared in pairs.
fn table(page: &mut Page, compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>) {
    page.line("", "");
    let name = clipped(&stage.name.to_uppercase(), page.width());
    page.line(BOLD, &name);
    page.paragraph(DIM, "  ", &stage.common);
    for columns in FigureColumns::all(page, &compared.shown) {
        rows(page, compared, stage, &columns);
    }
    for of in &stage.lone {
        page.paragraph(YELLOW, "  ", &lone(of));
    }
}

fn rows(page: &mut Page, compared: &RecordsCompared<'_>, stage: &AlignedStage<'_>, columns: &FigureColumns) {
    columns.head(page);
    for (index, row) in stage.rows.iter().enumerate() {
        let figures = columns.shown.iter().map(|subject| figure(stage, row, *subject));
        let effect = cell_effect(compared, stage, index);
        let effect = effect.map(|effect| against_first(&effect, compared.margin));
        columns.row(page, &row.words(), figures, effect);
        invalid(page, row, &columns.shown);
    }
}

/// Figures of some subjects beside each other, and of two how the second differs from the first, if there is room.
pub(super) struct FigureColumns {
    pub(super) shown: Vec<usize>,
    left: usize,
    has_difference: bool,
}

impl FigureColumns {
    /// As many tables below each other as it takes.
    pub(super) fn all(page: &Page, shown: &[usize]) -> Vec<Self> {
        let beside = ((page.width() - LEFT_LEAST) / FIGURE).clamp(1, FIGURES_MOST);
        let is_pair = shown.len() == 2;
        shown.chunks(beside).map(|some| FigureColumns::of(page, some, is_pair)).collect()
    }

    fn of(page: &Page, shown: &[usize], is_pair: bool) -> Self {
        let figures = FIGURE * shown.len();
        let has_difference = is_pair && shown.len() == 2 && page.width() >= LEFT_LEAST + figures + AGAINST;
        let left = page.width() - figures - if has_difference { AGAINST } else { 0 };
        FigureColumns { shown: shown.to_vec(), left, has_difference }
    }

    pub(super) fn head(&self, page: &mut Page) {
        let difference = match self.shown[..] {
            [first, second] if self.has_difference => {
                format!("{:>AGAINST$}", format!("{} to {}", letter(second), letter(first)))
            }
            _ => String::new(),
        };
        let names = in_columns(self.shown.iter().map(|subject| letter(*subject)));
        let left = self.left;
        page.line(DIM, &format!("{:left$}{names}{difference}", ""));
    }

    /// What does not fit beside its figures stands above them.
    pub(super) fn row(
        &self,
        page: &mut Page,
        words: &str,
        figures: impl Iterator<Item = String>,
        difference: Option<String>,
    ) {
        let left = self.left;
        let difference = difference.filter(|_| self.has_difference);
        let difference = difference.map_or_else(String::new, |words| format!("{words:>AGAINST$}"));
        let fits = words.chars().count() + 3 <= left;
        if !fits {
            page.paragraph("", "  ", words);
        }
        let label = if fits { format!("  {words}") } else { String::new() };
        page.line("", &format!("{label:<left$}{}{difference}", in_columns(figures)));
    }
}

fn in_columns(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!("{text:>FIGURE$}")).collect::<Vec<_>>().concat()
}

/// Why repeats can't be used.
fn invalid(page: &mut Page, row: &AlignedCell<'_>, shown: &[usize]) {
    for &subject in shown {
        for line in row.outcome(subject).into_iter().flat_map(words::invalid) {
            page.paragraph(RED, &format!("      {} ", letter(subject)), &line);
        }
    }
}

fn answers(page: &mut Page, compared: &RecordsCompared<'_>) {
    let mut questions = compared.stages.iter().flat_map(|stage| &stage.questions);
    let is_networks = compared.networks.iter().any(|network| !network.pairs.is_empty());
    if !is_networks && questions.all(|question| question.pairs.is_empty()) {
        return;
    }
    page.line("", "");
    page.line(BOLD, "COMPARED");
    for stage in &compared.stages {
        page.paragraph("", "  ", stage.name);
        let widest = stage.questions.iter().map(|question| question.phase.name().len()).max().unwrap_or(0);
        for question in &stage.questions {
            let mut first = format!("    {:<widest$}  ", question.phase.name());
            let pairs = question.pairs.iter().map(|of| pair(of, compared.margin));
            for sentence in pairs.chain(question.needs.iter().map(|of| need(of, compared.margin))) {
                page.paragraph("", &first, &sentence);
                first = " ".repeat(first.len());
            }
        }
    }
    for network in &compared.networks {
        network_answers(page, network, compared.margin);
    }
    page.paragraph(DIM, "  ", &note(compared));
}

fn recordings(page: &mut Page, compared: &RecordsCompared<'_>) {
    for recording in &compared.recordings {
        page.line("", "");
        page.paragraph(BOLD, "", &format!("RECORDED: {}", recording.instrument));
        for (subject, found) in recording.verdicts.iter().enumerate() {
            let Some(found) = found else { continue };
            page.paragraph("", &format!("  {:<3}", letter(subject)), &verdict(found));
        }
        for sentence in long_run(recording, compared.margin) {
            page.paragraph("", "    - ", &sentence);
        }
    }
}

fn write_history(page: &mut Page, compared: &RecordsCompared<'_>, history: &TargetHistory) {
    page.line("", "");
    page.paragraph(BOLD, "", &format!("HISTORY of {}: {} runs", history.path, history.runs.len()));
    for sequence in &history.sequences {
        write_sequence(page, compared, sequence);
    }
    for sequence in &history.sequences {
        for of in &sequence.steps {
            page.paragraph(YELLOW, "  ", &step(compared, sequence, of));
        }
        if sequence.steps.is_empty() {
            page.paragraph("", "  ", &without_step(compared, sequence));
        }
    }
    page.paragraph(DIM, "  ", &history_note(compared));
}

/// A line a run: which, when, its rate, and a bar.
fn write_sequence(page: &mut Page, compared: &RecordsCompared<'_>, sequence: &RunSequence) {
    let over = if sequence.cells > 1 { format!(", mean of {} cells", sequence.cells) } else { String::new() };
    page.paragraph(DIM, "  ", &format!("{}, {}{over}", sequence.stage, sequence.phase.name()));
    let most = sequence.points.iter().map(|point| point.log).fold(f64::NEG_INFINITY, f64::max);
    let hidden = sequence.points.len().saturating_sub(RUNS_MOST);
    if hidden > 0 {
        page.paragraph(DIM, "    ", &format!("({hidden} earlier runs are in the page and in JSON)"));
    }
    for point in &sequence.points[hidden..] {
        let started: String =
            compared.results(point.subject).started.replace('T', " ").chars().take(16).collect();
        let half = point.half.map_or_else(String::new, |half| format!("±{:>3.0} %", 100.0 * half.exp_m1()));
        let rate = format!("{} {half}", sequence.quantity.show(point.rate()));
        let left = format!("    {:<4}{:<17}{rate:>19}  ", letter(point.subject), clipped(&started, 16));
        let room = page.width().saturating_sub(left.chars().count()).min(BAR_MOST);
        #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
        let bar = ((point.log - most).exp() * room as f64).round() as usize;
        page.line("", &format!("{left}{}", "#".repeat(bar)));
    }
}

/// Characters of the longest bar.
const BAR_MOST: usize = 40;
