//! The receiver takes all messages of a sender, on any number of connections. A broken connection or a
//! message beyond the limits affects nothing else.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
};

use nilometer_fuzz::fuzz;
use nilometer_model::Nanos;
use nilometer_storage::{Arena, Buffer, Clock};
use nilometer_wire::{
    cbor::DataPlace,
    series::{ElementType, ImageTimes, Packing, SeriesMessage, SeriesName},
    stream2::{self, ImageChannel, MessagePiece},
    zmtp,
};

use super::{link::PullLink, looked::Looked, *};

/// Some slots, which must all come back.
struct Slots {
    free: Vec<Buffer>,
    /// Number of looks during which there is no slot.
    none_for: u32,
}

impl Slots {
    fn new(count: usize, size: usize) -> Self {
        Slots { free: Arena::shared_out(count, size).1, none_for: 0 }
    }

    fn take_back(&mut self, message: ZmqMessage) {
        self.free.extend(message.apart.into_iter().flatten());
    }
}

impl MessageRoom for Slots {
    fn room(&mut self, _: RoomRequest<'_>) -> RoomAnswer {
        if self.none_for > 0 {
            self.none_for -= 1;
            return RoomAnswer::Later;
        }
        self.free.pop().map_or(RoomAnswer::Later, RoomAnswer::Apart)
    }

    fn give_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }
}

const LOCAL: &str = "tcp://127.0.0.1:0";

fn bound_pull(limits: MessageLimits) -> (PullSocket, SocketAddr) {
    let socket =
        PullSocket::open(&[ZmqEndpoint::bind(LOCAL).expect("an address")], limits).expect("a free port");
    let address = socket.addresses().expect("it is bound")[0];
    (socket, address)
}

/// The next message; it comes sooner or later.
fn next(socket: &mut PullSocket, clock: Clock, room: &mut Slots) -> ZmqMessage {
    loop {
        let message =
            socket.receive(clock.now(), Nanos::from_millis(20), room).expect("the network is there");
        if let Some(message) = message {
            return message;
        }
    }
}

/// Looks until something holds.
fn until(socket: &mut PullSocket, clock: Clock, room: &mut Slots, holds: impl Fn(&ZmqCounts) -> bool) {
    while !holds(&socket.counted()) {
        let came = socket.receive(clock.now(), Nanos::from_millis(20), room).expect("the network is there");
        if let Some(message) = came {
            room.take_back(message);
        }
    }
}

fn image(number: u64, pixels: &[u8]) -> Vec<Vec<u8>> {
    let channel = ImageChannel {
        name: "a",
        shape: &[1, pixels.len() as u64],
        element: ElementType::Uint8,
        packing: Packing::Plain,
        bytes: pixels,
    };
    let pieces = stream2::encode_image(&SeriesName::default(), number, &ImageTimes::default(), &[channel]);
    pieces.expect("it has a word").iter().map(|piece| MessagePiece::bytes(piece).to_vec()).collect()
}

fn pixels_of(message: &ZmqMessage) -> (u64, Vec<u8>, bool) {
    let Ok(SeriesMessage::Image(image)) = stream2::decode(message.parts()[0]) else { panic!("an image") };
    let place = &image.channels[0].array.place;
    let bytes = message.bytes(place).expect("they are there").to_vec();
    (image.image, bytes, matches!(place, DataPlace::Apart { .. }))
}

#[test]
fn messages_of_every_length_arrive_and_what_is_long_lies_apart() {
    let lengths = [0, 1, 200, 4095, 4096, 5000, 8191, 8192, 8193, 70_000, 1_000_003];
    let pixels =
        move |number: usize| -> Vec<u8> { (0..lengths[number]).map(|at| (at * 7 + number) as u8).collect() };
    let (mut pull, address) = bound_pull(MessageLimits::default());
    let sender = thread::spawn(move || {
        let mut push = PushSocket::open(ZmqEndpoint::Connect(address)).expect("it is there");
        for number in 0..lengths.len() {
            let pieces = image(number as u64, &pixels(number));
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            assert!(push.send(&[&pieces], 200).expect("it is sent"));
            // And one of three parts, the last of which is long.
            let long = vec![number as u8; 9000];
            assert!(push.send(&[&[b"{}"], &[b"", b"two"], &[&long]], 200).expect("it is sent"));
        }
    });
    let clock = Clock::start();
    let mut room = Slots::new(2, 1_000_003);
    room.none_for = 3;
    for (number, length) in lengths.into_iter().enumerate() {
        let message = next(&mut pull, clock, &mut room);
        let apart = length >= LONG_BYTES as usize;
        assert!(pixels_of(&message) == (number as u64, pixels(number), apart), "{length} B");
        room.take_back(message);
        let message = next(&mut pull, clock, &mut room);
        assert_eq!((message.parts().len(), message.length()), (3, 9005));
        let parts: Vec<_> = message.parts().iter().map(|part| part.bytes.to_vec()).collect();
        assert_eq!(parts, [&b"{}"[..], b"two", b""]);
        let place = DataPlace::Apart { cut: 0, length: 9000 };
        assert_eq!(message.bytes(&place), Some(&vec![number as u8; 9000][..]));
        room.take_back(message);
    }
    sender.join().expect("it ended well");
    assert_eq!(room.free.len(), 2);
    let counted = pull.counted();
    assert_eq!((counted.messages, counted.too_large, counted.cut_off), (22, 0, 0));
}

