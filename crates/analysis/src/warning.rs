//! Warnings that readers need before they use a figure, found once for all reports, each with advice.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{Activity, ByteRate, Coldness, Nanos, Phase, statistics::Summary};
use nilometer_plan::{Event, Measured, Results};

use crate::{
    CellOutcome, NetworkShare, StageFigures, StorageMatrix, Value, letter,
    reason::{Reason, reasons},
};

/// A limitation of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// A target was given up.
    LeftOut {
        /// The target's letter.
        target: String,
        /// The reason.
        why: String,
    },
    /// Samples that must not be used.
    Invalid {
        /// The reason, with their number.
        reason: Reason,
        /// Number of all samples.
        of: usize,
    },
    /// Measurements were repeated because this machine had disturbed them.
    Again {
        /// Number of repetitions.
        count: usize,
    },
    /// Cells have fewer repeats than planned.
    Incomplete {
        /// Number of phases of cells on targets.
        groups: usize,
        /// Number of all phases.
        of: usize,
        /// Planned number of repeats.
        planned: u32,
    },
    /// There are no repeats to derive an interval from.
    OneRepeat,
    /// Cells of the plan were left out because they would do the same work as others at its scale.
    SameWork {
        /// The cells, each with its stage.
        cells: Vec<String>,
    },
    /// Repeats differ much from each other.
    Spread {
        /// Number of phases of cells on targets.
        groups: usize,
        /// Number of all phases.
        of: usize,
        /// The widest spread: its name, and its standard deviation as a share of the mean.
        widest: (String, f64),
    },
    /// Other programs used the machine just before samples; means over all of these moments.
    Busy {
        /// Busy processors.
        cores: f64,
        /// Traffic of all disks.
        disk: ByteRate,
        /// Traffic of the network.
        network: ByteRate,
    },
    /// The host of a virtual machine took processor time away.
    Stolen {
        /// Number of samples.
        count: usize,
        /// Number of all samples.
        of: usize,
        /// Processors taken away, mean over all samples.
        cores: f64,
    },
    /// Nothing can prove that reads came from the storage.
    NotProvable {
        /// The targets' letters.
        targets: Vec<String>,
    },
    /// Targets are the memory of the machine.
    Volatile {
        /// The targets' letters.
        targets: Vec<String>,
    },
    /// Targets differ in their configuration, and that changes their figures.
    NotAlike {
        /// The differences, in a sentence without its end.
        what: String,
    },
    /// Data were never synced.
    NeverSynced {
        /// The stage.
        stage: String,
    },
    /// The source of a copy limits it.
    SourceLimits {
        /// The stage and target.
        what: String,
        /// Number of such cells.
        count: usize,
        /// Number of all cells.
        of: usize,
        /// The least and greatest share of a copy's time that reading the source alone takes, among these.
        share: (f64, f64),
    },
    /// A figure of a target shows the network rather than the storage.
    NetworkRate {
        /// The figure, in a sentence without its end.
        what: String,
    },
    /// Something happened during the campaign.
    Event {
        /// Time since 1970, UTC.
        at: Nanos,
        /// The event.
        what: String,
    },
}

/// The severity of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Figures are missing or must not be used.
    Grave,
    /// Figures may mislead.
    Caution,
    /// Worth knowing.
    Note,
}

/// A standard deviation above this share of the mean causes a warning.
const SPREAD_MOST: f64 = 0.25;
/// Processors that other programs may use before a sample.
const CORES_MOST: f64 = 0.25;
/// Traffic of other programs before a sample, in bytes per second.
const TRAFFIC_MOST: f64 = 10e6;
/// Processors that a host may take away.
const STOLEN_MOST: f64 = 0.05;
/// The least total length of these moments, in seconds; shorter ones show nothing.
const LOOKED_AT_LEAST: f64 = 0.1;
/// A source that takes at least this share of a copy's time causes a warning.
const SOURCE_LEAST: f64 = 0.5;

impl Warning {
    /// The severity.
    pub fn grade(&self) -> Grade {
        match self {
            Warning::LeftOut { .. } | Warning::Invalid { .. } | Warning::Incomplete { .. } => Grade::Grave,
            Warning::NeverSynced { .. } | Warning::Again { .. } | Warning::Event { .. } => Grade::Note,
            _ => Grade::Caution,
        }
    }

