//! The reasons why a plan can't run.

use nilometer_model::{ByteRate, Bytes, Nanos, NotExpected, StripesRefused};

/// A plan that can't run on a target. The message names the stage, the cell and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The target can't be written.
    #[error("{path}: can't be written{why}: name a directory that this user may write to")]
    ReadOnly {
        /// The target.
        path: String,
        /// The reason of the failed attempt, in brackets; empty if there is none.
        why: String,
    },
    /// The target is not the expected one.
    #[error(transparent)]
    NotExpected(#[from] NotExpected),
    /// The target lacks the capabilities for every cell.
    #[error("{path}: nothing of the plan can be measured there: it lacks {lacking}")]
    Unable {
        /// The target.
        path: String,
        /// The missing capabilities.
        lacking: String,
    },
    /// The plan applies only to other numbers of targets.
    #[error(
        "{path}: no volume of the plan includes this one of {targets} targets: name as many as a volume needs, \
         or add \"alone\" or \"together\""
    )]
    NotAmong {
        /// The target.
        path: String,
        /// The number of targets.
        targets: usize,
    },
    /// The storage keeps no data to read again.
    #[error("{path} keeps no data, so no copy {way} it is possible: name a directory")]
    KeepsNothing {
        /// The storage.
        path: String,
        /// `from` or `to`.
        way: &'static str,
    },
    /// The block size is not suitable for `O_DIRECT`.
    #[error(
        "stage `{stage}`: {key} = \"{block}\" is no multiple of {alignment}, which O_DIRECT needs on {path}: \
         write a multiple, or access = \"buffered\""
    )]
    Alignment {
        /// The stage.
        stage: String,
        /// The parameter, or a size that follows from it.
        key: &'static str,
        /// Its size.
        block: Bytes,
        /// The size of which it must be a multiple.
        alignment: Bytes,
        /// The target.
        path: String,
    },
    /// The target does not support `O_DIRECT`.
    #[error(
        "stage `{stage}`: access = \"direct\" is not possible on {path} ({why}): write \"best\" or \"buffered\""
    )]
    NoDirect {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// The target's actual behaviour.
        why: String,
    },
    /// The target has too little space.
    #[error(
        "stage `{stage}` needs {needed} on {path}, which has {free} free, and {reserve} must stay free: name larger \
         storage, or write {remedy}"
    )]
    Space {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// The size of a cell's files.
        needed: Bytes,
        /// The free space.
        free: Bytes,
        /// The space that the plan leaves free.
        reserve: Bytes,
        /// The sizes or the option with which it would fit.
        remedy: String,
    },
    /// The target has too little space for the kept part of a recording.
    #[error(
        "`{instrument}` needs {needed} on {path}, which has {free} free, and {reserve} must stay free: name \
         larger storage, fewer frames_per_file, or a smaller --reserve or --keep"
    )]
    Recording {
        /// The instrument's name.
        instrument: String,
        /// The target.
        path: String,
        /// The largest size at once.
        needed: Bytes,
        /// The free space.
        free: Bytes,
        /// The space that the plan leaves free.
        reserve: Bytes,
    },
    /// The writers would wait for each other.
    #[error("the recording of `{instrument}` on {path}: {why} (in a plan: buffer, and writers = 1)")]
    Lines {
        /// The instrument's name.
        instrument: String,
        /// The target.
        path: String,
        /// A remedy.
        why: String,
    },
    /// The target lets nobody choose the layout of files that a recording asks for.
    #[error("stage `{stage}`: {refused}")]
    Stripes {
        /// The stage.
        stage: String,
        /// The key, with the reason.
        refused: StripesRefused,
    },
    /// The instrument can't make frames as the plan asks.
    #[error("stage `{stage}`: {instrument}: {why}")]
    Frames {
        /// The stage.
        stage: String,
        /// The instrument's name.
        instrument: String,
        /// The reason, with the values that are possible.
        why: String,
    },
    /// More processes are to record an instrument than can do so together.
    #[error("{instrument}: {asked}, and {why}: write smaller numbers, or leave them out")]
    Recorders {
        /// The instrument.
        instrument: String,
        /// The number of processes asked for, in words.
        asked: String,
        /// The number that can, with the reason.
        why: String,
    },
    /// A cell needs more space than the plan allows.
    #[error(
        "stage `{stage}` needs {needed}, and the plan's space_limit is {limit}: raise it, or write {remedy}"
    )]
    SpaceLimit {
        /// The stage.
        stage: String,
        /// The size of a cell's files on a target.
        needed: Bytes,
        /// The space that the plan allows.
        limit: Bytes,
        /// The sizes with which it would fit.
        remedy: String,
    },
    /// The matrix takes too much time.
    #[error(
        "the plan takes {needed} even at {rate} and {operations} million operations/s, above its time_limit of {limit}: \
         leave values out, {remedy}or raise time_limit"
    )]
    Time {
        /// The time at the highest conceivable speed.
        needed: Nanos,
        /// The rate at that speed.
        rate: ByteRate,
        /// The operations at that speed, in millions a second.
        operations: f64,
        /// The time that the plan allows.
        limit: Nanos,
        /// Another option that shortens it, with a blank behind it; empty if there is none.
        remedy: &'static str,
    },
    /// Copies have no source.
    #[error(
        "stage `{stage}`: source = \"disk\" needs a directory to copy from: write --source DIRECTORY, or source = \
         \"/a/directory\" at the head of the plan"
    )]
    NoSource {
        /// The stage.
        stage: String,
    },
    /// Copies of recordings have no archive.
    #[error("{instrument}: a copy needs a directory on other storage: write --copy-to DIRECTORY")]
    NoArchive {
        /// The instrument.
        instrument: String,
    },
    /// The file system has too few inodes.
    #[error("stage `{stage}` needs {needed} inodes on {path}, which has {free} free")]
    Inodes {
        /// The stage.
        stage: String,
        /// The target.
        path: String,
        /// The number of files and directories of a cell.
        needed: u64,
        /// The number of free inodes.
        free: u64,
    },
    /// There are too few processes.
    #[error(
        "stage `{stage}` asks for {asked}: there {there}: start more with mpirun or srun (docs/cluster.md), or write smaller \
         numbers"
    )]
    Processes {
        /// The stage.
        stage: String,
        /// The processes that the cell asks for.
        asked: String,
        /// The processes that there are, with a verb.
        there: String,
    },
    /// A stage needs several machines, or MPI-IO, which are not there.
    #[error("stage `{stage}`: {why}")]
    Lacking {
        /// The stage.
        stage: String,
        /// The problem and a remedy.
        why: String,
    },
    /// Nothing could decide these criteria here.
    #[error("accept: {why}")]
    Acceptance {
        /// The problem and the valid values.
        why: String,
    },
    /// There is too little memory.
    #[error(
        "stage `{stage}` needs {needed} of buffers, more than half of {available} of available \
         memory{limit}: write a smaller buffer (--buffer {}), fewer workers or smaller blocks",
        Bytes(available.0 / 2)
    )]
    Memory {
        /// The stage.
        stage: String,
        /// The memory of all workers of a cell.
        needed: Bytes,
        /// The available memory.
        available: Bytes,
        /// The limit of a container or a job, in words; empty if there is none.
        limit: String,
    },
}
