//! All findings of the reports: stages with their figures and comparisons, verdicts, warnings.

use nilometer_model::Instrument;
use nilometer_plan::Results;

use crate::{
    AcceptanceVerdict, Curve, ElementGrowth, MissingEvidence, NearestCeiling, NetworkShare, OwnTarget,
    PaperStudy, Verdict, Warning,
    acceptance::acceptance,
    ceiling::nearest,
    curve::curves,
    full_speed::{FullSpeed, full_speeds},
    growth::growths,
    interference::{Interference, interferences},
    limiting::{LimitingParts, limiting_parts},
    migration::{Migration, MoveAmount, migrations},
    missing::missing,
    network::network_shares,
    observed::{CorrectedLog, MeasuredPhases, ObservedRun},
    optimum::{StageOptimum, optima},
    paper::paper_studies,
    prediction::{Predictions, predictions},
    siblings::{SiblingGroup, sibling_groups},
    stage_figures::{StageFigures, stage_figures},
    study_recordings::{StudyRecording, study_recordings},
    target_letter::letter,
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

/// A stage of the plan with all findings about it.
#[derive(Debug, Clone)]
pub struct StudyStage<'a> {
    /// Its cells with their outcomes and comparisons.
    pub figures: StageFigures<'a>,
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

/// The costs of the loads of all stages.
fn costs_of_loads<'s>(stages: &'s [StudyStage<'_>]) -> Vec<&'s Interference> {
    stages.iter().flat_map(|stage| &stage.interferences).collect()
}

impl<'a> Study<'a> {
    /// Derives all findings from the results.
    pub fn of(results: &'a Results) -> Self {
        let figures = stage_figures(results);
        let network_shares = network_shares(results, &figures);
        let warnings = warnings(results, &figures, &network_shares);
        let verdicts = verdicts(results);
        let all: Vec<&StageFigures<'_>> = figures.iter().collect();
        let predictions = predictions(results, &all, &verdicts, &[]);
        let stages: Vec<StudyStage<'_>> =
            figures.into_iter().map(|figures| StudyStage::of(results, figures)).collect();
        let recordings = study_recordings(results);
        let curves = curves(results);
        let missing = missing(results);
        let acceptance = acceptance(results);
        let migrations = migrations(results, &costs_of_loads(&stages), None);
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
            self.predictions = predictions(self.results, &self.stage_figures(), &self.verdicts, catalogue);
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
        let migrations = migrations(self.results, &costs_of_loads(&self.stages), Some(amount));
        Study { migrations, ..self }
    }

    /// Adds the activity of observed machines.
    #[must_use]
    pub fn with_observed(mut self, logs: &[CorrectedLog]) -> Self {
        let phases = MeasuredPhases { stages: self.stage_figures(), recordings: &self.recordings };
        self.observed = ObservedRun::of(self.results, &phases, logs);
        self
    }

    /// The figures of all stages, without the findings about them.
    pub fn stage_figures(&self) -> Vec<&StageFigures<'a>> {
        self.stages.iter().map(|stage| &stage.figures).collect()
    }
}

impl<'a> StudyStage<'a> {
    /// Derives all findings from the figures of a stage.
    fn of(results: &'a Results, figures: StageFigures<'a>) -> Self {
        let load = |cell: usize| results.cells[cell].background().cloned();
        StudyStage {
            ceiling: nearest(results, &figures),
            growths: growths(results, &figures),
            optima: optima(results, &figures),
            interferences: interferences(&figures, load),
            siblings: sibling_groups(results, &figures),
            limits: limiting_parts(results, &figures),
            figures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{camera, writes};
    use nilometer_model::{Frequency, Nanos, Phase, Sample};
    use nilometer_plan::{Cell, Key, Measured};

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
        let stages: Vec<&str> = study.stages.iter().map(|stage| stage.figures.name).collect();
        assert_eq!(stages, ["one", "two", "three"]);
        let labels = |stage: &StudyStage<'_>| {
            stage.figures.cells.iter().map(|cell| cell.label.clone()).collect::<Vec<_>>()
        };
        assert_eq!(labels(&study.stages[0]), ["workers 1", "workers 2"]);
        assert_eq!(study.stages[0].figures.common, "64 MiB by 1 MiB, direct");
        assert_eq!(
            (labels(&study.stages[1]), study.stages[1].figures.common.as_str()),
            (vec![String::new()], "64 MiB by 1 MiB, direct, 2 workers")
        );
        let paced = ["100 MB/s", "200 MB/s"].map(|rate| format!("camera at {rate} for 40 s, buffer 1 GiB"));
        assert_eq!(labels(&study.stages[2]), paced);
        assert_eq!(study.stages[2].figures.common, "buffer 1 GiB");
        let best = study.stages[0].figures.best(Phase::Write, 0).expect("measured");
        assert_eq!(best.phase, Phase::Write);
        assert!(study.stages[0].figures.best(Phase::Read, 0).is_none());
    }
}
