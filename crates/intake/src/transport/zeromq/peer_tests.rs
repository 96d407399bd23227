//! Strangers at a socket that waits for a detector. Tests limit their memory and time, and check that the
//! socket reads the detector. Connections are real, from other addresses of this machine; the test sets the
//! time, so a second passes at once.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
};

use nilometer_model::Nanos;
use nilometer_storage::{Arena, Buffer};
use nilometer_wire::zmtp::{self, ZmtpSocket};
use rustix::net::{AddressFamily, SocketType};

use super::{
    super::Allowed,
    patience::STRANGER_STANDS,
    places::{ACCEPTED_MAX, OF_ADDRESS_MAX},
    *,
};

/// Bytes of a slot, and of a long string in an image.
const LONG: usize = 300_000;
/// How much later every look is.
const LOOK: Nanos = Nanos::from_millis(20);

/// Slots for long strings in a first part, as for pixels. Other parts stay with their message.
struct Slots {
    free: Vec<Buffer>,
    /// Messages that came wait for slots.
    is_awaited: bool,
}

impl MessageRoom for Slots {
    fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer {
        if asked.part > 0 {
            return RoomAnswer::Along;
        }
        self.free.pop().map_or(RoomAnswer::Later, RoomAnswer::Apart)
    }

    fn give_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}

/// A socket that waits, its slots, and a time that the test tells.
struct PeerLab {
    socket: PullSocket,
    at: SocketAddr,
    slots: Slots,
    now: Nanos,
}

impl PeerLab {
    fn new(allowed: Allowed, slots: usize) -> Self {
        Self::with_memory(allowed, slots, 512 << 20)
    }

    fn with_memory(allowed: Allowed, slots: usize, memory: u64) -> Self {
        Self::at("tcp://0.0.0.0:0", allowed, slots, memory)
    }

    fn at(endpoint: &str, allowed: Allowed, slots: usize, memory: u64) -> Self {
        let limits = MessageLimits { memory, ..MessageLimits::default() };
        let endpoint = ZmqEndpoint::bind(endpoint).expect("an address");
        let socket = PullSocket::open(&[endpoint], limits).expect("a free port").allowing(allowed);
        let port = socket.addresses().expect("it is bound")[0].port();
        let free = Arena::shared_out(slots, LONG).1;
        let at = (Ipv4Addr::LOCALHOST, port).into();
        PeerLab { socket, at, slots: Slots { free, is_awaited: false }, now: Nanos(0) }
    }

    /// A look, 20 ms after the last.
    fn look(&mut self) -> Option<ZmqMessage> {
        self.now += LOOK;
        let looked = self.socket.receive(self.now, Nanos::from_millis(1), &mut self.slots);
        looked.expect("the network is there")
    }

    /// Looks until something holds.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if holds(self) {
                return;
            }
            if let Some(message) = self.look() {
                self.slots.free.extend(message.apart.into_iter().flatten());
            }
        }
        panic!("{what}: {:?}", self.socket.counted());
    }

    /// Sends, and looks until all of it came, in no time.
    fn deliver(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> Option<ZmqMessage> {
        let came = self.socket.counted().bytes + bytes.len() as u64;
        stream.write_all(bytes).expect("it is open");
        let mut message = None;
        while self.socket.counted().bytes < came {
            let looked = self.socket.receive(self.now, Nanos::from_millis(1), &mut self.slots);
            message = message.or(looked.expect("the network is there"));
        }
        message
    }

    /// Looks repeatedly until this much time has passed.
    fn pass(&mut self, time: Nanos) -> Vec<ZmqMessage> {
        let end = self.now + time;
        let mut came = Vec::new();
        while self.now < end {
            came.extend(self.look());
        }
        came
    }

    /// The next message.
    fn next(&mut self) -> ZmqMessage {
        for _ in 0..20_000 {
            if let Some(message) = self.look() {
                return message;
            }
        }
        panic!("nothing comes: {:?}", self.socket.counted());
    }

    /// A sender from the loopback address that ends so, as far as it is when it may send.
    fn ready(&mut self, last: u8) -> TcpStream {
        let before = self.socket.counted().connected;
        let mut stream = connected(last, self.at);
        stream.write_all(&hello()).expect("it is taken");
        self.until("a handshake", |lab| lab.socket.counted().connected > before);
        stream
    }
}

