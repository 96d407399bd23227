//! A report before it has a format: sections of paragraphs, notes, tables and charts. Nothing here knows a
//! format, and no renderer knows a finding.
//!
//! ```text
//! Study -> sections (a file for each finding) -> Document -> render (terminal, Markdown, HTML)
//! ```

use std::fmt::{self, Display};

use crate::{chart::Chart, in_line::in_line};

/// A whole report.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Document {
    /// The first line.
    pub(crate) title: String,
    /// The time, place and tools of the measurement.
    pub(crate) origin: String,
    /// The targets by their letters.
    pub(crate) targets: Vec<TargetLine>,
    /// In the order in which a reader meets them.
    pub(crate) sections: Vec<Section>,
}

/// A target in the head of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetLine {
    pub(crate) letter: String,
    pub(crate) text: String,
    /// The reason why the target was left out at some point; empty if it was not.
    pub(crate) left_out: String,
}

impl TargetLine {
    /// The target in one line.
    pub(crate) fn line(&self) -> String {
        if self.left_out.is_empty() {
            self.text.clone()
        } else {
            format!("{}: left out: {}", self.text, self.left_out)
        }
    }
}

/// The level of detail of a report. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The answers, a line for each figure, and the warnings: one screen.
    Short,
    /// Also the margin of each instrument of the catalogue, predicted from the figures.
    Predicted,
    /// All findings, with every latency and limit, and the properties of the storage.
    Full,
    /// Also content for which only a page has room: charts, every statistic of each figure, and how to repeat
    /// it.
    Page,
}

/// A heading and its blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    pub(crate) level: Level,
    pub(crate) heading: Heading,
    pub(crate) blocks: Vec<Block>,
    /// The least detailed report that has it.
    pub(crate) detail: Detail,
    /// The link target for other parts of a page, or `None` if nothing links to it.
    pub(crate) anchor: Option<Anchor>,
    pub(crate) medium: Medium,
}

/// A place in a page to link to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Unique in the document, of letters, digits and `-`.
    pub(crate) id: String,
    /// The entry in the list of contents; empty if there is none.
    pub(crate) contents: String,
}

/// The media on which a page shows a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    ScreenAndPaper,
    /// Printed, it would be many sheets.
    Screen,
}

/// The position of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// By itself.
    Section,
    /// Within the section before it.
    Part,
}

/// A heading such as `Siblings: write, block size 1 MiB`. The label names the finding, the rest its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) label: String,
    /// With the space or colon before it; empty if the label says all.
    pub(crate) rest: String,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Paragraph(Sentence),
    /// Each with a mark before it.
    List(Vec<Sentence>),
    Table(Table),
    /// Drawings of data that sentences and tables contain too. Only a page has them.
    Charts(Vec<Chart>, Arrangement),
    /// The colours and signs of charts, with their meanings.
    Key(Vec<KeyEntry>),
    /// Rates of targets, drawn as bars beside their comparison.
    Glance(Vec<Glance>),
    /// Content that stays closed until the reader opens it.
    Fold(Fold),
    /// To be copied as it is.
    Code(String),
    /// A line for each in a terminal, a table elsewhere.
    Facts(Vec<NamedFact>),
    /// At the top of a page.
    Answer(Answer),
    /// Beside the answers.
    Aside(Aside),
}

/// The arrangement of drawings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrangement {
    Beside,
    /// Below each other, over the same axis.
    Under,
}

/// A series of charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    pub(crate) series: usize,
    /// The letter of a target; empty if the series is none.
    pub(crate) letter: String,
    pub(crate) text: String,
}

/// The answer of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) tone: Tone,
    /// `Yes`.
    pub(crate) reply: String,
    /// With the evidence.
    pub(crate) sentence: Sentence,
}

/// The gravest of many sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) heading: String,
    pub(crate) sentences: Vec<String>,
    /// A line for the others, and the id of the section that has them.
    pub(crate) more: Option<(String, String)>,
}

/// Blocks below a line of text that opens them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    pub(crate) summary: String,
    pub(crate) is_open: bool,
    pub(crate) blocks: Vec<Block>,
}

