//! The lanes of a recording, each with the sink that stores its frames: the one place where a sink is chosen.

use std::{io, sync::Arc};

use nilometer_model::{Bytes, Capability, Format};
use nilometer_ring::{FrameEncoder, MemoryPart, MemoryPlan};
use nilometer_storage::{
    Target,
    process::{BootId, processors},
};

use super::{
    EncodeStage, Gauge, LaneFiles, Numbering, RawLayout, Sink,
    cbf::CbfEncoder,
    encode::stage_memory,
    raw::{OPEN, lane_memory},
};

/// A writer of a recording: where it writes, and what becomes of its frames there.
#[derive(Debug)]
pub struct LaneSetup {
    /// Where its operations go.
    pub target: Arc<dyn Target>,
    /// What makes operations of frames.
    pub sink: Box<dyn Sink>,
    /// What is known of the free space, where some of it is left free.
    pub gauge: Option<Gauge>,
    /// What encodes frames before the sink gets them, if they are not stored as they are.
    pub encode: Option<EncodeStage>,
}

/// What encodes the frames of a layout on so many threads, if they are not stored as they are.
///
/// # Errors
/// If a thread can't be started.
pub fn encode_stage(layout: &RawLayout, threads: usize) -> io::Result<Option<EncodeStage>> {
    let Some(encoder) = encoder_of(layout) else { return Ok(None) };
    EncodeStage::new(encoder, threads, waiting_encoded(layout)).map(Some)
}

/// What encodes the frames of a layout, if they are not stored as they are.
fn encoder_of(layout: &RawLayout) -> Option<Arc<dyn FrameEncoder>> {
    match layout.head.format {
        Format::Raw | Format::Vdif | Format::Mark5b => None,
        Format::Cbf => {
            let picture = layout.picture.expect("an instrument whose format is CBF has pictures");
            Some(Arc::new(CbfEncoder::new(&layout.name, picture)))
        }
        Format::Hdf5 => {
            let hdf5 = layout.hdf5.as_ref().expect("a recording in HDF5 says what its files have in them");
            Some(Arc::new(hdf5.encoder()?))
        }
    }
}

/// Frames that wait for their dataset keep what was made of them.
fn waiting_encoded(layout: &RawLayout) -> usize {
    let waits = layout.hdf5.as_ref().is_some_and(|hdf5| hdf5.datasets.is_some());
    if waits { layout.waiting as usize } else { 0 }
}

/// The account of so many lanes that are laid out so: their buffers, their lists, the threads that encode their frames, and the
/// metadata of files that are open, if so many frames come. Of a number that is not known, which is 0, metadata are not bounded.
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

/// Metadata of the files of a lane that are open at once.
fn index_memory(layout: &RawLayout, frames: u64) -> u64 {
    let Some(hdf5) = &layout.hdf5 else { return 0 };
    let many = layout.head.storing.is_many_files();
    let open = if many { layout.head.frames_per_file.saturating_mul(OPEN) } else { u64::MAX };
    let of_frames = hdf5.metadata_memory(frames.min(open)).saturating_sub(hdf5.metadata_memory(0));
    of_frames.saturating_add(hdf5.metadata_memory(0).saturating_mul(if many { OPEN } else { 1 }))
}

/// Threads that encode the frames of a lane, where they are encoded.
fn encode_threads(lanes: usize, options: LaneOptions) -> usize {
    let encoders = options.encoders.unwrap_or_else(|| processors().len());
    encoders.div_ceil(lanes.max(1)).max(1)
}

/// What is asked of all lanes of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneOptions {
    /// So much of each storage is left free; if none, a lane writes until there is no space.
    pub reserve: Option<Bytes>,
    /// So many threads encode frames, where they are encoded, shared out to the lanes: as many as there are processors, if
    /// none. Each lane has one at least.
    pub encoders: Option<usize>,
}

/// Lanes that are laid out so, of a recording that begins in this start of the machine.
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
    let threads = encode_threads(lanes.len(), options);
    let lanes = lanes.into_iter().zip(gauges).map(|((target, layout), gauge)| {
        // Where the storage can't say, there is room until a write fails.
        let gauging = gauge.clone().unwrap_or(Gauge::with_reserve(0));
        let encode = encode_stage(&layout, threads)?;
        let sink = LaneFiles::new(RawLayout { boot, ..layout }, gauging).numbered(numbering.clone());
        Ok(LaneSetup { target, sink: Box::new(sink), gauge, encode })
    });
    lanes.collect()
}

/// The numbers of a recording's chunks, where it has some.
fn numbering_of(lanes: &[(Arc<dyn Target>, RawLayout)]) -> Numbering {
    let numbering = lanes.first().map(|(_, layout)| Numbering::of(&layout.head)).unwrap_or_default();
    let mut described = lanes.iter().map(|(target, _)| target.description());
    if described.all(|on| on.capabilities.has(Capability::Rename)) {
        numbering
    } else {
        numbering.without_renames()
    }
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
