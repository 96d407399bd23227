//! The planned measurements that a campaign lacks, and the reasons. Found from the record alone, by comparing the
//! plan with the samples, so that the report of a killed campaign has them too.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_model::{ByteRate, Capability, Goal, Invalid, NetworkResults, NetworkStage, Sample};
use nilometer_plan::{
    Key, Measured, NetworkRun, NetworkTrials, Onto, PlannedCampaign, RecordedInstrument, RecordingRun,
    ResolvedPlan, Results, WorkloadRun,
    search::{self, Advice, Trial},
};

use crate::letter;

/// The evidence missing from a record, against its plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MissingEvidence {
    /// Planned repeats of cells on targets; a search counts as one.
    pub planned: usize,
    /// Repeats among them that were measured, or failed.
    pub measured: usize,
    /// The reason why others are missing, as far as the record contains it.
    pub why: Option<String>,
    /// The gaps, in the plan's order.
    pub gaps: Vec<EvidenceGap>,
    /// Network stages with missing measurements.
    pub network: Vec<NetworkGap>,
    /// Cells that do not apply to a target.
    pub unused: Vec<Unused>,
    /// Instruments that should have been recorded, but not yet at their own rate.
    pub open: Vec<OpenQuestion>,
    /// True if the plan has instruments.
    pub instruments: bool,
}

/// Part of a plan with missing measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceGap {
    /// A stage, or the recordings of an instrument for one purpose.
    pub what: String,
    /// The targets with missing measurements.
    pub on: Vec<Share>,
}

/// A network stage with missing measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkGap {
    /// Its name.
    pub stage: String,
    /// Trials measured in its rounds; a search counts as one.
    pub measured: usize,
    /// Planned trials.
    pub planned: usize,
}

/// The measured share of a part of the plan on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Repeats that were measured, or failed.
    pub measured: usize,
    /// Planned repeats.
    pub planned: usize,
}

/// Cells of a stage that are not measured on a target, because other cells do the same there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// The stage.
    pub stage: String,
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Number of such cells.
    pub cells: usize,
    /// Number of all cells.
    pub of: usize,
    /// The missing capabilities of the target that they need; empty if they differ from others only in the layout
    /// of files.
    pub lacking: Vec<Capability>,
}

/// An instrument without a recording at its own rate on a target.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The instrument.
    pub instrument: RecordedInstrument,
    /// The rate of all instruments together.
    pub rate: ByteRate,
    /// The rates at full speed, one per valid pass whose recorder did not wait long for a processor. If there is none
    /// such, all.
    pub limits: Vec<ByteRate>,
    /// True if these rates are lower bounds, because the recorder waited long for a processor.
    pub are_lower_bounds: bool,
}

/// Finds missing measurements; empty if the results do not come from a campaign of this program.
pub(crate) fn missing(results: &Results) -> MissingEvidence {
    let Some(resolved) = &results.campaign else { return MissingEvidence::default() };
    let there = Samples::of(results);
    let mut counts = Counts::default();
    for (index, stage, run) in resolved.plan.workloads() {
        for target in resolved.asked() {
            if resolved.applies(index, target) {
                let repeats = resolved.plan.repeats as usize;
                let measured = there.repeats(run, index, target).min(repeats);
                counts.add(stage, Share { target, measured, planned: repeats });
            }
        }
    }
    for (index, run) in resolved.plan.recordings() {
        for target in resolved.asked().filter(|&target| resolved.applies(index, target)) {
            let (measured, planned) = there.recordings(run, index, target);
            counts.add(&purpose(run), Share { target, measured, planned });
        }
    }
    let mut network = network_gaps(results, &resolved.plan);
    let planned = counts.sum(|share| share.planned) + network.iter().map(|of| of.planned).sum::<usize>();
    let measured = counts.sum(|share| share.measured) + network.iter().map(|of| of.measured).sum::<usize>();
    network.retain(|of| of.measured < of.planned);
    let gaps = counts.gaps();
    MissingEvidence {
        planned,
        measured,
        why: (!gaps.is_empty() || !network.is_empty()).then(|| why(results)),
        gaps,
        network,
        unused: unused(resolved),
        open: open(results, resolved),
        instruments: resolved.plan.recordings().any(|(_, run)| is_onto_target(run)),
    }
}

