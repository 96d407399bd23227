//! `[accept]` as written in a plan.

use std::collections::BTreeSet;

use nilometer_model::{ByteRate, Bytes, Goal, Nanos, Phase, Readers};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::{Acceptance, CoresOf, Criterion, LossLimit, Requirement};
use crate::{
    Catalogue, Cell, Condition, Fill, KeyValue, RecordingRun, Route, ValueKind, plan_table::plan_table,
};

plan_table! {
    /// The terms that an offer must meet.
    #[derive(Debug, Clone, Default)]
    AcceptTerms {
        /// The price of each target, in their order, for the page.
        price: Vec<String> as "texts, one for each target" = Vec::new(),
        /// Criteria for an instrument, which Nilometer records.
        instrument: Vec<InstrumentDemands> = Vec::new(),
        /// Criteria for a stage of the plan with a workload. They hold in each of its cells.
        stage: Vec<StageDemands> = Vec::new(),
    }
}

plan_table! {
    /// The demands on the recording of an instrument.
    #[derive(Debug, Clone)]
    InstrumentDemands {
        /// The instrument: a name of the catalogue, or the path of a .toml file.
        name: Spanned<String>,
        /// Instruments at the same time, each with a recorder of its own.
        count: u32 = 1,
        /// Record for this time.
        duration: Nanos,
        /// Recordings at the instrument's own pace.
        repeats: u32 = 1,
        /// Memory between the instrument and the storage.
        buffer: Bytes = Bytes(1 << 30),
        /// Remove the oldest frames of a recording that grows larger than this.
        keep: Option<Bytes>,
        /// In place of `keep`: fill the target up to this level.
        fill: Option<FillLevel>,
        /// The readers during the recording; a copy goes to --copy-to.
        readers: Readers as "{ count = 2, distance = \"1 s\", rate = \"100 MB/s\", copy = true }" = Readers::default(),
        /// The state of the target during the recording, in the form of `nilometer plan condition`.
        condition: Option<Condition>,
        /// The way of frames to the recorder, as in [stage.ingest].
        route: Option<Route>,
        /// The most frames that may be lost.
        lost: LossLimit = LossLimit::None,
        /// The least rate in the long run: the lower end of the 95 % interval.
        rate: Option<ByteRate>,
        /// The longest time in which frames wait and none is acknowledged.
        longest_stall: Option<Nanos>,
        /// 99 % of frames must be durable within this time.
        durable: Option<Nanos>,
        /// The most processors kept busy.
        cores: CoreLimits = CoreLimits::default(),
        /// A sync must make the device flush its cache.
        sync_flushes: bool = false,
    }
}

plan_table! {
    /// The demands on a workload, in all cells of a stage.
    #[derive(Debug, Clone)]
    StageDemands {
        /// A stage of the plan with a workload.
        name: Spanned<String>,
        /// The phase. Default: all measured ones.
        phase: Option<Phase>,
        /// Bytes a second, at least: the lower end of the 95 % interval.
        rate: Option<ByteRate>,
        /// Operations a second, at least: the lower end of the 95 % interval.
        operations: Option<f64>,
        /// 99 % of operations take no longer.
        p99: Option<Nanos>,
        /// 99.9 % of operations take no longer.
        p99_9: Option<Nanos>,
        /// The most processors kept busy.
        cores: CoreLimits = CoreLimits::default(),
    }
}

plan_table! {
    /// The most processors, by their user.
    #[derive(Debug, Clone, Copy, Default)]
    CoreLimits {
        /// Processors of the measuring process.
        process: Option<f64>,
        /// Processors of the programs on this machine that serve the file system.
        client: Option<f64>,
        /// Processors of the whole machine.
        machine: Option<f64>,
    }
}

/// A share of the space of a target, `90 %`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillLevel(f64);

impl KeyValue for FillLevel {
    fn kind() -> ValueKind {
        ValueKind::Text("a share, such as \"80 %\"")
    }
}

impl<'de> Deserialize<'de> for FillLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let level = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
        let refused =
            || de::Error::custom(format!("`{text}`: write more than 0 % and at most 100 %, as in \"80 %\""));
        level.map(|percent| FillLevel(percent / 100.0)).ok_or_else(refused)
    }
}

/// The most recorders; no node has more.
const COUNT_MOST: u32 = 1000;
const REPEATS_MOST: u32 = 1000;

/// Criteria that can't hold: their key, and the reason.
pub(crate) struct RefusedTerms {
    /// The position of the name in the text that the error is about; `None` if it is about no name.
    pub(crate) at: Option<usize>,
    /// The error, with the valid values.
    pub(crate) why: String,
}

