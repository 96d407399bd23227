//! Missing packets by sender and thread, from the gaps in the journals and the headers of the frames that fill
//! them.

use std::collections::BTreeMap;

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
    /// Station and thread of the packets. `None` if the format has none, if the packets were left out, or if
    /// too many are missing for reading their headers.
    pub thread: Option<(u16, u16)>,
    /// Number of missing packets.
    pub packets: u64,
}

/// Most headers to read.
const READ: u64 = 1 << 16;

impl SourceLoss {
    /// Computes the losses of a recording from its gaps.
    pub(super) fn of(whole: &RecordingView, holes: &[Hole]) -> Vec<Self> {
        let parts = whole.packets_of_frame();
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
                let Some(stamp) = whole.stamp(frame) else { break };
                lose(hole.sender, Some(stamp.lane()), parts);
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
