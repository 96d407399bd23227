//! The lanes of a recording, each with the sink that stores its frames. Only this module makes sinks.

use std::{io, sync::Arc};

use nilometer_model::{Bytes, Capability, Format};
use nilometer_ring::{FrameEncoder, MemoryPart, MemoryPlan};
use nilometer_storage::{
    Target,
    clock::clock_reading,
    process::{BootId, processors},
};

use super::{
    EncodeStage, Gauge, LaneFiles, Numbering, RawLayout,
    cbf::CbfEncoder,
    encode::stage_memory,
    raw::{OPEN, lane_memory},
};

/// The settings of a writer: its storage and its sink.
#[derive(Debug)]
pub struct LaneSetup {
    /// The storage for its operations.
    pub target: Arc<dyn Target>,
    /// The sink that turns frames into operations.
    pub sink: LaneFiles,
    /// The free space on the storage. `None` unless the lane leaves some of it free.
    pub gauge: Option<Gauge>,
    /// The stage that encodes frames in front of the sink. `None` if they are stored as they are.
    pub encode: Option<EncodeStage>,
}

/// Makes the stage that encodes the frames of a layout on `threads` threads. `None` if they are stored as they
/// are.
///
/// # Errors
/// If a thread can't be started.
pub fn encode_stage(layout: &RawLayout, threads: usize) -> io::Result<Option<EncodeStage>> {
    let Some(encoder) = encoder_of(layout) else { return Ok(None) };
    EncodeStage::new(encoder, threads, waiting_encoded(layout)).map(Some)
}

/// The encoder for the frames of a layout. `None` if they are stored as they are.
fn encoder_of(layout: &RawLayout) -> Option<Arc<dyn FrameEncoder>> {
    match layout.head.format {
        Format::Raw | Format::Vdif | Format::Mark5b => None,
        Format::Cbf => {
            let picture = layout.picture.expect("an instrument whose format is CBF has pictures");
            Some(Arc::new(CbfEncoder::new(&layout.name, picture)))
        }
        Format::Hdf5 => {
            let hdf5 = layout.hdf5.as_ref().expect("a recording in HDF5 has the contents of its files");
            Some(Arc::new(hdf5.encoder()?))
        }
    }
}

/// Number of encoded frames that may wait until their dataset is known.
fn waiting_encoded(layout: &RawLayout) -> usize {
    let waits = layout.hdf5.as_ref().is_some_and(|hdf5| hdf5.datasets.is_some());
    if waits { layout.waiting as usize } else { 0 }
}

/// Plans the memory of `lanes` lanes with this layout: their buffers, lists, encoding threads, and the metadata
/// of open files for `frames` frames. If `frames` is 0, their number is unknown and the metadata are not
/// bounded.
pub fn lanes_memory(layout: &RawLayout, lanes: usize, options: LaneOptions, frames: u64) -> MemoryPlan {
    let threads = encode_threads(lanes, options);
    let slot = layout.head.stride;
    let stage = encoder_of(layout)
        .map_or(0, |encoder| stage_memory(encoder.as_ref(), slot, threads, waiting_encoded(layout)));
    let all = |bytes: u64| bytes.saturating_mul(lanes as u64);
    let plan = MemoryPlan::default().with(MemoryPart::WriteBuffers, all(lane_memory(layout)));
    plan.with(MemoryPart::EncodeStages, all(stage))
        .with(MemoryPart::FileIndex, all(index_memory(layout, frames)))
}

/// Most bytes for the metadata of those of a lane's files that are open at once.
fn index_memory(layout: &RawLayout, frames: u64) -> u64 {
    let Some(hdf5) = &layout.hdf5 else { return 0 };
    let many = layout.head.storing.is_many_files();
    let open = if many { layout.head.frames_per_file.saturating_mul(OPEN) } else { u64::MAX };
    let of_frames = hdf5.metadata_memory(frames.min(open)).saturating_sub(hdf5.metadata_memory(0));
    of_frames.saturating_add(hdf5.metadata_memory(0).saturating_mul(if many { OPEN } else { 1 }))
}

/// Number of encoding threads for each lane.
fn encode_threads(lanes: usize, options: LaneOptions) -> usize {
    let encoders = options.encoders.unwrap_or_else(|| processors().len());
    encoders.div_ceil(lanes.max(1)).max(1)
}

/// Options for all lanes of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneOptions {
    /// Bytes left free on each storage. `None` lets a lane write until there is no space.
    pub reserve: Option<Bytes>,
    /// Encoding threads for all lanes together; each lane has at least one. `None` takes as many as there are
    /// processors.
    pub encoders: Option<usize>,
}

/// Sets up lanes with these layouts, for a recording that begins in the current boot of the machine.
///
/// # Errors
/// If a thread can't be started.
pub fn lanes_of(
    lanes: Vec<(Arc<dyn Target>, RawLayout)>,
    options: LaneOptions,
) -> io::Result<Vec<LaneSetup>> {
    let gauges = gauges(&lanes, options.reserve);
    let numbering = numbering_of(&lanes);
    let boot = BootId::now();
    let clock = clock_reading();
    let threads = encode_threads(lanes.len(), options);
    let lanes = lanes.into_iter().zip(gauges).map(|((target, layout), gauge)| {
        // If the storage can't report its free space, there is room until a write fails.
        let gauging = gauge.clone().unwrap_or(Gauge::with_reserve(0));
        let encode = encode_stage(&layout, threads)?;
        let sink = LaneFiles::new(RawLayout { boot, clock, ..layout }, gauging).numbered(numbering.clone());
        Ok(LaneSetup { target, sink, gauge, encode })
    });
    lanes.collect()
}

/// The numbers of a recording's chunks, if it has chunks.
fn numbering_of(lanes: &[(Arc<dyn Target>, RawLayout)]) -> Numbering {
    let numbering = lanes.first().map(|(_, layout)| Numbering::of(&layout.head)).unwrap_or_default();
    let mut described = lanes.iter().map(|(target, _)| target.description());
    if described.all(|on| on.capabilities.has(Capability::Rename)) {
        numbering
    } else {
        numbering.without_renames()
    }
}

/// The gauge of each lane, if `reserve` bytes of its storage stay free. Lanes on one file system share a gauge.
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
