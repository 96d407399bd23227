//! The results of a campaign, as the record keeps them and the analysis reads them.

use std::collections::BTreeMap;

use nilometer_model::{
    ByteRate, CampaignMachine, Histogram, Nanos, NetworkStage, Phase, Sample, TargetDescription, is_volatile,
};

use crate::{Cell, PlannedCampaign, RecordingRun};

/// A campaign with all its samples so far.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// The plan's title.
    pub title: String,
    /// The version of the program that measured.
    pub version: String,
    /// The start of the campaign: UTC, ISO 8601.
    pub started: String,
    /// The planned campaign with its targets; `None` for results without a campaign of this program.
    pub campaign: Option<PlannedCampaign>,
    /// No difference smaller than this counts as one, in percent.
    pub margin: f64,
    /// The number of planned rounds, without the warm-up.
    pub repeats: u32,
    /// The targets, in the order of the command line.
    pub targets: Vec<TargetEntry>,
    /// The cells, in the order of the plan.
    pub cells: Vec<Cell>,
    /// The samples, in the order of measurement, without warm-up. Latencies are in `latencies`. Only ingest
    /// samples and the median repeat of each group have a series.
    pub samples: Vec<Measured>,
    /// The results of the tool by itself, with a target that discards data: see
    /// [`Results::set_ceilings_apart`].
    pub ceilings: Vec<Measured>,
    /// Latencies from issue to completion, over all valid repeats of a group.
    pub latencies: BTreeMap<Group, Histogram>,
    /// Other events.
    pub events: Vec<Event>,
    /// The environment of the measurement: key and value.
    pub environment: Vec<(String, String)>,
    /// The machines of its processes, in the order of the first rank on each; empty for results without a
    /// campaign of this program.
    pub machines: Vec<CampaignMachine>,
    /// The network results, by stage.
    pub network: Vec<NetworkStage>,
}

impl Results {
    /// Moves the samples of the discarding target that the user did not ask for from `samples` to `ceilings`,
    /// and removes that target. It is only the ceiling of the others, and compared with none of them.
    pub fn set_ceilings_apart(&mut self) {
        let Some(ceiling) = self.campaign.as_ref().and_then(|campaign| campaign.ceiling) else { return };
        let samples = std::mem::take(&mut self.samples);
        (self.ceilings, self.samples) =
            samples.into_iter().partition(|measured| measured.key.target == ceiling);
        self.latencies.retain(|group, _| group.target != ceiling);
        self.targets.truncate(ceiling);
    }

    /// True if all results come from other programs or publications: there is no plan, and the machine is
    /// unknown.
    pub fn is_imported(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.as_imported().is_some())
    }

    /// True if all cells are recordings. They repeat as often as their answers need, not once a round.
    pub fn has_only_recordings(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.as_recording().is_some())
    }

    /// Sets the limits of readers, which the plan has and the samples lack.
    pub fn set_reader_limits(&mut self) {
        for measured in &mut self.samples {
            let run = self.cells.get(measured.key.cell).and_then(Cell::as_recording);
            let Some(limit) = run.and_then(|run| run.readers.rate).map(ByteRate::in_a_second) else {
                continue;
            };
            let readers = measured.sample.ingest.iter_mut().flat_map(|ingest| &mut ingest.readers);
            for reader in readers.filter(|reader| !reader.after) {
                reader.limit_per_second = Some(limit);
            }
        }
    }

    /// The recording of a sample, if it is one.
    pub fn recording(&self, key: Key) -> Option<&RecordingRun> {
        self.cells.get(key.cell)?.as_recording()
    }
}

/// The unit of comparison: a phase of a cell on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// The part of the cell.
    pub phase: Phase,
    /// Index into [`Results::targets`].
    pub target: usize,
}

/// A conclusion of a campaign, in words, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Its subject: a target and the question about it.
    pub subject: String,
    /// The finding.
    pub words: String,
}

/// Something that happened during a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The time since 1970, UTC.
    pub at: Nanos,
    /// The event, in words.
    pub what: String,
}

impl Event {
    /// The beginning of the event that repeats a spoilt measurement; cell, targets and the reason follow.
    pub const AGAIN: &str = "measured again: ";
}

/// A target of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetEntry {
    /// The directory under test.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// Its description before the campaign; `None` for results without a campaign of this program.
    pub description: Option<TargetDescription>,
    /// The reason why the campaign left it out from some point on; `None` if it did not.
    pub left_out: Option<String>,
}

impl TargetEntry {
    /// True if its data are in memory; see [`is_volatile`].
    pub fn is_volatile(&self) -> bool {
        is_volatile(&self.file_system)
    }
}

/// The place of a sample in the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// Counted from 0.
    pub repeat: u32,
    /// The part of the cell.
    pub phase: Phase,
}

impl Key {
    /// The group that the sample is a repeat of.
    pub const fn group(self) -> Group {
        Group { cell: self.cell, phase: self.phase, target: self.target }
    }
}

/// A sample with its place.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Its place.
    pub key: Key,
    /// The sample.
    pub sample: Sample,
}
