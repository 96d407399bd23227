//! The rounds of a line and their results: each figure beside the same figure with one assumption changed.
//! Also the options that the cell lacks.

use nilometer_analysis::{LineDifference, NamedRates, Quantity};
use nilometer_command_lines::{ForeignLine, LineAccess, MdtestOperation};
use nilometer_model::{Invalid, Phase, Sample, TargetDescription};
use nilometer_plan::Results;

use super::variant::{ALL, AS_THE_LINE_SAYS, LineVariant};

/// The end of the time that counts for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineClock {
    /// The last file is closed, and synced if the line asks for that.
    UntilClosed,
    /// The last block is written.
    UntilWritten,
}

/// The name of the variant with the other clock.
const CLOCK: &str = "the clock stops at the last write";

/// A figure that a line gives.
pub(super) struct LineFigure {
    /// The name that the program prints; empty for its only figure.
    pub(super) name: &'static str,
    /// Our phase for it; `None` for the last one that moves data.
    phase: Option<Phase>,
    quantity: Quantity,
}

/// The figures that a line gives.
pub(super) fn figures(line: &ForeignLine) -> Vec<LineFigure> {
    match &line.tree {
        None => vec![LineFigure { name: "", phase: None, quantity: Quantity::Bytes }],
        Some(tree) => {
            let of = |MdtestOperation { name, phase, .. }| LineFigure {
                name,
                phase: Some(phase),
                quantity: Quantity::Operations,
            };
            tree.figures().into_iter().map(of).collect()
        }
    }
}

/// The rounds measured until now.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) ours: Vec<Results>,
    /// Each figure of the line, by round; `None` if it printed no rate.
    pub(super) theirs: Vec<Vec<Option<f64>>>,
    /// The rate of the source of the line's data alone.
    pub(super) sources: Vec<Option<f64>>,
}

/// Rounds, with all facts for the report.
pub(super) struct RoundsReport<'a> {
    pub(super) line: &'a ForeignLine,
    pub(super) target: &'a TargetDescription,
    pub(super) variants: &'a [LineVariant],
    pub(super) rounds: &'a Rounds,
    /// Differences below this many percent do not count.
    pub(super) margin: f64,
}

/// The remark if a cell differs from the line's own figure although it has every option.
const ALL_TAKEN: &str = "Nilometer took over every option of the line. The program itself makes the difference, or \
                         the state of its files and of the caches when it ran.";

