//! Each machine's share of a figure that several processes measured, and the visibility of each other's files.

use std::collections::BTreeMap;

use nilometer_model::{FilesSeen, LocksSeen, Nanos};
use serde::Serialize;

use super::super::words;
use nilometer_analysis::{AcrossMachines, CellOutcome, MachineStart, MachineStarts, Quantity};

#[derive(Serialize)]
pub(super) struct Processes {
    count: usize,
    /// The unit of the rates: `bytes_per_second` or `operations_per_second`.
    quantity: &'static str,
    machine_rates: BTreeMap<String, f64>,
    machine_mean: f64,
    machine_standard_error: Option<f64>,
    /// Delay of the last process after the agreed start, and the error bound of the clocks: the worst of all
    /// repeats.
    start_skew_s: f64,
    clock_uncertainty_s: f64,
    straggler: Option<LateProcess>,
    /// The state of the machines just before; null if the record does not have it for each machine.
    starts: Option<StartsOfMachines>,
}

/// The load average over a minute and the disk I/O of the machines just before the repeats.
#[derive(Serialize)]
struct StartsOfMachines {
    /// Means over repeats, by the name of the machine.
    machines: BTreeMap<String, StartOfMachine>,
    load_mean: f64,
    /// Over machines. Null for a single machine.
    load_standard_error: Option<f64>,
    /// Bytes a second. Null if a machine was not observed.
    disk_mean_bytes_per_s: Option<f64>,
    /// Over machines. Null for a single machine.
    disk_standard_error_bytes_per_s: Option<f64>,
}

#[derive(Serialize)]
struct StartOfMachine {
    load: f64,
    /// Bytes that all disks read and wrote in a second. Null if they were not observed.
    disk_bytes_per_s: Option<f64>,
}

impl From<MachineStarts> for StartsOfMachines {
    fn from(starts: MachineStarts) -> Self {
        let of = |start: MachineStart| {
            let MachineStart { name, load, disks } = start;
            (name, StartOfMachine { load, disk_bytes_per_s: disks })
        };
        StartsOfMachines {
            machines: starts.machines.into_iter().map(of).collect(),
            load_mean: starts.load.mean,
            load_standard_error: starts.load.sem,
            disk_mean_bytes_per_s: starts.disks.as_ref().map(|disks| disks.mean),
            disk_standard_error_bytes_per_s: starts.disks.and_then(|disks| disks.sem),
        }
    }
}

/// The process that took longer than the others in every repeat.
#[derive(Serialize)]
struct LateProcess {
    rank: u32,
    node: String,
    /// Its time as a multiple of the median of all processes.
    took_medians: f64,
}

/// Returns `None` if a single process measured the figure.
pub(super) fn processes(outcome: &CellOutcome<'_>, quantity: Quantity) -> Option<Processes> {
    let across = AcrossMachines::of(outcome, quantity)?;
    let straggler = across.straggler.map(|late| LateProcess {
        rank: late.rank,
        node: late.node,
        took_medians: late.times,
    });
    Some(Processes {
        count: across.ranks,
        quantity: match quantity {
            Quantity::Bytes => "bytes_per_second",
            Quantity::Operations | Quantity::Time => "operations_per_second",
        },
        machine_rates: across.machines.into_iter().collect(),
        machine_mean: across.mean,
        machine_standard_error: across.standard_error,
        start_skew_s: across.start_skew.seconds(),
        clock_uncertainty_s: Nanos(across.clock_uncertainty).seconds(),
        straggler,
        starts: across.starts.map(StartsOfMachines::from),
    })
}

/// Results for a lock that processes took in turn, in all repeats.
#[derive(Serialize)]
pub(super) struct SeenLocks {
    tries: u64,
    broken: u64,
    passed: u64,
    longest_s: f64,
}

/// Returns `None` if locks were not tested.
pub(super) fn seen_locks(outcome: &CellOutcome<'_>) -> Option<SeenLocks> {
    let LocksSeen { tries, broken, passed, longest } = words::locks(outcome)?;
    Some(SeenLocks { tries, broken, passed, longest_s: longest.seconds() })
}

/// Visibility of files that another process wrote, in all repeats. Each file counts once for each process that
/// looked for it.
#[derive(Serialize)]
pub(super) struct SeenFiles {
    files: u64,
    missing: u64,
    short: u64,
    stale: u64,
    out_of_order: u64,
    never: u64,
    longest_s: f64,
}

/// Returns `None` if visibility was not tested.
pub(super) fn seen_files(outcome: &CellOutcome<'_>) -> Option<SeenFiles> {
    let FilesSeen { files, missing, short, stale, out_of_order, never, longest } = words::seen(outcome)?;
    Some(SeenFiles { files, missing, short, stale, out_of_order, never, longest_s: longest.seconds() })
}
