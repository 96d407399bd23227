//! The network's end of the ring: takes packets from a transport into the blocks of an assembly.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering},
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

use crate::{
    assembly::{Assembly, Tally},
    transport::{Counted, Received, Transport},
};

/// When a recording of packets ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// So long after the first packet, or after the beginning if none comes.
    pub duration: Nanos,
    /// After so many packets in the recording; a few more may be in it that came at once with the last.
    pub packets: u64,
    /// When none of the stream comes for so long after the last.
    pub silence: Nanos,
}

impl Default for Until {
    fn default() -> Self {
        Until { duration: Nanos::MAX, packets: u64::MAX, silence: Nanos::MAX }
    }
}

/// What came, as anybody may ask while it comes.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// What became of packets.
    pub tally: Tally,
    /// What the network counted.
    pub counted: Counted,
    /// How many bytes of packets may wait in the kernel.
    pub room: u64,
    /// When the first packet of the stream came, on the clock of the recording.
    pub first: Option<Nanos>,
    /// Why the network gave up, if it did.
    pub fault: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Receiver {
    /// By port.
    transports: Vec<Box<dyn Transport>>,
    assembly: Assembly,
    until: Until,
    /// How many bytes of packets may wait at each port, at least.
    room: u64,
    begun: Option<Nanos>,
    /// When the first and the last packet of the stream came.
    first: Option<Nanos>,
    last: Nanos,
    /// When any came last.
    heard: Nanos,
    told: Nanos,
    live: Arc<Mutex<Traffic>>,
}

/// Packets that are taken at once.
const BATCH: usize = 64;
/// Longest without a look whether the recording is to end.
const LOOK: Nanos = Nanos::from_millis(20);
/// While packets come, the thread sleeps between looks instead of being woken by each: so long at the most, and no longer
/// than fills this part of the kernel's room.
const NAP: Nanos = Nanos(500_000);
const NAP_SHARE: u64 = 16;
/// Looks at what is still in the kernel when it is stopped, at the most.
const DRAIN: u32 = 10_000;
/// How often the figures are brought up to date.
const TELL: Nanos = Nanos::from_millis(100);

impl Receiver {
    /// From a transport for each of its ports into an assembly.
    pub fn new(transports: Vec<Box<dyn Transport>>, assembly: Assembly, until: Until) -> Self {
        assert_eq!(transports.len(), assembly.ports(), "each port has its transport");
        let room = transports.iter().map(|transport| transport.room()).min().unwrap_or(0);
        let live = Arc::new(Mutex::new(Traffic { room, ..Traffic::default() }));
        let (begun, first, last, heard, told) = (None, None, Nanos(0), Nanos(0), Nanos(0));
        Receiver { transports, assembly, until, room, begun, first, last, heard, told, live }
    }

    /// What came so far: a tenth of a second old at the most.
    pub fn live(&self) -> Arc<Mutex<Traffic>> {
        self.live.clone()
    }

    /// When the first packet of the stream came.
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// What came so far is none of the recording.
    pub fn discard(&mut self) -> io::Result<()> {
        self.transports.iter_mut().try_for_each(|transport| transport.discard())
    }

    /// Takes what has come.
    pub fn turn(&mut self, now: Nanos) -> io::Result<Received> {
        let before = self.assembly.tally().of_stream();
        let mut received = Received::default();
        for (port, transport) in self.transports.iter_mut().enumerate() {
            let mut spots = self.assembly.spots(now, port, BATCH);
            let came = transport.receive(&mut spots)?;
            self.assembly.came(now, port, came.spots);
            for number in 0..came.aside {
                self.assembly.aside(now, port, transport.aside(number));
            }
            received = received.and(came);
        }
        if received.packets() > 0 {
            self.heard = now;
        }
        // Foreign packets neither begin a recording nor keep it from ending.
        if self.assembly.tally().of_stream() > before {
            self.first.get_or_insert(now);
            self.last = now;
        }
        self.assembly.tick(now);
        if now.since(self.told) >= TELL {
            self.tell(now, None);
        }
        Ok(received)
    }

    /// What all transports counted.
    fn counted(&self) -> Counted {
        self.transports.iter().fold(Counted::default(), |all, transport| all.and(transport.counted()))
    }