    /// Advice, if anything can be done.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Warning::LeftOut { .. } => "look at it with its own tools, then measure it again",
            Warning::Invalid { reason, .. } => return reason.advice(),
            Warning::Incomplete { .. } => "`nilometer evaluate --resume` goes on where it stopped",
            Warning::OneRepeat => "write repeats = 3 or more into the plan: six decide most",
            Warning::SameWork { .. } => "a larger --scale tells them apart",
            Warning::Spread { .. } => "more repeats narrow the intervals; longer phases narrow the spread",
            Warning::Busy { cores, network, .. } if is_busy(*cores, *network) => {
                "measure when nobody else works on this machine"
            }
            Warning::Busy { .. } => {
                "measure when nobody else uses its disks; direct or synced writes leave nothing"
            }
            Warning::Stolen { .. } => "measure on a machine that is not shared, or when its host is quiet",
            Warning::NotProvable { .. } => "read more than the caches hold, or read from another machine",
            Warning::Volatile { .. } => "measure the storage that is to keep the data",
            Warning::NotAlike { .. } => {
                "configure them alike, or state the difference beside each comparison"
            }
            Warning::NeverSynced { .. } => "add sync = \"close\" to measure the storage",
            Warning::SourceLimits { .. } => {
                "copy from memory, or from a source that is faster than the target"
            }
            Warning::NetworkRate { .. } => {
                "use more machines or faster links to reach the storage's own limit"
            }
            Warning::Again { .. } | Warning::Event { .. } => return None,
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::LeftOut { target, why } => write!(f, "{target} was left out: {why}"),
            Warning::Invalid { reason, of } => {
                write!(f, "{} of {of} samples are INVALID: {reason}", reason.count)
            }
            Warning::Again { count } => {
                let times = if *count == 1 { "one measurement" } else { &format!("{count} measurements") };
                write!(f, "{times} spoilt by this machine, not by the storage, repeated in the same round")
            }
            Warning::Incomplete { groups, of, planned } => {
                write!(
                    f,
                    "incomplete: {groups} of {of} figures rest on fewer than the {planned} planned repeats"
                )
            }
            Warning::OneRepeat => {
                f.write_str("a single repeat: no figure has an interval, nothing is decided")
            }
            Warning::SameWork { cells } => {
                write!(f, "left out, since the scale makes it equal to another cell: {}", cells.join("; "))
            }
            Warning::Spread { groups, of, widest: (what, share) } => write!(
                f,
                "repeats of {groups} of {of} figures vary by more than {:.0} %, at worst by {:.0} % ({what})",
                100.0 * SPREAD_MOST,
                100.0 * share
            ),
            Warning::Busy { cores, disk, network } => f.write_str(&busy_sentence(*cores, *disk, *network)),
            Warning::Stolen { count, of, cores } => write!(
                f,
                "the host of this virtual machine took processor time during {count} of {of} samples, on average \
                 {cores:.2} cores"
            ),
            Warning::NotProvable { targets } => write!(
                f,
                "reads on {}: this machine can't prove that they came from the storage, not from a cache",
                targets.join(", ")
            ),
            Warning::Volatile { targets } => write!(
                f,
                "{}: memory of this machine; nothing there is durable, even if synced",
                targets.join(", ")
            ),
            Warning::NeverSynced { stage } => {
                write!(f, "{stage}: data were never synced, the figure is that of the cache")
            }
            Warning::SourceLimits { what, count, of, share } => {
                let [least, most] = [share.0, share.1].map(|share| format!("{:.0}", 100.0 * share.min(1.0)));
                let range = if least == most { least } else { format!("{least} to {most}") };
                let figure = if *count == 1 { "this figure says" } else { "these figures say" };
                write!(
                    f,
                    "{what}: the source takes {range} % of the time in {count} of {of} copies: {figure} more about the \
                     source than about the target"
                )
            }
            Warning::NotAlike { what } | Warning::NetworkRate { what } | Warning::Event { what, .. } => {
                f.write_str(what)
            }
        }
    }
}

