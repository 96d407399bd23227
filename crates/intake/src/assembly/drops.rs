//! Packets that the kernel dropped and that no gap of the stream explains yet. A jump over at most this many
//! is a loss with a known cause, and no forgery. A recorder that is behind therefore believes it before its
//! socket is empty.

/// Dropped packets whose gap must appear soon: the kernel reports drops with the next packet that it keeps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnexplainedDrops {
    /// Upper bound for the dropped packets that no gap explains.
    packets: u64,
    /// Packets by which the stream had moved when the last of them were reported.
    moved: u64,
}

/// If the stream moved by this many packets without a gap, the dropped packets did not belong to it. This
/// many may wait in receiving threads.
const SHOWN: u64 = 1 << 15;

impl UnexplainedDrops {
    /// The kernel dropped at most `more` packets since the last call. `moved` packets of the stream arrived.
    pub(super) fn add(&mut self, more: u64, moved: u64) {
        if more > 0 {
            self.packets = self.packets.saturating_add(more);
            self.moved = moved;
        } else if self.packets > 0 && moved.saturating_sub(self.moved) > SHOWN {
            self.packets = 0;
        }
    }

    /// The stream began anew: packets are counted from here.
    pub(super) fn begin(&mut self) {
        self.moved = 0;
    }

    /// Number of packets that may be missing because of drops.
    pub(super) fn packets(self) -> u64 {
        self.packets
    }

    /// The stream has a gap of this many packets.
    #[inline]
    pub(super) fn explain(&mut self, missing: u64) {
        self.packets = self.packets.saturating_sub(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_uses_up_what_was_dropped() {
        let mut drops = UnexplainedDrops::default();
        drops.explain(50);
        assert_eq!(drops.packets(), 0, "lost elsewhere");
        drops.add(1000, 10);
        drops.explain(300);
        drops.add(0, 20);
        drops.add(100, 30);
        assert_eq!(drops.packets(), 800);
        drops.explain(10_000);
        assert_eq!(drops.packets(), 0);
    }

    #[test]
    fn what_no_gap_shows_was_none_of_the_stream() {
        let mut drops = UnexplainedDrops::default();
        drops.add(1000, 10);
        drops.add(0, 10 + SHOWN);
        assert_eq!(drops.packets(), 1000);
        drops.add(0, 11 + SHOWN);
        assert_eq!(drops.packets(), 0);
    }
}