    fn tell(&mut self, now: Nanos, fault: Option<String>) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let (tally, counted) = (self.assembly.tally().clone(), self.counted());
        let fault = fault.or(live.fault.take());
        *live = Traffic { tally, counted, room: live.room, first: self.first, fault };
        self.told = now;
    }

    /// Whether it ends by itself now: also when no storage is left to record on.
    pub fn is_over(&mut self, now: Nanos) -> bool {
        let begun = *self.begun.get_or_insert(now);
        now.since(self.first.unwrap_or(begun)) >= self.until.duration
            || self.has_all()
            || self.assembly.is_abandoned()
            || self.first.is_some() && now.since(self.last) >= self.until.silence
    }

    /// As many packets are there as were wanted.
    fn has_all(&self) -> bool {
        self.assembly.tally().placed >= self.until.packets
    }

    /// Receives until it is over or stopped, on a thread of its own. How many blocks there were.
    pub fn run(&mut self, clock: Clock, stop: &AtomicBool) -> u64 {
        let mut fault = loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) || self.is_over(now) {
                break None;
            }
            match self.turn(now).and_then(|received| self.rest(received, now)) {
                Ok(()) => {}
                Err(error) => break Some(error.to_string()),
            }
        };
        // What has come before it was stopped is in the kernel still; who wanted so many packets has them.
        let looks = if self.has_all() { 0 } else { DRAIN };
        for _ in 0..looks {
            match self.turn(clock.now()) {
                Ok(received) if received.more && fault.is_none() && !self.has_all() => {}
                Ok(_) => break,
                Err(error) => fault = fault.or(Some(error.to_string())),
            }
        }
        self.end(clock.now(), fault)
    }

    /// No packet is taken any more. How many blocks there were.
    pub fn end(&mut self, now: Nanos, fault: Option<String>) -> u64 {
        let blocks = self.assembly.end(now);
        self.tell(now, fault);
        blocks
    }

    /// After all that was there was taken: until some more will have come.
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

    /// How long packets may be left to the kernel at their mean rate.
    fn nap(&self, now: Nanos) -> Nanos {
        let bytes = self.counted().bytes.max(1);
        let time = now.since(self.first.unwrap_or(now)).0;
        let share = u128::from(self.room / NAP_SHARE) * u128::from(time) / u128::from(bytes);
        Nanos(u64::try_from(share).unwrap_or(u64::MAX)).min(NAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Chronicle, Ring,
        assembly::{Limits, Missing},
        format::{self, Known},
        transport::Memory,
    };
    use nilometer_model::Instrument;
    use nilometer_storage::Arena;

    const BODY: usize = 64;

    /// Of packets of 64 bytes behind a serial number, the end that takes them, and the ring of one writer.
    fn receiver(until: Until) -> (std::sync::mpsc::SyncSender<Vec<u8>>, Receiver, Arc<Ring>) {
        let text = format!(
            "name = \"raw\"\ntitle = \"t\"\nsource = \"t\"\nshape = [{BODY}]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
             [packets.format.raw]\npayload = \"{BODY} B\"\n"
        );
        let instrument = Instrument::parse(&text, "raw.toml").expect("valid");
        let packets = instrument.packets.as_ref().expect("it has");
        let format = format::of(packets, &Known::of(&instrument)).expect("it is a format");
        let chronicle = Chronicle::new(4096, Nanos(1));
        let ring = Ring::new(Arena::shared_out(8, 64 * BODY).1, 1, chronicle);
        let assembly = Assembly::new(vec![format], ring.clone(), 64, Limits::default(), Missing::Filled);
        let (memory, transport) = Memory::channel();
        (memory, Receiver::new(vec![Box::new(transport)], assembly, until), ring)
    }

    fn packet(serial: u64) -> Vec<u8> {
        [&serial.to_le_bytes()[..], &[1; BODY]].concat()
    }

    #[test]
    fn foreign_packets_neither_begin_a_recording_nor_keep_it_from_ending() {
        let until = Until { duration: Nanos(1000), silence: Nanos(100), ..Until::default() };
        let (memory, mut receiver, _ring) = receiver(until);
        let mut turn = |now, packet: Vec<u8>| {
            memory.send(packet).expect("it takes them");
            receiver.turn(Nanos(now)).expect("memory does not fail");
            (receiver.first(), receiver.is_over(Nanos(now)))
        };
        assert_eq!(turn(500, vec![0; 5]), (None, false), "too short");
        assert_eq!(turn(600, packet(7)), (Some(Nanos(600)), false));
        assert_eq!(turn(690, packet(8)), (Some(Nanos(600)), false));
        assert_eq!(turn(789, vec![0; 5]), (Some(Nanos(600)), false));
        assert_eq!(turn(790, vec![0; 5]), (Some(Nanos(600)), true), "100 after the last of the stream");
        assert_eq!(turn(795, packet(9)), (Some(Nanos(600)), false));
        assert_eq!(turn(1590, packet(10)), (Some(Nanos(600)), false));
        assert_eq!(turn(1600, packet(11)), (Some(Nanos(600)), true), "1000 after the first of the stream");
    }

    #[test]
    fn a_recording_that_nobody_is_left_to_store_ends() {
        let (memory, mut receiver, ring) = receiver(Until::default());
        memory.send(packet(7)).expect("it takes them");
        receiver.turn(Nanos(5)).expect("memory does not fail");
        assert!(!receiver.is_over(Nanos(6)));
        ring.leave(Nanos(7), 0);
        assert!(receiver.is_over(Nanos(8)));
    }
}
