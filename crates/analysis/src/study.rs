//! All findings of the reports: stages with their figures and comparisons, verdicts, warnings.

use nilometer_model::{Instrument, Phase};
use nilometer_plan::{Cell, Measured, Onto, RecordedInstrument, RecordingRun, Results};

use crate::{
    AcceptanceVerdict, CellOutcome, Curve, ElementGrowth, MissingEvidence, NearestCeiling, NetworkShare,
    OwnTarget, PairBasis, PaperStudy, Quantity, Verdict, Warning,
    acceptance::acceptance,
    ceiling::nearest,
    comparison::{Question, question},
    curve::curves,
    full_speed::{FullSpeed, full_speeds},
    growth::growths,
    interference::{Interference, interferences},
    limiting::{LimitingParts, limiting_parts},
    migration::{Migration, MoveAmount, migrations},
    missing::missing,
    network::network_shares,
    observed::{CorrectedLog, ObservedRun},
    optimum::{StageOptimum, optima},
    outcomes,
    paper::paper_studies,
    parameters::{CommonParameters, Value, Varying, parameters, varying, words},
    prediction::{Predictions, predictions},
    siblings::{SiblingGroup, sibling_groups},
    verdicts,
    warning::warnings,
};

/// A campaign as reports show it.
#[derive(Debug, Clone)]
pub struct Study<'a> {
    /// The results of the campaign.
    pub results: &'a Results,
    /// The stages in the plan's order, without those that have no samples.
    pub stages: Vec<StudyStage<'a>>,
    /// The recordings of instruments in the plan's order.
    pub recordings: Vec<StudyRecording<'a>>,
    /// The cost of recording packets over their size and rate.
    pub curves: Vec<Curve>,
    /// The acceptance of targets; empty if the plan has no criteria.
    pub acceptance: Vec<AcceptanceVerdict>,
    /// The verdicts on targets and instruments.
    pub verdicts: Vec<Verdict>,
    /// The rates of instruments recorded only at full speed.
    pub full_speeds: Vec<FullSpeed>,
    /// The instruments that targets carry, from verdicts and predictions.
    pub predictions: Predictions,
    /// The rates of targets behind a network, as shares of the network's rate.
    pub network_shares: Vec<NetworkShare>,
    /// Planned measurements that are missing.
    pub missing: MissingEvidence,
    /// Warnings that readers need before they use a figure, the gravest first.
    pub warnings: Vec<Warning>,
    /// The activity of observed machines; `None` if none was observed.
    pub observed: Option<ObservedRun>,
    /// Copies from targets to other storage, beside users.
    pub migrations: Vec<Migration>,
    /// The tables of published studies that the campaign measured again; empty unless [`Study::with_papers`] adds
    /// them.
    pub papers: Vec<PaperStudy>,
}

/// A stage of the plan.
#[derive(Debug, Clone)]
pub struct StudyStage<'a> {
    /// Its name.
    pub name: &'a str,
    /// The common parameters of its cells, in words.
    pub common: String,
    /// The parameters that vary among its cells.
    pub varying: Varying,
    /// Its cells in the plan's order.
    pub cells: Vec<StageCell>,
    /// Outcomes by cell, phase and target.
    pub outcomes: Vec<CellOutcome<'a>>,
    /// One question per phase, in the phases' order.
    pub questions: Vec<Question>,
    /// The tool's own rate that is closest to a figure; `None` if it was not measured.
    pub ceiling: Option<NearestCeiling>,
    /// The growth of workloads with the number of targets at once; empty if targets only work alone.
    pub growths: Vec<ElementGrowth>,
    /// The result of its matrix, by phase and target; empty if there are too few cells.
    pub optima: Vec<StageOptimum>,
    /// The cost of loads for its workloads; empty without loads.
    pub interferences: Vec<Interference>,
    /// Siblings that are not alike; empty if none are declared.
    pub siblings: Vec<SiblingGroup>,
    /// The limits of the highest rate of each phase and target, as far as this machine sees them.
    pub limits: Vec<LimitingParts>,
}

