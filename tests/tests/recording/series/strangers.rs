//! Strangers at a recorder that waits for its detector (`--listen tcp://`): they keep no slot, no memory and no place from it, and
//! are recorded in its place by no means.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
};

use nilometer_tests::{Ended, Running, address, await_some, free_port, run, start, status};
use nilometer_wire::{
    series::{ElementType, ImageTimes, Packing, SeriesName, SeriesStart},
    stream1,
    stream2::{self, ImageChannel, MessagePiece},
    zmtp::{self, ZmtpSocket},
};
use rustix::net::{AddressFamily, SocketType};

use crate::series::{
    detector::{Detector, IMAGES},
    lab::{LIMIT, SeriesLab},
};

const ROWS: u64 = 512;
const COLUMNS: u64 = 512;

/// A sender whose bytes the test makes, by version 1 or 2 of the stream.
struct RawSender {
    stream: TcpStream,
    version: u8,
    series: SeriesName,
}

impl RawSender {
    /// From the loopback address that ends so. The recorder may not listen yet.
    fn connect(last: u8, port: u16) -> Self {
        let stream = await_some("the recorder", || connected(last, port));
        stream.set_nodelay(true).expect("it is open");
        let mut sender = RawSender { stream, version: 2, series: series(1) };
        sender.write(&[&zmtp::greeting()[..], &zmtp::ready(ZmtpSocket::Push)].concat());
        sender
    }

    /// Waits until the recorder said what it is, as senders of ZeroMQ do. Whether it did.
    fn is_answered(&mut self) -> bool {
        let mut said = [0; zmtp::GREETING_BYTES];
        self.stream.set_read_timeout(Some(LIMIT)).expect("a time");
        self.stream.read_exact(&mut said).is_ok()
    }

    /// The recorder may have closed it.
    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap_or_default();
    }

    fn send(&mut self, parts: &[Vec<u8>]) {
        for (number, part) in parts.iter().enumerate() {
            self.write(&zmtp::part_header(part.len() as u64, number + 1 < parts.len()));
            self.write(part);
        }
    }

    fn start(&mut self, images: u64) {
        let start = SeriesStart {
            series: self.series.clone(),
            images,
            shape: vec![ROWS, COLUMNS],
            element: ElementType::Uint16,
            channels: vec![stream1::CHANNEL.to_owned()],
            fields: Vec::new(),
        };
        let parts = match self.version {
            1 => stream1::encode_header(&start),
            _ => stream2::encode_start(&start).map(|whole| vec![whole]),
        };
        self.send(&parts.expect("it can be said"));
    }

    /// The parts of an image.
    fn image(&self, image: u64) -> Vec<Vec<u8>> {
        let pixels = vec![1 + image as u8; (ROWS * COLUMNS * 2) as usize];
        let channel = ImageChannel {
            name: stream1::CHANNEL,
            shape: &[ROWS, COLUMNS],
            element: ElementType::Uint16,
            packing: Packing::Plain,
            bytes: &pixels,
        };
        let times = ImageTimes::default();
        if self.version == 1 {
            let hash = stream1::hash_of(&pixels);
            let parts = stream1::encode_image(&self.series, image, &times, &channel, &hash);
            return parts.expect("it can be said").iter().map(|part| part.bytes().to_vec()).collect();
        }
        let pieces = stream2::encode_image(&self.series, image, &times, &[channel]);
        vec![pieces.expect("it can be said").iter().flat_map(MessagePiece::bytes).copied().collect()]
    }

    fn send_image(&mut self, image: u64) {
        let parts = self.image(image);
        self.send(&parts);
    }

    /// An image of which the pixels begin, and do not end.
    fn begin_image(&mut self, image: u64) {
        let parts = self.image(image);
        let longest = parts.iter().position(|part| part.len() > 4096).expect("pixels");
        for part in &parts[..longest] {
            self.write(&zmtp::part_header(part.len() as u64, true));
            self.write(part);
        }
        self.write(&zmtp::part_header(parts[longest].len() as u64, self.version == 1));
        self.write(&parts[longest][..1000]);
    }

    fn end(&mut self) {
        let end = if self.version == 1 {
            stream1::encode_end(&self.series)
        } else {
            stream2::encode_end(&self.series)
        };
        self.send(&[end]);
    }
}

fn series(number: u64) -> SeriesName {
    SeriesName { number, unique: format!("series {number}") }
}

fn connected(last: u8, port: u16) -> Option<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    let from = SocketAddr::new(IpAddr::from([127, 0, 0, last]), 0);
    rustix::net::bind(&socket, &from).ok()?;
    rustix::net::connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).ok()?;
    Some(TcpStream::from(socket))
}

