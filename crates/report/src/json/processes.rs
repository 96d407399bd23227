//! What each machine had of a figure that several processes came to, and what processes saw of each other's files.

use std::collections::BTreeMap;

use nilometer_model::{FilesSeen, LocksSeen, Nanos};
use serde::Serialize;

use super::super::words;
use nilometer_analysis::{AcrossMachines, CellOutcome, Quantity};

#[derive(Serialize)]
pub(super) struct Processes {
    count: usize,
    /// Of what the rates are: `bytes_per_second` or `operations_per_second`.
    quantity: &'static str,
    machine_rates: BTreeMap<String, f64>,
    machine_mean: f64,
    machine_standard_error: Option<f64>,
    /// How late after the agreed start the last process began, and how far the clocks may be wrong: the worst of all repeats.
    start_skew_s: f64,
    clock_uncertainty_s: f64,
    straggler: Option<LateProcess>,
}

/// The process that took longer than the others in every repeat.
#[derive(Serialize)]
struct LateProcess {
    rank: u32,
    node: String,
    /// In medians of all processes.
    took_medians: f64,
}

/// None if one process came to it alone.
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
    })
}

/// What processes saw of a lock that they took in turn, in all repeats.
#[derive(Serialize)]
pub(super) struct SeenLocks {
    tries: u64,
    broken: u64,
    passed: u64,
    longest_s: f64,
}

/// None where that was not looked at.
pub(super) fn seen_locks(outcome: &CellOutcome<'_>) -> Option<SeenLocks> {
    let LocksSeen { tries, broken, passed, longest } = words::locks(outcome)?;
    Some(SeenLocks { tries, broken, passed, longest_s: longest.seconds() })
}

/// What processes saw of files that another one wrote, in all repeats: each file once for each that looked for it.
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

/// None where that was not looked at.
pub(super) fn seen_files(outcome: &CellOutcome<'_>) -> Option<SeenFiles> {
    let FilesSeen { files, missing, short, stale, out_of_order, never, longest } = words::seen(outcome)?;
    Some(SeenFiles { files, missing, short, stale, out_of_order, never, longest_s: longest.seconds() })
}
