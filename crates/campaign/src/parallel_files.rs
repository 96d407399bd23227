//! Cells that write and read their files by MPI-IO: which processes support it, which of them open a file
//! together, and how a call that does not return is handled.
//!
//! One thread at a time calls MPI, and a call on a file lasts as long as the storage takes. If one hangs, this
//! process can't tell the others. Rank 0 then brings the record to its end by itself, and the others end.

use std::{path::PathBuf, sync::Arc};

use nilometer_cluster::{Cluster, ClusterDecision, MpiFiles, MpiIoSetup, RankReport};
use nilometer_model::{MpiIoImplementation, MpiIoInForce};
use nilometer_plan::{MpiIo, RankNodes};
use nilometer_storage::{Engine, Target, engine::Options};

use crate::task::Task;

/// At rank 0, after [`crate::all_present`]: finds the MPI-IO implementation of each process.
///
/// # Errors
/// If processes have no MPI-IO, with their list in words.
pub fn with_mpi_io(cluster: &dyn Cluster, nodes: RankNodes) -> Result<RankNodes, String> {
    if cluster.size() < 2 {
        return Ok(nodes);
    }
    cluster.broadcast(Some(ClusterDecision::MpiIo));
    let reports = cluster.gather(own_mpi_io(cluster));
    let found = |report| match report {
        RankReport::MpiIo(found) => found.map(Some),
        other => unreachable!("every rank reports its MPI-IO, but one sent {other:?}"),
    };
    Ok(nodes.with_mpi_io(reports.into_iter().map(found).collect::<Result<_, _>>()?))
}

/// The MPI-IO implementation of this process.
pub(crate) fn own_mpi_io(cluster: &dyn Cluster) -> RankReport {
    let found: Result<MpiIoImplementation, String> = cluster.files().and_then(|files| files.implementation());
    RankReport::MpiIo(found.map_err(|why| format!("{}: {why}", cluster.node())))
}

/// The way in which the worker of a process opens the files of a phase.
#[derive(Debug)]
pub(crate) struct ParallelFiles {
    files: Arc<MpiFiles>,
    directory: PathBuf,
    /// The processes that open each file together; `None` if each has files of its own.
    together: Option<Vec<u32>>,
    mpi_io: MpiIo,
}

impl ParallelFiles {
    /// The files of a phase, if its cell asks for MPI-IO and the target keeps data; otherwise `None`.
    pub(crate) fn of(task: &Task<'_>, target: &dyn Target) -> Result<Option<Self>, String> {
        let Some(mpi_io) = task.cell.mpi_io.clone().filter(|_| target.description().keeps()) else {
            return Ok(None);
        };
        let directory = target.directory().ok_or("MPI-IO opens files by paths, and here they have none")?;
        let together = task.cell.keeps_step().then(|| task.ranks.nodes.used_by(task.cell));
        let files = task.cluster.files()?;
        Ok(Some(ParallelFiles { files, directory: directory.into(), together, mpi_io }))
    }

    /// True if several processes share a file. All then make the same calls, whatever their results: one that
    /// made fewer would leave the others waiting.
    pub(crate) fn keeps_step(&self) -> bool {
        self.together.is_some()
    }

    /// An engine for the calling thread.
    pub(crate) fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, String> {
        let setup = MpiIoSetup {
            directory: &self.directory,
            together: self.together.as_deref(),
            mpi_io: &self.mpi_io,
            slots: options.slots,
            clock: options.clock,
        };
        self.files.engine(&setup)
    }
}

impl Task<'_> {
    /// The MPI-IO implementation and the hints in force for the files of the phase; `None` without MPI-IO.
    pub(crate) fn mpi_io_in_force(&self) -> Option<MpiIoInForce> {
        self.cell.mpi_io.as_ref()?;
        self.cluster.files().ok()?.take_in_force()
    }
}

/// Returns true if an MPI call has not returned, so that this process must not call MPI again.
pub(crate) fn is_stuck(task: &Task<'_>) -> bool {
    task.cell.mpi_io.is_some() && task.cluster.files().is_ok_and(|files| files.is_stuck())
}

/// Returns true if, in addition, this process can send no messages. Rank 0 continues by itself.
pub(crate) fn is_silenced(task: &Task<'_>) -> bool {
    if !is_stuck(task) {
        return false;
    }
    task.cluster.part();
    task.cluster.rank() > 0
}

/// The message of a process other than rank 0 about a call that does not return.
pub(crate) fn stuck(task: &Task<'_>) -> String {
    let targets: Vec<_> =
        task.targets.iter().map(|(_, target)| target.description().address.to_string()).collect();
    format!(
        "{}: a call of MPI-IO on {} has not returned ({}: {}), and MPI takes no other meanwhile: this \
         process ends, and with it the campaign. Go on with `evaluate --resume` when the storage answers \
         again",
        task.cluster.node(),
        targets.join(" or "),
        task.phase.name(),
        task.cell
    )
}