impl RoundsReport<'_> {
    /// The text for the terminal.
    pub(super) fn text(&self) -> String {
        let RoundsReport { line, target, rounds, .. } = self;
        let on = format!("{} ({})", target.address, target.file_system);
        let mut lines = vec![format!(
            "{on}, {}, {}",
            work(line),
            crate::tell::counted(rounds.ours.len() as u64, "round")
        )];
        let mut is_missed = false;
        for (number, figure) in figures(line).iter().enumerate() {
            let heading = if figure.name.is_empty() { String::new() } else { format!("{}\n", figure.name) };
            let difference = self.difference(figure, number);
            is_missed |= difference.is_missed(self.margin);
            lines.push(format!("\n{heading}{}", difference.text(self.margin)));
        }
        let not_taken = &line.left_out.not_taken;
        lines.extend((is_missed && not_taken.is_empty()).then(|| ALL_TAKEN.to_owned()));
        lines.extend(self.variants.iter().filter_map(|variant| self.not_valid(variant.name)));
        lines.extend(not_taken.iter().map(|what| format!("Not taken over from the line: {what}.")));
        let without_effect = line.left_out.without_effect.join(", ");
        lines.extend((!without_effect.is_empty()).then(|| format!("Without effect here: {without_effect}.")));
        lines.join("\n") + "\n"
    }

    /// A figure of the line beside the figure with each assumption changed.
    fn difference(&self, figure: &LineFigure, number: usize) -> LineDifference {
        let RoundsReport { line, variants, rounds, .. } = self;
        let by_clock = |name: &str, stage: &str, clock: LineClock| NamedRates {
            name: name.to_owned(),
            rates: rounds.ours.iter().map(|results| rate(results, stage, figure, clock)).collect(),
        };
        let of = |variant: &LineVariant| by_clock(variant.name, variant.name, LineClock::UntilClosed);
        let named = |name: &str| variants.iter().find(|variant| variant.name == name).map(of);
        let others = variants.iter().filter(|variant| ![AS_THE_LINE_SAYS, ALL].contains(&variant.name));
        let program = format!("{} itself", line.program.name());
        let theirs = rounds.theirs.iter().map(|round| round.get(number).copied().flatten());
        // The same measurement by another clock.
        let is_written =
            line.tree.is_none() && matches!(line.way, LineAccess::Write | LineAccess::RandomWrite);
        let clock = is_written.then(|| by_clock(CLOCK, AS_THE_LINE_SAYS, LineClock::UntilWritten));
        LineDifference {
            quantity: figure.quantity,
            own: of(&variants[0]),
            program: (!rounds.theirs.is_empty())
                .then(|| NamedRates { name: program, rates: theirs.collect() }),
            source: self.source(),
            turned: others.map(of).chain(clock).collect(),
            all: named(ALL),
        }
    }

    /// The source of the line's data alone, if it is a device that was read.
    fn source(&self) -> Option<NamedRates> {
        let source = self.line.source.as_ref()?;
        let is_known = self.rounds.sources.iter().any(Option::is_some);
        let name = format!("its source alone, {}", source.display());
        is_known.then(|| NamedRates { name, rates: self.rounds.sources.clone() })
    }

    /// The number of rounds in which a cell has no valid figure, with the first reason.
    fn not_valid(&self, stage: &str) -> Option<String> {
        let ours = &self.rounds.ours;
        let figures = figures(self.line);
        let is_known = |results: &&Results| {
            figures.iter().all(|figure| rate(results, stage, figure, LineClock::UntilClosed).is_some())
        };
        let without: Vec<&Results> = ours.iter().filter(|results| !is_known(results)).collect();
        let results = without.first()?;
        let cell = results.cells.iter().position(|cell| cell.stage == stage)?;
        let mut of_cell = results.samples.iter().filter(|of| (of.key.cell, of.key.target) == (cell, 0));
        let why = of_cell.find_map(|of| of.sample.invalid.as_ref().map(|why| reason(why, &of.sample)));
        let why = why.unwrap_or_else(|| "it was not measured".to_owned());
        Some(format!("No figure of \"{stage}\" in {} of {} rounds: {why}.", without.len(), ours.len()))
    }
}

/// `1 GiB by 1 MiB, 4 workers, at most 10 s`.
fn work(line: &ForeignLine) -> String {
    let mut parts = vec![match &line.tree {
        Some(tree) => format!("{} items a directory", tree.items),
        None => format!("{} by {}", line.size, line.block),
    }];
    parts.extend((line.workers > 1).then(|| format!("{} workers", line.workers)));
    parts.extend(line.time.map(|time| format!("at most {time}")));
    parts.join(", ")
}

/// The reason why a figure is INVALID, with the kernel's words for operations that failed.
fn reason(why: &Invalid, sample: &Sample) -> String {
    match sample.errors.keys().find(|errno| **errno > 0) {
        Some(errno) => format!("{why}: {}", std::io::Error::from_raw_os_error(*errno)),
        None => why.to_string(),
    }
}

/// The rate of a stage's phase on the target. `None` if it is INVALID for any reason except a busy machine.
fn rate(results: &Results, stage: &str, figure: &LineFigure, clock: LineClock) -> Option<f64> {
    let cell = results.cells.iter().position(|cell| cell.stage == stage)?;
    let wanted = |phase: Phase| match figure.phase {
        Some(wanted) => phase == wanted,
        None => matches!(phase, Phase::Write | Phase::Read | Phase::Mix),
    };
    let mut found =
        results.samples.iter().filter(|of| (of.key.cell, of.key.target) == (cell, 0) && wanted(of.key.phase));
    let sample = &found.next_back()?.sample;
    let usable = sample.invalid.as_ref().is_none_or(Invalid::is_spoilt);
    let rate = match clock {
        LineClock::UntilClosed => figure.quantity.of(sample),
        LineClock::UntilWritten => rate_until_written(sample)?,
    };
    (usable && rate > 0.0).then_some(rate)
}

/// The rate until the last block was written, to within one bin of the series over time.
fn rate_until_written(sample: &Sample) -> Option<f64> {
    let last = sample.series.bins().iter().rposition(|bin| bin.bytes > 0)?;
    let until = sample.series.width().seconds() * (last + 1) as f64;
    Some(sample.bytes as f64 / until.min(sample.wall.seconds()))
}
