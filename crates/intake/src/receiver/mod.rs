//! The network's end of the ring: puts packets from a transport into the blocks of an assembly.

mod behind_end;
#[cfg(test)]
mod ports_tests;
#[cfg(test)]
mod tests;
mod traffic;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_ring::LaneCounts;
use nilometer_storage::{Clock, network::counters::DatagramErrors};

use crate::{
    assembly::Assembly,
    reception_end::ReceptionEnd,
    senders::SenderStreams,
    transport::{Received, Transport, TransportCounts},
};

pub use traffic::{Span, Traffic};

/// When a recording of packets ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// Duration after the first packet.
    pub duration: Nanos,
    /// Number of packets in the recording. It may hold a few more that arrived together with the last.
    pub packets: u64,
    /// Silence of the stream after its last packet. Only time in which the receiver looks counts. A receiver
    /// that was stopped that long finds the meanwhile arrived packets in the kernel, and takes them.
    pub silence: Nanos,
    /// Silence from the start of a recording to which no packet comes.
    pub silence_at_start: Nanos,
}

impl Default for Until {
    fn default() -> Self {
        Until { duration: Nanos::MAX, packets: u64::MAX, silence: Nanos::MAX, silence_at_start: Nanos::MAX }
    }
}

/// Receives packets at one or several ports and puts them into blocks.
#[derive(Debug)]
pub struct Receiver {
    /// One for each port.
    transports: Vec<Box<dyn Transport>>,
    streams: SenderStreams,
    until: Until,
    /// Size of the kernel's buffer at each port, in bytes of packets: the smallest one.
    room: u64,
    /// When the first and the last packet of the stream arrived.
    first: Option<Nanos>,
    last: Nanos,
    /// Time since then in which looks found no packet of the stream.
    silent: Nanos,
    /// Bytes received by then.
    bytes: [u64; 2],
    /// When any packet last arrived.
    heard: Nanos,
    told: Nanos,
    /// When it looked last.
    turned: Option<Nanos>,
    /// The kernel's counters at the beginning.
    errors_before: DatagramErrors,
    live: Arc<Mutex<Traffic>>,
    /// Totals stored by the lanes, if they are counted.
    lanes: Option<LaneCounts>,
    /// The reason for which it takes no more packets.
    ended: Option<ReceptionEnd>,
}

/// Number of packets taken at once.
const BATCH: usize = 64;
/// Maximum time between checks for the end of the recording.
const LOOK: Nanos = Nanos::from_millis(20);
/// A longer time between two looks may be a halt: no more of it counts as silence.
const HALT: Nanos = Nanos(3 * LOOK.0);
/// While packets arrive, the thread sleeps between looks instead of being woken by each. It sleeps at most
/// this long, and no longer than it takes to fill this part of the kernel's buffer.
const NAP: Nanos = Nanos(500_000);
const NAP_SHARE: u64 = 16;
/// With several sockets it sleeps longer, up to this many times as long: a look then brings as many packets of
/// a socket as with one.
const NAPS_MOST: u64 = 4;
/// Maximum number of looks that empty the kernel's buffer after a stop.
const DRAIN: u32 = 10_000;
/// At the end, blocks of several merged streams wait for slots of the ring: this many times, and this long
/// each time.
const END_WAIT: u32 = 2000;
const END_NAP: Duration = Duration::from_millis(1);
/// Interval at which the live figures are updated.
const TELL: Nanos = Nanos::from_millis(100);

impl Receiver {
    /// Makes a receiver for an assembly, with a transport for each of its ports.
    pub fn new(mut transports: Vec<Box<dyn Transport>>, assembly: Assembly, until: Until) -> Self {
        assert_eq!(transports.len(), assembly.ports(), "each port has its transport");
        if transports.len() > 1 {
            for transport in &mut transports {
                transport.take_at_most(BATCH);
            }
        }
        let room = transports.iter().map(|transport| transport.room()).min().unwrap_or(0);
        let live = Arc::new(Mutex::new(Traffic { room, ..Traffic::default() }));
        Receiver {
            transports,
            streams: SenderStreams::new(assembly),
            until,
            room,
            first: None,
            last: Nanos(0),
            silent: Nanos(0),
            bytes: [0; 2],
            heard: Nanos(0),
            told: Nanos(0),
            turned: None,
            errors_before: DatagramErrors::now(),
            live,
            lanes: None,
            ended: None,
        }
    }

