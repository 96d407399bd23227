//! Lets several processes run as one campaign.
//!
//! Rank 0 decides and keeps the record; the others follow. All ranks measure the same: each phase begins at an
//! agreed time, and the reports of the ranks become one sample. Ranks exchange no messages while they measure a
//! rate. Waiting ranks sleep, because others may be measuring on the same machine.
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
mod settings_report;
mod shared_recording;
#[cfg(any(test, feature = "test-kit"))]
pub mod testing;

pub use alone::Alone;
pub use launcher::{Launcher, launched, launched_here};
pub use messages::{MessageCluster, RankMessages};
pub use mpi::{ADAPTER_SOURCE, MpiError, MpiFiles, MpiIoSetup, MpiMessages, adapter_path, let_go_of_output};
pub use said::{
    AwaitedStream, CampaignRanks, CloseTime, ClusterDecision, JoinedRun, LinkAddress, LoadReport,
    MeasuredTogether, RankReport, SocketLimits, dataset_fault, failed_on_any, loads_of_all, measured_by_all,
    recorded_by_all,
};
pub use settings_report::SettingsReport;
pub use shared_recording::{SharedRecording, SharingDecision, SharingReport, StoredPart, UnpreparedPart};

use std::{fmt, sync::Arc};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

/// The processes of a campaign, as one of them sees them. All call the same methods in the same order; in
/// `broadcast` only rank 0 passes a decision. A process that waits here sleeps, because others may be measuring
/// on the same machine.
///
/// There are no errors: the loss of a process ends the campaign, which you resume from the record.
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Returns the number of this process, from 0.
    fn rank(&self) -> u32;
    /// Returns the number of processes.
    fn size(&self) -> u32;
    /// Returns the name of this process's machine. Ranks with the same name count its activity once.
    fn node(&self) -> String;
    /// Returns by how many nanoseconds this process's clock is ahead of rank 0's clock.
    fn clock_offset(&self) -> i64;
    /// Returns the error bound of [`Cluster::clock_offset`] in nanoseconds.
    fn clock_uncertainty(&self) -> u64;
    /// Returns when all processes have called it.
    fn barrier(&self);
    /// Returns a start time on this process's clock. It is the same moment for all processes, and not in the
    /// past.
    fn agree_start(&self, clock: &Clock) -> Nanos;
    /// Returns the reports of all ranks in order at rank 0, and nothing at other ranks.
    fn gather(&self, mine: RankReport) -> Vec<RankReport>;
    /// Returns rank 0's decision at every rank. Rank 0 passes `Some`, the others `None`.
    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision;
    /// Returns files through MPI-IO, or the reason why there are none.
    fn files(&self) -> Result<Arc<MpiFiles>, String> {
        Err(NO_MPI.into())
    }
    /// Makes rank 0 stop all communication: from now on it gathers only its own reports. If a call of MPI
    /// hangs, no other can be made. Rank 0 then finishes the record without the others.
    fn part(&self) {}
}

/// The reason why a process without MPI has no MPI-IO.
const NO_MPI: &str = "no MPI has started this process";

/// Returns the name of this machine.
pub fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