/// A recorder that waits at a port of this machine, with these options.
fn recorder(lab: &SeriesLab, options: &[&str]) -> (Running, u16) {
    let port = free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let arguments = [
        &["record", "--listen", &at, "--to", "to", "--name", "scan", "--reserve", "0 B"][..],
        // Some thirty images, which come as they are stored.
        &["--buffer", "16 MiB", "--compression", "none"],
        options,
    ];
    let mut running = start(lab.home.path(), &arguments.concat());
    running.await_said("waiting for a series");
    (running, port)
}

/// The recording has so many frames, all of them right.
fn is_whole(lab: &SeriesLab, frames: usize) {
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(lab.acknowledged().len(), frames, "{verified:?}");
}

/// Sixty strangers, half of whom know the name of the series, each with an image that never ends, before and while 200 images of
/// the detector come.
fn strangers_keep_no_slot(version: u8, from: &[u8], options: &[&str]) -> Ended {
    let lab = SeriesLab::new();
    let (running, port) = recorder(&lab, options);
    let mut strangers = Vec::new();
    let mut add = |count: u8| {
        for number in 0..count {
            let mut stranger = RawSender::connect(from[usize::from(number) % from.len()], port);
            stranger.version = version;
            stranger.series = series(1 + u64::from(number % 2));
            stranger.begin_image(u64::from(number));
            strangers.push(stranger);
        }
    };
    add(30);
    let mut detector = RawSender::connect(1, port);
    detector.version = version;
    detector.start(200);
    (0..100).for_each(|image| detector.send_image(image));
    add(30);
    (100..200).for_each(|image| detector.send_image(image));
    detector.end();
    let ended = running.end(LIMIT);
    is_whole(&lab, 200);
    ended
}

#[test]
fn images_that_strangers_begin_and_never_end_keep_no_slot_from_the_detector() {
    // As other processes of the detector's machine; as other machines, which are named too; and with version 1.
    for (version, from, options) in [
        (2, &[1][..], &[][..]),
        (2, &[2, 3, 4], &["--allow", "127.0.0.0/29"]),
        (1, &[1, 2], &["--allow", "any"]),
    ] {
        let ended = strangers_keep_no_slot(version, from, options);
        assert_eq!(ended.code, Some(0), "{version} {from:?}: {ended:?}");
    }
}

#[test]
fn the_series_of_a_stranger_is_not_recorded_if_the_detector_is_named() {
    let lab = SeriesLab::new();
    let (running, port) = recorder(&lab, &["--allow", "127.0.0.1"]);
    let mut stranger = RawSender::connect(9, port);
    stranger.start(1);
    stranger.send_image(0);
    let mut detector = RawSender::connect(1, port);
    detector.start(50);
    (0..50).for_each(|image| detector.send_image(image));
    detector.end();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("refused sender 127.0.0.9: "), "{ended:?}");
    assert!(ended.stderr.contains("it comes from 127.0.0.1"), "{ended:?}");
    let told = "connections refused: 1 not allowed; not heard: 127.0.0.9";
    assert!(ended.stdout.contains(told), "{ended:?}");
    is_whole(&lab, 50);
}

#[test]
fn while_a_series_is_recorded_another_address_is_not_heard_and_told() {
    let lab = SeriesLab::new();
    let (running, port) = recorder(&lab, &["--http", "127.0.0.1:0"]);
    let mut early = RawSender::connect(8, port);
    assert!(early.is_answered(), "everybody may begin");
    let mut detector = RawSender::connect(1, port);
    detector.start(20);
    (0..10).for_each(|image| detector.send_image(image));
    let http = address(&running, "http");
    await_some("ten frames", || (status(http)["recording"]["received_packets"] == 10).then_some(()));
    // One that was connected before, and one that connects now, send a series and images of it, and of the one that is recorded.
    let mut late = RawSender::connect(9, port);
    for stranger in [&mut early, &mut late] {
        // Nobody reads it: what the kernel does not take is not sent.
        stranger.stream.set_nonblocking(true).expect("it is open");
        stranger.series = series(66);
        stranger.start(1);
        stranger.send_image(0);
        stranger.end();
        stranger.series = series(1);
        (0..20).for_each(|image| stranger.send_image(image));
    }
    let told = await_some("both are told", || {
        let recording = status(http)["recording"].clone();
        (recording["refused_peers"].as_array()?.len() == 2).then_some(recording)
    });
    assert_eq!(
        told["refused_connections"][1],
        serde_json::json!(["beside the sender of the series", 2]),
        "{told}"
    );
    let (_, page) = nilometer_tests::ask(http, "GET", "/metrics", "");
    let line = "nilometer_refused_connections_total{reason=\"beside the sender of the series\"} 2\n";
    assert!(page.contains(line), "{page}");
    (10..20).for_each(|image| detector.send_image(image));
    detector.end();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "somebody else wanted to be recorded: {ended:?}");
    assert!(
        ended.stderr.contains("127.0.0.8, 127.0.0.9 that wanted to send")
            || ended.stderr.contains("127.0.0.9, 127.0.0.8 that wanted to send"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("name all senders with --allow"), "{ended:?}");
    is_whole(&lab, 20);
    let found = lab.acknowledged();
    assert!(found.into_iter().eq(0..20));
}

