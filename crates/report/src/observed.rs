//! The machines observed during the measurement, in reports: their hardware, their use in each phase, and the
//! limit.

use nilometer_model::ByteRate;
use serde_json::{Value, json};

use super::words;
use nilometer_analysis::{
    letter,
    observed::{CellUse, MachineUse, ObservedCell, ObservedMachine, ObservedRun, ResourceAtLimit, UseKind},
};

/// The title of the section.
pub(super) const TITLE: &str = "Machines observed";

/// The headings of the columns.
pub(super) const COLUMNS: [&str; 6] =
    ["", "busiest disk", "fullest link", "one processor", "all of them", "read, written on disks"];

/// Makes a row for each machine observed in a cell, in the order of [`COLUMNS`].
pub(super) fn rows(run: &ObservedRun, cell: &ObservedCell) -> Vec<[String; 6]> {
    cell.seen.iter().map(|of| row(&run.machines[of.machine], of)).collect()
}

fn row(machine: &ObservedMachine, of: &MachineUse) -> [String; 6] {
    let named = |kind| of.all(kind).max_by(|one, other| one.mean.total_cmp(&other.mean));
    let share = |used: Option<&CellUse>| used.map_or_else(|| super::words::NONE.into(), shown);
    let rate = |kind| ByteRate(own_disks(machine, of, kind));
    [
        machine.header.host.clone(),
        share(named(UseKind::DiskBusy)),
        share(named(UseKind::LinkShare)),
        share(of.of(UseKind::CoreBusy, "")),
        share(of.of(UseKind::ProcessorsBusy, "")),
        format!("{}, {}", rate(UseKind::DiskRead), rate(UseKind::DiskWritten)),
    ]
}

/// `sdb 97 / 100 %`.
fn shown(used: &CellUse) -> String {
    let CellUse { key, mean, most } = used;
    let gap = if key.name.is_empty() { "" } else { " " };
    format!("{}{gap}{:.0} / {}", key.name, 100.0 * mean, words::percent(*most))
}

/// Returns the sum over disks that are not made of other disks.
fn own_disks(machine: &ObservedMachine, of: &MachineUse, kind: UseKind) -> f64 {
    let is_own = |name: &str| machine.header.disk(name).is_none_or(|disk| disk.made_of.is_empty());
    of.all(kind).filter(|of| is_own(&of.key.name)).map(|of| of.mean).sum()
}

/// Returns the observed machines as JSON, or null if there were none.
pub(super) fn observed_json(run: Option<&ObservedRun>) -> Value {
    let Some(run) = run else { return Value::Null };
    let machines: Vec<Value> = run.machines.iter().map(machine_json).collect();
    let cells: Vec<Value> = run.cells.iter().map(|cell| cell_json(run, cell)).collect();
    json!({ "machines": machines, "cells": cells })
}

fn machine_json(machine: &ObservedMachine) -> Value {
    json!({
        "host": machine.header.host,
        "header": machine.header,
        "clock": machine.clock,
        "clock_is_doubtful": machine.agreement.is_doubtful(),
        "notes": machine.notes,
    })
}

fn cell_json(run: &ObservedRun, cell: &ObservedCell) -> Value {
    let seen: Vec<Value> = cell.seen.iter().map(|of| seen_json(run, of)).collect();
    let resources: Vec<Value> = cell.resources.iter().map(|one| resource_json(run, one)).collect();
    json!({
        "measured": cell.what,
        "target": letter(cell.target),
        "repeats": cell.repeats.len(),
        "machines": seen,
        "resources": resources,
        "sentences": run.sentences(cell),
    })
}

fn seen_json(run: &ObservedRun, of: &MachineUse) -> Value {
    let figures = of.uses.iter().map(|used| {
        json!({ "figure": name(used.key.kind), "of": used.key.name, "mean": used.mean, "highest": used.most })
    });
    json!({
        "host": run.machines[of.machine].header.host,
        "repeats_seen": of.repeats,
        "spans": of.spans,
        "figures": figures.collect::<Vec<_>>(),
    })
}

fn resource_json(run: &ObservedRun, one: &ResourceAtLimit) -> Value {
    json!({
        "host": run.machines[one.machine].header.host,
        "figure": name(one.kind),
        "of": one.name,
        "share": one.share,
        "is_at_limit": one.is_full(),
    })
}

/// Returns the name of a kind, with its unit.
fn name(kind: UseKind) -> &'static str {
    match kind {
        UseKind::ProcessorsBusy => "processors_busy_share",
        UseKind::CoreBusy => "busiest_processor_share",
        UseKind::SoftInterrupts => "soft_interrupts_share",
        UseKind::DiskWait => "disk_wait_share",
        UseKind::Stolen => "stolen_share",
        UseKind::LinkShare => "link_share",
        UseKind::LinkReceived => "received_bytes_per_second",
        UseKind::LinkSent => "sent_bytes_per_second",
        UseKind::LinkLost => "lost_packets_per_second",
        UseKind::DiskBusy => "disk_busy_share",
        UseKind::DiskQueue => "disk_requests_at_once",
        UseKind::DiskRead => "read_bytes_per_second",
        UseKind::DiskWritten => "written_bytes_per_second",
        UseKind::PressureCpu => "cpu_pressure_share",
        UseKind::PressureIo => "io_pressure_share",
        UseKind::PressureMemory => "memory_pressure_share",
        UseKind::Dirty => "dirty_bytes",
        UseKind::NfsRead => "nfs_read_bytes_per_second",
        UseKind::NfsWritten => "nfs_written_bytes_per_second",
        UseKind::Temperature => "temperature_celsius",
    }
}
