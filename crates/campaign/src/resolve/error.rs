//! Why a plan can't run.

use nilometer_model::{ByteRate, Bytes, Nanos, NotExpected};

/// A plan that can't run on a target. The message names stage, cell and what would do.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing can be written there.
    #[error("{path}: can't be written{why}: name a directory that this user may write to")]
    ReadOnly {
        /// The target.
        path: String,
        /// What was said when it was tried, in brackets; nothing where nothing was.
        why: String,
    },
    /// It is not what was expected.
    #[error(transparent)]
    NotExpected(#[from] NotExpected),
    /// It can do nothing of what is planned.
    #[error("{path}: nothing of the plan can be measured there: it lacks {lacking}")]
    Unable {
        /// The target.
        path: String,
        /// What is missing for the cells of the plan.
        lacking: String,
    },
    /// The plan is about other numbers of targets.
    #[error(
        "{path}: nothing of the plan is measured there: all its volumes are numbers, and none takes this one of {targets} \
         targets in: name as many targets as one of them says, or add \"alone\" or \"together\" to the plan"
    )]
    NotAmong {
        /// The target.
        path: String,
        /// How many there are.
        targets: usize,
    },
    /// Nothing can be read again there.
    #[error("{path}: keeps nothing, so that nothing can be copied {way} it: name a directory")]
    KeepsNothing {
        /// The storage.
        path: String,
        /// `from` or `to`.
        way: &'static str,
    },
    /// `O_DIRECT` can't take such blocks.
    #[error(
        "stage `{stage}`: {key} = \"{block}\" is no multiple of {alignment}, which O_DIRECT needs on {path}: \
         write a multiple, or access = \"buffered\""
    )]
    Alignment {
        /// The stage.
        stage: String,
        /// The parameter, or what follows from it.
        key: &'static str,
        /// Its size.
        block: Bytes,
        /// What it should be a multiple of.
        alignment: Bytes,
        /// The target.
        path: String,
    },
    /// There is no `O_DIRECT`.
    #[error(
        "stage `{stage}`: access = \"direct\" is not possible on {path} ({why}): write \"best\" or \"buffered\""
    )]
    NoDirect {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// What it does instead.
        why: String,
    },
    /// Too little space.
    #[error(
        "stage `{stage}` needs {needed} on {path}, which has {free} free, and {reserve} must stay free: name larger \
         storage, or write {}", smaller(*scale)
    )]
    Space {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// What a cell leaves there.
        needed: Bytes,
        /// What there is.
        free: Bytes,
        /// What the plan leaves alone.
        reserve: Bytes,
        /// A scale at which it would fit; none where it is the reserve that leaves no room.
        scale: Option<f64>,
    },
    /// Too little space for what stays of a recording.
    #[error(
        "the recording of `{instrument}` needs {needed} on {path}, which has {free} free, and {reserve} must stay free: \
         name larger storage, an instrument with fewer frames_per_file, a smaller --reserve, or a smaller --keep, of which the \
         latest stay"
    )]
    Recording {
        /// Its name.
        instrument: String,
        /// The target.
        path: String,
        /// What lies there at once.
        needed: Bytes,
        /// What there is.
        free: Bytes,
        /// What the plan leaves alone.
        reserve: Bytes,
    },
    /// Writers that would wait for each other.
    #[error("the recording of `{instrument}` on {path}: {why} (in a plan: buffer, and writers = 1)")]
    Lines {
        /// Its name.
        instrument: String,
        /// The target.
        path: String,
        /// What would do.
        why: String,
    },
    /// More processes than can record an instrument together.
    #[error("{instrument}: {asked}, and {why}: write smaller numbers, or leave them out")]
    Recorders {
        /// What is recorded.
        instrument: String,
        /// How many processes that makes.
        asked: String,
        /// How many can, and why.
        why: String,
    },
    /// More space than the plan allows.
    #[error(
        "stage `{stage}` needs {needed}, and the plan's space_limit is {limit}: raise it, or write --scale {scale}"
    )]
    SpaceLimit {
        /// The stage.
        stage: String,
        /// What a cell leaves on a target.
        needed: Bytes,
        /// What the plan allows.
        limit: Bytes,
        /// A scale at which it would fit.
        scale: f64,
    },
    /// The matrix is too large.
    #[error(
        "the plan takes {needed} even at {rate} and {operations} million operations a second, and its time_limit is \
         {limit}: leave values out, write a smaller --scale, or a longer time_limit"
    )]
    Time {
        /// At the highest speed that can be thought of.
        needed: Nanos,
        /// That speed.
        rate: ByteRate,
        /// That speed.
        operations: f64,
        /// What the plan allows.
        limit: Nanos,
    },
    /// Copies come from nowhere.
    #[error(
        "stage `{stage}`: source = \"disk\" needs a directory to copy from: write --source DIRECTORY, or source = \
         \"/a/directory\" at the head of the plan"
    )]
    NoSource {
        /// The stage.
        stage: String,
    },
    /// Copies of recordings go nowhere.
    #[error("{instrument}: a copy needs a directory on other storage: write --copy-to DIRECTORY")]
    NoArchive {
        /// What is recorded.
        instrument: String,
    },
    /// Too few inodes.
    #[error("stage `{stage}` needs {needed} inodes on {path}, which has {free} free")]
    Inodes {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// Files and directories of a cell.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// Too few processes.
    #[error(
        "stage `{stage}` asks for {asked}: there {there}: start more with mpirun or srun (docs/cluster.md), or write smaller \
         numbers"
    )]
    Processes {
        /// The stage.
        stage: String,
        /// What the cell says.
        asked: String,
        /// What there is, with its verb.
        there: String,
    },
    /// What a stage is made by is not there: several machines, or MPI-IO.
    #[error("stage `{stage}`: {why}")]
    Lacking {
        /// The stage.
        stage: String,
        /// What is wrong, with what would do.
        why: String,
    },
    /// Criteria that nothing could decide here.
    #[error("accept: {why}")]
    Acceptance {
        /// What is wrong, with the valid values.
        why: String,
    },
    /// Too little memory.
    #[error(
        "stage `{stage}` needs {needed} of buffers, and at most half of the {available} of memory that are available{limit}: write a \
         smaller buffer (--buffer {}), fewer workers or smaller blocks",
        Bytes(available.0 / 2)
    )]
    Memory {
        /// The stage.
        stage: String,
        /// Of all workers of a cell.
        needed: Bytes,
        /// What there is.
        available: Bytes,
        /// What a container or a job allows, in words; empty if none limits it.
        limit: String,
    },
}

/// What to write where there is too little room.
fn smaller(scale: Option<f64>) -> String {
    scale.map_or_else(|| "a smaller --reserve".into(), |scale| format!("--scale {scale}"))
}
