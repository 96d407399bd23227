//! `nilometer simulate --to udp://...`: what arrives is what the program says it sent, and what can't be sent is refused.

use std::{
    collections::BTreeSet,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nilometer_tests::{Ended, run};
use nilometer_wire::vdif::VdifHeader;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

const PACKET: usize = 8040;

/// Port and bytes of each packet that came.
type Packets = Vec<(u16, Vec<u8>)>;

/// A thread that receives what comes to an address.
struct Receiving {
    to: String,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Packets>,
}

impl Receiving {
    fn begin() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let to = format!("udp://{}", socket.local_addr().expect("it is bound"));
        // Room for all that comes, as far as this user may have it: a busy machine may leave the receiver without a processor.
        let room = 64 << 20;
        set_socket_recv_buffer_size_force(&socket, room)
            .or_else(|_| set_socket_recv_buffer_size(&socket, room))
            .expect("less than was asked is given");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("above zero");
        let over = Arc::new(AtomicBool::new(false));
        let was_sent = over.clone();
        let thread = thread::spawn(move || receive(&socket, &was_sent));
        Receiving { to, over, thread }
    }

    /// All that came. Call it when all was sent.
    fn end(self) -> Packets {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

/// Receives until all was sent and a look after that finds nothing.
fn receive(socket: &UdpSocket, was_sent: &AtomicBool) -> Packets {
    let (mut bytes, mut packets) = (vec![0; 10_000], Vec::new());
    loop {
        let is_last = was_sent.load(Ordering::Relaxed);
        match socket.recv_from(&mut bytes) {
            Ok((length, from)) => packets.push((from.port(), bytes[..length].to_vec())),
            Err(_) if is_last => return packets,
            Err(_) => {}
        }
    }
}

/// The number at the beginning of the line that begins with this word.
fn told(ended: &Ended, word: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(word));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no `{word}` in {ended:?}"))
}

fn simulate(to: &str, rest: &[&str]) -> Ended {
    run(&[&["simulate", "fila10g-512m", "--to", to], rest].concat())
}

#[test]
fn what_arrives_is_what_was_told() {
    let receiving = Receiving::begin();
    // Slow enough for a receiver with the system's own room.
    let faults =
        ["--rate", "32 Mbit/s", "--packets", "1000", "--seed", "5", "--loss", "2 %", "--loss-burst", "3"];
    let more = ["--reorder", "2 %", "--reorder-distance", "4", "--duplicate", "2 %", "--odd", "2 %"];
    let beside = ["--foreign", "3 %", "--restart-after", "400", "--stations", "Ef,Mc", "--threads", "0,1"];
    let ended = simulate(&receiving.to, &[&faults[..], &more, &beside].concat());
    assert!(ended.has_sent_all(), "{ended:?}");
    let packets = receiving.end();
    assert_eq!(told(&ended, "sent"), packets.len() as u64);

    let home = packets[0].0;
    let odd = packets.iter().filter(|(_, bytes)| bytes.len() != PACKET).count() as u64;
    assert_eq!((odd > 0, told(&ended, "odd-sized")), (true, odd));
    let whole = packets.iter().filter(|(_, bytes)| bytes.len() == PACKET);
    // Random bytes are no header that is as long as the packet.
    let header = |bytes: &[u8]| VdifHeader::parse(&bytes[8..40]).filter(|header| header.length == PACKET - 8);
    let (ours, foreign): (Vec<_>, Vec<_>) = whole.partition(|(_, bytes)| header(bytes).is_some());
    assert_eq!(told(&ended, "foreign"), foreign.len() as u64);
    assert!(foreign.iter().any(|(port, _)| *port != home) && ours.iter().all(|(port, _)| *port == home));

    let first = header(&ours[0].1).expect("it is ours").since_2000();
    let (mut seen, mut copies, mut above, mut overtaken) = (BTreeSet::new(), 0, 0, 0);
    for (_, bytes) in &ours {
        let header = header(bytes).expect("it is ours");
        let station = u64::from(header.station == u16::from_be_bytes(*b"Mc"));
        // 125 frames a second of each of four.
        let frame = (header.since_2000() - first) * 125 + u64::from(header.frame);
        let number = frame * 4 + station * 2 + u64::from(header.thread);
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().expect("eight")), number % 400, "{header:?}");
        let again = !seen.insert(number);
        copies += u64::from(again);
        overtaken += u64::from(!again && number < above);
        above = above.max(number + 1);
    }
    assert_eq!((told(&ended, "duplicated"), told(&ended, "reordered")), (copies, overtaken));
    assert_eq!(told(&ended, "lost"), 1000 - seen.len() as u64 - odd);
    assert_eq!(told(&ended, "restarts"), 2);
}

#[test]
fn the_same_seed_sends_the_same_packets() {
    let sent = || {
        let receiving = Receiving::begin();
        let options = ["--rate", "32 Mbit/s", "--packets", "100", "--seed", "9", "--loss", "10 %"];
        let ended = simulate(&receiving.to, &options);
        assert!(ended.has_sent_all(), "{ended:?}");
        let packets = receiving.end();
        packets.into_iter().map(|(_, bytes)| (bytes[..8].to_vec(), bytes[40..].to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(sent(), sent());
}

#[test]
fn what_can_t_be_sent_is_refused_with_what_can() {
    let to = "udp://127.0.0.1:46227";
    for (to, rest, parts) in [
        ("udp://127.0.0.1", &[][..], &["udp://HOST:PORT"][..]),
        ("tcp://127.0.0.1:5", &[], &["rows and columns"]),
        (to, &["--to", "/tmp"], &["one address and no directory"]),
        (to, &["--buffer", "1 GiB"], &["--buffer", "--to DIRECTORY"]),
        ("/tmp", &["--loss", "1 %"], &["--loss", "udp://HOST:PORT"]),
        (to, &["--rate", "3 Mbit/s"], &["whole number"]),
        (to, &["--threads", "1024"], &["1024", "0 to 1023"]),
        (to, &["--threads", "1,1"], &["1 twice"]),
        (to, &["--frames", "0"], &["--frames 0"]),
        (to, &["--foreign", "20000 %"], &["--foreign", "10000 %"]),
        (to, &["--interface", "no-such-one"], &["no-such-one"]),
        ("udp://127.0.0.1:65535", &["--streams", "2"], &["65535", "65536"]),
    ] {
        let ended = simulate(to, rest);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{to} {rest:?}: {ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
        }
    }
    let camera = run(&["simulate", "pco-edge", "--to", to]);
    assert_eq!(camera.code, Some(2), "{camera:?}");
    assert!(camera.stderr.contains("pco-edge does not say how its frames come"), "{camera:?}");
}