/// A cell of a stage.
#[derive(Debug, Clone)]
pub struct StageCell {
    /// Index into [`Results::cells`].
    pub index: usize,
    /// The parameters that tell it from the others of its stage, in words; empty for a single one.
    pub label: String,
    /// Its parameters.
    pub parameters: CommonParameters,
}

/// All samples of an instrument, or of several together.
#[derive(Debug, Clone)]
pub struct StudyRecording<'a> {
    /// The instrument.
    pub instrument: RecordedInstrument,
    /// Samples by target, in chronological order.
    pub samples: Vec<&'a Measured>,
}

impl<'a> Study<'a> {
    /// Derives all findings from the results.
    pub fn of(results: &'a Results) -> Self {
        let outcomes = shown_outcomes(results);
        let mut stages: Vec<StudyStage<'a>> = Vec::new();
        let mut rest = outcomes.as_slice();
        while let Some(first) = rest.first() {
            let name = &results.cells[first.cell].stage;
            let same = |outcome: &CellOutcome<'_>| results.cells[outcome.cell].stage == *name;
            let end = rest.iter().position(|outcome| !same(outcome)).unwrap_or(rest.len());
            stages.push(stage(results, rest[..end].to_vec()));
            rest = &rest[end..];
        }
        let network_shares = network_shares(results, &stages);
        let warnings = warnings(results, &stages, &network_shares);
        let verdicts = verdicts(results);
        let predictions = predictions(results, &stages, &verdicts, &[]);
        let recordings = recordings(results);
        let curves = curves(results);
        let missing = missing(results);
        let acceptance = acceptance(results);
        let migrations = migrations(results, &stages, None);
        Study {
            results,
            stages,
            recordings,
            curves,
            acceptance,
            verdicts,
            full_speeds: full_speeds(results),
            predictions,
            network_shares,
            missing,
            warnings,
            observed: None,
            migrations,
            papers: Vec::new(),
        }
    }

    /// Adds predictions for these instruments.
    #[must_use]
    pub fn with_catalogue(mut self, catalogue: &[Instrument]) -> Self {
        // Imported measurements may not have been durable, cold or direct.
        if !self.results.is_imported() {
            self.predictions = predictions(self.results, &self.stages, &self.verdicts, catalogue);
        }
        self
    }

    /// Adds the tables of published studies that the campaign measured again, or was imported from.
    #[must_use]
    pub fn with_papers(self) -> Self {
        let results = self.results;
        if results.is_imported() {
            return Study { papers: paper_studies(&[], &[results]), ..self };
        }
        let own = |target: usize| OwnTarget { letter: letter(target), results, target };
        let targets: Vec<OwnTarget<'_>> = (0..results.targets.len()).map(own).collect();
        Study { papers: paper_studies(&targets, &[]), ..self }
    }

    /// Forecasts the move of this amount.
    #[must_use]
    pub fn with_move(self, amount: MoveAmount) -> Self {
        let migrations = migrations(self.results, &self.stages, Some(amount));
        Study { migrations, ..self }
    }

    /// Adds the activity of observed machines.
    #[must_use]
    pub fn with_observed(mut self, logs: &[CorrectedLog]) -> Self {
        self.observed = ObservedRun::of(&self, logs);
        self
    }
}

/// The outcomes that reports show. The trials of a search are excluded, because their rates differ and a mean
/// would be meaningless. Recordings without storage are excluded too.
pub(crate) fn shown_outcomes(results: &Results) -> Vec<CellOutcome<'_>> {
    let mut outcomes = outcomes(results);
    let is_trial =
        |measured: &&Measured| measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal.searches());
    let is_of_target = |cell: usize| results.cells.get(cell).is_some_and(|cell| !cell.is_onto_nothing());
    outcomes.retain(|outcome| is_of_target(outcome.cell) && !outcome.samples.iter().any(is_trial));
    outcomes
}

