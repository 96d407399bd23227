//! From samples to numbers, and from numbers to words. Pure: it reads results and writes text.
//!
//! [`Study`] derives all findings once; the reports only show them, each in its own way.

#![forbid(unsafe_code)]

mod acceptance;
mod across_machines;
mod additive_fit;
mod answer;
mod by_round;
mod ceiling;
mod compare;
mod comparison;
mod conclusions;
mod curve;
pub mod effect;
mod evidence;
mod facts;
mod full_speed;
mod growth;
mod headline;
mod interference;
mod limiting;
mod limits;
mod line_difference;
mod losses;
mod machine_starts;
#[cfg(any(test, feature = "test-kit"))]
pub mod made_up;
mod migration;
mod missing;
mod network;
pub mod observed;
mod optimum;
mod outcome;
mod paper;
mod parameters;
mod prediction;
mod rate_unit;
mod reason;
mod recorded_stages;
mod siblings;
mod stage_figures;
mod storage_matrix;
mod stream_cell;
mod study;
mod study_recordings;
mod target_letter;
mod verdict;
mod warning;

pub use acceptance::{AcceptanceAnswer, AcceptanceVerdict, CriterionAnswer, JudgedCriterion, acceptance};
pub use across_machines::{AcrossMachines, Straggler};
pub use answer::{ShortAnswer, ShortAnswers};
pub use by_round::LogDifference;
pub use ceiling::{NearestCeiling, ceiling_of};
pub use compare::{
    AcrossQuestion, AgainstBaseline, AlignedCell, AlignedNetwork, AlignedRecording, AlignedStage,
    AlignedTraffic, CellDifference, ChangePoint, ChangeTest, DifferingFact, LeftFigure, LoneCells,
    NamedRecord, NamedStep, NetworkRates, OpenFigure, PairBasis, RecordingPair, RecordsCompared, RunPoint,
    RunSequence, RunSpread, Subject, SubjectPair, TargetHistory, WorseCell,
};
pub use comparison::{Comparison, Question};
pub use conclusions::conclusions;
pub use curve::{AtRate, Curve, LossBegins, curves, processor_cost};
pub use full_speed::FullSpeed;
pub use growth::{AtOnce, ElementGrowth, GrowthKnee, OddElement};
pub use headline::{CarriedInstrument, Headline, NoInstrument, headlines};
pub use interference::{Interference, LoadLevel};
pub use limiting::{LimitingKind, LimitingPart, LimitingParts};
pub use limits::{MeasuredLimits, measured_limits};
pub use line_difference::{LineDifference, NamedRates};
pub use machine_starts::{MachineStart, MachineStarts, contradictory_starts};
pub use migration::{CopiedTreeRate, CopyCosts, CopyLevel, Migration, MoveAmount, MoveForecast};
pub use missing::{EvidenceGap, MissingEvidence, NetworkGap, OpenQuestion, Share, Unused};
pub use network::{
    GroupRates, GroupSide, IntervalFigure, LinkOverTime, LinkWay, LossFreeRate, MachineRate, NetworkLimit,
    NetworkOutcome, NetworkShare, OddLink, OfferedDatagrams, PacedLoss, SentAgainOverTime, SideShare,
    TrafficOverTime, loss_free_rates, network_outcomes, odd_links, paced_losses, traffic_over_time,
};
pub use optimum::{ExplainedShare, StageOptimum, SufficientValue, ValueRate};
pub use outcome::{CellOutcome, Cores, LowerBound, Quantity, Times, outcomes};
pub use paper::{OwnFigure, OwnTarget, PaperCell, PaperLine, PaperStudy, PaperTable};
pub use parameters::{CommonParameters, Value, Varying, parameters};
pub use prediction::{
    Basis, LimitKind, LimitSource, MeasuredLimit, Predictions, Prospect, Prospects, Withheld, Without,
};
pub use rate_unit::RateUnit;
pub use reason::Reason;
pub use recorded_stages::stages_of;
pub use siblings::{SiblingGroup, SiblingRate};
pub use stage_figures::{StageCell, StageFigures};
pub use storage_matrix::{MatrixAnswer, MatrixRow, StorageMatrix};
pub use study::{Study, StudyStage};
pub use study_recordings::StudyRecording;
pub use target_letter::letter;
pub use verdict::{
    Beside, Decision, Finding, Hidden, Together, TrialVerdict, Under, Verdict, rate_words, verdicts,
};
pub use warning::{Grade, Warning};
