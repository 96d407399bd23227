//! The instruments that the targets carry: from a recording if there is a verdict, else predicted from this
//! campaign's measurements.
//!
//! A prediction is the measured limit divided by the written rate of the instrument. The written rate counts
//! bytes as they are packed, and files if the instrument writes its own. For formats that the recorder packs,
//! processor time counts too.
//!
//! The lower end of the limit's interval counts, so that no prediction is too optimistic; only for a *no* the
//! upper end counts. Stalls are not included. If nothing can be predicted, the table has the reason instead.

mod measured;

use nilometer_model::{ByteRate, Instrument};
use nilometer_plan::Results;

use crate::{
    Decision, StageFigures, Verdict,
    evidence::{evidence, measured_packing},
    stage_figures::stage_figures,
};
use measured::{Found, OnTarget, files};
pub use measured::{LimitKind, LimitSource, MeasuredLimit, Withheld};

/// The table of instruments and targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predictions {
    /// All instruments, those with the lowest written rate first.
    pub rows: Vec<Prospects>,
    /// The limits behind the predictions, in the order of targets.
    pub limits: Vec<MeasuredLimit>,
}

/// The prospects of one instrument.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospects {
    /// Its name and number.
    pub instrument: String,
    /// The written rate of all of them: packed, and with those packet headers that are kept.
    pub rate: ByteRate,
    /// Keys of its file that affect the rate and have no source.
    pub assumed: Vec<String>,
    /// True if the storage alone decides: the instrument comes over no network, and nothing is compressed or packed.
    pub by_storage_alone: bool,
    /// One for each target.
    pub on: Vec<Result<Prospect, Withheld>>,
}

/// The prospect of a target to carry an instrument.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    /// `None` if the data do not decide.
    pub carried: Option<bool>,
    /// The limit divided by the written rate; `None` if no limit was measured.
    pub margin: Option<f64>,
    /// The origin of the margin.
    pub basis: Basis,
    /// Possible limits that were not measured.
    pub without: Vec<Without>,
}

/// The least predicted margin to count on: a prediction does not include stalls.
const MARGIN_LEAST: f64 = 1.2;

impl Prospects {
    /// Returns true if the instrument is a candidate to be recorded next. The storage alone decides, and each of
    /// these targets is predicted to carry it with a margin.
    pub fn are_promising(&self, mut targets: std::ops::Range<usize>) -> bool {
        let is_sure =
            |target: usize| self.on.get(target).is_some_and(|on| on.as_ref().is_ok_and(Prospect::is_sure));
        self.by_storage_alone && targets.all(is_sure)
    }
}

impl Prospect {
    /// Returns true if the prediction is good enough to count on.
    fn is_sure(&self) -> bool {
        let margin = self.margin.unwrap_or(0.0);
        self.carried == Some(true) && self.without.is_empty() && margin >= MARGIN_LEAST
    }
}

/// The basis of a prospect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A recording of the instrument, with a verdict.
    Recorded,
    /// A prediction; index into [`Predictions::limits`] of the limit with the least margin.
    Predicted(usize),
}

/// A possible limit that a prediction does not include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Without {
    /// The processor time for packing frames.
    Packing,
    /// The time for making files durable.
    FileSync,
    /// Stalls of the storage: a recording at no higher rate lost frames there.
    Stalls,
}

