//! From a plan to samples: resolve it against the targets, run every cell in rounds, put each sample into the record.

#![forbid(unsafe_code)]

mod environment;
mod gate;
mod ingest;
mod patience;
mod phase;
mod resolve;
mod rounds;
pub mod workload;

pub use environment::environment;
pub use patience::within;
pub use phase::{Reached, Run, run_phase};
pub use resolve::{ResolveError, Resolved, resolve};
pub use rounds::{Campaign, CampaignError, Progress};
