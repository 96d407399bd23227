//! The lanes of a recording, each with the sink that stores its frames: the one place where a sink is chosen.

use std::sync::Arc;

use nilometer_model::Bytes;
use nilometer_storage::{Target, process::BootId};

use super::{Gauge, Numbering, RawFiles, RawLayout, Sink};

/// A writer of a recording: where it writes, and what becomes of its frames there.
#[derive(Debug)]
pub struct LaneSetup {
    /// Where its operations go.
    pub target: Arc<dyn Target>,
    /// What makes operations of frames.
    pub sink: Box<dyn Sink>,
    /// What is known of the free space, where some of it is left free.
    pub gauge: Option<Gauge>,
}

/// Lanes that are laid out so, of a recording that begins in this start of the machine. So much of each storage is left
/// free; if none, a lane writes until there is no space.
pub fn lanes_of(lanes: Vec<(Arc<dyn Target>, RawLayout)>, reserve: Option<Bytes>) -> Vec<LaneSetup> {
    let gauges = gauges(&lanes, reserve);
    let numbering = lanes.first().map(|(_, layout)| Numbering::of(&layout.head)).unwrap_or_default();
    let boot = BootId::now();
    let lane = |((target, layout), gauge): ((Arc<dyn Target>, RawLayout), Option<Gauge>)| {
        // Where the storage can't say, there is room until a write fails.
        let gauging = gauge.clone().unwrap_or(Gauge::with_reserve(0));
        let sink = RawFiles::new(RawLayout { boot, ..layout }, gauging).numbered(numbering.clone());
        LaneSetup { target, sink: Box::new(sink), gauge }
    };
    lanes.into_iter().zip(gauges).map(lane).collect()
}

/// What each lane knows of its storage, if some of that is left free: those on one file system together.
fn gauges(lanes: &[(Arc<dyn Target>, RawLayout)], reserve: Option<Bytes>) -> Vec<Option<Gauge>> {
    let Some(Bytes(reserve)) = reserve else { return vec![None; lanes.len()] };
    let mut gauges: Vec<Gauge> = Vec::new();
    for (target, _) in lanes {
        let known = lanes.iter().zip(&gauges);
        let mut same =
            known.filter(|((other, _), _)| target.description().shares_space_with(other.description()));
        let gauge = same.next().map_or_else(|| Gauge::with_reserve(reserve), |(_, gauge)| gauge.beside());
        gauges.push(gauge);
    }
    gauges.into_iter().map(Some).collect()
}
