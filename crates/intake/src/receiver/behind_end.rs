//! Packets that come to a data stream after it has ended by itself, while others of the scan still receive. Nobody
//! records them, but the receiver counts them.

use std::{
    io,
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_model::Nanos;

use super::{DRAIN, LOOK, NAP, Receiver};
use crate::{reception_end::ReceptionEnd, scan_streams::ScanMember, transport::Received};

impl Receiver {
    /// Counts the packets that still come, until all data streams of the scan have ended or `stop` is set.
    pub fn count_behind_end(&mut self, mut member: ScanMember, stop: &AtomicBool) {
        member.leave();
        if self.ended == Some(ReceptionEnd::Stopped) {
            return;
        }
        if let Err(error) = self.listen_on(&member, stop) {
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.fault.get_or_insert_with(|| error.to_string());
        }
    }

    fn listen_on(&mut self, member: &ScanMember, stop: &AtomicBool) -> io::Result<()> {
        let each = Nanos(LOOK.0 / self.transports.len() as u64);
        while member.has_others() && !stop.load(Ordering::Relaxed) {
            let received = self.look_behind_end()?;
            match (received.more, received.packets()) {
                (true, _) => {}
                (false, 0) => self.transports.iter_mut().try_for_each(|transport| transport.wait(each))?,
                // The thread takes many packets at once, and leaves the processor to other recorders.
                (false, _) => std::thread::sleep(NAP.duration()),
            }
        }
        // The kernel still holds packets that arrived before the last data stream ended.
        for _ in 0..DRAIN {
            if !self.look_behind_end()?.more {
                break;
            }
        }
        Ok(())
    }

    /// Takes waiting packets and counts them.
    fn look_behind_end(&mut self) -> io::Result<Received> {
        let mut received = Received::default();
        for transport in &mut self.transports {
            received = received.and(transport.receive(&mut [])?);
        }
        let counted = self.counted();
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.counted = counted;
        live.behind_end += received.packets() as u64;
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc::SyncSender};

    use nilometer_storage::Clock;

    use super::*;
    use crate::{
        Until,
        receiver::tests::{packet, receiver},
        scan_streams::ScanStreams,
    };

    fn send(memory: &SyncSender<Vec<u8>>, serials: std::ops::Range<u64>) {
        serials.for_each(|serial| memory.send(packet(serial)).expect("it takes them"));
    }

    #[test]
    fn a_data_stream_that_ended_counts_packets_until_the_others_have_ended() {
        let scan = ScanStreams::default();
        let [own, other] = [scan.join(), scan.join()];
        let (memory, mut receiver, _ring) = receiver(Until { packets: 64, ..Until::default() });
        let live = receiver.live();
        send(&memory, 0..64);
        let thread = std::thread::spawn(move || {
            let stop = AtomicBool::new(false);
            receiver.run(Clock::start(), &stop);
            receiver.count_behind_end(own, &stop);
        });
        let traffic = || live.lock().expect("no panic").clone();
        while traffic().ended.is_none() {
            std::thread::yield_now();
        }
        send(&memory, 64..74);
        while traffic().behind_end < 10 {
            std::thread::yield_now();
        }
        send(&memory, 74..80);
        drop(other);
        thread.join().expect("no panic");
        let traffic = traffic();
        assert_eq!((traffic.ended, traffic.behind_end), (Some(ReceptionEnd::Packets), 16));
        assert_eq!((traffic.tally.placed, traffic.counted.packets), (64, 80));
    }

    #[test]
    fn a_stop_ends_the_count() {
        let scan = ScanStreams::default();
        let [own, _other] = [scan.join(), scan.join()];
        let (memory, mut receiver, _ring) = receiver(Until { packets: 64, ..Until::default() });
        let stop = Arc::new(AtomicBool::new(false));
        send(&memory, 0..64);
        receiver.run(Clock::start(), &stop);
        send(&memory, 64..70);
        stop.store(true, Ordering::Relaxed);
        receiver.count_behind_end(own, &stop);
        assert_eq!(receiver.live().lock().expect("one thread").behind_end, 6);
    }
}