/// The table: a row for each instrument of the catalogue, and for each recorded one.
pub(crate) fn predictions(
    results: &Results,
    stages: &[&StageFigures<'_>],
    verdicts: &[Verdict],
    catalogue: &[Instrument],
) -> Predictions {
    let evidence = evidence(results);
    let found = Found { results, stages, verdicts, evidence: &evidence };
    let mut table = Table {
        targets: (0..results.targets.len()).map(|target| found.on(target)).collect(),
        found: &found,
        limits: Vec::new(),
    };
    let mut rows: Vec<Prospects> = catalogue.iter().map(|instrument| table.row(instrument)).collect();
    for verdict in verdicts.iter().filter(|verdict| verdict.target < results.targets.len()) {
        let known = catalogue.iter().position(|instrument| is_of(instrument, verdict));
        let same =
            |row: &Prospects| row.instrument == verdict.who() && is_rate(row.rate, table.written(verdict));
        let row = known.or_else(|| (catalogue.len()..rows.len()).find(|row| same(&rows[*row])));
        let row = row.unwrap_or_else(|| {
            rows.push(table.recorded_only(verdict));
            rows.len() - 1
        });
        rows[row].on[verdict.target] = Ok(recorded(verdict));
    }
    for target in 0..results.targets.len() {
        doubt_beside_losses(&mut rows, target);
    }
    rows.sort_by(|a, b| a.rate.0.total_cmp(&b.rate.0));
    Predictions { rows, limits: table.limits }
}

/// Leaves predictions for this target open from the lowest rate on at which a recording lost frames there: its stalls
/// are in no prediction.
fn doubt_beside_losses(rows: &mut [Prospects], target: usize) {
    let is_lost = |prospect: &Prospect| prospect.basis == Basis::Recorded && prospect.carried == Some(false);
    let lost = rows.iter().filter(|row| row.on[target].as_ref().is_ok_and(is_lost)).map(|row| row.rate.0);
    let Some(lost) = lost.min_by(f64::total_cmp) else { return };
    for row in rows.iter_mut().filter(|row| row.rate.0 >= lost) {
        let Ok(prospect) = &mut row.on[target] else { continue };
        if prospect.basis != Basis::Recorded && prospect.carried == Some(true) {
            prospect.carried = None;
            prospect.without.push(Without::Stalls);
        }
    }
}

/// The rate of a stage that wrote to a target, and the stage's name; `None` if no such figure is usable.
pub(crate) fn staged_limit(results: &Results, target: usize) -> Option<(ByteRate, String)> {
    let evidence = evidence(results);
    let figures = stage_figures(results);
    let stages: Vec<&StageFigures<'_>> = figures.iter().collect();
    let found = Found { results, stages: &stages, verdicts: &[], evidence: &evidence };
    let on = found.on(target);
    let limit = on.limit(LimitKind::Written).ok()?;
    match &limit.from {
        LimitSource::Stage(stage) => Some((ByteRate(limit.value), stage.clone())),
        LimitSource::Recording(_) => None,
    }
}

/// The table under construction.
struct Table<'a> {
    found: &'a Found<'a>,
    targets: Vec<OnTarget>,
    /// The limits behind the rows.
    limits: Vec<MeasuredLimit>,
}

/// The need of an instrument, and the limit for it.
struct Need {
    limit: MeasuredLimit,
    needed: f64,
}

impl Need {
    fn margin(&self) -> f64 {
        self.limit.value / self.needed
    }

    /// Returns true if even the upper end of the limit is too little.
    fn is_too_much(&self) -> bool {
        self.limit.most.is_some_and(|most| most < self.needed)
    }
}

