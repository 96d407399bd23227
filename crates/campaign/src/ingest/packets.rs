//! Counts the packets that went over a network, and judges if the loss of some says anything about the
//! recorder.

use nilometer_acquisition::Outcome;
use nilometer_intake::Traffic;
use nilometer_model::{
    ByteRate, Bytes, Ingest, Invalid, Nanos, PacketTotals, Sample, SentAtOnce, SentPackets, SourceLag,
};

use super::over_network::Went;
use crate::starvation::starved_beyond;

/// The packets of a cell's recorders.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packets {
    pub(super) totals: PacketTotals,
    /// The stream restarted after too many packets were lost at once. From then on its blocks differ from those
    /// sent.
    anew: bool,
    /// The recorder left some packets out. A reader that works at the same time may not know of all of them
    /// yet.
    left_out: bool,
    /// The largest burst of an instrument that was late and then sent more at once than may wait in the kernel.
    bursts: Option<SentAtOnce>,
}

/// A packet that waits takes up to twice its bytes in the kernel.
const BOOKKEEPING: u64 = 2;
/// A receiver that waits for a processor for less than 1 / `WAITED_PART` of the time loses nothing by it. The
/// kernel keeps the packets of a moment.
const WAITED_PART: u64 = 5;
/// A wait costs at most `CATCH_UP` times the packets that arrive meanwhile.
const CATCH_UP: u64 = 2;

impl Packets {
    /// Adds the packets of another recorder.
    pub(super) fn add(&mut self, sample: &mut Sample, ingest: &Ingest, outcome: &Outcome, went: &Went) {
        let traffic = outcome.traffic.clone().unwrap_or_default();
        sample.filling += went.sent.processor();
        sample.lateness.merge(&went.sent.lateness);
        let totals = PacketTotals { receiving: outcome.source.total(), ..totals(&traffic, outcome, went) };
        let rate = at_one_socket(went, ingest.duration);
        self.anew |= traffic.tally.jumps + traffic.tally.restarts > 0;
        self.left_out |= traffic.tally.refused > 0;
        let burst = burst(rate, totals.late, totals.room);
        self.bursts = self.bursts.into_iter().chain(burst).max_by_key(|burst| burst.at_once);
        self.totals = self.totals.and(totals);
    }

    /// Returns true if a reader can compare blocks with those sent; `after` is false for one that reads at the
    /// same time.
    pub(super) fn are_in_place(&self, after: bool) -> bool {
        !self.anew && (after || !self.left_out)
    }

    /// Returns why the figures say nothing about the recorder, or `None`. The recorder waited for a processor
    /// for the time `waited` out of `wall`.
    pub(super) fn judge(&self, waited: Nanos, wall: Nanos) -> Option<Invalid> {
        let PacketTotals { unsent, due, .. } = self.totals;
        if unsent > 0 {
            return Some(Invalid::Slow(Some(SourceLag::Unsent { unsent, of: due })));
        }
        let lost = self.totals.lost();
        if lost == 0 {
            return None;
        }
        // A loss in the ring is the storage's, whatever the kernel lost.
        let in_kernel = self.totals.in_kernel() > 0 && self.totals.ring == 0;
        if let Some(burst) = self.bursts.filter(|_| in_kernel) {
            return Some(Invalid::Bursts(Some(burst)));
        }
        let missing = wall.seconds() * lost as f64 / due.max(1) as f64;
        let explained = Nanos::from_seconds(missing / CATCH_UP as f64);
        starved_beyond(waited, wall, explained.max(Nanos(wall.0 / WAITED_PART)))
    }
}

/// The burst that an instrument sends after it was `late`, if that is more than may wait in the kernel.
fn burst(rate: ByteRate, late: Nanos, room: Bytes) -> Option<SentAtOnce> {
    #[expect(clippy::cast_sign_loss, reason = "rates and times are not negative")]
    let at_once = Bytes((rate.0 * late.seconds()) as u64 * BOOKKEEPING);
    (at_once > room).then_some(SentAtOnce { late, at_once, room })
}

/// The rate of packets at each socket.
fn at_one_socket(went: &Went, duration: Nanos) -> ByteRate {
    ByteRate(ByteRate::of(went.sent.bytes, duration).0 / went.shape.ports as f64)
}

fn totals(traffic: &Traffic, outcome: &Outcome, went: &Went) -> PacketTotals {
    let Traffic { tally, counted, .. } = traffic;
    let SentPackets { due, packets, .. } = went.sent;
    let in_blocks = outcome.books.lost().saturating_mul(went.shape.of_block);
    PacketTotals {
        size: went.shape.size,
        due,
        unsent: due.saturating_sub(packets),
        came: counted.packets,
        dropped: counted.dropped,
        ring: tally.refused + in_blocks.min(tally.placed),
        stored: tally.placed.saturating_sub(in_blocks),
        losses: tally.losses,
        longest_loss: tally.longest_loss,
        reordered: tally.reordered,
        extent: tally.extents.max(),
        overtaken: tally.overtaken,
        duplicates: tally.duplicates,
        room: Bytes(went.shape.room.0),
        late: Nanos(went.sent.lateness.max()),
        sending: went.sent.processor(),
        receiving: Nanos(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(totals: PacketTotals) -> Packets {
        Packets { totals, ..Packets::default() }
    }

    const WALL: Nanos = Nanos::from_millis(1000);

    #[test]
    fn what_the_instrument_did_not_send_is_no_loss_of_the_recorder() {
        let all = PacketTotals { due: 100, came: 100, stored: 100, ..PacketTotals::default() };
        assert_eq!(packets(all).judge(WALL, WALL), None, "nothing was lost, whatever it waited for");
        let unsent = PacketTotals { unsent: 1, came: 99, stored: 99, ..all };
        let lag = SourceLag::Unsent { unsent: 1, of: 100 };
        assert_eq!(unsent.lost(), 0);
        assert_eq!(packets(unsent).judge(Nanos(0), WALL), Some(Invalid::Slow(Some(lag))));
    }

    #[test]
    fn a_loss_counts_unless_the_instrument_or_the_machine_made_it() {
        let lost = PacketTotals { due: 100, came: 90, stored: 80, ring: 10, ..PacketTotals::default() };
        assert_eq!((lost.lost(), lost.in_kernel(), lost.ring, lost.otherwise()), (20, 10, 10, 0));
        assert_eq!(packets(lost).judge(Nanos::from_millis(100), WALL), None);
        let starved = packets(lost).judge(Nanos::from_millis(300), WALL);
        assert!(matches!(starved, Some(Invalid::Starved(Some(_)))), "{starved:?}");
        let most = PacketTotals { stored: 10, ring: 80, ..lost };
        assert_eq!(packets(most).judge(Nanos::from_millis(300), WALL), None, "0.9 s are not lost in 0.3 s");
        assert!(packets(most).judge(WALL, WALL).is_some());
        let in_kernel = PacketTotals { stored: 90, ring: 0, ..lost };
        let burst = burst(ByteRate(1e9), Nanos::from_millis(10), Bytes(10_000_000));
        assert_eq!(burst.map(|burst| burst.at_once), Some(Bytes(20_000_000)), "each takes twice its bytes");
        let late = Packets { bursts: burst, ..packets(in_kernel) };
        assert_eq!(late.judge(Nanos(0), WALL), Some(Invalid::Bursts(burst)));
        // The bursts did not cause the loss of packets that found the ring full, whatever else was lost.
        assert_eq!(Packets { totals: lost, ..late }.judge(Nanos(0), WALL), None);
    }
}
