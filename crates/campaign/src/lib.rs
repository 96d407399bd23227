//! Runs a campaign: resolves a plan against the targets, runs every cell in rounds, and puts each sample into
//! the record.

#![forbid(unsafe_code)]

mod background;
mod barrier;
mod baseline;
mod begin;
mod calendar;
mod calm;
mod cold;
mod condition;
mod conversation;
mod difference;
mod driven;
mod environment;
mod follow;
mod ingest;
mod join;
mod joined;
mod load_share;
mod locks;
mod machine_settings;
mod machines;
mod on_machines;
mod parallel_files;
mod phase;
mod precision;
mod remaining;
mod resolve;
mod resume;
mod rounds;
mod setting;
mod setting_notes;
mod settle;
mod starvation;
mod supervise;
mod surroundings;
mod talk;
mod task;
mod together;
mod turns;
mod user_command;
mod visibility;
mod worker;
pub mod workload;

pub use begin::{BeginError, TargetPlaces, make_archive, make_load_places, make_targets, record_head};
pub use condition::leave_conditions;
pub use difference::difference;
pub use environment::environment;
pub use follow::follow;
pub use ingest::{Pass, sample_of};
pub use join::{Describe, SharedPlaces, all_present, dismiss, joined_by_all};
pub use machines::{check_network, network_stages};
pub use parallel_files::with_mpi_io;
pub use precision::{MeasuredRates, recorded_rates};
pub use resolve::{ResolveError, resolve, with_archive, with_ceiling, with_source};
pub use resume::{go_on, recorded_trials, remove_left_runs};
pub use rounds::{Campaign, CampaignError, Now, Progress, Ran};
pub use setting_notes::{LeftSettings, notes_place, take_back_left_here};
pub use supervise::{BufferLevel, CampaignStep, SoFar};
pub use turns::Trials;