#[test]
fn one_end_connects_to_several_that_wait_and_again_when_they_come_back() {
    let clock = Clock::start();
    let mut room = Slots::new(4, 10_000);
    let ends: Vec<_> = (0..2).map(|_| bound_push()).collect();
    let addresses: Vec<_> = ends.iter().map(|end| end.address().expect("it is bound")).collect();
    let endpoints: Vec<_> = addresses.iter().copied().map(ZmqEndpoint::Connect).collect();
    let mut pull = PullSocket::open(&endpoints, MessageLimits::default()).expect("nothing to fail");
    let senders: Vec<_> = ends.into_iter().map(|end| sending(end, 20)).collect();
    let mut numbers: Vec<u64> = (0..40)
        .map(|_| {
            let message = next(&mut pull, clock, &mut room);
            let number = pixels_of(&message).0;
            room.take_back(message);
            number
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq((0..20).flat_map(|number| [number; 2])));
    for sender in senders {
        sender.join().expect("it ended well");
    }
    until(&mut pull, clock, &mut room, |counted| counted.ended == 2);
    // One of them comes back at its address.
    let end = PushSocket::open(ZmqEndpoint::Bind(addresses[0])).expect("it is free again");
    let sender = sending(end, 1);
    let message = next(&mut pull, clock, &mut room);
    assert_eq!(pixels_of(&message).0, 0);
    sender.join().expect("it ended well");
}

fn bound_push() -> PushSocket {
    PushSocket::open(ZmqEndpoint::bind(LOCAL).expect("an address")).expect("a free port")
}

/// Sends images until the kernel has taken all of their bytes.
fn sending(mut end: PushSocket, images: u64) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for number in 0..images {
            let pieces = image(number, &[number as u8; 9999]);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            assert!(end.send(&[&pieces], 400).expect("it is sent"));
        }
    })
}

#[test]
fn one_that_takes_nothing_holds_up_no_other_and_gives_its_message_back() {
    const LARGE: usize = 64 << 20;
    let clock = Clock::start();
    let mut end = bound_push();
    let at = end.address().expect("it is bound");
    // It takes part of a message that no kernel holds as a whole, and reads nothing of it.
    let stalled = taking(at);
    while end.connected() == 0 {
        end.tend().expect("the network is there");
    }
    let message =
        |tag, length| OutgoingMessage::new(tag, vec![vec![OutgoingPiece::Made(vec![tag as u8; length])]]);
    assert!(end.offer(message(1, LARGE)).expect("the network is there").is_none());
    assert!(end.offer(message(2, 5)).expect("the network is there").is_some(), "one at a time on each");
    let mut pull =
        PullSocket::open(&[ZmqEndpoint::Connect(at)], MessageLimits::default()).expect("nothing to fail");
    let mut room = Slots::new(1, LARGE);
    while end.connected() < 2 {
        end.tend().expect("the network is there");
        assert!(pull.receive(clock.now(), Nanos::from_millis(1), &mut room).expect("the network").is_none());
    }
    let mut waiting: VecDeque<_> = (2..9).map(|tag| message(tag, 5)).collect();
    let mut came = Vec::new();
    let mut sent = Vec::new();
    let mut stalled = Some(stalled);
    while came.len() < 8 {
        end.tend().expect("the network is there");
        if let Some(message) = waiting.pop_front() {
            waiting.extend(end.offer(message).expect("the network is there"));
        }
        sent.extend(end.take_sent().iter().map(|message| message.tag));
        let message = pull.receive(clock.now(), Nanos::from_millis(1), &mut room).expect("the network");
        came.extend(message.map(|message| message.length()));
        if came.len() == 7 && stalled.is_some() {
            assert!(end.under_way() == 1, "it waits for as long as the other end is there");
            drop(stalled.take());
        }
    }
    came.sort_unstable();
    sent.extend(end.take_sent().iter().map(|message| message.tag));
    sent.sort_unstable();
    assert_eq!((came.last(), sent), (Some(&(LARGE as u64)), (1..9).collect()));
    assert!(end.bytes() > LARGE as u64 && end.under_way() == 0);
}

