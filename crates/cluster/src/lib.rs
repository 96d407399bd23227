//! Several processes as one campaign: what they say to each other.
//!
//! Rank 0 decides and keeps the record; the others do as they are told. What is measured is the same for all: each phase begins
//! at an agreed time, and what the ranks report becomes one sample. Nothing is exchanged while a rate is measured, and who waits
//! sleeps, because others may be measuring on the same machine.
//!
//! ```text
//! Cluster    barrier, agreed start, gather, broadcast   <- campaign
//!    ^
//! MessageCluster   the same of messages between two ranks, which are looked for and never waited for
//!    ^
//! RankMessages     MPI (an adapter that each site compiles with its own mpicc), threads (tests)
//! ```

#![deny(unsafe_code)]

mod alone;
mod launcher;
mod messages;
#[expect(unsafe_code, reason = "functions of a library that is loaded")]
mod mpi;
mod offset;
mod said;
mod shared_recording;
#[cfg(any(test, feature = "test-kit"))]
pub mod testing;

pub use alone::Alone;
pub use launcher::{Launcher, launched, launched_here};
pub use messages::{MessageCluster, RankMessages};
pub use mpi::{ADAPTER_SOURCE, MpiError, MpiFiles, MpiIoSetup, MpiMessages, adapter_path, let_go_of_output};
pub use said::{
    AwaitedStream, CampaignRanks, CloseTime, ClusterDecision, JoinedRun, MeasuredTogether, RankReport,
    failed_on_any, measured_by_all, recorded_by_all,
};
pub use shared_recording::{SharedRecording, SharingDecision, SharingReport, StoredPart, UnpreparedPart};

use std::{fmt, sync::Arc};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

/// The processes of a campaign, as one of them sees them. All call the same methods in the same order, but for
/// `broadcast`, to which only rank 0 has something to say. Whoever waits here sleeps: others may be measuring on the
/// same machine.
///
/// There are no errors: where a process is lost the campaign has ended, and is resumed from the record.
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Which process this is, from 0.
    fn rank(&self) -> u32;
    /// How many there are.
    fn size(&self) -> u32;
    /// The name of this process's machine: what happens on it counts once for all ranks with the same.
    fn node(&self) -> String;
    /// How many nanoseconds this process's clock is ahead of that of rank 0.
    fn clock_offset(&self) -> i64;
    /// That may be so many nanoseconds more or less.
    fn clock_uncertainty(&self) -> u64;
    /// Returns when all have come here.
    fn barrier(&self);
    /// A moment not in the past that is the same for all, on this process's clock.
    fn agree_start(&self, clock: &Clock) -> Nanos;
    /// At rank 0 what all report, in the order of ranks; nothing elsewhere.
    fn gather(&self, mine: RankReport) -> Vec<RankReport>;
    /// What rank 0 decided, for all. Rank 0 gives it, the others none.
    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision;
    /// Files by MPI-IO; or why there are none, in words.
    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        Err(NO_MPI.into())
    }
    /// At rank 0, from now on nothing is said or heard any more, and what is gathered is its own: where a call of MPI does not
    /// come back no other can be made, and the record is brought to its end without the others.
    fn part(&self) {}
}

/// Why there is no MPI-IO.
const NO_MPI: &str = "no MPI has started this process";

/// The name of this machine.
pub fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
