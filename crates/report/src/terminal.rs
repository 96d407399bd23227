//! The report in a terminal: as wide as that is, units everywhere, the answers last, where they are seen. Tables drop columns
//! where there is no room for them, and paragraphs are wrapped: no line is wider than the terminal.

use nilometer_model::plan::Phase;

use nilometer_analysis::{CellOutcome, Grade, Quantity, Question, Study, StudyStage, letter};

use super::{
    growth,
    latency_columns::{LatencyColumn, shown},
    packets, words,
};

/// Whether the terminal shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Text and nothing else.
    Plain,
    /// With ANSI escape sequences for colour and weight.
    Coloured,
}

impl Palette {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Palette::Coloured if !text.is_empty() && !code.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

pub(super) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";
pub(super) const RED: &str = "1;31";
pub(super) const GREEN: &str = "1;32";
pub(super) const YELLOW: &str = "33";

/// How wide a text is, in columns, and whether it has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLayout {
    palette: Palette,
    width: usize,
}

/// Wider text is hard to read; in less no table has room.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=100;

impl TextLayout {
    /// For so many columns, or the nearest number that text can be written in: 60 to 100.
    pub fn new(palette: Palette, columns: usize) -> Self {
        TextLayout { palette, width: columns.clamp(*WIDTHS.start(), *WIDTHS.end()) }
    }

    /// Without colours and as wide as is easy to read: for a file, or another program.
    pub fn plain() -> Self {
        TextLayout::new(Palette::Plain, usize::MAX)
    }
}

/// Columns of real, user, system and wait time.
const TIMES: usize = 4 * 9;
/// Columns of a rate with its interval, and of a target's letter.
const RATE: usize = 19;
const LETTER: usize = 4;
/// Stages with more rows than this are shown by target, rates only.
const ROWS_MOST: usize = 40;
/// Targets beside each other at the most, and the columns of each.
const BESIDE: usize = 4;
const BESIDE_WIDTH: usize = 18;
/// What is left of them at the least.
const BESIDE_LEFT: usize = 24;

/// The whole report as text.
pub fn terminal(study: &Study<'_>, layout: TextLayout) -> String {
    let mut page = Page::new(layout);
    page.head(study);
    page.missing(study);
    for stage in &study.stages {
        page.stage(stage);
        page.times(stage);
        page.growths(study, stage);
        page.optima(stage);
        page.interferences(stage, study.results.margin);
        page.siblings(stage, study.results.margin);
    }
    page.curves(study);
    page.network(study);
    page.observed(study);
    page.storage(study);
    page.warnings(study);
    page.comparisons(study);
    page.prospects(study);
    page.verdicts(study);
    page.acceptance(study);
    page.text()
}

/// Text as it grows, line by line.
pub(super) struct Page {
    text: String,
    layout: TextLayout,
}

impl Page {
    pub(super) fn new(layout: TextLayout) -> Self {
        Page { text: String::new(), layout }
    }

    /// Columns there are.
    pub(super) fn width(&self) -> usize {
        self.layout.width
    }

    /// The columns of latencies that there is room for beside the rate.
    fn latencies(&self) -> Vec<LatencyColumn> {
        shown(self.width() - LETTER - RATE)
    }

    /// What is left of the figures: parameters and phase.
    fn left(&self) -> usize {
        let latencies: usize = self.latencies().iter().map(|column| column.width()).sum();
        self.width() - LETTER - RATE - latencies
    }

    pub(super) fn text(self) -> String {
        self.text
    }

    pub(super) fn line(&mut self, code: &str, text: &str) {
        let painted = self.layout.palette.paint(code, text.trim_end());
        self.text.push_str(&painted);
        self.text.push('\n');
    }