/// A connection that says it takes messages, and was answered.
fn taking(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it is there");
    stream.write_all(&zmtp::greeting()).expect("it is taken");
    stream.write_all(&zmtp::ready(zmtp::ZmtpSocket::Pull)).expect("it is taken");
    stream
}

/// A connection whose bytes are made by hand.
fn raw(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it is there");
    stream.write_all(&zmtp::greeting()).expect("it is taken");
    stream.write_all(&zmtp::ready(zmtp::ZmtpSocket::Push)).expect("it is taken");
    stream
}

#[test]
fn what_is_beyond_the_limits_or_broken_costs_itself() {
    let clock = Clock::start();
    let mut room = Slots::new(2, 10_000);
    let (mut pull, address) =
        bound_pull(MessageLimits { bytes: 20_000, parts: 3, ..MessageLimits::default() });
    let small = image(7, &[7; 9999]).concat();
    let frame = |bytes: &[u8]| [zmtp::part_header(bytes.len() as u64, false), bytes.to_vec()].concat();
    let mut stream = raw(address);
    // Too long, from the middle of a message that has a slot already; too many parts; then one that is well.
    stream.write_all(&zmtp::part_header(small.len() as u64, true)).expect("it is taken");
    stream.write_all(&small).expect("it is taken");
    stream.write_all(&frame(&vec![0; 30_000])).expect("it is taken");
    for more in [true, true, true, false] {
        stream.write_all(&zmtp::part_header(1, more)).expect("it is taken");
        stream.write_all(b"x").expect("it is taken");
    }
    stream.write_all(&frame(&small)).expect("it is taken");
    let message = next(&mut pull, clock, &mut room);
    assert_eq!(pixels_of(&message), (7, vec![7; 9999], true));
    room.take_back(message);
    assert_eq!((pull.counted().too_large, pull.counted().messages), (2, 1));
    // A string of more than there is in its message, with another slot's worth of bytes: no slot is taken for it.
    let lies = [&b"\xa1\x64type\x65image\x5b\xff\xff\xff\xff\xff\xff\xff\xff"[..], &[0; 100]].concat();
    stream.write_all(&frame(&lies)).expect("it is taken");
    let message = next(&mut pull, clock, &mut room);
    assert!(stream2::decode(message.parts()[0]).is_err() && message.apart.is_empty());
    // It ends in the middle of pixels: the slot comes back.
    stream.write_all(&frame(&small)[..6000]).expect("it is taken");
    // Dropping the stream would reset the connection, because it left bytes unread.
    stream.shutdown(Shutdown::Write).expect("it is open");
    until(&mut pull, clock, &mut room, |counted| counted.cut_off == 1);
    assert_eq!(room.free.len(), 2);
    // Others than those that send messages.
    for (bytes, fault) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "does not speak ZMTP"),
        ([&zmtp::greeting()[..], &zmtp::ready(zmtp::ZmtpSocket::Pull)].concat(), "it must be PUSH"),
    ] {
        let mut stream = TcpStream::connect(address).expect("it is there");
        stream.write_all(&bytes).expect("it is taken");
        until(&mut pull, clock, &mut room, |counted| {
            counted.fault.as_ref().is_some_and(|said| said.contains(fault))
        });
    }
    let mut stream = raw(address);
    stream.write_all(&zmtp::part_header(u64::MAX, false)).expect("it is taken");
    until(&mut pull, clock, &mut room, |counted| {
        counted.fault.as_ref().is_some_and(|said| said.contains("a message of 18446744073709551615 B"))
    });
    // A handshake that never ends is given up: told a time that is far on.
    let _silent = TcpStream::connect(address).expect("it is there");
    until(&mut pull, clock, &mut room, |counted| counted.connected == 0);
    let mut now = clock.now();
    while !pull.counted().fault.is_some_and(|fault| fault.contains("no handshake")) {
        now += Nanos::from_millis(1000);
        pull.receive(now, Nanos::from_millis(1), &mut room).expect("the network is there");
    }
}

