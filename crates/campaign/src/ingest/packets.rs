//! What became of packets that were sent over loopback, and whether what was lost says something of the recorder.

use nilometer_acquisition::{Outcome, Traffic, transport::Sent};
use nilometer_model::{ByteRate, Bytes, Ingest, Invalid, Nanos, PacketTotals, Sample};

use super::loopback::Went;

/// The packets of a cell's recorders.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packets {
    pub(super) totals: PacketTotals,
    /// So many were lost at once that the stream began anew: from then on blocks are not those that were sent.
    anew: bool,
    /// Some were left out: who reads at the same time may not know of all of them yet.
    left_out: bool,
    /// An instrument was late, and then sent more at once than may wait in the kernel.
    bursts: bool,
}

/// A packet that waits takes up to twice its bytes in the kernel.
const BOOKKEEPING: u64 = 2;
/// The tool itself waited for a processor longer than this share of the time.
const STARVED: u64 = 5;

impl Packets {
    /// Those of another recorder too.
    pub(super) fn add(&mut self, sample: &mut Sample, ingest: &Ingest, outcome: &Outcome, went: &Went) {
        let traffic = outcome.traffic.clone().unwrap_or_default();
        sample.filling += went.left.usage.total();
        sample.lateness.merge(&went.left.lateness);
        let totals = PacketTotals { receiving: outcome.source.total(), ..totals(&traffic, outcome, went) };
        let rate = at_one_socket(went, ingest.duration);
        self.anew |= traffic.tally.jumps + traffic.tally.restarts > 0;
        self.left_out |= traffic.tally.refused > 0;
        self.bursts |= rate.0 * totals.late.seconds() * BOOKKEEPING as f64 > totals.room.0 as f64;
        self.totals = self.totals.and(totals);
    }

    /// Whether blocks can be compared with what was sent, by who reads afterwards or at the same time.
    pub(super) fn are_in_place(&self, after: bool) -> bool {
        !self.anew && (after || !self.left_out)
    }

    /// Why the figures say nothing of the recorder, if so.
    pub(super) fn judge(&self, sample: &Sample) -> Option<Invalid> {
        let PacketTotals { unsent, .. } = self.totals;
        if unsent > 0 {
            return Some(Invalid::Slow);
        }
        if self.totals.lost() == 0 {
            return None;
        }
        // What is lost in the ring is the storage's, whatever the kernel lost.
        if self.bursts && self.totals.in_kernel() > 0 && self.totals.ring == 0 {
            return Some(Invalid::Bursts);
        }
        (sample.run_delay.0 > sample.wall.0 / STARVED).then_some(Invalid::Starved)
    }
}

/// What came to each socket.
fn at_one_socket(went: &Went, duration: Nanos) -> ByteRate {
    let bytes: u64 = went.left.sent.iter().map(|sent| sent.bytes).sum();
    ByteRate(ByteRate::of(bytes, duration).0 / went.shape.ports as f64)
}

fn totals(traffic: &Traffic, outcome: &Outcome, went: &Went) -> PacketTotals {
    let Traffic { tally, counted, .. } = traffic;
    let sent = went.left.sent.iter().fold(Sent::default(), |all, &sent| all.and(sent));
    let due = went.left.counts.iter().map(|counts| counts.due).sum::<u64>();
    let in_blocks = outcome.books.lost().saturating_mul(went.shape.of_block);
    PacketTotals {
        size: went.shape.size,
        due,
        unsent: due.saturating_sub(sent.packets),
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
        late: Nanos(went.left.lateness.max()),
        sending: went.left.usage.total(),
        receiving: Nanos(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(totals: PacketTotals) -> Packets {
        Packets { totals, ..Packets::default() }
    }

    fn sample(run_delay: Nanos) -> Sample {
        Sample { wall: Nanos::from_millis(1000), run_delay, ..Sample::new(Nanos(0)) }
    }

    #[test]
    fn what_the_instrument_did_not_send_is_no_loss_of_the_recorder() {
        let all = PacketTotals { due: 100, came: 100, stored: 100, ..PacketTotals::default() };
        assert_eq!(packets(all).judge(&sample(Nanos(0))), None);
        let unsent = PacketTotals { unsent: 1, came: 99, stored: 99, ..all };
        assert_eq!((unsent.lost(), packets(unsent).judge(&sample(Nanos(0)))), (0, Some(Invalid::Slow)));
    }

    #[test]
    fn a_loss_counts_unless_the_instrument_or_the_machine_made_it() {
        let lost = PacketTotals { due: 100, came: 90, stored: 80, ring: 10, ..PacketTotals::default() };
        assert_eq!((lost.lost(), lost.in_kernel(), lost.ring, lost.otherwise()), (20, 10, 10, 0));
        assert_eq!(packets(lost).judge(&sample(Nanos::from_millis(100))), None);
        assert_eq!(packets(lost).judge(&sample(Nanos::from_millis(300))), Some(Invalid::Starved));
        let in_kernel = PacketTotals { stored: 90, ring: 0, ..lost };
        let late = Packets { bursts: true, ..packets(in_kernel) };
        assert_eq!(late.judge(&sample(Nanos(0))), Some(Invalid::Bursts));
        // What came and found the ring full was not lost by the bursts, whatever else was.
        assert_eq!(Packets { totals: lost, ..late }.judge(&sample(Nanos(0))), None);
    }
}
