//! A campaign of one process.

use nilometer_model::Nanos;
use nilometer_storage::Clock;

use crate::{Cluster, ClusterDecision, RankReport, node_name};

/// The only process of a campaign.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Cluster for Alone {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn node(&self) -> String {
        node_name()
    }

    fn clock_offset(&self) -> i64 {
        0
    }

    fn clock_uncertainty(&self) -> u64 {
        0
    }

    fn barrier(&self) {}

    fn agree_start(&self, clock: &Clock) -> Nanos {
        clock.now()
    }

    fn gather(&self, mine: RankReport) -> Vec<RankReport> {
        vec![mine]
    }

    fn broadcast(&self, decision: Option<ClusterDecision>) -> ClusterDecision {
        decision.expect("there is only rank 0, and it gives its decision")
    }
}