/// The gaps of each network stage.
fn network_gaps(results: &Results, plan: &ResolvedPlan) -> Vec<NetworkGap> {
    let runs = plan.network.iter().enumerate();
    runs.map(|(number, run)| network_gap(plan, run, results.network.get(number))).collect()
}

/// The gap of a network stage: measured and planned trials, equal if the stage is complete.
fn network_gap(plan: &ResolvedPlan, run: &NetworkRun, there: Option<&NetworkStage>) -> NetworkGap {
    let samples = there.map_or_else(Vec::new, |stage| stage.results.samples.clone());
    let machines = there.map_or_else(Vec::new, |stage| stage.results.machines.clone());
    let asked = NetworkResults { machines, cells: run.cells(plan.machines()), samples };
    NetworkGap {
        stage: run.stage.clone(),
        measured: NetworkTrials::made(&asked),
        planned: NetworkTrials::planned(&asked, plan.repeats),
    }
}

/// All parts of a plan with their targets, in the plan's order.
#[derive(Debug, Default)]
struct Counts(Vec<EvidenceGap>);

impl Counts {
    fn add(&mut self, what: &str, share: Share) {
        let place = self.0.iter().position(|part| part.what == what).unwrap_or_else(|| {
            self.0.push(EvidenceGap { what: what.to_owned(), on: Vec::new() });
            self.0.len() - 1
        });
        let on = &mut self.0[place].on;
        match on.iter_mut().find(|known| known.target == share.target) {
            Some(known) => {
                known.measured += share.measured;
                known.planned += share.planned;
            }
            None => on.push(share),
        }
    }

    fn sum(&self, of: fn(&Share) -> usize) -> usize {
        self.0.iter().flat_map(|part| &part.on).map(of).sum()
    }

    /// Only parts with missing measurements.
    fn gaps(mut self) -> Vec<EvidenceGap> {
        for part in &mut self.0 {
            part.on.retain(|share| share.measured < share.planned);
        }
        self.0.retain(|part| !part.on.is_empty());
        self.0
    }
}

/// The samples of a record by cell and target.
#[derive(Debug)]
struct Samples<'a>(BTreeMap<(usize, usize), Vec<&'a Measured>>);

impl<'a> Samples<'a> {
    fn of(results: &'a Results) -> Self {
        let mut samples: BTreeMap<_, Vec<&Measured>> = BTreeMap::new();
        for measured in &results.samples {
            samples.entry((measured.key.cell, measured.key.target)).or_default().push(measured);
        }
        Samples(samples)
    }

    fn at(&self, cell: usize, target: usize) -> &[&'a Measured] {
        self.0.get(&(cell, target)).map_or(&[], Vec::as_slice)
    }

    /// Repeats of a cell with all their phases, or with a failed one, after which the rest was abandoned.
    fn repeats(&self, run: &WorkloadRun, cell: usize, target: usize) -> usize {
        let phases: BTreeSet<_> = run.phases().into_iter().filter(|phase| !phase.is_setup()).collect();
        let mut repeats: BTreeMap<u32, (BTreeSet<_>, bool)> = BTreeMap::new();
        for Measured { key: Key { repeat, phase, .. }, sample } in self.at(cell, target) {
            let (seen, failed) = repeats.entry(*repeat).or_default();
            seen.insert(*phase);
            *failed |= sample.invalid.as_ref().is_some_and(has_failed);
        }
        repeats.values().filter(|(seen, failed)| *failed || phases.is_subset(seen)).count()
    }

    /// Recordings of a cell: measured and planned. A search counts as one, measured when it has ended.
    fn recordings(&self, run: &RecordingRun, cell: usize, target: usize) -> (usize, usize) {
        let made = self.at(cell, target);
        if !run.goal.searches() {
            return (made.len().min(run.repeats as usize), run.repeats as usize);
        }
        let trials: Vec<Trial> = made.iter().filter_map(|measured| Trial::of(&measured.sample)).collect();
        // A recording that could not begin ended the search: the next would fail too.
        let over =
            trials.len() < made.len() || matches!(search::advise(run, run.rate(), &trials), Advice::Found(_));
        (usize::from(over), 1)
    }
}