fn hello() -> Vec<u8> {
    [&zmtp::greeting()[..], &zmtp::ready(ZmtpSocket::Push)].concat()
}

fn address(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

/// A connection from the loopback address that ends so.
fn connected(last: u8, to: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddr::new(address(last), 0)).expect("an address of this machine");
    rustix::net::connect(&socket, &to).expect("somebody waits there");
    TcpStream::from(socket)
}

/// A message with a long string, of which only the first `sent` bytes follow.
fn message(sent: usize) -> Vec<u8> {
    let mut bytes = b"\xa1\x64type\x5a".to_vec();
    bytes.extend((LONG as u32).to_be_bytes());
    let mut whole = zmtp::part_header((bytes.len() + LONG) as u64, false);
    whole.extend(bytes);
    whole.extend(vec![7; sent.min(LONG)]);
    whole
}

fn whole() -> Vec<u8> {
    message(LONG)
}

/// Returns true if the other end closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("it is open");
    let mut said = [0; 256];
    loop {
        match stream.read(&mut said) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn strangers_hold_few_slots_and_a_sender_of_the_series_has_the_others() {
    let mut lab = PeerLab::new(Allowed::Any, 4);
    let mut detector = lab.ready(1);
    detector.write_all(&whole()).expect("it is taken");
    let first = lab.next();
    lab.socket.begin_series(first.peer.expect("a socket delivered it"), 1);
    lab.slots.free.extend(first.apart.into_iter().flatten());
    let strangers: Vec<_> = (0..40)
        .map(|number| {
            let mut stranger = lab.ready(2 + number / 20);
            stranger.write_all(&message(10)).expect("it is taken");
            stranger
        })
        .collect();
    lab.until("two slots are taken", |lab| lab.slots.free.len() == 2);
    for _ in 0..20 {
        detector.write_all(&whole()).expect("it is taken");
        let message = lab.next();
        assert_eq!(message.apart.iter().flatten().count(), 1);
        lab.slots.free.extend(message.apart.into_iter().flatten());
    }
    assert_eq!(lab.slots.free.len(), 2);
    drop(strangers);
    lab.until("slots come back", |lab| lab.slots.free.len() == 4);
}

#[test]
fn a_message_that_stands_still_is_given_up_if_others_wait_and_only_then() {
    let mut lab = PeerLab::new(Allowed::Any, 1);
    let mut stranger = lab.ready(2);
    stranger.write_all(&message(10)).expect("it is taken");
    lab.until("its slot", |lab| lab.slots.free.is_empty());
    lab.pass(Nanos::from_millis(60_000));
    assert!(!is_closed(&mut stranger), "nobody waits");
    let mut detector = lab.ready(1);
    detector.write_all(&whole()).expect("it is taken");
    let before = lab.now;
    let message = lab.next();
    let waited = lab.now.since(before);
    assert!(waited >= STRANGER_STANDS && waited < Nanos::from_millis(3000), "{waited}");
    assert_eq!(message.peer.expect("a socket delivered it").address, address(1));
    assert!(is_closed(&mut stranger));
    let counted = lab.socket.counted();
    assert_eq!((counted.stalled, counted.cut_off), (1, 1));
    assert!(counted.fault.is_some_and(|fault| fault.contains("127.0.0.2") && fault.contains("stood still")));
}

#[test]
fn a_byte_now_and_then_keeps_no_slot() {
    let mut lab = PeerLab::new(Allowed::Any, 2);
    let mut strangers: Vec<_> = (0..2)
        .map(|_| {
            let mut stranger = lab.ready(2);
            stranger.write_all(&message(10)).expect("it is taken");
            stranger
        })
        .collect();
    lab.until("their slots", |lab| lab.slots.free.is_empty());
    // A message that came waits for a slot at the receiver.
    lab.slots.is_awaited = true;
    for stranger in &mut strangers {
        drop(lab.deliver(stranger, &[7]));
    }
    lab.pass(Nanos::from_millis(900));
    for stranger in &mut strangers {
        drop(lab.deliver(stranger, &[7]));
    }
    assert_eq!(lab.socket.counted().stalled, 0);
    lab.pass(Nanos::from_millis(200));
    assert_eq!((lab.socket.counted().stalled, lab.slots.free.len()), (2, 2));
}

#[test]
fn a_sender_on_a_slow_network_is_not_given_up() {
    let mut lab = PeerLab::new(Allowed::Any, 1);
    let mut slow = lab.ready(2);
    slow.write_all(&message(0)).expect("it is taken");
    lab.until("its slot", |lab| lab.slots.free.is_empty());
    lab.slots.is_awaited = true;
    let mut came = Vec::new();
    for _ in 0..10 {
        // 100 000 B a second.
        came.extend(lab.deliver(&mut slow, &vec![7; LONG / 10]));
        came.extend(lab.pass(Nanos::from_millis(300)));
    }
    assert_eq!((came.len(), lab.socket.counted().stalled), (1, 0));
}

#[test]
fn only_the_named_are_taken_and_others_are_told_by_name() {
    let named =
        Allowed::Named(vec!["127.0.0.1".parse().expect("one"), "127.0.0.64/28".parse().expect("some")]);
    for endpoint in ["tcp://0.0.0.0:0", "tcp://[::]:0"] {
        let mut lab = PeerLab::at(endpoint, named.clone(), 1, 1 << 20);
        let _first = lab.ready(1);
        let _second = lab.ready(70);
        let mut strangers = [connected(9, lab.at), connected(9, lab.at), connected(80, lab.at)];
        for stranger in &mut strangers {
            stranger.write_all(&hello()).expect("the kernel takes it");
        }
        for stranger in &mut strangers {
            stranger.write_all(&whole()).expect("the kernel takes it");
        }
        lab.until("they are refused", |lab| lab.socket.counted().refused.connections == 3);
        assert!(lab.pass(Nanos::from_millis(1000)).is_empty(), "nothing of them is read");
        lab.socket.end_series(lab.now);
        assert!(lab.pass(Nanos::from_millis(1000)).is_empty());
        assert_eq!(lab.socket.counted().unheard.connections, 0);
        assert_eq!(lab.socket.counted().refused.addresses, [address(9), address(80)]);
        assert_eq!(lab.socket.counted().connected, 2);
    }
}

#[test]
fn while_a_series_is_recorded_others_wait_and_lose_nothing() {
    let mut lab = PeerLab::new(Allowed::First, 2);
    let mut detector = lab.ready(1);
    let mut early = lab.ready(3);
    let mut in_message = lab.ready(4);
    in_message.write_all(&message(10)).expect("it is taken");
    lab.until("its slot", |lab| lab.slots.free.len() == 1);
    detector.write_all(&whole()).expect("it is taken");
    let first = lab.next();
    lab.socket.begin_series(first.peer.expect("a socket delivered it"), 1);
    lab.slots.free.extend(first.apart.into_iter().flatten());
    // Peer 2 connects now and sends its greeting. Peer 3 had connected before, and sends its message now.
    let mut late = connected(2, lab.at);
    late.write_all(&hello()).expect("the kernel takes it");
    early.write_all(&whole()).expect("the kernel takes it");
    lab.until("all are told", |lab| lab.socket.counted().unheard.connections == 3);
    let mut told = lab.socket.counted().unheard.addresses;
    told.sort_unstable();
    assert_eq!(told, [address(2), address(3), address(4)]);
    assert!(is_closed(&mut in_message), "it held a slot");
    assert_eq!((lab.socket.counted().connected, lab.slots.free.len()), (1, 2));
    detector.write_all(&whole()).expect("it is taken");
    let second = lab.next();
    assert_eq!(second.peer.expect("a socket delivered it").address, address(1));
    lab.slots.free.extend(second.apart.into_iter().flatten());
    assert!(lab.pass(Nanos::from_millis(60_000)).is_empty(), "nobody else is heard");
    lab.socket.end_series(lab.now);
    late.write_all(&whole()).expect("the kernel takes it");
    let mut heard = [lab.next(), lab.next()].map(|message| {
        lab.slots.free.extend(message.apart.into_iter().flatten());
        message.peer.expect("a socket delivered it").address
    });
    heard.sort_unstable();
    assert_eq!(heard, [address(2), address(3)]);
}

#[test]
fn what_is_kept_of_messages_has_a_limit_for_each_and_for_all() {
    const MEMORY: usize = 1 << 20;
    let mut lab = PeerLab::with_memory(Allowed::Any, 1, MEMORY as u64);
    let begin =
        |length: usize| [zmtp::part_header(1, true), b"x".to_vec(), zmtp::part_header(length as u64, false)];
    // One alone gets no more than a half.
    let mut greedy = lab.ready(2);
    greedy.write_all(&begin(MEMORY).concat()).expect("it is taken");
    greedy.write_all(&vec![7; MEMORY]).expect("it is taken");
    lab.until("it is refused", |lab| lab.socket.counted().no_memory == 1);
    // Two halves, which never end.
    let mut holders = [lab.ready(3), lab.ready(4)];
    for holder in &mut holders {
        holder.write_all(&begin(MEMORY / 2 - 1).concat()).expect("it is taken");
        holder.write_all(&vec![7; MEMORY / 2 - 2]).expect("it is taken");
    }
    lab.pass(Nanos::from_millis(500));
    // A short message arrives all the same; a long one waits until the others have stood still for a second.
    let mut detector = lab.ready(1);
    for length in [60_000, 200_000] {
        detector.write_all(&begin(length).concat()).expect("it is taken");
        detector.write_all(&vec![7; length]).expect("it is taken");
        let message = lab.next();
        assert_eq!((message.length(), message.peer.expect("sent").address), (1 + length as u64, address(1)));
    }
    assert!(lab.socket.counted().stalled >= 1);
}

#[test]
fn ten_thousand_connections_that_come_and_go_keep_no_detector_out() {
    let mut lab = PeerLab::new(Allowed::Any, 1);
    for number in 0..10_000_u32 {
        let mut stranger = connected(2 + (number % 5) as u8, lab.at);
        if number % 3 == 0 {
            stranger.write_all(&hello()).expect("the kernel takes it");
        }
        drop(stranger);
        if number % 8 == 0 {
            lab.look();
        }
    }
    let mut detector = lab.ready(1);
    detector.write_all(&whole()).expect("it is taken");
    assert_eq!(lab.next().peer.expect("a socket delivered it").address, address(1));
}

#[test]
fn all_places_are_taken_and_the_detector_finds_one() {
    let mut lab = PeerLab::new(Allowed::Any, 1);
    // First from as many addresses as there are places, then from one address, which has its limit.
    let _many: Vec<_> = (0..ACCEPTED_MAX as u8).map(|number| connected(100 + number, lab.at)).collect();
    lab.pass(Nanos::from_millis(500));
    let mut detector = lab.ready(1);
    detector.write_all(&whole()).expect("it is taken");
    let first = lab.next();
    lab.socket.prove(first.peer.expect("a socket delivered it"));
    lab.slots.free.extend(first.apart.into_iter().flatten());
    assert!(lab.socket.counted().crowded > 0);
    let one: Vec<_> = (0..2 * OF_ADDRESS_MAX).map(|_| connected(1, lab.at)).collect();
    lab.pass(Nanos::from_millis(500));
    detector.write_all(&whole()).expect("it is taken");
    assert_eq!(lab.next().peer, first.peer, "one that sent of the series keeps its place");
    drop(one);
}

#[test]
fn the_next_recording_counts_anew() {
    let mut lab = PeerLab::new(Allowed::Named(vec![IpAddr::from([127, 0, 0, 9]).into()]), 2);
    let _stranger = connected(7, lab.at);
    lab.until("it is refused", |lab| lab.socket.counted().refused.connections == 1);
    let _sender = lab.ready(9);
    assert!(lab.socket.counted().bytes > 0);
    lab.socket.count_anew();
    let counted = lab.socket.counted();
    assert_eq!((counted.refused.connections, counted.bytes, counted.connected), (0, 0, 1));
}