    /// A line of parts, each in its colour.
    pub(super) fn painted(&mut self, parts: impl Iterator<Item = (&'static str, String)>) {
        let mut parts: Vec<(&str, String)> = parts.collect();
        let end = parts.iter().rposition(|(_, text)| !text.trim_end().is_empty()).map_or(0, |last| last + 1);
        parts.truncate(end);
        if let Some((_, last)) = parts.last_mut() {
            last.truncate(last.trim_end().len());
        }
        let line: String = parts.iter().map(|(code, text)| self.layout.palette.paint(code, text)).collect();
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// `first` before the first line, as much space before the others.
    pub(super) fn paragraph(&mut self, code: &str, first: &str, text: &str) {
        let indent = first.chars().count();
        for (number, line) in wrapped(text, self.width() - indent).iter().enumerate() {
            let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            self.text.push_str(&before);
            self.line(code, line);
        }
    }

    fn head(&mut self, study: &Study<'_>) {
        self.paragraph(BOLD, "", &study.results.title);
        self.paragraph(DIM, "", &words::origin(study.results));
        self.line("", "");
        for (index, target) in study.results.targets.iter().enumerate() {
            let left_out = target.left_out.as_ref().map(|why| format!(": left out: {why}"));
            let text = words::target(study.results, index) + &left_out.unwrap_or_default();
            self.paragraph("", &format!("  {:<3}", letter(index)), &text);
        }
    }

    /// What a reader would else take for measured.
    fn missing(&mut self, study: &Study<'_>) {
        if study.missing.is_empty() {
            return;
        }
        self.line("", "");
        self.line(RED, &study.missing.title().to_uppercase());
        for sentence in study.missing.sentences() {
            self.paragraph("", "  - ", &sentence);
        }
    }

    fn stage(&mut self, stage: &StudyStage<'_>) {
        self.line("", "");
        if stage.outcomes.len() > ROWS_MOST && stage.targets().len() > 1 {
            self.line(BOLD, &clipped(&stage.name.to_uppercase(), self.width()));
            self.paragraph(DIM, "  ", &stage.common);
            for question in &stage.questions {
                for targets in stage.targets().chunks(self.beside_each_other()) {
                    self.beside(stage, question, targets);
                }
            }
            self.ceiling(stage);
            return;
        }
        let left = self.left();
        let name = padded(&clipped(&stage.name.to_uppercase(), left), left);
        let latencies: String = self.latencies().iter().map(|column| column.heading()).collect();
        self.line(BOLD, &format!("{name}{:LETTER$}{:>RATE$}{latencies}", "", "rate"));
        self.paragraph(DIM, "  ", &stage.common);
        let mut told = String::new();
        self.rows(stage, left, &mut |page, left, outcome| {
            page.row(left, outcome, stage.quantity(outcome), &mut told);
        });
        self.machines(stage);
        self.ceiling(stage);
    }

    /// Of figures that several processes came to: what a machine had of them, and who was behind.
    fn machines(&mut self, stage: &StudyStage<'_>) {
        for (outcome, words) in words::across_machines(stage) {
            let target = letter(outcome.target);
            self.paragraph(DIM, "  ", &format!("{} on {target}: {words}", outcome.phase.name()));
        }
    }

    /// How far the figures are from what the tool by itself can do, and what limits the highest.
    fn ceiling(&mut self, stage: &StudyStage<'_>) {
        if let Some(ceiling) = stage.ceiling {
            let code = if ceiling.is_near() { YELLOW } else { DIM };
            self.paragraph(code, "  ", &ceiling.words(stage));
        }
        for limits in &stage.limits {
            self.paragraph(DIM, "  ", &limits.words(stage.targets().len() > 1));
        }
    }

    /// Of a stage that copies: where the time went.
    fn times(&mut self, stage: &StudyStage<'_>) {
        if stage.question(Phase::Source).is_none() {
            return;
        }
        let width = self.left().min(self.width() - LETTER - TIMES);
        let figures = |texts: [&str; 4]| texts.map(|text| format!(" {text:>8}")).concat();
        self.line(DIM, &format!("{}{:LETTER$}{}", padded("  TIME", width), "", figures(words::TIMES)));
        self.rows(stage, width, &mut |page, left, outcome| {
            let times = words::times(outcome);
            let [left, target] = [padded(left, width), letter(outcome.target)];
            let times = figures(times.each_ref().map(String::as_str));
            page.line("", &format!("{left}{target:>LETTER$}{times}"));
        });
    }

    /// Of a stage that several targets do at once: what that adds.
    fn growths(&mut self, study: &Study<'_>, stage: &StudyStage<'_>) {
        for of in &stage.growths {
            self.paragraph(BOLD, "  ", &format!("ELEMENTS AT ONCE: {}", growth::heading(of)));
            let line = |[count, rate, share, ceiling]: [&str; 4]| {
                format!("  {count:>5} {rate:>RATE$}  {:<20} {ceiling:>9}", clipped(share, 20))
            };
            self.line(DIM, &line(["", "rate", "of each alone", "the tool"]));
            for at in &of.counts {
                let row = growth::row(of, at);
                self.line("", &line(row.each_ref().map(String::as_str)));
            }
            for sentence in growth::sentences(of, study.results.margin) {
                self.paragraph("", "  - ", &sentence);
            }
        }
    }

    /// A row for each outcome; parameters and phase where they change, in so many columns.
    fn rows(
        &mut self,
        stage: &StudyStage<'_>,
        left: usize,
        row: &mut dyn FnMut(&mut Self, &str, &CellOutcome<'_>),
    ) {
        let phases = stage.questions.iter().map(|question| question.phase.name().len()).max();
        let phases = phases.unwrap_or(0);
        let labels = stage.cells.iter().map(|cell| chars(&cell.label)).max().unwrap_or(0);
        let labels = if labels + phases + 4 > left { 0 } else { labels };
        let (mut last_cell, mut last_phase) = (None, None);
        for outcome in &stage.outcomes {
            let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
            let new_cell = last_cell.replace(outcome.cell) != Some(outcome.cell);
            if new_cell && labels == 0 && !label.is_empty() {
                self.paragraph("", "  ", label);
            }
            let new_phase = last_phase.replace(outcome.phase) != Some(outcome.phase) || new_cell;
            let label = if new_cell && labels > 0 { label } else { "" };
            let phase = if new_phase { outcome.phase.name() } else { "" };
            let gap = if labels > 0 { "  " } else { "" };
            row(self, &format!("  {}{gap}{}", padded(label, labels), padded(phase, phases)), outcome);
        }
    }

    /// `told` is the kind of reason that was given last for invalid repeats: it is not repeated at every row.
    fn row(&mut self, left: &str, outcome: &CellOutcome<'_>, quantity: Quantity, told: &mut String) {
        let left = padded(left, self.left());
        let latencies = self.latencies();
        let target = letter(outcome.target);
        let again = matches!(outcome.invalid.as_slice(), [reason] if reason.worst.what() == told);
        let figures = words::rate(outcome, quantity).map(|rate| figures(&rate, outcome, &latencies));
        let known = figures.or_else(|| Some(format!("{:>RATE$}", words::at_least(outcome, quantity)?)));
        let all = outcome.samples.len();
        match known {
            Some(known) => self.line("", &format!("{left}{target:>LETTER$}{known}")),
            None if again => {
                let invalid = format!("INVALID in {all} of {all} repeats: as above");
                return self.paragraph(RED, &format!("{left}{target:>LETTER$} "), &invalid);
            }
            None => self.line("", &format!("{left}{target:>LETTER$}")),
        }
        for (line, reason) in words::invalid(outcome).into_iter().zip(&outcome.invalid) {
            let what = reason.worst.what();
            let line = if what == told { line.replace(what, "as above") } else { line };
            self.paragraph(RED, "      ", &line);
            what.clone_into(told);
        }
    }

    /// A row for each cell, a column for each of a few targets.
    fn beside(&mut self, stage: &StudyStage<'_>, question: &Question, targets: &[usize]) {
        let letters = columns(targets.iter().map(|target| letter(*target)));
        let left = self.width() - BESIDE_WIDTH * self.beside_each_other() + 1;
        self.line(DIM, &format!("{}{letters}", padded(&format!("  {}", question.phase.name()), left)));
        for cell in &stage.cells {
            let in_row = |o: &&CellOutcome<'_>| o.cell == cell.index && o.phase == question.phase;
            let row: Vec<&CellOutcome<'_>> = stage.outcomes.iter().filter(in_row).collect();
            let rate = |target: &usize| match row.iter().find(|o| o.target == *target) {
                Some(outcome) => words::rate_or_bound(outcome, question.quantity),
                None => words::NONE.into(),
            };
            let rates = columns(targets.iter().map(rate));
            let label = format!("  {}", cell.label);
            if chars(&label) > left {
                self.paragraph("", "  ", &cell.label);
                self.line("", &format!("{}{rates}", padded("", left)));
            } else {
                self.line("", &format!("{}{rates}", padded(&label, left)));
            }
        }
    }

    /// Targets that have room beside what they are compared in.
    fn beside_each_other(&self) -> usize {
        ((self.width() - BESIDE_LEFT) / BESIDE_WIDTH).clamp(1, BESIDE)
    }

    /// What recording packets costs: a row for each rate, a column for each size.
    fn curves(&mut self, study: &Study<'_>) {
        let tables = study.curves.chunk_by(|a, b| (a.target, a.onto_nothing) == (b.target, b.onto_nothing));
        for curves in tables {
            self.line("", "");
            self.paragraph(BOLD, "", &packets::heading(&curves[0]).to_uppercase());
            self.paragraph(DIM, "  ", packets::LEGEND);
            let sizes = ((self.width() - 2) / packets::COLUMN).saturating_sub(1).max(1);
            for row in curves.chunks(sizes).flat_map(packets::table) {
                self.line("", &format!("  {row}"));
            }
            for sentence in curves.iter().map(packets::begins) {
                self.paragraph("", "  ", &sentence);
            }
        }
    }

    fn warnings(&mut self, study: &Study<'_>) {
        if study.warnings.is_empty() {
            return;
        }
        self.line("", "");
        self.line(BOLD, "KEEP IN MIND");
        for warning in &study.warnings {
            let (sign, code) = match warning.grade() {
                Grade::Grave => ("!!", RED),
                Grade::Caution => (" !", YELLOW),
                Grade::Note => (" -", ""),
            };
            let advice = warning.advice().map(|advice| format!(" ({advice})")).unwrap_or_default();
            self.paragraph(code, &format!("  {sign} "), &format!("{warning}{advice}"));
        }
    }

    fn comparisons(&mut self, study: &Study<'_>) {
        let comparisons = words::comparisons(study);
        if comparisons.is_empty() {
            return;
        }
        self.line("", "");
        self.line(BOLD, "COMPARED");
        let widest = comparisons.iter().map(|(_, phase, _)| phase.len()).max().unwrap_or(0);
        let mut last = "";
        for (stage, phase, sentences) in comparisons {
            if stage != last {
                last = stage;
                self.paragraph("", "  ", stage);
            }
            let mut first = format!("    {phase:<widest$}  ");
            for sentence in sentences {
                self.paragraph("", &first, &sentence);
                first = " ".repeat(first.len());
            }
        }
        self.paragraph(DIM, "  ", &words::margin_note(study.results));
    }
}

/// Rate, latencies and cores in their columns.
fn figures(rate: &str, outcome: &CellOutcome<'_>, latencies: &[LatencyColumn]) -> String {
    let gap = if rate.contains('±') { "" } else { "        " };
    let latencies: String = latencies.iter().map(|column| column.figure(outcome)).collect();
    format!("{:>RATE$}{latencies}", format!("{rate}{gap}"))
}

/// Figures beside each other.
fn columns(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!("{text:>17}")).collect::<Vec<_>>().join(" ")
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// At most `width` characters.
pub(super) fn clipped(text: &str, width: usize) -> String {
    if chars(text) <= width {
        return printable(text);
    }
    printable(&text.chars().take(width - 1).collect::<String>()) + "…"
}

/// Names may hold anything, also what would command the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Lines of at most `width` characters, broken at spaces, and within a word that is longer; none of no text.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = printable(text);
    let pieces = text.split(' ').filter(|word| !word.is_empty()).flat_map(|word| pieces(word, width));
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if chars(line) + 1 + chars(&piece) <= width => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}

fn pieces(word: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_within_long_words() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("a longword b", 4), ["a", "long", "word", "b"]);
        assert_eq!(wrapped("", 4), [""; 0]);
        assert_eq!(wrapped("a\x1b[31m", 9), ["a\u{fffd}[31m"]);
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        assert_eq!(Palette::Plain.paint(RED, "x"), "x");
        assert_eq!(Palette::Coloured.paint(RED, "x"), "\x1b[1;31mx\x1b[0m");
    }
}
