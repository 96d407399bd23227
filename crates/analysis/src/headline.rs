//! The answer of a campaign that recorded no instrument. It is the best figure of each target, and the largest
//! instrument of the catalogue that it would carry.

use nilometer_model::Phase;

use crate::{Basis, CellOutcome, MeasuredLimit, Prospects, Quantity, StageFigures, Study, Withheld};

/// The best figure of a target, with the instrument that follows from its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Index into [`nilometer_plan::Results::targets`].
    pub target: usize,
    /// Bytes a second: the highest mean of a write phase.
    pub rate: f64,
    /// Half its interval, as a share of the mean; `None` from one repeat.
    pub spread: Option<f64>,
    /// The stage, with the cell if it has several.
    pub stage: String,
    /// Valid repeats, and all.
    pub repeats: [usize; 2],
    /// The instrument, or the reason why none is predicted.
    pub carries: Result<CarriedInstrument, NoInstrument>,
}

/// The instrument with the highest written rate of those that a target is predicted to carry.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedInstrument {
    /// Its row in the table of predictions.
    pub row: Prospects,
    /// The limit divided by its rate.
    pub margin: f64,
    /// The limit with the least margin.
    pub limit: MeasuredLimit,
}

/// The reason why a target has no instrument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoInstrument {
    /// No prediction is possible, for this reason.
    Withheld(Withheld),
    /// The target carries none of those that are predicted.
    NoneCarried,
    /// The report has no catalogue.
    NoCatalogue,
}

/// Fewer valid repeats than this make no headline.
const REPEATS_LEAST: usize = 3;

/// A headline for each target with a usable write rate. There are none if the campaign recorded or planned an
/// instrument, or has criteria: these have answers of their own.
pub fn headlines(study: &Study<'_>) -> Vec<Headline> {
    let has_answers = !study.verdicts.is_empty()
        || !study.full_speeds.is_empty()
        || !study.missing.open.is_empty()
        || !study.acceptance.is_empty();
    if has_answers || study.results.is_imported() {
        return Vec::new();
    }
    (0..study.results.targets.len()).filter_map(|target| headline(study, target)).collect()
}

fn headline(study: &Study<'_>, target: usize) -> Option<Headline> {
    let figures = study.stages.iter().flat_map(|stage| writes(&stage.figures, target));
    let WriteFigure { stage, outcome, mean } =
        figures.max_by(|one, other| one.mean.total_cmp(&other.mean))?;
    let summary = outcome.summary(Quantity::Bytes)?;
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let comma = if label.is_empty() { "" } else { ", " };
    Some(Headline {
        target,
        rate: mean,
        spread: summary.half_width().map(|half| half / mean),
        stage: format!("{}{comma}{label}", stage.name),
        repeats: [outcome.valid, outcome.samples.len()],
        carries: carried(study, target),
    })
}

/// The rate of a write phase.
struct WriteFigure<'a> {
    stage: &'a StageFigures<'a>,
    outcome: &'a CellOutcome<'a>,
    /// Bytes a second.
    mean: f64,
}

fn writes<'a>(stage: &'a StageFigures<'a>, target: usize) -> impl Iterator<Item = WriteFigure<'a>> {
    let here = stage.outcomes.iter().filter(move |outcome| outcome.target == target);
    here.filter(move |outcome| is_usable_write(stage, outcome)).filter_map(move |outcome| {
        let mean = outcome.summary(Quantity::Bytes)?.mean;
        Some(WriteFigure { stage, outcome, mean })
    })
}

fn is_usable_write(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> bool {
    let is_write = outcome.phase == Phase::Write && stage.quantity(outcome) == Quantity::Bytes;
    is_write && outcome.valid >= REPEATS_LEAST
}

/// The largest promising instrument, or else the largest that the target is predicted to carry. The rows ascend by
/// rate.
fn carried(study: &Study<'_>, target: usize) -> Result<CarriedInstrument, NoInstrument> {
    let rows = study.predictions.rows.iter().rev();
    let mut promising = rows.clone().filter(|row| row.are_promising(target..target + 1));
    let found = promising.find_map(|row| carried_instrument(study, target, row));
    let found = found.or_else(|| rows.clone().find_map(|row| carried_instrument(study, target, row)));
    found.ok_or_else(|| without(study, target))
}

fn carried_instrument(study: &Study<'_>, target: usize, row: &Prospects) -> Option<CarriedInstrument> {
    let prospect = row.on.get(target)?.as_ref().ok().filter(|prospect| prospect.carried == Some(true))?;
    let Basis::Predicted(limit) = prospect.basis else { return None };
    let limit = study.predictions.limits.get(limit)?.clone();
    Some(CarriedInstrument { row: row.clone(), margin: prospect.margin?, limit })
}

fn without(study: &Study<'_>, target: usize) -> NoInstrument {
    let all = study.predictions.rows.iter().filter_map(|row| row.on.get(target));
    let is_predicted = all.clone().any(Result::is_ok);
    let withheld = all.filter_map(|prospect| prospect.as_ref().err()).max();
    match withheld.filter(|_| !is_predicted) {
        Some(why) => NoInstrument::Withheld(why.clone()),
        None if is_predicted => NoInstrument::NoneCarried,
        None => NoInstrument::NoCatalogue,
    }
}