/// All warnings, the gravest first.
pub(crate) fn warnings(
    results: &Results,
    stages: &[StageFigures<'_>],
    network: &[NetworkShare],
) -> Vec<Warning> {
    let outcomes: Vec<&CellOutcome<'_>> = stages.iter().flat_map(|stage| &stage.outcomes).collect();
    let mut found = left_out(results);
    found.extend(invalid(results));
    found.extend(incomplete(results, &outcomes));
    found.extend(one_repeat(results, &outcomes));
    found.extend(same_work(results));
    found.extend(spread(stages, &outcomes));
    found.extend(busy(results));
    found.extend(stolen(results));
    found.extend(not_provable(&outcomes));
    found.extend(volatile(results));
    let of_network = network.iter().filter(|share| share.is_network());
    found.extend(of_network.map(|share| Warning::NetworkRate { what: share.to_string() }));
    let differences = StorageMatrix::of(results).differences;
    found.extend(differences.into_iter().map(|what| Warning::NotAlike { what }));
    for stage in stages {
        found.extend(source_limits(stage));
        found.extend(never_synced(stage));
    }
    found.extend(events(results));
    found.sort_by_key(Warning::grade);
    found
}

/// The cells that a scale made equal.
fn same_work(results: &Results) -> Option<Warning> {
    let cells = results.campaign.as_ref()?.plan.merged.clone();
    (!cells.is_empty()).then_some(Warning::SameWork { cells })
}

fn left_out(results: &Results) -> Vec<Warning> {
    let targets = results.targets.iter().enumerate();
    let left_out = targets.filter_map(|(index, target)| {
        Some(Warning::LeftOut { target: letter(index), why: target.left_out.clone()? })
    });
    left_out.collect()
}

fn invalid(results: &Results) -> Vec<Warning> {
    let of = results.samples.len();
    let mut reasons = reasons(results.samples.iter().map(|measured| &measured.sample));
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons.into_iter().map(|reason| Warning::Invalid { reason, of }).collect()
}

/// Other events. Repetitions may be numerous, so they are counted.
fn events(results: &Results) -> Vec<Warning> {
    let (again, others): (Vec<&Event>, Vec<&Event>) =
        results.events.iter().partition(|event| event.what.starts_with(Event::AGAIN));
    let again = (!again.is_empty()).then_some(Warning::Again { count: again.len() });
    let told = others.into_iter().map(|event| Warning::Event { at: event.at, what: event.what.clone() });
    again.into_iter().chain(told).collect()
}

fn incomplete(results: &Results, outcomes: &[&CellOutcome<'_>]) -> Option<Warning> {
    if results.is_imported() {
        return None;
    }
    let planned = results.repeats;
    let short = |outcome: &&&CellOutcome<'_>| outcome.samples.len() < planned as usize;
    let groups = outcomes.iter().filter(short).count();
    (groups > 0).then_some(Warning::Incomplete { groups, of: outcomes.len(), planned })
}

/// Imported single runs can still be compared over cells.
fn one_repeat(results: &Results, outcomes: &[&CellOutcome<'_>]) -> Option<Warning> {
    if results.is_imported() {
        return None;
    }
    let most = outcomes.iter().map(|outcome| outcome.samples.len()).max()?;
    (most == 1).then_some(Warning::OneRepeat)
}

fn spread(stages: &[StageFigures<'_>], outcomes: &[&CellOutcome<'_>]) -> Option<Warning> {
    let share = |outcome: &CellOutcome<'_>| {
        let summary = outcome.operations.or(outcome.rate).filter(|summary| summary.count >= 3)?;
        summary.spread().filter(|spread| *spread > SPREAD_MOST)
    };
    let mut groups = 0;
    let mut widest: Option<(String, f64)> = None;
    for stage in stages {
        for (outcome, share) in stage.outcomes.iter().filter_map(|o| Some((o, share(o)?))) {
            groups += 1;
            if widest.as_ref().is_none_or(|(_, most)| share > *most) {
                widest = Some((place(stage, outcome), share));
            }
        }
    }
    Some(Warning::Spread { groups, of: outcomes.len(), widest: widest? })
}

/// The stage, cell, phase and target of an outcome, in words.
fn place(stage: &StageFigures<'_>, outcome: &CellOutcome<'_>) -> String {
    let label = stage.cell(outcome.cell).map_or("", |cell| &cell.label);
    let comma = if label.is_empty() { "" } else { ", " };
    format!("{}{comma}{label}, {}, {}", stage.name, outcome.phase.name(), letter(outcome.target))
}

/// The activity of a machine per second, over all samples together: moments are short, and the kernel counts
/// processor time in steps of 10 ms. A sample of several machines has their sum, so each counts for its own time.
/// `None` if the total time is too short.
fn a_second(
    results: &Results,
    moment: fn(&Measured) -> &Activity,
    amount: fn(&Activity) -> f64,
) -> Option<f64> {
    let machines = |measured: &Measured| measured.sample.node_starts.len().max(1) as f64;
    let times = results.samples.iter().map(|measured| moment(measured).over.seconds() * machines(measured));
    let over: f64 = times.sum();
    let all = results.samples.iter().map(|measured| amount(moment(measured)));
    (over >= LOOKED_AT_LEAST).then(|| all.sum::<f64>() / over)
}

fn busy(results: &Results) -> Option<Warning> {
    let before = |amount| a_second(results, |measured| &measured.sample.before, amount);
    let cores = before(|activity| activity.busy.seconds())?;
    let disk = before(|activity| (activity.disk_read + activity.disk_written) as f64)?;
    let network = before(|activity| (activity.received + activity.sent) as f64)?;
    let [disk, network] = [disk, network].map(ByteRate);
    let busy = is_busy(cores, network) || disk.0 > TRAFFIC_MOST;
    busy.then_some(Warning::Busy { cores, disk, network })
}

fn busy_sentence(cores: f64, disk: ByteRate, network: ByteRate) -> String {
    if is_busy(cores, network) {
        return format!(
            "the machine was busy just before samples: on average {cores:.1} cores, {disk} on disks, {network} on the \
             network"
        );
    }
    format!(
        "disks were busy just before samples: on average {disk}, by other programs, or by the kernel, which may write \
         data of earlier samples late"
    )
}

/// Returns true if this can't be the kernel's late writing of data of earlier samples.
fn is_busy(cores: f64, network: ByteRate) -> bool {
    cores > CORES_MOST || network.0 > TRAFFIC_MOST
}

fn stolen(results: &Results) -> Option<Warning> {
    let during = |measured: &'_ Measured| measured.sample.during.stolen.seconds();
    let cores = a_second(results, |measured| &measured.sample.during, |activity| activity.stolen.seconds())?;
    let count = results.samples.iter().filter(|measured| during(measured) > 0.0).count();
    (cores > STOLEN_MOST).then_some(Warning::Stolen { count, of: results.samples.len(), cores })
}

fn not_provable(outcomes: &[&CellOutcome<'_>]) -> Option<Warning> {
    let mut targets: Vec<usize> = outcomes
        .iter()
        .filter(|outcome| outcome.coldness == Some(Coldness::NotProvable))
        .map(|outcome| outcome.target)
        .collect();
    targets.sort_unstable();
    targets.dedup();
    (!targets.is_empty()).then(|| Warning::NotProvable { targets: targets.into_iter().map(letter).collect() })
}

fn volatile(results: &Results) -> Option<Warning> {
    let targets = results.targets.iter().enumerate().filter(|(_, target)| target.is_volatile());
    let targets: Vec<String> = targets.map(|(index, _)| letter(index)).collect();
    (!targets.is_empty()).then_some(Warning::Volatile { targets })
}

fn never_synced(stage: &StageFigures<'_>) -> Option<Warning> {
    let never = Value::Word("none".into());
    let cells = stage.cells.iter().filter(|cell| cell.parameters.get("sync") == Some(&never)).count();
    let name = if cells == stage.cells.len() {
        stage.name.to_owned()
    } else {
        format!("{}, {cells} of {} cells", stage.name, stage.cells.len())
    };
    (cells > 0).then_some(Warning::NeverSynced { stage: name })
}

/// Copies for which reading the source alone takes at least half of the time: one warning per target.
fn source_limits(stage: &StageFigures<'_>) -> Vec<Warning> {
    let rate = |outcome: &CellOutcome<'_>| outcome.rate.map(|summary| summary.mean);
    let mut shares: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for source in stage.outcomes.iter().filter(|outcome| outcome.phase == Phase::Source) {
        let same =
            |o: &&CellOutcome<'_>| (o.cell, o.target, o.phase) == (source.cell, source.target, Phase::Write);
        let copy = stage.outcomes.iter().find(same);
        if let Some((copy, source_rate)) = copy.and_then(rate).zip(rate(source)) {
            shares.entry(source.target).or_default().push(copy / source_rate);
        }
    }
    shares.into_iter().filter_map(|(target, shares)| source_limit(stage, target, &shares)).collect()
}

/// `shares` are those of the copies on a target.
fn source_limit(stage: &StageFigures<'_>, target: usize, shares: &[f64]) -> Option<Warning> {
    let limited: Vec<f64> = shares.iter().copied().filter(|share| *share >= SOURCE_LEAST).collect();
    let what = format!("{}, {}", stage.name, letter(target));
    let share = Summary::of(&limited)?.range;
    Some(Warning::SourceLimits { what, count: limited.len(), of: shares.len(), share })
}

#[cfg(test)]
mod tests;
