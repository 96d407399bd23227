//! What a campaign gave, as the record keeps it and the analysis reads it.

use std::collections::BTreeMap;

use nilometer_model::{
    CampaignMachine, Histogram, Nanos, NetworkStage, Phase, Sample, TargetDescription, is_volatile,
};

use crate::{Cell, PlannedCampaign, RecordingRun};

/// A campaign with all its samples so far.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// The plan's title.
    pub title: String,
    /// The version of the program that measured.
    pub version: String,
    /// When the campaign was begun: UTC, ISO 8601.
    pub started: String,
    /// What was to be measured, and on what; none of results that no campaign of this program gave.
    pub campaign: Option<PlannedCampaign>,
    /// No difference smaller than this counts as one, in percent.
    pub margin: f64,
    /// How many rounds were planned, warm-up apart.
    pub repeats: u32,
    /// The targets, in the order of the command line.
    pub targets: Vec<TargetEntry>,
    /// The cells, in the order of the plan.
    pub cells: Vec<Cell>,
    /// What was measured, in the order it was, warm-up apart. Latencies are in `latencies`, and a series only where it is
    /// shown: of ingest samples and of the median repeat of each group.
    pub samples: Vec<Measured>,
    /// What the tool by itself did, with a target that keeps nothing: see [`Results::set_ceilings_apart`].
    pub ceilings: Vec<Measured>,
    /// From issue to completion, all valid repeats of a group together.
    pub latencies: BTreeMap<Group, Histogram>,
    /// What happened besides.
    pub events: Vec<Event>,
    /// Where and with what it was measured: key and value.
    pub environment: Vec<(String, String)>,
    /// The machines of its processes, in the order of the first rank on each; none of results that no campaign of this program
    /// gave.
    pub machines: Vec<CampaignMachine>,
    /// What the network between them carried, by stage.
    pub network: Vec<NetworkStage>,
}

impl Results {
    /// Takes the target that was not asked for, and keeps nothing, out of the targets, and its samples out of the samples:
    /// it is compared with none of them, and only their ceiling.
    pub fn set_ceilings_apart(&mut self) {
        let Some(ceiling) = self.campaign.as_ref().and_then(|campaign| campaign.ceiling) else { return };
        let samples = std::mem::take(&mut self.samples);
        (self.ceilings, self.samples) =
            samples.into_iter().partition(|measured| measured.key.target == ceiling);
        self.latencies.retain(|group, _| group.target != ceiling);
        self.targets.truncate(ceiling);
    }

    /// All of it comes from other programs or publications: there was no plan, and nothing is known of the machine.
    pub fn is_imported(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.as_imported().is_some())
    }

    /// What was recorded, if a sample is of a recording.
    pub fn recording(&self, key: Key) -> Option<&RecordingRun> {
        self.cells.get(key.cell)?.as_recording()
    }
}

/// What is compared: a phase of a cell on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// The part of the cell.
    pub phase: Phase,
    /// Index into [`Results::targets`].
    pub target: usize,
}

/// What a campaign came to, in words, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// What it is about: a target and what was asked of it.
    pub subject: String,
    /// What was found.
    pub words: String,
}

/// Something that happened during a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When: since 1970, UTC.
    pub at: Nanos,
    /// What, in words.
    pub what: String,
}

impl Event {
    /// How the event of a measurement begins that was spoilt and is made again; cell, targets and the reason follow.
    pub const AGAIN: &str = "measured again: ";
}

/// A target of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetEntry {
    /// The directory under test.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// What was found there before the campaign; none of results that no campaign of this program gave.
    pub description: Option<TargetDescription>,
    /// Why it was left out from some point on, if it was.
    pub left_out: Option<String>,
}

impl TargetEntry {
    /// See [`is_volatile`].
    pub fn is_volatile(&self) -> bool {
        is_volatile(&self.file_system)
    }
}

/// Where a sample belongs.
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
    /// What the sample is a repeat of.
    pub const fn group(self) -> Group {
        Group { cell: self.cell, phase: self.phase, target: self.target }
    }
}

/// A sample and where it belongs.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Where it belongs.
    pub key: Key,
    /// What was measured.
    pub sample: Sample,
}
