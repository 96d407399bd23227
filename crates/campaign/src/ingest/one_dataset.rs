//! Recordings of several writers into one dataset of one HDF5 file. One process writes the index when all writers
//! have ended; the time for it counts as part of the recording.
//!
//! ```text
//! process 0   frames  | all recorded | index, superblock, check
//! process 1   frames  | all recorded |
//! ```
//!
//! With one process, it writes the index itself, as soon as its own writers have ended.

use std::sync::Arc;

use nilometer_hdf5_recording::{Hdf5Contents, SharedDatasetFile};
use nilometer_model::{Invalid, Nanos, Sample};
use nilometer_plan::Onto;
use nilometer_storage::{Clock, Target, TargetError, within};

use super::{Job, Recorded};
use crate::task::Run;

/// A file that all writers have written, without its index.
#[derive(Debug)]
pub(super) struct OneDataset {
    /// The index of its cell among those of this process.
    cell: usize,
    /// The names of the journals of all writers.
    journals: Vec<String>,
    contents: Hdf5Contents,
    is_of_several: bool,
    /// The time that its index may take beside that in which storage must answer.
    patience: Nanos,
}

/// A completed file: the index of its cell, and the time that its index took.
pub(super) type CompletedFile = (usize, Result<Nanos, Invalid>);

/// The files without an index that this process has recorded into, alone or with others.
pub(super) fn datasets_of(job: &Job<'_>, recorded: &Recorded) -> Vec<OneDataset> {
    let files = recorded.members.iter().filter_map(|member| {
        let (cell, _) = &job.cells[member.cell];
        let layout = member.followed.lanes.first()?;
        let hung = member.outcome.as_ref().is_none_or(|outcome| outcome.hung);
        let is_stored = layout.head.is_one_dataset() && cell.onto == Onto::Target;
        let contents = layout.hdf5.clone().filter(|_| is_stored && !hung && !recorded.cut)?;
        let journals = layout.head.journal_names(&layout.name);
        let processes = cell.dataset_turn().map_or(1, |turn| u64::from(turn.of));
        let due = member.outcome.as_ref().map_or(0, |outcome| outcome.due);
        let patience = SharedDatasetFile::index_time_max(due.saturating_mul(processes));
        let is_of_several = cell.dataset_turn().is_some();
        Some(OneDataset { cell: member.cell, journals, contents, is_of_several, patience })
    });
    files.collect()
}

/// Adds the files that rank 0 completes for all processes to the samples of all, which only rank 0 has.
pub(super) fn completed(
    run: &Run,
    job: &Job<'_>,
    mut samples: Option<Vec<Sample>>,
    files: Vec<OneDataset>,
) -> Option<Vec<Sample>> {
    let all = samples.as_deref_mut()?;
    let numbers = job.together.own_cells(job.cells);
    for file in files {
        let number = numbers[file.cell];
        if all[number].invalid != Some(Invalid::Hung) {
            let (_, took) = file.complete(run, job.target);
            put(&mut all[number], took);
        }
    }
    samples
}

/// Adds completed files to the samples of their cells.
pub(super) fn put_completed(samples: Option<&mut [Sample]>, files: Vec<CompletedFile>) {
    let Some(samples) = samples else { return };
    for (cell, took) in files {
        put(&mut samples[cell], took);
    }
}

fn put(sample: &mut Sample, took: Result<Nanos, Invalid>) {
    match took {
        Ok(took) => sample.wall += took,
        Err(why) => {
            sample.invalid.get_or_insert(why);
        }
    }
}

impl OneDataset {
    /// True if other processes write into it too.
    pub(super) fn is_of_several(&self) -> bool {
        self.is_of_several
    }

    /// Writes the index, and checks that readers find all frames where the journals have them. The check is not
    /// part of the time.
    pub(super) fn complete(self, run: &Run, target: &Arc<dyn Target>) -> CompletedFile {
        let OneDataset { cell, journals, contents, patience, .. } = self;
        let clock = run.clock;
        let limit = run.hang_after + patience;
        let written = within(limit, target, move |target| write(target, &journals, &contents, clock));
        let took = match written {
            Ok(Ok(took)) => Ok(took),
            Ok(Err(why)) => Err(Invalid::Refused(why)),
            Err(TargetError::Hung { .. }) => Err(Invalid::Hung),
            Err(error) => Err(Invalid::Refused(error.to_string())),
        };
        (cell, took)
    }
}

fn write(
    target: &dyn Target,
    journals: &[String],
    contents: &Hdf5Contents,
    clock: Clock,
) -> Result<Nanos, String> {
    let directory = target.directory().ok_or("it has no directory")?;
    let journals: Vec<_> = journals.iter().map(|name| directory.join(name)).collect();
    let began = clock.now();
    let file = SharedDatasetFile::open(&journals).map_err(|error| error.to_string())?;
    file.complete(&contents.tree).map_err(|error| error.to_string())?;
    let took = clock.now().since(began);
    file.check(&contents.tree).map_err(|error| error.to_string())?;
    Ok(took)
}