impl AcceptTerms {
    /// The criteria, with the recordings that they need. The caller adds these to the cells of a plan of
    /// `repeats` repeats.
    pub(crate) fn resolve(
        &self,
        repeats: u32,
        catalogue: Catalogue<'_>,
        cells: &mut Vec<Cell>,
    ) -> Result<Acceptance, RefusedTerms> {
        let mut criteria = Vec::new();
        for stage in &self.stage {
            let at = |why| RefusedTerms { at: Some(stage.name.span().start), why };
            criteria.extend(stage.criteria(repeats, cells).map_err(at)?);
        }
        for instrument in &self.instrument {
            let at = |why| RefusedTerms { at: Some(instrument.name.span().start), why };
            criteria.extend(instrument.criteria(catalogue, cells).map_err(at)?);
        }
        if criteria.is_empty() {
            let why = "nothing is demanded: add [[accept.instrument]] or [[accept.stage]]".into();
            return Err(RefusedTerms { at: None, why });
        }
        Ok(Acceptance { price: self.price.clone(), criteria })
    }
}

impl InstrumentDemands {
    fn criteria(&self, catalogue: Catalogue<'_>, cells: &mut Vec<Cell>) -> Result<Vec<Criterion>, String> {
        let paced = self.recording(catalogue)?;
        self.check(&paced)?;
        let stage = stage_name(&paced);
        if cells.iter().any(|cell| cell.stage == stage) {
            return Err(format!("`{stage}` is there already: write all that is demanded of it in one place"));
        }
        let mut demands = vec![Requirement::Lost(self.lost)];
        demands.extend(self.rate.map(Requirement::Rate));
        demands.extend(self.longest_stall.map(Requirement::LongestStall));
        demands.extend(self.durable.map(Requirement::Durable));
        demands.extend(self.cores.demands()?);
        demands.extend(self.sync_flushes.then_some(Requirement::SyncFlushes));
        cells.push(Cell::recording(&stage, paced.clone()));
        if self.rate.is_some() {
            cells.push(Cell::recording(&stage, paced.at_full_speed(self.keep.is_some())));
        }
        let criterion = |demand| Criterion { stage: stage.clone(), phase: None, demand };
        Ok(demands.into_iter().map(criterion).collect())
    }

    /// The recording at the instrument's own pace.
    fn recording(&self, catalogue: Catalogue<'_>) -> Result<RecordingRun, String> {
        let instrument = catalogue(self.name.get_ref())?.delivered().into_owned();
        instrument.check()?;
        if !(1..=COUNT_MOST).contains(&self.count) {
            return Err(format!("count = {}: write 1 to {COUNT_MOST}", self.count));
        }
        if !(1..=REPEATS_MOST).contains(&self.repeats) {
            return Err(format!("repeats = {}: write 1 to {REPEATS_MOST}", self.repeats));
        }
        if self.keep.is_some() && self.fill.is_some() {
            return Err("keep and fill: both limit how much of a recording stays; write one of them".into());
        }
        let route = match (self.route, &instrument.packets) {
            (Some(Route::Loopback | Route::Network), None) => {
                let name = &instrument.name;
                return Err(format!(
                    "route: nothing says how frames of {name} come over a network; leave it out"
                ));
            }
            (Some(route), _) => route,
            (None, packets) => packets.as_ref().map_or(Route::InPlace, |_| Route::Loopback),
        };
        let share = 1.0 / f64::from(self.count);
        let usual = RecordingRun::new(instrument);
        let mut run = RecordingRun {
            count: self.count,
            goal: Goal::Pace,
            duration: self.duration,
            buffer: self.buffer,
            keep: self.keep.unwrap_or(usual.keep),
            fill: self.fill.map(|FillLevel(level)| Fill { level, share }),
            repeats: self.repeats,
            readers: self.readers,
            condition: self.condition.clone(),
            route,
            ..usual
        };
        if self.keep.is_none() && self.fill.is_none() && route.has_packets() {
            run.keep = run.keep.max(run.all());
        }
        Ok(run)
    }