impl Table<'_> {
    /// The row of an instrument in the catalogue, with predictions.
    fn row(&mut self, instrument: &Instrument) -> Prospects {
        let packing =
            measured_packing(self.found.evidence, instrument).unwrap_or_else(|| instrument.packing());
        let rate = ByteRate(instrument.received().rate().0 / packing);
        Prospects {
            instrument: instrument.name.clone(),
            rate,
            assumed: instrument.assumed_of_rate().into_iter().map(str::to_owned).collect(),
            by_storage_alone: instrument.packets.is_none()
                && !instrument.compressed
                && !instrument.recording.packs(),
            on: (0..self.targets.len()).map(|target| self.predicted(instrument, rate, target)).collect(),
        }
    }

    /// The row of an instrument that is not in the catalogue, or of several instruments.
    fn recorded_only(&self, verdict: &Verdict) -> Prospects {
        Prospects {
            instrument: verdict.who(),
            rate: self.written(verdict),
            assumed: Vec::new(),
            by_storage_alone: false,
            on: vec![Err(Withheld::NotRecorded); self.targets.len()],
        }
    }

    /// The written rate of a recorded instrument at its own rate.
    fn written(&self, verdict: &Verdict) -> ByteRate {
        let packing = self.found.of_verdict(verdict).find_map(|of| of.packing().filter(|_| of.packs()));
        ByteRate(verdict.rate.0 / packing.unwrap_or(1.0))
    }

    /// The prospect from a target's limits: the one with the least margin. An error if a limit is missing that
    /// the instrument needs.
    fn predicted(
        &mut self,
        instrument: &Instrument,
        rate: ByteRate,
        target: usize,
    ) -> Result<Prospect, Withheld> {
        let on = &self.targets[target];
        let own = on.limit(LimitKind::Written);
        let bytes = if instrument.recording.storing.kind().one_for_all {
            on.limit(LimitKind::Shared).or(own)
        } else {
            own
        };
        let mut needs = vec![Need { limit: bytes?.clone(), needed: rate.0 }];
        if let Some(needed) = files(instrument) {
            needs.push(Need { limit: on.limit(LimitKind::Files)?.clone(), needed });
        }
        let mut without = Vec::new();
        if instrument.recording.packs() {
            match self.found.packed(instrument) {
                Some(limit) => {
                    let needed = instrument.received().rate().0;
                    needs.push(Need { limit: MeasuredLimit { target, ..limit }, needed });
                }
                None => without.push(Without::Packing),
            }
        }
        if needs.iter().any(|need| need.limit.unsynced) {
            without.push(Without::FileSync);
        }
        self.prospect(needs, without)
    }

    fn prospect(&mut self, needs: Vec<Need>, without: Vec<Without>) -> Result<Prospect, Withheld> {
        let too_much = needs.iter().any(Need::is_too_much);
        let least = needs.into_iter().min_by(|a, b| a.margin().total_cmp(&b.margin()));
        let least = least.expect("every instrument needs bytes to be written");
        let margin = least.margin();
        if let (LimitSource::Recording(who), None) = (&least.limit.from, least.limit.most)
            && !too_much
            && margin < 1.0
            && least.limit.kind != LimitKind::Packed
        {
            return Err(match least.limit.held_back {
                Some(waited) => Withheld::HeldBack(who.clone(), waited),
                None => Withheld::Bound(who.clone()),
            });
        }
        let carried = match margin {
            _ if too_much => Some(false),
            margin if margin >= 1.0 && without.is_empty() => Some(true),
            _ => None,
        };
        Ok(Prospect {
            carried,
            margin: Some(margin),
            basis: Basis::Predicted(self.noted(least.limit)),
            without,
        })
    }

    /// The index of a limit that a row uses.
    fn noted(&mut self, limit: MeasuredLimit) -> usize {
        let known = self.limits.iter().position(|known| *known == limit);
        known.unwrap_or_else(|| {
            self.limits.push(limit);
            self.limits.len() - 1
        })
    }
}

fn recorded(verdict: &Verdict) -> Prospect {
    let carried = match verdict.decision() {
        Decision::Carries => Some(true),
        Decision::DoesNotCarry => Some(false),
        Decision::NotDecided => None,
    };
    let is_lower_bound = verdict.limit.is_some_and(|limit| limit.is_lower_bound());
    let margin = verdict.margins().map(|margin| if is_lower_bound { margin.low } else { margin.times });
    Prospect { carried, margin, basis: Basis::Recorded, without: Vec::new() }
}

/// Rates that differ by less are equal: a period is a whole number of nanoseconds.
const SAME_RATE: f64 = 0.001;

fn is_rate(one: ByteRate, other: ByteRate) -> bool {
    (one.0 / other.0 - 1.0).abs() < SAME_RATE
}

/// Returns true if the verdict is about this instrument at its own rate, with frames made in place or received in
/// packets with headers.
fn is_of(instrument: &Instrument, verdict: &Verdict) -> bool {
    let came = [instrument.delivered().rate(), instrument.received().rate()];
    instrument.name == verdict.who() && came.into_iter().any(|rate| is_rate(rate, verdict.rate))
}

impl Predictions {
    fn known(&self) -> impl Iterator<Item = &Prospect> {
        self.rows.iter().flat_map(|row| &row.on).flatten()
    }

    /// Returns true if the table has a prediction.
    pub fn predicts(&self) -> bool {
        self.known().any(|prospect| prospect.basis != Basis::Recorded)
    }

    /// Returns true if the table has a recording.
    pub fn records(&self) -> bool {
        self.known().any(|prospect| prospect.basis == Basis::Recorded)
    }

    /// The limits behind predictions, in the order of targets.
    pub fn used(&self) -> Vec<&MeasuredLimit> {
        let rests_on = |index: usize| self.known().any(|prospect| prospect.basis == Basis::Predicted(index));
        let used = self.limits.iter().enumerate().filter(|(index, _)| rests_on(*index));
        let mut used: Vec<&MeasuredLimit> = used.map(|(_, limit)| limit).collect();
        used.sort_by_key(|limit| (limit.target, limit.kind));
        used
    }
}

#[cfg(test)]
mod tests;