    /// The traffic so far, at most a tenth of a second old.
    pub fn live(&self) -> Arc<Mutex<Traffic>> {
        self.live.clone()
    }

    /// Adds the lanes' stored totals to the live traffic from now on.
    pub fn count_stored(&mut self, lanes: LaneCounts) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).stored = Some(lanes.get());
        self.lanes = Some(lanes);
    }

    /// When the first packet of the stream arrived. `None`: none has.
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// Discards all packets so far: they are not part of the recording.
    pub fn discard(&mut self) -> io::Result<()> {
        self.transports.iter_mut().try_for_each(|transport| transport.discard())?;
        self.errors_before = DatagramErrors::now();
        let counted = self.counted();
        self.live.lock().unwrap_or_else(PoisonError::into_inner).counted = counted;
        Ok(())
    }

    /// Takes all waiting packets.
    pub fn turn(&mut self, now: Nanos) -> io::Result<Received> {
        let step = now.since(self.turned.replace(now).unwrap_or(now));
        if step > HALT {
            self.streams.halted(step);
        }
        self.silent += step.min(HALT);
        let before = self.streams.of_stream();
        let mut of_stream = before;
        let mut received = Received::default();
        for (port, transport) in self.transports.iter_mut().enumerate() {
            let most = self.streams.may_take(port, BATCH);
            if most == 0 {
                received.more = true;
                continue;
            }
            let mut spots = self.streams.spots(now, port, most, transport.next_sender());
            let came = transport.receive(&mut spots)?;
            take(&mut self.streams, now, port, transport.as_ref(), came);
            self.streams.looked(now, port);
            let before = of_stream;
            let after = self.streams.of_stream();
            transport.accepted(now, after.saturating_sub(before));
            received = received.and(came);
            of_stream = after;
        }
        if received.packets() > 0 {
            self.heard = now;
        }
        // Foreign packets neither begin a recording nor keep it from ending.
        if of_stream > before {
            let bytes = self.received_bytes();
            if self.first.is_none() {
                self.first = Some(now);
                self.bytes[0] = bytes;
            }
            self.last = now;
            self.silent = Nanos(0);
            self.bytes[1] = bytes;
        }
        if !received.more {
            self.streams.drained(now);
        }
        self.streams.tick(now);
        if now.since(self.told) >= TELL {
            self.tell(now, None);
        }
        Ok(received)
    }

    fn received_bytes(&self) -> u64 {
        self.transports.iter().map(|transport| transport.bytes()).sum()
    }

    /// The counters of all transports.
    fn counted(&self) -> TransportCounts {
        self.transports.iter().fold(TransportCounts::default(), |all, transport| all.and(transport.counted()))
    }

    fn tell(&mut self, now: Nanos, fault: Option<String>) {
        // Read before the tally: packets that a lane has stored by then were received before.
        let stored = self.lanes.as_ref().map(LaneCounts::get);
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = self.streams.tally();
        let senders = self.streams.counts(now);
        let counted = self.counted();
        let is_missing = tally.lost() > 0 || counted.dropped > 0;
        let errors = if is_missing { DatagramErrors::now().since(self.errors_before) } else { live.errors };
        let fault = fault.or(live.fault.take());
        let time = self.last.since(self.first.unwrap_or(self.last));
        let span = Span { time, bytes: self.bytes[1] - self.bytes[0] };
        let room = live.room;
        *live = Traffic {
            tally,
            senders,
            ports: self.streams.port_tallies(),
            counted,
            errors,
            room,
            first: self.first,
            span,
            stored,
            fault,
            ended: self.ended,
            behind_end: 0,
        };
        self.told = now;
    }

    /// The reason for which the recording ends by itself now, if there is one.
    pub fn due_end(&self, now: Nanos) -> Option<ReceptionEnd> {
        let Until { duration, silence, silence_at_start, .. } = self.until;
        let is_long = self.first.is_some_and(|first| now.since(first) >= duration);
        let ends = [
            (self.streams.is_abandoned(), ReceptionEnd::NoDirectory),
            (self.has_all(), ReceptionEnd::Packets),
            (is_long, ReceptionEnd::Duration),
            (self.first.is_some() && self.silent >= silence, ReceptionEnd::Silence),
            (self.first.is_none() && self.silent >= silence_at_start, ReceptionEnd::NothingCame),
        ];
        ends.into_iter().find(|(is_due, _)| *is_due).map(|(_, end)| end)
    }

    /// Returns true if the recording ends by itself now, also because no storage is left.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.due_end(now).is_some()
    }

    /// Returns true if the recording has the requested number of packets.
    fn has_all(&self) -> bool {
        self.streams.placed() >= self.until.packets
    }

    /// Receives until the recording is over or stopped. Runs on its own thread, and returns the number of
    /// blocks.
    pub fn run(&mut self, clock: Clock, stop: &AtomicBool) -> u64 {
        let mut fault = None;
        let ended = loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) {
                break ReceptionEnd::Stopped;
            }
            if let Some(end) = self.due_end(now) {
                break end;
            }
            if let Err(error) = self.turn(now).and_then(|received| self.rest(received, now)) {
                fault = Some(error.to_string());
                break ReceptionEnd::Network;
            }
        };
        // The kernel still holds packets that arrived before the stop. If a number of packets was requested,
        // they are complete.
        let looks = if self.has_all() { 0 } else { DRAIN };
        for _ in 0..looks {
            match self.turn(clock.now()) {
                Ok(received) if received.more && fault.is_none() && !self.has_all() => {}
                Ok(_) => break,
                Err(error) => fault = fault.or(Some(error.to_string())),
            }
        }
        self.ended = Some(ended);
        self.end(clock.now(), fault)
    }

    /// Ends the recording: no packet is taken any more. Returns the number of blocks.
    pub fn end(&mut self, now: Nanos, fault: Option<String>) -> u64 {
        let mut left = END_WAIT;
        let wait = || {
            left = left.checked_sub(1)?;
            std::thread::sleep(END_NAP);
            Some(now)
        };
        let blocks = self.streams.end(now, wait);
        // The traffic stands still, and the lanes go on.
        self.lanes = None;
        self.tell(now, fault);
        blocks
    }

    /// Waits until more packets may have arrived, after all waiting ones were taken.
    fn rest(&mut self, received: Received, now: Nanos) -> io::Result<()> {
        if received.more {
            return Ok(());
        }
        if now.since(self.heard) > LOOK || self.first.is_none() {
            let each = Nanos(LOOK.0 / self.transports.len() as u64);
            return self.transports.iter_mut().try_for_each(|transport| transport.wait(each));
        }
        std::thread::sleep(self.nap(now).duration());
        Ok(())
    }

    /// How long packets may be left in the kernel at their mean rate.
    fn nap(&self, now: Nanos) -> Nanos {
        let bytes = self.received_bytes().max(1);
        let time = now.since(self.first.unwrap_or(now)).0;
        let share = u128::from(self.room / NAP_SHARE) * u128::from(time) / u128::from(bytes);
        let sockets = self.transports.iter().map(|transport| transport.sockets()).max().unwrap_or(1);
        let most = Nanos(NAP.0 * sockets.min(NAPS_MOST));
        Nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(most)
    }
}

/// Hands the packets of a look at a port to the streams.
fn take(streams: &mut SenderStreams, now: Nanos, port: usize, transport: &dyn Transport, came: Received) {
    let senders = transport.senders();
    let mut last = None;
    for &sender in senders {
        if last.replace(sender) != Some(sender) {
            streams.name(sender, || transport.sender(sender));
        }
    }
    streams.dropped(port, came.dropped);
    streams.came(now, port, came.spots, senders);
    for number in 0..came.aside {
        let sender = senders.get(came.spots + number).copied().unwrap_or_default();
        streams.aside(now, port, sender, transport.aside(number));
    }
}