    /// Refuses demands that the recording could not decide, or that contradict each other.
    fn check(&self, paced: &RecordingRun) -> Result<(), String> {
        paced.check_duration(&format!("duration = \"{}\"", self.duration))?;
        if let Some(condition) = &self.condition {
            condition.check().map_err(|why| format!("condition: {why}"))?;
        }
        let recorded = Nanos(self.duration.0.saturating_mul(self.repeats.into()));
        if let Some(least) = self.lost.least_duration().filter(|least| *least > recorded) {
            // Slightly longer, so that the three printed digits are enough.
            let enough = Nanos::from_seconds(1.01 * least.seconds() / f64::from(self.repeats));
            return Err(format!(
                "lost = \"{}\": {recorded} can't prove it, which takes {least} without a loss (95 %): write \
                 duration = \"{enough}\", or lost = \"none\", which concerns this recording only",
                self.lost
            ));
        }
        let delivered = paced.rate();
        if let Some(rate) = self.rate.filter(|rate| rate.0 < delivered.0) {
            return Err(format!(
                "rate = \"{rate}\" is less than the {delivered} that are to be recorded: write at least as much, or leave it \
                 out"
            ));
        }
        let covered = Nanos::from_seconds(self.buffer.0 as f64 / (delivered.0 / f64::from(self.count)));
        match self.longest_stall {
            Some(stall) if stall > covered && self.lost == LossLimit::None => Err(format!(
                "longest_stall = \"{stall}\": a buffer of {} covers {covered}; a longer stall loses frames, \
                 against lost = \"none\": write a shorter time, or a larger buffer",
                self.buffer
            )),
            _ => Ok(()),
        }
    }
}

/// A name that distinguishes it from others of the same instrument.
fn stage_name(paced: &RecordingRun) -> String {
    let mut name = format!("{} for {}", paced.who(), paced.duration);
    if !paced.readers.none() {
        name = format!("{name}, {}", paced.readers);
    }
    if let Some(fill) = paced.fill {
        name = format!("{name}, filled to {:.0} %", 100.0 * fill.level);
    }
    match &paced.condition {
        Some(condition) => format!("{name}, {}", condition.name),
        None => name,
    }
}

impl StageDemands {
    fn criteria(&self, repeats: u32, cells: &[Cell]) -> Result<Vec<Criterion>, String> {
        let stage = self.name.get_ref();
        let phases = self.phases(cells)?;
        let mut demands: Vec<Requirement> = self.rate.map(Requirement::Rate).into_iter().collect();
        demands.extend(self.operations.map(Requirement::Operations));
        if let Some(demand) = demands.first().filter(|_| repeats < 2) {
            return Err(format!(
                "{demand}: one repeat has no interval: write repeats = 2 or more at the head of the plan"
            ));
        }
        let latency = |share| move |most| Requirement::Latency { share, most };
        demands.extend(self.p99.map(latency(0.99)));
        demands.extend(self.p99_9.map(latency(0.999)));
        demands.extend(self.cores.demands()?);
        if demands.is_empty() {
            return Err(format!(
                "nothing is demanded of `{stage}`: write rate, operations, p99, p99_9 or cores"
            ));
        }
        let of_phase = |phase: Phase| {
            let criterion = move |demand| Criterion { stage: stage.clone(), phase: Some(phase), demand };
            demands.clone().into_iter().map(criterion)
        };
        Ok(phases.into_iter().flat_map(of_phase).collect())
    }

    /// The named phase of the stage, or all measured ones.
    fn phases(&self, cells: &[Cell]) -> Result<BTreeSet<Phase>, String> {
        let stage = self.name.get_ref();
        let of_stage = |cell: &&Cell| cell.stage == *stage && cell.as_workload().is_some();
        let measured: BTreeSet<Phase> =
            cells.iter().filter(of_stage).flat_map(Cell::measured_phases).collect();
        if measured.is_empty() {
            let mut known: Vec<&str> = cells
                .iter()
                .filter(|cell| cell.as_workload().is_some())
                .map(|cell| cell.stage.as_str())
                .collect();
            known.dedup();
            let known =
                if known.is_empty() { "there is none".into() } else { format!("write {}", known.join(", ")) };
            return Err(format!("no stage with a workload is called `{stage}`: {known}"));
        }
        match self.phase {
            None => Ok(measured),
            Some(phase) if measured.contains(&phase) => Ok(BTreeSet::from([phase])),
            Some(phase) => {
                let known: Vec<&str> = measured.iter().map(|phase| phase.name()).collect();
                Err(format!("phase: `{stage}` has no phase `{}`: write {}", phase.name(), known.join(", ")))
            }
        }
    }
}

impl CoreLimits {
    fn demands(self) -> Result<Vec<Requirement>, String> {
        let all = [
            ("process", CoresOf::Process, self.process),
            ("client", CoresOf::Client, self.client),
            ("machine", CoresOf::Machine, self.machine),
        ];
        let mut demands = Vec::new();
        for (key, of, most) in all {
            match most {
                None => {}
                Some(most) if most > 0.0 && most.is_finite() => demands.push(Requirement::Cores { of, most }),
                Some(most) => return Err(format!("cores.{key} = {most}: write more than 0")),
            }
        }
        Ok(demands)
    }
}
