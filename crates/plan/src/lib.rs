//! Plans and results: plans as text (TOML) and as cells, the results of a campaign, and searches for limits.
//! It also sizes storage systems for instruments. No I/O, no clock.
//!
//! Any parameter of a plan may be a list; a stage is then the matrix of all combinations. Parsing refuses
//! unknown keys at their own line with the valid names. A typo that passes would measure something else.

#![forbid(unsafe_code)]

mod accept;
mod background;
mod built_in;
mod cell;
mod censuses;
mod check;
mod choices;
mod error;
mod estimate;
mod evidence;
mod imported;
mod ingest;
mod instrument_turn;
mod joined;
mod key_value;
mod mpi_io;
mod network;
mod network_trials;
mod offered_rate;
mod parameters;
mod parse;
mod places;
mod plan_key;
mod plan_table;
mod planned;
mod process_count;
mod processes;
mod published;
mod recorded_together;
mod recording;
mod recording_part;
mod recording_terms;
mod reference;
mod resolved;
mod results;
mod scale;
pub mod search;
mod setting;
mod shift;
mod siblings;
pub mod sizing;
mod sweep;
mod swept;
mod volumes;
mod workload;
mod written;

pub use accept::{
    AcceptTerms, Acceptance, CoresOf, Criterion, DURABLE_SHARE, InstrumentDemands, LossLimit, Requirement,
    StageDemands,
};
pub use background::{BackgroundSweep, PhaseName};
pub use built_in::{ACCEPTANCE_TEMPLATE, CONDITION_TEMPLATE, PLANS};
pub use cell::{Cell, Measurement, WorkloadRun};
pub use censuses::CensusReader;
pub use choices::{Access, BufferData, SyncPolicy};
pub use error::PlanError;
pub use estimate::{Estimate, EstimatedSpeed};
pub use evidence::seen_after;
pub use imported::ImportedRun;
pub use ingest::{BackgroundLoad, DURATION_LEAST, FRAMES_LEAST, LoadWork, RecordingRun, USUAL_KEEP};
pub use instrument_turn::InstrumentTurn;
pub use mpi_io::{MpiIo, MpiIoCalls, MpiIoSweep};
pub use network::{NetworkRun, NetworkSweep, UnavailableSetting};
pub use network_trials::{NetworkTrial, NetworkTrials};
pub use offered_rate::OfferedRate;
pub use parameters::{Footprint, Parameters, Work, WorkloadTraits};
pub use parse::{PlanSources, parse, parse_from, parse_with};
pub use plan_key::{KeyValue, PlanKey, ValueKind};
pub use planned::PlannedCampaign;
pub use process_count::ProcessCount;
pub use processes::{AskedProcesses, RankNodes};
pub use published::{
    FigureKind, LeftOutRows, MappedLine, ParameterTexts, PublishedFigure, PublishedStudy, PublishedTable,
    TableLines,
};
pub use recorded_together::recorded_together;
pub use recording::{Catalogue, IngestGoal, IngestSweep};
pub use recording_part::RecordingSplit;
pub use recording_terms::{Condition, Fill, Onto, Route};
pub use resolved::ResolvedPlan;
pub use results::{Conclusion, Event, Group, Key, Measured, Results, TargetEntry};
pub use scale::ShownScale;
pub use setting::{AppliedSetting, SettingSweep};
pub use shift::Shift;
pub use siblings::Siblings;
pub use sweep::Sweep;
pub use swept::{RecordedInstrument, Swept};
pub use volumes::Volumes;
pub use workload::*;
pub use written::{ExpectedFileSystem, Plan, Stage};

#[cfg(test)]
mod tests;
