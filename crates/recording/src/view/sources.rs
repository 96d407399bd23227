//! Missing packets by sender and thread, from the gaps in the journals and the headers of the frames that fill
//! them.

use std::collections::BTreeMap;

use nilometer_wire::{Stamps, WireFormat};

use super::RecordingView;
use crate::GapSender;

/// A gap in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Number in the recording of the first frame that fills the gap or, if it is left out, of the frame after
    /// it.
    pub frame: u64,
    /// Missing packets.
    pub packets: u64,
    /// True if frames fill the gap.
    pub filled: bool,
    /// The sender whose packets are missing, if several numbered their packets by themselves.
    pub sender: Option<GapSender>,
}

/// Missing packets of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLoss {
    /// The sender whose packets are missing. `None` if the journals name none.
    pub sender: Option<GapSender>,
    /// Station and thread of the packets; the station is absent if the format has none. `None` if the format has
    /// no threads, if the packets were left out, or if too many are missing for reading their headers.
    pub thread: Option<(Option<u16>, u16)>,
    /// Number of missing packets.
    pub packets: u64,
}

/// Most headers to read.
const READ: u64 = 1 << 16;

/// The headers of frames that fill gaps.
struct FrameHeaders<'a> {
    whole: &'a RecordingView,
    /// The format of packets whose headers have no time stamp.
    format: Option<Box<dyn WireFormat>>,
}

impl<'a> FrameHeaders<'a> {
    fn of(whole: &'a RecordingView) -> Self {
        let wire = whole.wire().filter(|_| whole.stamps().is_none());
        let format = wire.and_then(|wire| nilometer_wire::of(&wire.packets, &wire.known()).ok());
        FrameHeaders { whole, format }
    }

    fn thread(&self, frame: u64) -> Option<(Option<u16>, u16)> {
        let Some(format) = &self.format else {
            let (station, thread) = self.whole.stamp(frame)?.lane();
            return Some((Some(station), thread));
        };
        let mut header = [0; Stamps::BYTES];
        let read = self.whole.read_at(frame * self.whole.frame_size(), &mut header);
        let (_, stream) = format.thread_of(&header[..read])?;
        Some((None, stream))
    }
}

impl SourceLoss {
    /// Computes the losses of a recording from its gaps.
    pub(super) fn of(whole: &RecordingView, holes: &[Hole]) -> Vec<Self> {
        let parts = whole.packets_of_frame();
        let headers = FrameHeaders::of(whole);
        let mut left = READ;
        let mut losses: BTreeMap<_, u64> = BTreeMap::new();
        let mut lose = |sender, thread, packets: u64| {
            let loss = losses.entry((sender, thread)).or_default();
            *loss = loss.saturating_add(packets);
        };
        for hole in holes {
            let frames = if hole.filled { (hole.packets / parts).min(left) } else { 0 };
            let mut packets = hole.packets;
            left -= frames;
            for frame in hole.frame..hole.frame + frames {
                let Some(thread) = headers.thread(frame) else { break };
                lose(hole.sender, Some(thread), parts);
                packets -= parts;
            }
            if packets > 0 {
                lose(hole.sender, None, packets);
            }
        }
        let of_source = |((sender, thread), packets)| SourceLoss { sender, thread, packets };
        losses.into_iter().map(of_source).collect()
    }
}