/// The rates of a stage's phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Glance {
    /// The stage at its first phase, then empty.
    pub(crate) name: String,
    /// The section of the stage.
    pub(crate) id: String,
    pub(crate) phase: String,
    pub(crate) rates: Vec<GlanceRate>,
    pub(crate) sentences: Vec<Sentence>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GlanceRate {
    /// Index of the target.
    pub(crate) target: usize,
    /// The length of the bar as a share of the longest, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) cell: Cell,
}

/// Text that belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The target or machine that the text is about, in front of it; empty if the text names it.
    pub(crate) lead: String,
    pub(crate) text: String,
    pub(crate) tone: Tone,
    /// The samples behind the statement, which a page shows under the pointer; empty if it has none.
    pub(crate) origin: String,
    /// Sentences that explain this one.
    pub(crate) more: Vec<Sentence>,
}

/// The prominence of a sentence or a figure. A renderer without colours uses signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Text as any other.
    Plain,
    /// Less important than the text next to it.
    Soft,
    /// A condition that holds.
    Good,
    /// Not sure, or to be careful with.
    Doubtful,
    /// A fault.
    Bad,
}

/// A text with its name, such as `missing` and `3 frames: 4-6`. It has no control characters, because names of
/// foreign files may contain any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFact {
    /// Empty if the text continues the fact before it.
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// Rows of cells below columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// A column. Units stand in its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) heading: String,
    pub(crate) role: Role,
    /// Columns of the lowest rank are dropped first if there is no room; `None` if the column always stays.
    pub(crate) rank: Option<u8>,
    /// Minimum width in letters, so that several tables of a report line up.
    pub(crate) least: usize,
    /// Number of letters that a line of text has room for; longer texts are cut.
    pub(crate) most: Option<usize>,
}

/// The kind of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Warns that a row's figures must not be used, before the reader sees them. If no row has a mark, there is
    /// no column.
    Mark,
    /// Names a group of rows. A terminal shows it once for each group, and above it if there is no room beside it.
    Label,
    /// Names a row within its label. A terminal shows it once for rows that share it.
    Group,
    Name,
    Figure,
    /// Text that may be wrapped. At the end of a table only.
    Sentence,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// One for each column.
    pub(crate) cells: Vec<Cell>,
    /// Reasons why the row's figures must not be used.
    pub(crate) notes: Vec<RowNote>,
}

/// A cell of a table: a line, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) lines: Vec<String>,
    pub(crate) tone: Tone,
    /// The origin of the figure, which a page shows under the pointer; empty if there is none.
    pub(crate) origin: String,
}

/// The reason why a row's figures must not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowNote {
    pub(crate) text: String,
    /// The part of the text that may stand at many rows.
    pub(crate) reason: String,
}

impl Heading {
    pub(crate) fn of(label: impl Into<String>) -> Self {
        Heading { label: label.into(), rest: String::new() }
    }

    pub(crate) fn with(label: impl Into<String>, rest: impl Into<String>) -> Self {
        Heading { label: label.into(), rest: rest.into() }
    }
}

impl Section {
    /// One by itself, which every report has.
    pub(crate) fn new(heading: Heading, blocks: Vec<Block>) -> Self {
        Section {
            level: Level::Section,
            heading,
            blocks,
            detail: Detail::Short,
            anchor: None,
            medium: Medium::ScreenAndPaper,
        }
    }

    /// A part of the section before it.
    pub(crate) fn part(heading: Heading, blocks: Vec<Block>) -> Self {
        Section { level: Level::Part, ..Section::new(heading, blocks) }
    }

    /// Leaves the section out of less detailed reports.
    pub(crate) fn from(self, detail: Detail) -> Self {
        Section { detail, ..self }
    }

    /// Makes the section a link target. An empty `contents` keeps it out of the list of contents.
    pub(crate) fn at(self, id: impl Into<String>, contents: impl Into<String>) -> Self {
        Section { anchor: Some(Anchor { id: id.into(), contents: contents.into() }), ..self }
    }

