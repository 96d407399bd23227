//! Machines that were observed during a campaign: their use, the resource that limited each figure, and uneven
//! use among equals. Pure: looks and samples go in, numbers and sentences come out.

mod cell;
mod clock;
mod imbalance;
mod limit;
mod machine_use;
mod series;
#[cfg(test)]
mod tests;
mod words;

pub use cell::{ObservedCell, measured_range, sample_range};
pub use clock::ClockAgreement;
pub use imbalance::UnevenUse;
pub use limit::ResourceAtLimit;
pub use machine_use::{CellUse, MachineUse};
pub use series::{UseKey, UseKind, UseSeries, UseValues};
pub use words::{BUSY_DISKS, LEGEND};

use nilometer_model::{
    Nanos,
    observed::{ObservedHeader, ObservedLog, ObservedRange},
};
use nilometer_plan::Results;

use crate::{StageFigures, StudyRecording};

/// A file of observations, and the correction of its times.
#[derive(Debug, Clone)]
pub struct CorrectedLog {
    /// The log as read.
    pub log: ObservedLog,
    /// Nanoseconds to add; negative if the observed machine's clock was ahead.
    pub offset: i64,
}

/// The phases of a campaign that machines are observed in.
pub(crate) struct MeasuredPhases<'a> {
    /// The stages with samples, in the order of the plan.
    pub(crate) stages: Vec<&'a StageFigures<'a>>,
    /// The recordings of instruments, in the order of the plan.
    pub(crate) recordings: &'a [StudyRecording<'a>],
}

/// The activity of all observed machines during a campaign.
#[derive(Debug, Clone)]
pub struct ObservedRun {
    /// The time from the first sample to the end of the last.
    pub range: ObservedRange,
    /// One machine per file, in the same order.
    pub machines: Vec<ObservedMachine>,
    /// The measured phases, in the order of the report.
    pub cells: Vec<ObservedCell>,
}

/// An observed machine.
#[derive(Debug, Clone)]
pub struct ObservedMachine {
    /// Its description.
    pub header: ObservedHeader,
    /// Its use between looks.
    pub series: UseSeries,
    /// The agreement of its clock with that of the machine that measured.
    pub agreement: ClockAgreement,
    /// The same in words, with the correction of its times.
    pub clock: String,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

impl ObservedRun {
    pub(crate) fn of(results: &Results, phases: &MeasuredPhases<'_>, logs: &[CorrectedLog]) -> Option<Self> {
        let range = measured_range(results).filter(|_| !logs.is_empty())?;
        let machines: Vec<ObservedMachine> = logs.iter().map(|of| machine(results, of, range)).collect();
        let cells = cell::cells(results, phases, &machines);
        Some(ObservedRun { range, machines, cells })
    }

    /// The longest requested interval between looks.
    fn interval(&self) -> Nanos {
        let longest = self.machines.iter().map(|machine| machine.header.interval_s).fold(0.0, f64::max);
        Nanos::from_seconds(longest)
    }
}

fn machine(results: &Results, of: &CorrectedLog, range: ObservedRange) -> ObservedMachine {
    let CorrectedLog { log, offset } = of;
    let series = series::series(&log.header, &log.looks, *offset);
    let agreement = ClockAgreement::of(results, log);
    let clock = clock::clock_words(agreement, &log.header.host, *offset);
    let notes = words::notes(log, &series, range);
    ObservedMachine { header: log.header.clone(), series, agreement, clock, notes }
}

/// `97 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
