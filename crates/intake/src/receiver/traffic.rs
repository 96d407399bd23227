//! The traffic of a recording: counters of its stream and of the network, and the causes of loss that both
//! show together.

use nilometer_model::{ByteRate, Nanos};
use nilometer_ring::StoredTotals;
use nilometer_storage::network::counters::DatagramErrors;

use crate::{
    assembly::{PacketTally, PortTally},
    reception_end::ReceptionEnd,
    senders::SenderCounts,
    transport::TransportCounts,
};

/// The traffic received so far. Any thread may read it during a recording.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// The packets by their fate.
    pub tally: PacketTally,
    /// The same by sender, if several number their packets separately.
    pub senders: Vec<SenderCounts>,
    /// The same by port, if each part of the instrument sends to its own.
    pub ports: Vec<PortTally>,
    /// The counters of the network.
    pub counted: TransportCounts,
    /// Packets that the kernel dropped meanwhile before any socket of this machine could get them. It is read
    /// once packets are missing.
    pub errors: DatagramErrors,
    /// Size of the kernel's receive buffer, in bytes of packets.
    pub room: u64,
    /// When the first packet of the stream arrived, on the clock of the recording.
    pub first: Option<Nanos>,
    /// From the first to the last look that brought packets of the stream.
    pub span: Span,
    /// Totals that the lanes had stored at the time of these counts. `None` after the last packet, or if they
    /// are not counted.
    pub stored: Option<StoredTotals>,
    /// The error with which the network gave up, if it did.
    pub fault: Option<String>,
    /// The reason for which the receiver takes no more packets. `None` while it takes them.
    pub ended: Option<ReceptionEnd>,
    /// Packets that came after that while other data streams of the scan still received. Nobody records them.
    pub behind_end: u64,
}

/// A time span in which packets arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Its length.
    pub time: Nanos,
    /// Bytes received in it, without those that were there when it began.
    pub bytes: u64,
}

impl Traffic {
    /// Bytes a second from the first to the last packet, without the silence before and after. `None` if all
    /// arrived at once.
    pub fn mean_rate(&self) -> Option<ByteRate> {
        (self.span.time > Nanos(0)).then(|| ByteRate::of(self.span.bytes, self.span.time))
    }

    /// Packets of the stream that the kernel dropped for want of room.
    ///
    /// The kernel counts messages, each of one packet or of several that it had joined, without their number.
    /// The numbers of the stream give it. Packets that are missing without another cause were in these
    /// messages, as far as they fit in.
    ///
    /// A message had at least one packet, and no more than the longest one received.
    pub fn kernel_dropped(&self) -> u64 {
        let PacketTally { refused, late, .. } = self.tally;
        let bad = self.bad_checksums();
        let dropped = self.counted.dropped - bad;
        let known = refused + late + bad + self.counted.queue_full;
        let unexplained = self.tally.lost().saturating_sub(known);
        unexplained.clamp(dropped, dropped.saturating_mul(self.counted.joined.max(1)))
    }

    /// Packets that the kernel dropped because their UDP checksum was wrong. The socket counts them as
    /// dropped for lack of buffer space; the kernel counts them separately, for all sockets together.
    pub fn bad_checksums(&self) -> u64 {
        self.errors.checksum.min(self.counted.dropped)
    }

    /// Upper bound for the packets that lost an IP fragment on their way, among those without another cause.
    /// This many packets reached this machine in part.
    pub fn incomplete(&self) -> u64 {
        let PacketTally { refused, late, .. } = self.tally;
        let known = refused + late + self.bad_checksums() + self.counted.queue_full + self.kernel_dropped();
        self.errors.incomplete.min(self.tally.lost().saturating_sub(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_checksums_and_lost_fragments_are_told_from_no_room() {
        let tally = PacketTally { placed: 940, missing: 60, late: 2, ..PacketTally::default() };
        let counted = TransportCounts { dropped: 10, joined: 1, ..TransportCounts::default() };
        let of = |checksum, incomplete| {
            let errors = DatagramErrors { checksum, incomplete };
            let traffic = Traffic { tally: tally.clone(), counted, errors, ..Traffic::default() };
            (traffic.bad_checksums(), traffic.kernel_dropped(), traffic.incomplete())
        };
        assert_eq!(of(0, 0), (0, 10, 0));
        assert_eq!(of(7, 5), (7, 3, 5));
        assert_eq!(of(7, 500), (7, 3, 48), "no more than nothing else accounts for");
        assert_eq!(of(800, 0), (10, 0, 0), "those of other sockets are counted too");
    }

    #[test]
    fn packets_that_found_a_full_queue_are_none_that_the_kernel_dropped() {
        let tally = PacketTally { placed: 900, missing: 100, ..PacketTally::default() };
        let of = |dropped, queue_full| {
            let counted = TransportCounts { dropped, queue_full, joined: 8, ..TransportCounts::default() };
            let errors = DatagramErrors { incomplete: 500, ..DatagramErrors::default() };
            let traffic = Traffic { tally: tally.clone(), counted, errors, ..Traffic::default() };
            (traffic.kernel_dropped(), traffic.incomplete())
        };
        assert_eq!(of(0, 90), (0, 10));
        assert_eq!(of(20, 40), (60, 0), "the rest of those that are missing");
    }

    #[test]
    fn what_the_kernel_dropped_is_counted_in_packets() {
        let traffic = |missing, refused, late, dropped, joined| Traffic {
            tally: PacketTally { missing, refused, late, ..PacketTally::default() },
            counted: TransportCounts { dropped, joined, ..TransportCounts::default() },
            ..Traffic::default()
        };
        assert_eq!(traffic(135_668, 0, 0, 22_611, 6).kernel_dropped(), 135_666, "six packets a message");
        assert_eq!(traffic(60, 0, 0, 10, 8).kernel_dropped(), 60, "not all were whole");
        assert_eq!(traffic(60, 20, 5, 10, 8).kernel_dropped(), 35, "some found the ring full, or came late");
        assert_eq!(traffic(500, 0, 0, 10, 1).kernel_dropped(), 10, "others were lost on their way");
        assert_eq!(traffic(0, 0, 0, 10, 8).kernel_dropped(), 10, "behind the last packet nothing is missing");
        assert_eq!(traffic(500, 0, 0, 0, 8).kernel_dropped(), 0);
        let mut unfilled = traffic(2, 0, 0, 20_000, 6);
        unfilled.tally.unfilled = 100_000;
        assert_eq!(unfilled.kernel_dropped(), 100_002, "what is in no gap counts too");
    }
}