#[test]
fn a_start_from_another_address_does_not_end_the_series() {
    let lab = SeriesLab::new();
    let (running, port) = recorder(&lab, &["--allow", "any", "--http", "127.0.0.1:0"]);
    let mut detector = RawSender::connect(1, port);
    detector.start(20);
    (0..10).for_each(|image| detector.send_image(image));
    let http = address(&running, "http");
    let mut other = RawSender::connect(9, port);
    other.series = series(66);
    other.start(3);
    (0..3).for_each(|image| other.send_image(image));
    let is_counted = |counts: &serde_json::Value| {
        let counts = counts.as_array().into_iter().flatten();
        counts.filter(|count| count[0] == "of another series").any(|count| count[1] == 4)
    };
    await_some("its messages are refused", || {
        is_counted(&status(http)["recording"]["ignored_packets"]).then_some(())
    });
    (10..20).for_each(|image| detector.send_image(image));
    detector.end();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "images of somebody came and are not recorded: {ended:?}");
    assert!(ended.stdout.contains("20 frames announced, complete"), "{ended:?}");
    is_whole(&lab, 20);
}

/// Bytes of memory that a process has.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says so");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") * 1024
}

#[test]
fn what_strangers_send_beside_pixels_does_not_fill_the_memory() {
    let lab = SeriesLab::new();
    let (running, port) = recorder(&lab, &["--http", "127.0.0.1:0"]);
    let worker = running.worker().as_raw_nonzero().get().unsigned_abs();
    let before = resident(worker);
    let length: u64 = 900 << 20;
    let mut begin = b"\xa1\x64junk\x5a".to_vec();
    begin.extend((length as u32).to_be_bytes());
    let mut strangers: Vec<_> = (0..8)
        .map(|_| {
            let mut stranger = RawSender::connect(1, port);
            stranger.write(&zmtp::part_header(begin.len() as u64 + length, false));
            stranger.write(&begin);
            stranger
        })
        .collect();
    let piece = vec![0; 1 << 20];
    for _ in 0..100 {
        for stranger in &mut strangers {
            stranger.write(&piece);
        }
    }
    let more = resident(worker).saturating_sub(before);
    assert!(more < 200 << 20, "{more} B more for 800 MB that were sent");
    // The detector is heard, and strangers who go on are no harm to it.
    let mut detector = RawSender::connect(1, port);
    detector.start(30);
    (0..30).for_each(|image| detector.send_image(image));
    detector.end();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("8 without memory for data other than pixels"), "{ended:?}");
    is_whole(&lab, 30);
}

#[test]
fn values_of_senders_who_are_not_named_are_not_joined() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let port = free_port();
    let values = format!("tcp://*:{port}");
    let arguments = ["record", "--from", &detector.at, "--to", "to", "--name", "scan", "--reserve", "0 B"];
    let options = ["--metadata", &values, "--allow", "127.0.0.1", "--buffer", "64 MiB"];
    let mut running = start(lab.home.path(), &[&arguments[..], &options].concat());
    running.await_said("waiting for a series");
    let mut stranger = RawSender::connect(9, port);
    stranger.send(&[b"{\"frame\": 3, \"angle\": 99}".to_vec()]);
    let mut sender = RawSender::connect(1, port);
    assert!(sender.is_answered());
    sender.send(&[b"{\"frame\": 3, \"angle\": 1.5}".to_vec()]);
    detector.begin(Vec::new());
    (0..IMAGES).for_each(|image| detector.send(image));
    detector.end();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "1 values of angle; not heard: 1 connection from 127.0.0.9; name all senders with --allow";
    assert!(ended.stdout.contains(told), "{ended:?}");
}

#[test]
fn an_allow_list_that_makes_no_sense_is_refused_before_anything_begins() {
    let lab = SeriesLab::new();
    let listen = ["--listen", "tcp://127.0.0.1:1"];
    for (options, why) in [
        ([&listen[..], &["--allow", "10.0.0.5/24"]].concat(), "write 10.0.0.0/24"),
        ([&listen[..], &["--allow", "detector"]].concat(), "write an address or a network"),
        ([&listen[..], &["--allow", "any", "--allow", "10.0.0.2"]].concat(), "name no other beside it"),
        (vec!["--from", "tcp://127.0.0.1:1", "--allow", "127.0.0.1"], "this recorder connects to others"),
    ] {
        let arguments = [&["record", "--to", "to", "--name", "scan"], &options[..]].concat();
        let ended = start(lab.home.path(), &arguments).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{options:?}: {ended:?}");
    }
    assert_eq!(fs::read_dir(lab.home.path().join("to")).expect("it is there").count(), 0);
}
