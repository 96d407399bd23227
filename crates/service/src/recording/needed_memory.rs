//! The memory of a recording, from its settings and its frames.

use nilometer_acquisition::{
    RecordingPlan, StoredFrames,
    sink::{LaneOptions, RawLayout, lanes_memory},
};
use nilometer_hdf5_recording::Hdf5Contents;
use nilometer_intake::transport::udp::ROOM;
use nilometer_model::{Bytes, Instrument, TargetDescription};
use nilometer_ring::{MemoryPart, MemoryPlan};

use super::{
    memory::{USUAL_BUFFER, account, preview_memory, program_memory},
    settings::RecordingSettings,
};
use crate::error::ServiceError;

/// The facts about a recording that determine its memory.
#[derive(Debug)]
pub(super) struct RecordingNeeds<'a> {
    pub(super) frames: StoredFrames,
    pub(super) described: &'a [TargetDescription],
    pub(super) instrument: &'a Instrument,
    /// The contents of its files, if they are HDF5.
    pub(super) contents: Option<&'a Hdf5Contents>,
    /// The parts of the source of its frames, apart from socket buffers.
    pub(super) source: MemoryPlan,
    /// The sockets for packets; 0 if frames are no packets.
    pub(super) sockets: u64,
    /// Packets of unknown streams may take a share of the ring, but at least this many bytes. 0 if frames are
    /// no packets.
    pub(super) candidates: u64,
    /// The number of frames; 0 if it is unknown.
    pub(super) frames_due: u64,
}

/// Two slots of a page.
const SMALLEST_RING: Bytes = Bytes(2 * 4096);
/// Candidates take at most an eighth of the ring, and at most `CANDIDATES_MAX`.
const CANDIDATES_SHARE: u64 = 8;
const CANDIDATES_MAX: u64 = 32 << 20;
/// The shares of a bound: an eighth for all sockets of packets, a quarter for messages of peers over TCP.
/// Without a bound each socket has [`ROOM`], and messages take half of the buffer.
const SOCKETS_SHARE: u64 = 8;
const CONNECTIONS_SHARE: u64 = 4;
const CONNECTIONS_MIN: u64 = 16 << 20;
const CONNECTIONS_MAX: u64 = 512 << 20;
const MESSAGES_SHARE: u64 = 2;
const MESSAGES_MIN: u64 = 64 << 20;
const SOCKET_MIN: u64 = 1 << 20;

impl RecordingSettings {
    /// The layout of a recording in this memory, and its account. The buffer has at least `least` bytes
    /// unless the user sets another; `check` decides if that one suffices.
    ///
    /// # Errors
    /// The recording can't be stored this way.
    pub(super) fn settled_plan(
        &self,
        needs: &RecordingNeeds<'_>,
        name: &str,
        least: Bytes,
        check: impl FnOnce(Bytes) -> Result<(), ServiceError>,
    ) -> Result<(RecordingPlan, MemoryPlan), ServiceError> {
        let wishes = self.memory_wishes();
        let parts_of = |buffer, memory| self.memory_plan(needs, buffer, memory);
        let buffer = wishes.settle(least, parts_of)?;
        check(buffer)?;
        let plan = self.checked_plan(needs.frames, needs.described, name, buffer)?;
        Ok((plan, parts_of(buffer, wishes.memory_of_stream())))
    }

    /// All parts of a recording with such a buffer, within this bound of its memory.
    fn memory_plan(&self, needs: &RecordingNeeds<'_>, buffer: Bytes, memory: Option<Bytes>) -> MemoryPlan {
        let plan = RecordingPlan::of(needs.frames, needs.described, &self.layout_options(buffer));
        let layout = RawLayout { hdf5: needs.contents.cloned(), ..plan.layout("", 0, 0) };
        let encoders = needs.instrument.recording.encoders.map(|count| count as usize);
        let options = LaneOptions { reserve: None, encoders };
        let lanes = lanes_memory(&layout, plan.lanes() as usize, options, needs.frames_due);
        let candidates = match needs.candidates {
            0 => 0,
            least => (plan.memory().0 / CANDIDATES_SHARE).min(CANDIDATES_MAX).max(least),
        };
        let waiting = needs.sockets.saturating_mul(self.socket_buffer_within(memory, needs.sockets).0);
        let source = needs.source.with(MemoryPart::Candidates, candidates);
        let source = source.with(MemoryPart::SocketBuffers, waiting);
        let frame = needs.instrument.frame_size();
        let preview = if self.has_preview { preview_memory(frame) } else { MemoryPlan::default() };
        let parts = plan.ring_memory().and(lanes).and(source).and(program_memory()).and(preview);
        account(parts, memory)
    }

    /// Refuses memory that fits no series over TCP, even one with the smallest frames. This needs no series
    /// to begin.
    ///
    /// # Errors
    /// The memory is too small, or not available.
    pub(super) fn check_memory_of_series(&self) -> Result<(), ServiceError> {
        let others = program_memory().with(MemoryPart::Connections, self.connection_memory().0);
        let parts_of = |buffer: Bytes, _| others.with(MemoryPart::Ring, buffer.0);
        self.memory_wishes().settle(SMALLEST_RING, parts_of).map(drop)
    }

    /// Memory of the kernel for packets, at each of `sockets` sockets.
    pub(super) fn socket_buffer(&self, sockets: u64) -> Bytes {
        self.socket_buffer_within(self.memory_wishes().memory_of_stream(), sockets)
    }

    /// The same within this bound of the memory.
    fn socket_buffer_within(&self, memory: Option<Bytes>, sockets: u64) -> Bytes {
        let share = memory.map_or(ROOM, |memory| Bytes(memory.0 / SOCKETS_SHARE / sockets.max(1)));
        self.wishes.receive_buffer.unwrap_or(Bytes(share.0.clamp(SOCKET_MIN, ROOM.0)))
    }

    /// The most memory for messages of peers over TCP.
    pub(super) fn connection_memory(&self) -> Bytes {
        Bytes(match self.wishes.memory {
            Some(memory) => (memory.0 / CONNECTIONS_SHARE).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX),
            None => (self.wishes.buffer.unwrap_or(USUAL_BUFFER).0 / MESSAGES_SHARE).max(MESSAGES_MIN),
        })
    }
}