#[test]
fn addresses_are_those_of_zeromq() {
    let said = |text| ZmqEndpoint::connect(text).map(|endpoint| endpoint.to_string());
    assert_eq!(said("tcp://127.0.0.1:31001").expect("valid"), "tcp://127.0.0.1:31001");
    for wrong in ["127.0.0.1:31001", "tcp://127.0.0.1", "ipc://x:1", "udp://127.0.0.1:1"] {
        let error = said(wrong).expect_err("it is refused").to_string();
        assert!(error.contains("write it as tcp://detector:31001"), "{error}");
    }
    assert_eq!(ZmqEndpoint::bind("tcp://*:5").expect("valid").to_string(), "tcp://0.0.0.0:5");
}

/// A connection in memory, on which bytes come in pieces, with nothing there after every other one.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    waits: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.waits = !self.waits;
        if self.waits && !self.rest.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let piece = self.sizes.next().expect("no end").min(&into.len()).min(&self.rest.len()).to_owned();
        let (came, rest) = self.rest.split_at(piece);
        into[..piece].copy_from_slice(came);
        self.rest = rest;
        Ok(piece)
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of these bytes: the parts of each message, with strings that lie apart in their place, and the
/// final error.
fn comes_of(bytes: &[u8], pieces: &[usize]) -> (Vec<Vec<Vec<u8>>>, String) {
    let limits = MessageLimits { bytes: 60_000, parts: 4, ..MessageLimits::default() };
    let stream = Pieces { rest: bytes, sizes: pieces.iter().cycle(), waits: false };
    let mut link = PullLink::new(stream, limits, Nanos(0));
    let mut room = Slots::new(6, 20_000);
    let mut messages = Vec::new();
    let why = loop {
        match link.look(&mut room) {
            Ok(Looked::Came(message)) => {
                messages.push(joined(&message));
                if let Err(error) = stream2::decode(message.parts()[0]) {
                    assert!(!error.to_string().is_empty());
                }
                room.take_back(message);
            }
            Ok(Looked::Nothing | Looked::More | Looked::Refused(_)) => {}
            // All slots are in the one message: its strings are many.
            Ok(Looked::Full) => break "full".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    link.give_up(&mut room);
    assert_eq!(room.free.len(), 6, "slots come back");
    (messages, why)
}

/// The parts of a message as they were sent, without strings for which no slot was long enough.
fn joined(message: &ZmqMessage) -> Vec<Vec<u8>> {
    let mut apart = message.apart.iter();
    let mut parts = Vec::new();
    for part in message.parts() {
        let mut whole = Vec::new();
        let mut done = 0;
        for cut in part.cuts {
            whole.extend_from_slice(&part.bytes[done..cut.at]);
            let string = apart.next().expect("one for each").as_ref();
            whole.extend_from_slice(string.map_or(&[][..], |string| &string[..cut.length]));
            done = cut.at;
        }
        whole.extend_from_slice(&part.bytes[done..]);
        parts.push(whole);
    }
    parts
}

#[test]
fn any_bytes_of_a_connection_are_taken_or_refused_in_whatever_pieces_they_come() {
    let begin = [&zmtp::greeting()[..], &zmtp::ready(zmtp::ZmtpSocket::Push)].concat();
    let with = |parts: &[&[u8]]| {
        let mut bytes = begin.clone();
        for (number, part) in parts.iter().enumerate() {
            bytes.extend(zmtp::part_header(part.len() as u64, number + 1 < parts.len()));
            bytes.extend_from_slice(part);
        }
        bytes
    };
    let image = image(3, &[9; 5000]).concat();
    let two = [&image[..], &image].concat();
    let sent = with(&[&image]);
    assert_eq!(comes_of(&sent, &[100]).0, [[image.clone()]]);
    assert_eq!(comes_of(&with(&[&two]), &[3, 7000]).0, [[two.clone()]]);
    let corpus =
        vec![sent, with(&[&two]), with(&[b"{}", b"[1]", &[7; 6000], b"{}"]), with(&[&vec![0; 70_000]])];
    fuzz("zeromq", corpus, |input| {
        let whole = comes_of(input, &[usize::MAX]);
        assert!(comes_of(input, &[1000, 1, 30, 5000, 8]) == whole, "it depends on the pieces");
    });
}
