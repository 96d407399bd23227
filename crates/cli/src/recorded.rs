//! What recordings have in common, wherever their frames come from: where they go, and what became of them.

use std::{path::Path, sync::Arc};

use anyhow::{bail, ensure};
use nilometer_acquisition::{Chronicle, Ending, Outcome as Recorded, sink::Durability};
use nilometer_model::{Bytes, Nanos, TargetDescription};
use nilometer_storage::{
    PATIENCE, Target, in_time, process,
    target::{Directory, TargetError},
};

use crate::describe::directory_of;

/// A recording's name is also that of a directory.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let is_odd = |letter: char| letter == '/' || letter.is_control();
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(is_odd) && name.len() <= 200;
    ensure!(
        plain,
        "--name {}: write a plain name of at most 200 bytes, without a slash or a control character",
        name.escape_debug()
    );
    Ok(())
}

/// Whether so much memory holds two slots and can be had.
pub(crate) fn check_buffer(buffer: Bytes, slot: Bytes) -> anyhow::Result<()> {
    let needed = Bytes(2 * slot.0);
    ensure!(buffer >= needed, "--buffer {buffer}: two frames of {slot} need {needed}");
    if let Some(available) = process::available_memory().filter(|available| buffer.0 > available.0 / 2) {
        bail!("--buffer {buffer}: write at most half of the {available} of memory that are available");
    }
    Ok(())
}

/// The file of a recording of which only the latest is kept.
pub(crate) const KEPT: &str = "file to be kept";

/// Whether a new recording can begin there: the smallest part of it, by its name and size, fits beside what must stay free.
pub(crate) fn check_place(
    description: &TargetDescription,
    name: &str,
    reserve: Bytes,
    part: &str,
    size: Bytes,
) -> anyhow::Result<()> {
    let path = &description.address;
    ensure!(description.writable, "{path}: can't be written: name a directory that this user may write to");
    ensure!(!is_taken(directory_of(description), name)?, "{path}/{name} exists: choose another --name");
    let free = description.space.free;
    let less = if part == KEPT { ", or --keep less" } else { "" };
    ensure!(
        free.0.saturating_sub(reserve.0) >= size.0,
        "{path} has {free} free, and {reserve} must stay free: no {part} of {size} fits; name larger storage, or a \
         smaller --reserve{less}"
    );
    Ok(())
}

/// Whether something of this name is there; an error if the storage does not answer.
pub(crate) fn is_taken(directory: &Path, name: &str) -> Result<bool, TargetError> {
    let path = directory.join(name);
    in_time(PATIENCE, directory.into(), move || path.exists())
}

/// All directories, or none; an error if the storage does not answer.
pub(crate) fn make(described: Vec<TargetDescription>, name: &str) -> anyhow::Result<Vec<Arc<Directory>>> {
    let mut made: Vec<Directory> = Vec::new();
    for description in described {
        let path = directory_of(&description).to_owned();
        let name = name.to_owned();
        match in_time(PATIENCE, path, move || Directory::create(description, &name)).flatten() {
            Ok(directory) => made.push(directory),
            Err(error) => {
                // They are new and empty.
                for directory in made {
                    drop(directory.remove_if_empty());
                }
                return Err(error.into());
            }
        }
    }
    Ok(made.into_iter().map(Arc::new).collect())
}

/// How each lane ended, a line each.
pub(crate) fn lanes(outcome: &Recorded, targets: &[Arc<Directory>], what: &str) -> Vec<String> {
    let writers = outcome.lanes.len() / targets.len();
    let mut lines = Vec::new();
    for ((number, lane), (ending, ended)) in outcome.lanes.iter().enumerate().zip(outcome.endings()) {
        let path = targets[number / writers].path().display();
        let writer = if writers > 1 { format!(" (writer {})", number % writers + 1) } else { String::new() };
        // What a lane that hangs has acknowledged is known of all lanes together only.
        let stored = lane.as_ref().map(|lane| format!("{} {what}, ", lane.totals.stored)).unwrap_or_default();
        lines.push(format!("{path}{writer}: {stored}{}", ended_how(ending, ended)));
    }
    lines
}

/// What went wrong with lanes, and whether the user ended it.
pub(crate) fn early_ends(outcome: &Recorded, what: &str, interrupted: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let early = outcome.endings().filter(|(ending, _)| *ending != Ending::InOrder).count();
    if early > 0 {
        faults.push(format!("{early} of {} {what} dropped out", outcome.lanes.len()));
    }
    if early == outcome.lanes.len() {
        faults.push("no directory was left, and the recording ended there".into());
    }
    if interrupted {
        faults.push("interrupted: the recording is whole up to there".into());
    }
    faults
}

/// How often nothing moved.
pub(crate) fn stalls(chronicle: &Chronicle) -> String {
    let ((count, stalled), allowance) = (chronicle.stalled, chronicle.allowance);
    let longest = chronicle.longest_stall;
    if count == 0 {
        return format!("none longer than {allowance}, the longest {longest}");
    }
    format!("{count} longer than {allowance}, {stalled} in all, the longest {longest}")
}

/// How a lane ended.
pub(crate) fn ended_how(ending: Ending, ended: Option<Nanos>) -> String {
    let after = ended.map_or_else(String::new, |ended| format!(" after {ended}"));
    match ending {
        Ending::InOrder => "ended in order".into(),
        Ending::Full => format!("full up to the reserve{after}, ended in order"),
        Ending::Failed(errno) => format!("failed{after}: {errno}"),
        Ending::Hung => "hangs".into(),
    }
}

/// When what was recorded survives the loss of power: in directories on these file systems.
pub(crate) fn durable_when(durability: Durability, targets: &[Arc<Directory>]) -> String {
    let descriptions = targets.iter().map(|target| target.description());
    memory(descriptions).unwrap_or_else(|| synced_when(durability).into())
}

/// That nothing is durable where a file system is memory.
fn memory<'a>(descriptions: impl Iterator<Item = &'a TargetDescription>) -> Option<String> {
    let volatile = descriptions.filter(|description| description.is_memory());
    let paths: Vec<_> = volatile.map(|is| format!("{} ({})", is.address, is.file_system)).collect();
    let are = if paths.len() == 1 { "is" } else { "are" };
    (!paths.is_empty()).then(|| format!("no: {} {are} memory, which forgets without power", paths.join(", ")))
}

fn synced_when(durability: Durability) -> &'static str {
    match durability {
        Durability::EachFile => {
            "each file, or part of 256 MiB at the most, when it was full, and what is in it after ten seconds; the rest at the end"
        }
        Durability::Never => "no: files this small are acknowledged, not synced",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::{
        clock::VirtualClock,
        target::{Device, Simulated},
    };

    #[test]
    fn nothing_is_durable_in_memory() {
        let of = |path: &str, file_system: &str| {
            let target = Simulated::new(Device::default(), VirtualClock::default());
            let description = target.description().clone();
            TargetDescription {
                address: Path::new(path).into(),
                file_system: file_system.into(),
                ..description
            }
        };
        let (disk, shm) = (of("/data", "ext4"), of("/dev/shm", "tmpfs"));
        assert_eq!(memory([&disk].into_iter()), None);
        let text = memory([&disk, &shm].into_iter()).expect("one of them is");
        assert_eq!(text, "no: /dev/shm (tmpfs) is memory, which forgets without power");
    }
}