fn stage<'a>(results: &'a Results, outcomes: Vec<CellOutcome<'a>>) -> StudyStage<'a> {
    let entry = |index: usize| &results.cells[index];
    let name = &entry(outcomes[0].cell).stage;
    let mut indices: Vec<usize> = outcomes.iter().map(|outcome| outcome.cell).collect();
    indices.dedup();
    let parameters: Vec<CommonParameters> = indices.iter().map(|&index| parameters(entry(index))).collect();
    let varying = varying(&parameters);
    let entries: Vec<&Cell> = indices.iter().map(|&index| entry(index)).collect();
    let labels = labels(&entries, &parameters, &varying);
    let cells = indices.into_iter().zip(labels).zip(parameters);
    // Imported repeats were not measured in rounds.
    let is_imported = entries.iter().all(|entry| entry.as_imported().is_some());
    let basis = if is_imported { PairBasis::Repeats } else { PairBasis::Rounds };
    let questions = phases(&outcomes).into_iter().map(|phase| {
        let of_phase: Vec<&CellOutcome<'_>> =
            outcomes.iter().filter(|outcome| outcome.phase == phase).collect();
        question(phase, &of_phase, basis)
    });
    let mut stage = StudyStage {
        name,
        common: common(&entries),
        questions: questions.collect(),
        varying,
        cells: cells.map(|((index, label), parameters)| StageCell { index, label, parameters }).collect(),
        outcomes,
        ceiling: None,
        growths: Vec::new(),
        optima: Vec::new(),
        interferences: Vec::new(),
        siblings: Vec::new(),
        limits: Vec::new(),
    };
    stage.ceiling = nearest(results, &stage);
    stage.growths = growths(results, &stage);
    stage.optima = optima(results, &stage);
    let load = |cell: usize| entry(cell).background().cloned();
    stage.interferences = interferences(&stage, load);
    stage.siblings = sibling_groups(results, &stage);
    stage.limits = limiting_parts(results, &stage);
    stage
}

fn phases(outcomes: &[CellOutcome<'_>]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = outcomes.iter().map(|outcome| outcome.phase).collect();
    phases.sort_unstable();
    phases.dedup();
    phases
}

/// The varying parameters of each cell, or its whole name if these do not tell all cells apart.
pub(crate) fn labels(entries: &[&Cell], parameters: &[CommonParameters], varying: &Varying) -> Vec<String> {
    if let [_] = entries {
        return vec![String::new()];
    }
    let names: Vec<&String> = varying.axis.iter().chain(&varying.others).collect();
    let labels: Vec<String> = parameters.iter().map(|cell| words(cell, names.iter().copied())).collect();
    let mut sorted: Vec<&String> = labels.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == labels.len() {
        return labels;
    }
    entries.iter().map(ToString::to_string).collect()
}

/// The common parameters of all cells, in words.
pub(crate) fn common(entries: &[&Cell]) -> String {
    let mut all = entries.iter().map(|entry| entry.phrases());
    let Some(mut shared) = all.next() else { return String::new() };
    for phrases in all {
        shared.retain(|phrase| phrases.contains(phrase));
    }
    shared.join(", ")
}

fn recordings(results: &Results) -> Vec<StudyRecording<'_>> {
    let mut samples: Vec<&Measured> =
        results.samples.iter().filter(|measured| measured.sample.ingest.is_some()).collect();
    samples.sort_by_key(|measured| (measured.key.cell, measured.key.target, measured.key.repeat));
    let mut recordings: Vec<StudyRecording<'_>> = Vec::new();
    for measured in samples {
        let run = results.recording(measured.key).filter(|run| run.onto == Onto::Target);
        let Some(instrument) = run.map(RecordingRun::recorded_instrument) else { continue };
        match recordings.iter_mut().find(|known| known.instrument == instrument) {
            Some(recording) => recording.samples.push(measured),
            None => recordings.push(StudyRecording { instrument, samples: vec![measured] }),
        }
    }
    for recording in &mut recordings {
        recording.samples.sort_by_key(|measured| measured.key.target);
    }
    recordings
}

