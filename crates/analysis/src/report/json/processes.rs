//! What each machine had of a figure that several processes came to.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{AcrossMachines, CellOutcome, Quantity};

#[derive(Serialize)]
pub(super) struct Processes {
    count: usize,
    /// Of what the rates are: `bytes_per_second` or `operations_per_second`.
    quantity: &'static str,
    machine_rates: BTreeMap<String, f64>,
    machine_mean: f64,
    machine_standard_error: Option<f64>,
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
    let AcrossMachines { ranks, machines, mean, standard_error, straggler } =
        AcrossMachines::of(outcome, quantity)?;
    let straggler =
        straggler.map(|late| LateProcess { rank: late.rank, node: late.node, took_medians: late.times });
    Some(Processes {
        count: ranks,
        quantity: match quantity {
            Quantity::Bytes => "bytes_per_second",
            Quantity::Operations => "operations_per_second",
        },
        machine_rates: machines.into_iter().collect(),
        machine_mean: mean,
        machine_standard_error: standard_error,
        straggler,
    })
}
