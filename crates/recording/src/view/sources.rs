//! Packets that did not come, by sender and thread: from the gaps of the journals, and the headers of the frames that stand
//! for what is missing.

use std::collections::BTreeMap;

use super::RecordingView;
use crate::GapSender;

/// Frames that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// The first frame that stands for them, or that follows where they are left out: its number in the recording.
    pub frame: u64,
    /// Packets that did not come.
    pub packets: u64,
    /// Frames stand in their place.
    pub filled: bool,
    /// The sender that they are missing of, if several numbered their packets by themselves.
    pub sender: Option<GapSender>,
}

/// Packets that did not come of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLoss {
    /// The sender that they are missing of. `None` if the journals name nobody.
    pub sender: Option<GapSender>,
    /// Their station and thread. `None` if the format has none, if they were left out, or if too many are missing to look at.
    pub thread: Option<(u16, u16)>,
    /// How many.
    pub packets: u64,
}

/// Headers that are read, at the most.
const READ: u64 = 1 << 16;

impl SourceLoss {
    /// The losses of a recording, by its gaps.
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
