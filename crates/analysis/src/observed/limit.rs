//! The resource of an observed machine that was at its limit, or closest to it.

use nilometer_model::{ByteRate, observed::ObservedHeader};

use super::{CellUse, MachineUse, ObservedMachine, UseKind, percent};

/// The use of a resource relative to its capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceAtLimit {
    /// Index into [`super::ObservedRun::machines`].
    pub machine: usize,
    /// The kind of use.
    pub kind: UseKind,
    /// The link or the disk; empty for processors.
    pub name: String,
    /// The share of its capacity, as the median over repeats.
    pub share: f64,
    /// Its activity, in words.
    pub words: String,
}

/// The share from which on a resource of this kind counts as full; `None` if no share shows that. A link carries
/// a few percent less of a protocol's data than its speed. Ticks of 10 ms, and moments between two requests, hide
/// the rest.
pub(super) fn full_from(kind: UseKind) -> Option<f64> {
    match kind {
        UseKind::LinkShare => Some(0.9),
        UseKind::DiskBusy | UseKind::CoreBusy | UseKind::ProcessorsBusy => Some(0.95),
        _ => None,
    }
}

impl ResourceAtLimit {
    /// Returns true if it could not have done much more.
    pub fn is_full(&self) -> bool {
        self.fullness() >= 1.0
    }

    /// The share relative to that of a full resource, which is 1.
    fn fullness(&self) -> f64 {
        full_from(self.kind).map_or(0.0, |full| self.share / full)
    }
}

/// Links, disks and processors of all machines, the fullest first. Omits an array beside a disk that is as full,
/// and a single processor if all are full.
pub(super) fn resources(seen: &[MachineUse], machines: &[ObservedMachine]) -> Vec<ResourceAtLimit> {
    let all: Vec<ResourceAtLimit> = seen.iter().flat_map(|of| of_machine(of, machines)).collect();
    let is_said = |one: &&ResourceAtLimit| !all.iter().any(|other| says(other, one, machines));
    let mut told: Vec<ResourceAtLimit> = all.iter().filter(is_said).cloned().collect();
    told.sort_by(|one, other| other.fullness().total_cmp(&one.fullness()));
    told
}

/// Returns true if one resource makes another redundant.
fn says(one: &ResourceAtLimit, other: &ResourceAtLimit, machines: &[ObservedMachine]) -> bool {
    if one.machine != other.machine {
        return false;
    }
    match other.kind {
        UseKind::DiskBusy => {
            let array = machines[other.machine].header.disk(&other.name);
            let is_member = array.is_some_and(|array| array.made_of.contains(&one.name));
            is_member && one.kind == UseKind::DiskBusy && one.share >= other.share
        }
        UseKind::CoreBusy => one.kind == UseKind::ProcessorsBusy && one.is_full(),
        _ => false,
    }
}

fn of_machine(of: &MachineUse, machines: &[ObservedMachine]) -> Vec<ResourceAtLimit> {
    let header = &machines[of.machine].header;
    let shares = of.uses.iter().filter(|used| full_from(used.key.kind).is_some());
    shares.map(|used| resource(used, of, header)).collect()
}

fn resource(used: &CellUse, of: &MachineUse, header: &ObservedHeader) -> ResourceAtLimit {
    ResourceAtLimit {
        machine: of.machine,
        kind: used.key.kind,
        name: used.key.name.clone(),
        share: used.mean,
        words: words(used, of, header),
    }
}

/// `disk sdb of oss2: busy 99 % of the time, 31 requests at once, read 0 B/s, written 152 MB/s`.
fn words(used: &CellUse, of: &MachineUse, header: &ObservedHeader) -> String {
    let host = &header.host;
    let name = &used.key.name;
    let share = percent(used.mean);
    let rate = |kind| of.of(kind, name).map_or(0.0, |of| of.mean);
    match used.key.kind {
        UseKind::LinkShare => {
            let speed = header.link(name).and_then(|link| link.speed_bytes_per_second).unwrap_or(0.0);
            let [received, sent] =
                [UseKind::LinkReceived, UseKind::LinkSent].map(|kind| ByteRate(rate(kind)).bits());
            format!(
                "link {name} of {host}: {share} of {}, received {received}, sent {sent}",
                ByteRate(speed).bits()
            )
        }
        UseKind::DiskBusy => {
            let queue = rate(UseKind::DiskQueue);
            let read = ByteRate(rate(UseKind::DiskRead));
            let written = ByteRate(rate(UseKind::DiskWritten));
            let requests = if queue < 10.0 { format!("{queue:.1}") } else { format!("{queue:.0}") };
            format!(
                "disk {name} of {host}: busy {share} of the time, {requests} requests at once, read {read}, written {written}"
            )
        }
        UseKind::CoreBusy => {
            let all = percent(of.of(UseKind::ProcessorsBusy, "").map_or(0.0, |all| all.mean));
            format!("a processor of {host}: {share} busy, all {} of them {all}", header.processors)
        }
        _ => format!("the processors of {host}: {share} busy"),
    }
}
