//! The workload `tree` against the bare calls: create and close, stat, rename, unlink of 100 000 empty files, in a
//! directory for each worker on fresh file systems.

use std::{
    ffi::CStr,
    fs::{File, create_dir},
    os::fd::{AsRawFd, RawFd},
    path::Path,
    sync::Barrier,
};

use nilometer_campaign::workload::{self, SLOTS, Tree, WorkerPart, WorkerPlace};
use nilometer_model::{Bytes, Phase};
use nilometer_plan::{Directories, Items, Shift, TreeCell};
use nilometer_storage::Counted;

use crate::{
    bare,
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Crew, Ours, SEED},
    place::{self, Volume},
};

/// How much is done by how many.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Of all workers.
    files: u32,
    workers: u32,
}

/// By one worker.
const ALONE: Load = Load { files: 100_000, workers: 1 };
/// The same by two.
const TOGETHER: Load = Load { workers: 2, ..ALONE };

const BARE: &str = "bare calls";
const OURS: &str = "nilometer, engine sync, recorded";

/// In the order in which they run.
const PHASES: [Phase; 4] = [Phase::CreateFiles, Phase::StatFiles, Phase::RenameFiles, Phase::RemoveFiles];
const TITLES: [&str; 4] = ["create+close", "stat", "rename", "unlink"];

/// In memory, without a device.
pub(crate) fn on_tmpfs(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(place::in_memory()?.path(), "tmpfs", ALONE).run(stop)
}

/// The same with two workers.
pub(crate) fn on_tmpfs_by_two(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(place::in_memory()?.path(), "tmpfs", TOGETHER).run(stop)
}

/// On a loop device.
pub(crate) fn on_ext4(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("ext4")?.path(), "ext4", ALONE).run(stop)
}

/// The same with two workers.
pub(crate) fn on_ext4_by_two(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("ext4")?.path(), "ext4", TOGETHER).run(stop)
}

/// On a loop device.
pub(crate) fn on_xfs(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("xfs")?.path(), "xfs", ALONE).run(stop)
}

/// The same with two workers.
pub(crate) fn on_xfs_by_two(stop: &Stop) -> anyhow::Result<Outcome> {
    contest(Volume::make("xfs")?.path(), "xfs", TOGETHER).run(stop)
}

fn contest<'a>(path: &'a Path, kind: &str, load: Load) -> Contest<'a> {
    let Load { files, workers } = load;
    let plural = if workers == 1 { "worker" } else { "workers" };
    let number = std::cell::Cell::new(0);
    Contest {
        title: format!(
            "tree: {files} empty files on a fresh {kind}, {workers} {plural}, a directory each, an operation is a file"
        ),
        quantity: Quantity::CpuPerOperation,
        phases: &TITLES,
        rounds: 11,
        contestants: vec![
            Contestant::new(BARE, move || bare(path, load)),
            Contestant::new(OURS, move || {
                number.set(number.get() + 1);
                driven(path, number.get(), load)
            }),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.10) }],
    }
}

/// All workers at once, begun together; each is a thread with a directory of its own.
fn bare(path: &Path, load: Load) -> anyhow::Result<Vec<Cost>> {
    let home = tempfile::tempdir_in(path)?;
    let directory = |worker| {
        let path = home.path().join(WorkerPlace::alone(worker, 1).name());
        create_dir(&path).and_then(|()| File::open(path))
    };
    let directories = (0..load.workers).map(directory).collect::<Result<Vec<_>, _>>()?;
    PHASES.map(|phase| one_bare(&directories, load, phase)).into_iter().collect()
}

fn one_bare(directories: &[File], load: Load, phase: Phase) -> anyhow::Result<Cost> {
    let (begin, end) = (Barrier::new(directories.len() + 1), Barrier::new(directories.len() + 1));
    std::thread::scope(|scope| {
        let work = |(worker, directory): (usize, &File)| {
            begin.wait();
            let done = every(directory.as_raw_fd(), worker, load.files / load.workers, phase);
            end.wait();
            done
        };
        let threads: Vec<_> =
            directories.iter().enumerate().map(|part| scope.spawn(move || work(part))).collect();
        let cost = measure::here(f64::from(load.files), || {
            begin.wait();
            end.wait();
            Ok(())
        });
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))?;
        cost
    })
}

fn every(directory: RawFd, worker: usize, files: u32, phase: Phase) -> anyhow::Result<()> {
    let (mut old, mut new) = ([0; 32], [0; 32]);
    let letters = |letter| format!("n_{letter}{worker}_");
    let (made, renamed) = (letters('f'), letters('r'));
    for number in 0..files {
        match phase {
            Phase::CreateFiles => bare::create(directory, name(&mut old, &made, number)?)?,
            Phase::StatFiles => {
                std::hint::black_box(bare::stat(directory, name(&mut old, &made, number)?)?);
            }
            Phase::RenameFiles => {
                bare::rename(directory, name(&mut old, &made, number)?, name(&mut new, &renamed, number)?)?;
            }
            _ => bare::unlink(directory, name(&mut old, &renamed, number)?)?,
        }
    }
    Ok(())
}

/// The name of a file, as the workload calls it, without formatting.
#[inline]
fn name<'a>(buffer: &'a mut [u8], letters: &str, mut number: u32) -> anyhow::Result<&'a CStr> {
    let begin = letters.len();
    let end = begin + 1 + number.checked_ilog10().unwrap_or(0) as usize;
    buffer[..begin].copy_from_slice(letters.as_bytes());
    buffer[end] = 0;
    for digit in buffer[begin..end].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    Ok(CStr::from_bytes_with_nul(&buffer[..=end])?)
}

fn driven(path: &Path, number: u64, load: Load) -> anyhow::Result<Vec<Cost>> {
    let Load { files, workers } = load;
    let cell = TreeCell {
        levels: 0,
        branching: 0,
        items: files / workers,
        kind: Items::Files,
        directories: Directories::Unique,
        file_size: Bytes(0),
        shift: Shift::OWN,
    };
    let ours = Ours::at(path, number)?;
    let one = |phase: Phase| {
        let counted = workload::counted(phase);
        assert_ne!(counted, Counted::All, "an operation is a file");
        let crew = Crew { workers, counted, block: 512 };
        ours.drive_all(f64::from(load.files), &crew, &|worker, buffers| {
            Box::new(Tree::new(
                &cell,
                phase,
                SLOTS,
                WorkerPart::new(WorkerPlace::alone(worker, workers), SEED, buffers),
            ))
        })
    };
    one(Phase::MakeTree)?;
    PHASES.map(|phase| one(phase).map(|(cost, _)| cost)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_workload() {
        for number in [0, 9, 10, 99_999] {
            let mut buffer = [b'x'; 32];
            let name = name(&mut buffer, "n_f1_", number).expect("it ends with a NUL");
            assert_eq!(name.to_bytes(), format!("n_f1_{number}").as_bytes());
        }
    }

    #[test]
    fn both_do_all_of_it() {
        let home = tempfile::tempdir().expect("a temporary directory");
        for workers in [1, 2] {
            let load = Load { files: 100, workers };
            assert_eq!(bare(home.path(), load).expect("it is done").len(), PHASES.len());
            assert_eq!(driven(home.path(), 1, load).expect("it is done").len(), PHASES.len());
            assert_eq!(home.path().read_dir().expect("a directory").count(), 0, "nothing is left");
        }
    }
}
