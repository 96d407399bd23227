//! The lines at the end of a recording about its stalls, ring and lanes, for frames from any source.

use std::sync::Arc;

use nilometer_acquisition::{Ending, Outcome as Recorded, sink::Durability};
use nilometer_model::{Capability, TargetDescription};
use nilometer_ring::Chronicle;
use nilometer_service::recording::ended::ended_how;
use nilometer_storage::target::KeptDirectory;

/// The end of each lane, one line each.
fn lanes(outcome: &Recorded, targets: &[Arc<dyn KeptDirectory>], what: &str) -> Vec<String> {
    let writers = outcome.lanes.len() / targets.len();
    let mut lines = Vec::new();
    for ((number, lane), (ending, ended)) in outcome.lanes.iter().enumerate().zip(outcome.endings()) {
        let path = targets[number / writers].path().display();
        let writer = if writers > 1 { format!(" (writer {})", number % writers + 1) } else { String::new() };
        // For a lane that hangs, only the total of all lanes counts acknowledged frames.
        let stored = lane.as_ref().map(|lane| format!("{} {what}, ", lane.totals.stored)).unwrap_or_default();
        lines.push(format!("{path}{writer}: {stored}{}", ended_how(ending, ended)));
    }
    lines
}

/// Stalls, use of the ring, and the end of each lane, one line each. `what` is frames or blocks.
pub(crate) fn ring_and_lanes(
    outcome: &Recorded,
    targets: &[Arc<dyn KeptDirectory>],
    what: &str,
) -> Vec<String> {
    let books = outcome.books;
    let mut lines = vec![
        format!("stalls      {}", stalls(&outcome.chronicle)),
        format!("buffer      {} of {} {what} in use at the most", books.high, books.slots),
    ];
    lines.extend(lanes(outcome, targets, what));
    lines.extend(at_risk(outcome, what));
    lines
}

/// True if the storage of a directory failed or hung: the recorder can't know which of its data survive.
pub(crate) fn storage_failed(outcome: &Recorded) -> bool {
    outcome.endings().any(|(ending, _)| is_lost(ending))
}

fn is_lost(ending: Ending) -> bool {
    matches!(ending, Ending::Failed(_) | Ending::Hung)
}

/// The share of the recording that is in directories whose storage failed, if there is any.
fn at_risk(outcome: &Recorded, what: &str) -> Option<String> {
    let all = outcome.stored();
    let safe = outcome.lanes.iter().flatten().filter(|lane| !is_lost(lane.ending()));
    // No lane counts the acknowledged frames of one that hung: they are the rest.
    let risk = all.saturating_sub(safe.map(|lane| lane.totals.stored).sum());
    (storage_failed(outcome) && risk > 0).then(|| at_risk_line(risk, all, what))
}

fn at_risk_line(risk: u64, all: u64, what: &str) -> String {
    let share = 100.0 * risk as f64 / all as f64;
    format!(
        "at risk     {risk} {what} ({share:.0} %) are in a directory whose storage failed: nilometer verify shows which can \
         be read"
    )
}

/// How often nothing moved.
fn stalls(chronicle: &Chronicle) -> String {
    let ((count, stalled), allowance) = (chronicle.stalled, chronicle.allowance);
    let longest = chronicle.longest_stall;
    let stalls = match count {
        0 => format!("none longer than {allowance}, the longest {longest}"),
        _ => format!("{count} longer than {allowance}, {stalled} in all, the longest {longest}"),
    };
    stalls + &halts(chronicle)
}

/// The times in which the recorder itself did not run; empty if it always did.
fn halts(chronicle: &Chronicle) -> String {
    let ((count, halted), longest) = (chronicle.halted, chronicle.longest_halt);
    if count == 0 {
        return String::new();
    }
    let times = crate::tell::counted(count, "time");
    format!(
        "; the recorder itself did not run {times}, {halted} in all, the longest {longest}: it was stopped, or had no \
         processor"
    )
}

/// The time at which stored data survive a loss of power, on the file systems of these directories.
pub(crate) fn durable_when(durability: Durability, targets: &[Arc<dyn KeptDirectory>]) -> String {
    let descriptions: Vec<_> = targets.iter().map(|target| target.description()).collect();
    let in_places = |onto: &&TargetDescription| onto.capabilities.has(Capability::WriteAnywhere);
    let whole_files = !descriptions.iter().all(in_places);
    memory(descriptions.into_iter()).unwrap_or_else(|| synced_when(durability, whole_files).into())
}

/// The warning that nothing is durable on file systems in memory.
fn memory<'a>(descriptions: impl Iterator<Item = &'a TargetDescription>) -> Option<String> {
    let volatile = descriptions.filter(|description| description.is_memory());
    let paths: Vec<_> = volatile.map(|is| format!("{} ({})", is.address, is.file_system)).collect();
    let are = if paths.len() == 1 { "is" } else { "are" };
    (!paths.is_empty()).then(|| format!("no: {} {are} memory, which forgets without power", paths.join(", ")))
}

fn synced_when(durability: Durability, whole_files: bool) -> &'static str {
    match durability {
        Durability::EachFile if whole_files => "each file, as soon as the server has it",
        Durability::Never if whole_files => "no: the server may still have the data in its memory",
        Durability::EachFile => {
            "each file, or part of at most 256 MiB, when full and every ten seconds; the rest at the end"
        }
        Durability::Never => "no: files this small are acknowledged, not synced",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use nilometer_storage::{
        Target,
        clock::VirtualClock,
        testing::{Device, Simulated},
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
