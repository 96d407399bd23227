//! The network's end of the ring: puts packets from a transport into the blocks of an assembly.

mod behind_end;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use nilometer_model::{ByteRate, Nanos};
use nilometer_ring::{LaneCounts, StoredTotals};
use nilometer_storage::{Clock, network::counters::DatagramErrors};

use crate::{
    assembly::{Assembly, PacketTally, PortTally},
    reception_end::ReceptionEnd,
    senders::{SenderCounts, SenderStreams},
    transport::{Received, Transport, TransportCounts},
};

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

#[cfg(test)]
mod ports_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        assembly::ReorderWindow,
        transport::{
            MemoryTransport,
            udp::{Listening, Sending, UdpInlet, UdpOutlet},
        },
    };
    use nilometer_recording::Missing;
    use nilometer_ring::{Chronicle, Ring};
    use nilometer_wire::{Known, Packet};
    use std::net::UdpSocket;

    use nilometer_model::{Bytes, Instrument};
    use nilometer_storage::Arena;

    const BODY: usize = 64;

    /// A receiver for packets of 64 bytes behind a serial number, the sending end, and the ring with one
    /// writer.
    pub(super) fn receiver(until: Until) -> (std::sync::mpsc::SyncSender<Vec<u8>>, Receiver, Arc<Ring>) {
        let (memory, transport) = MemoryTransport::channel();
        let (receiver, ring) = receiver_from(Box::new(transport), until);
        (memory, receiver, ring)
    }

    fn receiver_from(transport: Box<dyn Transport>, until: Until) -> (Receiver, Arc<Ring>) {
        let text = format!(
            "name = \"raw\"\ntitle = \"t\"\nsource = \"t\"\nshape = [{BODY}]\npixel = \"uint8\"\nframe_rate = \"1 kHz\"\n\
             [packets.format.raw]\npayload = \"{BODY} B\"\n"
        );
        let instrument = Instrument::parse(&text, "raw.toml").expect("valid");
        let packets = instrument.packets.as_ref().expect("it has");
        let format = nilometer_wire::of(packets, &Known::of(&instrument)).expect("it is a format");
        let chronicle = Chronicle::new(4096, Nanos(1));
        let ring = Ring::new(Arena::shared_out(64, 64 * BODY).1, 1, chronicle);
        let assembly =
            Assembly::new(vec![format], ring.clone(), 64, ReorderWindow::default(), Missing::Filled);
        (Receiver::new(vec![transport], assembly, until), ring)
    }

    pub(super) fn packet(serial: u64) -> Vec<u8> {
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
    fn a_recording_to_which_nothing_comes_ends() {
        let ms = Nanos::from_millis;
        let until = Until { silence: ms(100), silence_at_start: ms(500), ..Until::default() };
        let (memory, mut receiver, _ring) = receiver(until);
        let mut turn = |at, packet: Option<Vec<u8>>| {
            if let Some(packet) = packet {
                memory.send(packet).expect("it takes them");
            }
            receiver.turn(ms(at)).expect("memory does not fail");
            receiver.is_over(ms(at))
        };
        assert!((1000..1500).step_by(20).all(|at| !turn(at, Some(vec![0; 5]))), "foreign packets");
        assert!(turn(1500, Some(vec![0; 5])), "500 ms after its start");
        assert!(!turn(1510, Some(packet(7))));
        assert_eq!((1520..).step_by(10).find(|at| turn(*at, None)), Some(1610), "100 ms after a packet");
    }

    #[test]
    fn silence_is_time_in_which_it_looked_and_found_nothing() {
        let ms = Nanos::from_millis;
        let (memory, mut receiver, _ring) = receiver(Until { silence: ms(1000), ..Until::default() });
        let mut turn = |at| {
            receiver.turn(ms(at)).expect("memory does not fail");
            (receiver.first().is_some(), receiver.is_over(ms(at)), receiver.is_over(ms(at + 5000)))
        };
        memory.send(packet(7)).expect("it takes them");
        assert_eq!(turn(0), (true, false, false), "it did not look for 5 s, and something may wait");
        memory.send(packet(8)).expect("it takes them");
        assert_eq!(turn(5000), (true, false, false), "the second one waited");
        assert_eq!(turn(65_000), (true, false, false), "a minute without a look is no silence");
        let ended = (65_020..).step_by(20).find(|at| turn(*at).1);
        assert_eq!(ended, Some(65_940), "looks that found nothing are, and 60 ms of the minute");
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
    fn the_rate_is_from_the_first_packet_to_the_last() {
        let until = Until { silence: Nanos::from_millis(10_000), ..Until::default() };
        let (memory, mut receiver, _ring) = receiver(until);
        let mut serial = 0..;
        for at in [500, 600, 700, 800, 10_800] {
            if at <= 800 {
                memory.send(packet(serial.next().expect("no end"))).expect("it takes them");
            }
            receiver.turn(Nanos::from_millis(at)).expect("memory does not fail");
        }
        receiver.end(Nanos::from_millis(10_800), None);
        let traffic = receiver.live().lock().expect("one thread").clone();
        // Four packets of 72 bytes with 100 ms between them, and 10 s of silence.
        let rate = traffic.mean_rate().expect("it lasted").0;
        assert!((rate - 720.0).abs() < 1e-6, "{rate} B/s");
        assert_eq!(Traffic::default().mean_rate(), None);
    }

    #[test]
    fn those_that_sent_first_are_the_senders_and_others_are_counted() {
        let inlet = UdpInlet::open(&Listening::at(([127, 0, 0, 1], 0).into())).expect("a port is free");
        let to = inlet.address().expect("it is bound");
        let (mut receiver, _ring) = receiver_from(Box::new(inlet), Until::default());
        let socket = |last| {
            let at = std::net::SocketAddr::from(([127, 0, 0, last], 0));
            UdpSocket::bind(at).expect("all of 127.0.0.0/8 is this machine")
        };
        let (own, other) = (socket(1), socket(2));
        let mut take = |at| {
            // Strangers' packets do not count as received.
            while receiver.turn(Nanos::from_millis(at)).expect("loopback is there").more {}
            receiver.streams.placed()
        };
        let send = |from: &UdpSocket, serials: std::ops::Range<u64>| {
            for serial in serials {
                from.send_to(&packet(serial), to).expect("sent");
            }
        };
        send(&own, 0..100);
        assert_eq!(take(1), 100);
        send(&own, 100..110);
        assert_eq!(take(1500), 110);
        send(&other, 110..300);
        send(&own, 110..120);
        assert_eq!(take(1600), 120);
        receiver.end(Nanos::from_millis(1700), None);
        let Traffic { tally, counted, .. } = receiver.live().lock().expect("one thread").clone();
        assert_eq!((counted.strangers, counted.stranger), (190, Some([127, 0, 0, 2].into())));
        assert_eq!((tally.lost(), tally.stray, tally.duplicates), (0, 0, 0), "{tally:?}");
    }

    /// Sends packets as messages of eight, which the kernel cuts or keeps joined.
    fn send_joined(outlet: &mut UdpOutlet, serials: std::ops::Range<u64>) {
        let packets: Vec<Vec<u8>> = serials.map(packet).collect();
        for message in packets.chunks(8) {
            let parts: Vec<Packet<'_>> =
                message.iter().map(|bytes| Packet { prefix: &[], body: bytes }).collect();
            outlet.send(&parts).expect("loopback is there");
        }
    }

    #[test]
    fn what_the_kernel_drops_of_joined_packets_is_counted_one_by_one() {
        let little = Listening { room: Bytes(16 << 10), ..Listening::at(([127, 0, 0, 1], 0).into()) };
        let inlet = UdpInlet::open(&little).expect("a port is free");
        let to = inlet.address().expect("it is bound");
        let mut outlet = UdpOutlet::connect(to, &Sending::default()).expect("it listens");
        let (mut receiver, _ring) = receiver_from(Box::new(inlet), Until::default());
        // More than the buffer holds, and then some packets whose numbers show the loss.
        send_joined(&mut outlet, 0..2000);
        while receiver.turn(Nanos(1)).expect("loopback is there").packets() > 0 {}
        send_joined(&mut outlet, 2000..2008);
        while receiver.turn(Nanos(2)).expect("loopback is there").packets() > 0 {}
        receiver.end(Nanos(3), None);
        let traffic = receiver.live().lock().expect("one thread").clone();
        let missing = 2008 - traffic.counted.packets;
        assert!(missing > 100 && traffic.tally.missing == missing, "{traffic:?}");
        assert_eq!(traffic.kernel_dropped(), missing, "{traffic:?}");
        assert_eq!(
            traffic.counted.dropped * traffic.counted.joined,
            missing,
            "messages that are alike: {traffic:?}"
        );
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