    pub(crate) fn on_screen(self) -> Self {
        Section { medium: Medium::Screen, ..self }
    }
}

impl Block {
    pub(crate) fn soft(text: impl Into<String>) -> Self {
        Block::Paragraph(Sentence { tone: Tone::Soft, ..Sentence::new(text) })
    }

    pub(crate) fn list(sentences: impl IntoIterator<Item = String>) -> Self {
        Block::List(sentences.into_iter().map(Sentence::new).collect())
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Block::Paragraph(Sentence::new(text))
    }

    /// Beside each other.
    pub(crate) fn charts(charts: Vec<Chart>) -> Self {
        Block::Charts(charts, Arrangement::Beside)
    }

    /// Blocks that stay closed until the reader opens them.
    pub(crate) fn closed(summary: impl Into<String>, blocks: Vec<Block>) -> Self {
        Block::Fold(Fold { summary: summary.into(), is_open: false, blocks })
    }
}

impl Sentence {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Sentence {
            lead: String::new(),
            text: text.into(),
            tone: Tone::Plain,
            origin: String::new(),
            more: Vec::new(),
        }
    }

    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Sentence { tone, ..Sentence::new(text) }
    }

    pub(crate) fn from(self, origin: impl Into<String>) -> Self {
        Sentence { origin: origin.into(), ..self }
    }

    /// Puts the name of the target or machine in front of the text.
    pub(crate) fn led(self, lead: impl Into<String>) -> Self {
        Sentence { lead: lead.into(), ..self }
    }
}

impl Column {
    pub(crate) fn new(role: Role, heading: impl Into<String>) -> Self {
        Column { heading: heading.into(), role, rank: None, least: 0, most: None }
    }

    /// A figure that always stays.
    pub(crate) fn figure(heading: impl Into<String>) -> Self {
        Column::new(Role::Figure, heading)
    }

    pub(crate) fn ranked(self, rank: u8) -> Self {
        Column { rank: Some(rank), ..self }
    }

    pub(crate) fn at_least(self, least: usize) -> Self {
        Column { least, ..self }
    }

    pub(crate) fn at_most(self, most: usize) -> Self {
        Column { most: Some(most), ..self }
    }
}

impl NamedFact {
    /// Makes a fact.
    pub fn new(name: &'static str, text: impl Display) -> Self {
        NamedFact::toned(Tone::Plain, name, text)
    }

    /// Makes a fact of this prominence.
    pub fn toned(tone: Tone, name: &'static str, text: impl Display) -> Self {
        NamedFact { name, text: in_line(text), tone }
    }
}

/// The line of a terminal. Texts of other facts begin in the same column.
impl Display for NamedFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<11} {}", self.name, self.text)
    }
}

impl Table {
    /// The facts below two columns without headings. Facts that share a name, one after the other, share a row.
    pub(crate) fn of_facts(facts: &[NamedFact]) -> Self {
        let continues =
            |before: &NamedFact, next: &NamedFact| next.name.is_empty() || next.name == before.name;
        let columns = [Role::Name, Role::Sentence].map(|role| Column::new(role, "")).to_vec();
        Table { columns, rows: facts.chunk_by(continues).map(Row::of_facts).collect() }
    }
}

impl Row {
    /// The facts of a name, a line each.
    fn of_facts(facts: &[NamedFact]) -> Self {
        let lines = facts.iter().map(|fact| fact.text.clone()).collect();
        Row::of([Cell::new(facts[0].name), Cell { lines, ..Cell::toned(facts[0].tone, "") }])
    }

    pub(crate) fn of(cells: impl IntoIterator<Item = Cell>) -> Self {
        Row { cells: cells.into_iter().collect(), notes: Vec::new() }
    }
}

impl Cell {
    pub(crate) fn new(text: impl Display) -> Self {
        Cell::toned(Tone::Plain, text)
    }

    pub(crate) fn toned(tone: Tone, text: impl Display) -> Self {
        Cell { lines: vec![text.to_string()], tone, origin: String::new() }
    }

    pub(crate) fn from(self, origin: impl Into<String>) -> Self {
        Cell { origin: origin.into(), ..self }
    }
}