fn has_failed(invalid: &Invalid) -> bool {
    matches!(invalid, Invalid::Hung | Invalid::Errors | Invalid::Refused(_))
}

fn is_onto_target(cell: &RecordingRun) -> bool {
    cell.onto == Onto::Target
}

/// The purpose of a recording, in words.
fn purpose(cell: &RecordingRun) -> String {
    let goal = match cell.goal {
        Goal::Pace => "at its own pace",
        Goal::Limit => "at full speed",
        Goal::Search => "the search for the highest rate",
        Goal::Buffer => "the search for the smallest buffer",
    };
    let mut state = String::new();
    for words in [cell.condition_name(), cell.load_words()].into_iter().filter(|words| !words.is_empty()) {
        state.push_str(", ");
        state.push_str(&words);
    }
    let company = cell.company.map_or("", |_| ", with the others");
    format!("{}: {goal}{company}{state}", cell.who())
}

/// The reason why a campaign ended early: the last one in the record.
fn why(results: &Results) -> String {
    let resumed = results.events.iter().rposition(|event| event.what.starts_with("resumed by"));
    let since = resumed.map_or(0, |place| place + 1);
    let limit = results.events[since..].iter().rfind(|event| event.what.starts_with("the time limit of"));
    let limit = limit.and_then(|event| event.what.split_once(':')).map(|(limit, _)| limit.to_owned());
    let left_out: Vec<String> = results
        .targets
        .iter()
        .enumerate()
        .filter(|(_, target)| target.left_out.is_some())
        .map(|(index, _)| letter(index))
        .collect();
    match limit {
        Some(limit) => limit,
        None if left_out.is_empty() => "it was interrupted, or is not over yet".into(),
        None => format!("{} was left out, or the campaign was interrupted", left_out.join(" and ")),
    }
}

fn unused(resolved: &PlannedCampaign) -> Vec<Unused> {
    let mut stages: Vec<&str> = resolved.plan.workloads().map(|(_, stage, _)| stage).collect();
    stages.dedup();
    let targets: Vec<usize> = resolved.named().collect();
    let places = stages.iter().flat_map(|stage| targets.iter().map(move |&target| (stage, target)));
    places.filter_map(|(stage, target)| unused_on(resolved, stage, target)).collect()
}

/// Cells of a stage that do not apply to a target.
fn unused_on(resolved: &PlannedCampaign, stage: &str, target: usize) -> Option<Unused> {
    let cells = resolved.plan.workloads().filter(|(_, of, _)| *of == stage);
    let (used, unused): (Vec<usize>, Vec<usize>) =
        cells.map(|(index, ..)| index).partition(|&index| resolved.suits(index, target));
    let of = used.len() + unused.len();
    let mut lacking: Vec<_> = unused.iter().flat_map(|&cell| resolved.lacking(cell, target)).collect();
    lacking.sort_unstable();
    lacking.dedup();
    (!unused.is_empty()).then(|| Unused { stage: stage.into(), target, cells: unused.len(), of, lacking })
}

/// Every instrument and target without a recording at its own rate, even if there are other recordings.
fn open(results: &Results, resolved: &PlannedCampaign) -> Vec<OpenQuestion> {
    let mut all: Vec<OpenQuestion> = Vec::new();
    let recordings = resolved.plan.recordings();
    let paced = recordings.filter(|(_, run)| run.goal == Goal::Pace && is_onto_target(run));
    for (index, cell) in paced {
        for target in resolved.asked().filter(|&target| resolved.is_about(index, target)) {
            let instrument = cell.recorded_instrument();
            let known = all.iter().any(|open| open.target == target && open.instrument == instrument);
            let made = |goal| recorded(results, cell, target, goal);
            if known || made(Goal::Pace).next().is_some() {
                continue;
            }
            let passes: Vec<&Sample> = made(Goal::Limit).map(|measured| &measured.sample).collect();
            let passes = Sample::passes_with_a_rate(&passes);
            let limits = passes.iter().map(|pass| pass.sustained_rate()).collect();
            let are_lower_bounds = passes.iter().any(|pass| pass.recorder_wait().is_long());
            all.push(OpenQuestion { target, instrument, rate: cell.rate(), limits, are_lower_bounds });
        }
    }
    all
}

