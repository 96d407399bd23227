//! The state of a lane: its status for users, and the counters from which it comes while the lane writes.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use nilometer_ring::{LaneCount, StoredCounts};
use schemars::JsonSchema;
use serde::Serialize;

use super::{outcome::Ending, room::LaneSpace};
use crate::sink::LaneSetup;

/// State of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LaneStatus {
    /// The lane's directory, as given by the user.
    pub path: PathBuf,
    /// `writing`, `ended`, `full`, `failed`, or `hung`: no report in time.
    pub state: &'static str,
    /// Bytes written, including the journal.
    pub written_bytes: u64,
    /// Bytes free on its storage at the last reading. `None` if unknown.
    pub free_bytes: Option<u64>,
    /// Reason of the failure, if the lane failed.
    pub fault: Option<String>,
}

impl LaneStatus {
    /// True if the lane takes no more of a recording that goes on: it is full, failed, or does not answer.
    pub fn has_dropped_out(&self) -> bool {
        matches!(self.state, "full" | "failed" | "hung")
    }
}

/// The recorder's view of a lane from outside.
#[derive(Debug)]
pub(super) struct LaneWatch {
    path: PathBuf,
    written: Arc<AtomicU64>,
    counts: Arc<StoredCounts>,
    space: LaneSpace,
    is_memory: bool,
    /// How the lane ended; it stays after the recorder has returned its outcome. `None` while the lane writes.
    ended: Option<Ending>,
}

impl LaneWatch {
    pub(super) fn of(lanes: &[LaneSetup]) -> Vec<Self> {
        lanes.iter().map(LaneWatch::new).collect()
    }

    fn new(lane: &LaneSetup) -> Self {
        let on = lane.target.description();
        LaneWatch {
            path: on.address.to_string().into(),
            written: Arc::default(),
            counts: Arc::default(),
            space: LaneSpace::new(lane.gauge.clone(), on, lane.sink.reserves_all()),
            is_memory: on.is_memory(),
            ended: None,
        }
    }

    /// The lane's storage, until the lane has ended.
    pub(super) fn filled_space(&self) -> Option<&LaneSpace> {
        self.ended.is_none().then_some(&self.space)
    }

    /// The counter of the lane's written bytes.
    pub(super) fn written(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    /// The counters of its stored frames.
    pub(super) fn counts(&self) -> Arc<StoredCounts> {
        self.counts.clone()
    }

    /// The lane's counters, for adding up all lanes.
    pub(super) fn lane_count(&self) -> LaneCount {
        LaneCount { counts: self.counts.clone(), is_memory: self.is_memory }
    }

    /// Notes how the lane ended, unless an earlier report already did.
    pub(super) fn end(&mut self, ending: Ending) {
        self.ended.get_or_insert(ending);
    }

    /// Returns the lane's current state.
    pub(super) fn status(&self) -> LaneStatus {
        let (state, fault) = match self.ended {
            None => ("writing", None),
            Some(Ending::Full) => ("full", None),
            Some(Ending::Failed(errno)) => ("failed", Some(errno.to_string())),
            Some(Ending::InOrder) => ("ended", None),
            Some(Ending::Hung) => ("hung", None),
        };
        LaneStatus {
            path: self.path.clone(),
            state,
            written_bytes: self.written.load(Ordering::Relaxed),
            free_bytes: self.space.free(),
            fault,
        }
    }
}