impl StudyStage<'_> {
    /// The question of a phase.
    pub fn question(&self, phase: Phase) -> Option<&Question> {
        self.questions.iter().find(|question| question.phase == phase)
    }

    /// The outcomes of a phase.
    pub fn of_phase(&self, phase: Phase) -> Vec<&CellOutcome<'_>> {
        self.outcomes.iter().filter(|outcome| outcome.phase == phase).collect()
    }

    /// The targets with samples.
    pub fn targets(&self) -> Vec<usize> {
        let mut targets: Vec<usize> = self.outcomes.iter().map(|outcome| outcome.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// The quantity for the rate of an outcome.
    pub fn quantity(&self, outcome: &CellOutcome<'_>) -> Quantity {
        self.question(outcome.phase).map_or(Quantity::Operations, |question| question.quantity)
    }

    /// The cell with an index into the results' cells.
    pub fn cell(&self, index: usize) -> Option<&StageCell> {
        self.cells.iter().find(|cell| cell.index == index)
    }

    /// The outcome with the highest mean of a target in a phase, in the phase's quantity.
    pub fn best(&self, phase: Phase, target: usize) -> Option<&CellOutcome<'_>> {
        let quantity = self.question(phase)?.quantity;
        let here = self.outcomes.iter().filter(|o| o.phase == phase && o.target == target);
        let mean = |outcome: &CellOutcome<'_>| outcome.summary(quantity).map(|summary| summary.mean);
        here.filter(|o| mean(o).is_some())
            .max_by(|a, b| mean(a).unwrap_or_default().total_cmp(&mean(b).unwrap_or_default()))
    }
}

impl StageCell {
    /// A parameter's value as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).and_then(Value::number)
    }
}

/// The name of a target in tables: A to Z, then A1 to Z1, A2 to Z2.
pub fn letter(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{camera, writes};
    use nilometer_model::{Frequency, Nanos, Sample};
    use nilometer_plan::Key;

    fn results(cells: Vec<Cell>) -> Results {
        let sample = |cell: usize| {
            let key = Key { target: 0, cell, repeat: 0, phase: Phase::Write };
            let sample =
                Sample { bytes: 1 << 30, operations: 10, wall: Nanos(1000), ..Sample::new(Nanos(0)) };
            Measured { key, sample }
        };
        let samples = (0..cells.len()).map(sample).collect();
        Results { cells, samples, ..Results::default() }
    }

    #[test]
    fn cells_are_told_apart_by_what_varies() {
        // Cameras with the same name that differ in something other than a parameter of the plan.
        let mut faster = camera("camera");
        faster.instrument.frame_rate = Frequency(200.0);
        let results = results(vec![
            writes("one", "1 MiB", 1),
            writes("one", "1 MiB", 2),
            writes("two", "1 MiB", 2),
            Cell::recording("three", camera("camera")),
            Cell::recording("three", faster),
        ]);
        let study = Study::of(&results);
        let stages: Vec<&str> = study.stages.iter().map(|stage| stage.name).collect();
        assert_eq!(stages, ["one", "two", "three"]);
        let labels =
            |stage: &StudyStage<'_>| stage.cells.iter().map(|cell| cell.label.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&study.stages[0]), ["workers 1", "workers 2"]);
        assert_eq!(study.stages[0].common, "64 MiB by 1 MiB, direct");
        assert_eq!(
            (labels(&study.stages[1]), study.stages[1].common.as_str()),
            (vec![String::new()], "64 MiB by 1 MiB, direct, 2 workers")
        );
        let paced = ["100 MB/s", "200 MB/s"].map(|rate| format!("camera at {rate} for 40 s, buffer 1 GiB"));
        assert_eq!(labels(&study.stages[2]), paced);
        assert_eq!(study.stages[2].common, "buffer 1 GiB");
        let best = study.stages[0].best(Phase::Write, 0).expect("measured");
        assert_eq!(best.phase, Phase::Write);
        assert!(study.stages[0].best(Phase::Read, 0).is_none());
    }

    #[test]
    fn letters_never_end() {
        assert_eq!([0, 25, 26, 52].map(letter), ["A", "Z", "A1", "A2"]);
    }
}