/// Recordings of a cell's instrument on a target, alone and without readers; any of them at its own rate.
fn recorded<'a>(
    results: &'a Results,
    cell: &'a RecordingRun,
    target: usize,
    goal: Goal,
) -> impl Iterator<Item = &'a Measured> {
    let wanted = cell.recorded_instrument();
    results.samples.iter().filter(move |measured| {
        let Some(ingest) = &measured.sample.ingest else { return false };
        let run = results.recording(measured.key);
        let same = run.is_some_and(|run| run.recorded_instrument() == wanted);
        let alone = ingest.readers.iter().all(|reader| reader.after) && ingest.is_undisturbed();
        measured.key.target == target && same && ingest.goal == goal && (goal == Goal::Pace || alone)
    })
}

impl MissingEvidence {
    /// Returns true if there is nothing to report.
    pub fn is_empty(&self) -> bool {
        !self.is_incomplete() && self.unused.is_empty()
    }

    /// Returns true if a possible measurement is missing.
    pub fn is_incomplete(&self) -> bool {
        !self.gaps.is_empty() || !self.network.is_empty()
    }

    /// The title of the section.
    pub fn title(&self) -> &'static str {
        if self.is_incomplete() { "Incomplete" } else { "Not measured" }
    }

    /// The missing parts and the reasons, a sentence each: first the total, then the parts.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(why) = &self.why {
            sentences.push(format!(
                "{} of {} measurements are there: {why}; `nilometer evaluate --resume` goes on",
                self.measured, self.planned
            ));
        }
        sentences.extend(self.gaps.iter().map(ToString::to_string));
        sentences.extend(self.network.iter().map(ToString::to_string));
        sentences.extend(self.unused.iter().map(ToString::to_string));
        sentences
    }
}

impl std::fmt::Display for EvidenceGap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on = |Share { target, measured, planned }: &Share| match measured {
            0 => format!("{} not begun (0 of {planned})", letter(*target)),
            _ => format!("{} {measured} of {planned}", letter(*target)),
        };
        write!(f, "{}: {}", self.what, self.on.iter().map(on).collect::<Vec<_>>().join(", "))
    }
}

impl std::fmt::Display for NetworkGap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: the network {} of {}", self.stage, self.measured, self.planned)
    }
}

impl std::fmt::Display for Unused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unused { stage, target, cells, of, lacking } = self;
        write!(f, "{stage}: {cells} of {of} cells are not measured on {}: ", letter(*target))?;
        if lacking.is_empty() {
            return f.write_str(
                "it can't lay out files like this; if cells differ in nothing else, the first stands for all",
            );
        }
        let lacking: Vec<_> = lacking.iter().map(|capability| capability.name()).collect();
        write!(f, "it lacks {}", lacking.join(", "))
    }
}

impl std::fmt::Display for OpenQuestion {
    /// The sentence in place of a verdict, without its subject.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rates = || self.limits.iter().map(|limit| limit.0);
        let least = rates().fold(f64::INFINITY, f64::min);
        let most = rates().fold(0.0, f64::max);
        if self.limits.is_empty() {
            return f.write_str("not decided yet: it was not recorded");
        }
        let took = if self.limits.len() == 1 {
            format!("{} in one pass, {:.2} times the instrument's rate", ByteRate(least), least / self.rate.0)
        } else {
            let [low, high] = [least, most].map(|rate| format!("{:.2}", rate / self.rate.0));
            let passes = self.limits.len();
            format!(
                "{} to {} in {passes} passes, {low} to {high} times the instrument's rate",
                ByteRate(least),
                ByteRate(most)
            )
        };
        write!(
            f,
            "not decided yet: recorded only at full speed, at {took}, and not at the instrument's own"
        )?;
        if self.are_lower_bounds {
            f.write_str("; the recorder waited for a processor, so the storage may take more")?;
        }
        Ok(())
    }
}
