//! Packets with a described header: those of the catalogue, and some that this file makes by hand.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nilometer_intake::transport::faults::Faults;
use nilometer_model::{
    Instrument, Seed,
    packets::{KeptHeader, NumberedPackets, PacketFormat},
};
use nilometer_tests::{
    Ended, Running, address, await_packets, free_port, not_sent, python, root, run, start,
};
use rustix::process::Signal;
use tempfile::TempDir;

use super::lab::LIMIT;

/// A recorder of packets with a description, in a directory of its own.
struct Described {
    directory: TempDir,
    instrument: Instrument,
    port: u16,
}

/// A row of exported headers.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    frame: u64,
    came: bool,
    values: Vec<u64>,
}

impl Described {
    /// An instrument of the catalogue with one stream at a free port, slow enough for any machine.
    fn catalogued(name: &str) -> Self {
        let shown = run(&["instrument", "show", name, "--toml"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let changed = shown.stdout.lines().map(|line| match line.split_once(" = ") {
            Some(("frame_rate", _)) => "frame_rate = \"4 kHz\"",
            Some(("streams", _)) => "",
            _ => line,
        });
        Described::of(&changed.collect::<Vec<_>>().join("\n"))
    }

    /// An instrument with this description, at a free port.
    fn of(text: &str) -> Self {
        let port = free_port();
        let at_port = text
            .lines()
            .map(|line| if line.starts_with("port = ") { format!("port = {port}") } else { line.to_owned() });
        let text = at_port.collect::<Vec<_>>().join("\n");
        let instrument = Instrument::parse(&text, "it.toml").unwrap_or_else(|error| panic!("{error}"));
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("it.toml"), text).expect("space");
        Described { directory, instrument, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn packets(&self) -> &NumberedPackets {
        match &self.instrument.packets.as_ref().expect("it has some").format {
            PacketFormat::Numbered(packets) => packets,
            other => panic!("{other:?}"),
        }
    }

    fn record(&self, more: &[&str]) -> Running {
        let to = self.path("");
        let arguments = ["record", "it.toml", "--name", "scan", "--to", to.to_str().expect("plain names")];
        let mut running = start(
            self.directory.path(),
            &[&arguments[..], &["--reserve", "0 B", "--buffer", "64 MiB"], more].concat(),
        );
        running.await_said("recording scan");
        running
    }

    /// Sends so many simulated packets.
    fn simulate(&self, packets: u64, more: &[&str]) {
        let to = format!("udp://127.0.0.1:{}", self.port);
        let it = self.path("it.toml");
        let count = packets.to_string();
        let arguments =
            ["simulate", it.to_str().expect("plain names"), "--to", &to, "--seed", "5", "--packets", &count];
        let ended = run(&[&arguments[..], more].concat());
        assert!(ended.has_sent_all(), "{ended:?}");
    }

    fn about(&self, command: &str, more: &[&str]) -> Ended {
        let scan = self.path("scan");
        run(&[&[command, scan.to_str().expect("plain names")], more].concat())
    }

    /// The recording as one file.
    fn exported(&self) -> Vec<u8> {
        let to = self.path("scan.bytes");
        let ended = self.about("export", &["--to", to.to_str().expect("plain names"), "--verify"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fs::read(to).expect("it was written")
    }

    /// The names of the columns of the exported headers, and their rows.
    fn headers(&self, more: &[&str]) -> (Vec<String>, Vec<Row>) {
        let to = self.path("scan.csv");
        let to = to.to_str().expect("plain names");
        let ended = self.about("export", &[&["--headers", "--to", to], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let table = fs::read_to_string(to).expect("it was written");
        fs::remove_file(to).expect("it is ours");
        let mut lines = table.lines();
        let names: Vec<_> = lines.next().expect("names").split(',').map(str::to_owned).collect();
        assert_eq!(names[..3], ["frame", "packet", "came"]);
        (names[3..].to_vec(), lines.map(row).collect())
    }
}

fn row(line: &str) -> Row {
    let numbers: Vec<u64> = line.split(',').map(|value| value.parse().expect(line)).collect();
    assert_eq!(numbers[1], 0, "one packet a frame: {line}");
    Row { frame: numbers[0], came: numbers[2] == 1, values: numbers[3..].to_vec() }
}

/// The values of a column.
fn column(names: &[String], rows: &[Row], name: &str) -> Vec<u64> {
    let at = names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no {name}: {names:?}"));
    rows.iter().map(|row| row.values[at]).collect()
}

/// Packets that do not leave a simulator with this loss.
fn lost(of: &Described, packets: u64) -> Vec<u64> {
    let faults = Faults { loss: 0.02, loss_burst: 3, ..Faults::default() };
    let size = (of.packets().header.0 + of.packets().payload.0) as usize;
    not_sent(packets, faults, size, Seed(5).named("faults").part(0)).into_iter().collect()
}

#[test]
fn packets_of_the_catalogue_go_round_and_each_lost_one_is_known() {
    const NAMES: [&str; 7] =
        ["dune-ethernet", "chime-fpga", "lofar-rsp", "hera-snap", "meerkat-digitiser", "codif", "counter"];
    for name in NAMES {
        let it = Described::catalogued(name);
        let packets = 2000;
        let lost = lost(&it, packets);
        assert!(!lost.is_empty() && lost[0] > 0 && lost.last() != Some(&(packets - 1)), "{name}: {lost:?}");
        let running = it.record(&["--http", "127.0.0.1:0"]);
        it.simulate(packets, &["--loss", "2 %", "--loss-burst", "3"]);
        await_packets(address(&running, "http"), packets - lost.len() as u64);
        running.signal(Signal::TERM);
        let ended = running.end(LIMIT);
        assert_eq!(ended.code, Some(1), "packets are missing: {ended:?}");

        let (names, rows) = it.headers(&[]);
        assert_eq!(rows.len() as u64, packets, "{name}");
        let missing: Vec<_> = rows.iter().filter(|row| !row.came).map(|row| row.frame).collect();
        assert_eq!(missing, lost, "{name}");
        // Numbers go up by the step, over the missing ones too.
        let number = if it.packets().upper.is_some() { "count" } else { "number" };
        let numbers = column(&names, &rows, number);
        let streams = it.packets().streams();
        let step = it.packets().number.step;
        for (at, number) in (0..).zip(&numbers) {
            assert_eq!(*number, numbers[0] + at / streams * step, "{name}: row {at}");
        }
        says_the_loss_of_each_stream(&it, &ended, &lost);
        has_its_fields(&it, &names, &rows);
        is_refused_or_whole(&it, &lost);
    }
}

/// The summary has the losses of each stream, and `scan` has them too.
fn says_the_loss_of_each_stream(it: &Described, ended: &Ended, lost: &[u64]) {
    let Some(stream) = &it.packets().stream else {
        return assert!(!ended.stdout.contains("\nstream  "), "{ended:?}");
    };
    let scan = it.about("scan", &[]);
    for (at, id) in (0..).zip(&stream.ids) {
        let missing = lost.iter().filter(|number| **number % stream.ids.len() as u64 == at).count();
        let said = match missing {
            0 => "none missing".into(),
            _ => format!("{missing} missing"),
        };
        let line = ended.stdout.lines().find(|line| line.starts_with(&format!("stream      {id}: ")));
        assert!(line.is_some_and(|line| line.ends_with(&said)), "stream {id}, {said}: {ended:?}");
        let line = format!("from        stream {id}: {missing} packets did not come\n");
        assert_eq!(scan.stdout.contains(&line), missing > 0, "{line}{scan:?}");
    }
}

/// Named fields have the values that the simulator wrote.
fn has_its_fields(it: &Described, names: &[String], rows: &[Row]) {
    let streams = it.packets().streams();
    for field in &it.packets().fields {
        let values = column(names, rows, &field.name);
        for (at, value) in values.iter().enumerate().filter(|(at, _)| rows[*at].came) {
            let frame = at as u64 / streams;
            assert_eq!(*value, field.value + frame * field.step, "{} of frame {frame}", field.name);
        }
    }
}

/// Frames lie in the recording one behind the other, with their magic and the filler of missing ones.
fn is_refused_or_whole(it: &Described, lost: &[u64]) {
    let bytes = it.exported();
    let packets = it.packets();
    let size = packets.frame_size().0 as usize;
    let header = packets.kept_header().0 as usize;
    for (number, frame) in (0..).zip(bytes.chunks_exact(size)) {
        for magic in &packets.magic {
            assert_eq!(magic.at.read(&frame[..header]), magic.value, "frame {number}");
        }
        let is_filled = frame[header..header + 8] == [0x44, 0x33, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(is_filled, lost.contains(&number), "frame {number}");
    }
    let verified = it.about("verify", &[]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// `DAQEthHeader` and the header behind it, as DUNE's electronics write them.
fn dune_packet(stamp: u64, stream: u64, sequence: u64) -> Vec<u8> {
    let word = 2 | 11 << 6 | 4 << 12 | 1 << 22 | stream << 26 | (sequence & 0xfff) << 40 | 898 << 52;
    let mut packet: Vec<u8> =
        [word, stamp, stream << 56, stamp / 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    packet.extend((0..7168_u64).map(|at| (at.wrapping_mul(stamp | 1) >> 3) as u8));
    packet
}

/// Sends packets slowly enough for any recorder.
fn send(port: u16, packets: &[Vec<u8>]) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    for packet in packets {
        socket.send_to(packet, ("127.0.0.1", port)).expect("loopback takes it");
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn stamps_that_step_are_put_in_order_and_headers_are_kept() {
    let it = Described::catalogued("dune-ethernet");
    // The clock is on no multiple of the step, as of a detector that was started at any time.
    let stamp = |frame: u64| 107_000_000_000_123 + frame * 2048;
    let all: Vec<_> = (0..1200_u64).map(|at| dune_packet(stamp(at / 4), at % 4, at / 4 + 4000)).collect();
    let mut sent = all.clone();
    // Some overtake others, one comes twice, and two belong to nobody.
    sent.swap(100, 140);
    sent.swap(501, 502);
    sent.insert(300, all[290].clone());
    sent.insert(600, dune_packet(stamp(150), 9, 0));
    sent.insert(700, vec![7; 7200]);
    let running = it.record(&["--packets", "1200"]);
    send(it.port, &sent);
    let ended = running.end(LIMIT);
    assert!(ended.stdout.contains("2 foreign"), "{ended:?}");
    assert!(it.exported() == all.concat(), "the packets in order, with their headers");
    let (names, rows) = it.headers(&["--begin", "400", "--end", "410"]);
    assert_eq!(rows.iter().map(|row| row.frame).collect::<Vec<_>>(), (400..410).collect::<Vec<_>>());
    assert_eq!(column(&names, &rows, "number"), (400..410).map(|at| stamp(at / 4)).collect::<Vec<_>>());
    assert_eq!(column(&names, &rows, "stream"), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    assert_eq!(column(&names, &rows, "crate_id"), [4; 10]);
    assert_eq!(
        column(&names, &rows, "seq_id"),
        (400..410).map(|at| (at / 4 + 4000) % 4096).collect::<Vec<_>>()
    );
}

/// The counter of the catalogue with another part of its header kept.
fn counter(keep: &str, more: &str) -> Described {
    let text = fs::read_to_string(root().join("instruments/counter.toml")).expect("it is in the catalogue");
    let text = text.replace("150 kHz", "4 kHz").replace("keep = \"all\"", &format!("keep = {keep}\n{more}"));
    Described::of(&text.replace("header = \"8 B\"", "header = \"12 B\""))
}

#[test]
fn what_is_not_kept_of_a_header_is_not_in_the_recording() {
    let packet = |number: u64| {
        let mut packet = number.to_be_bytes().to_vec();
        packet.extend((number as u32 + 7).to_le_bytes());
        packet.extend((0..8192_u64).map(|at| (at ^ number) as u8));
        packet
    };
    let sent: Vec<_> = (0..300).map(|at| packet(at + 5)).collect();
    let field = "fields = [{ name = \"behind\", at = { offset = 8, bytes = 4 } }]";
    for (keep, from) in [("\"nothing\"", 12), ("{ from = \"8 B\" }", 8), ("\"all\"", 0)] {
        let it = counter(keep, field);
        let running = it.record(&["--packets", "300"]);
        send(it.port, &sent);
        let ended = running.end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let expected: Vec<u8> = sent.iter().flat_map(|packet| &packet[from..]).copied().collect();
        assert!(it.exported() == expected, "{keep}");
        if it.packets().keep == KeptHeader::Nothing {
            let refused = it.about("export", &["--headers", "--to", "/tmp/no-such-file"]);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
            assert!(refused.stderr.contains("kept no described header"), "{refused:?}");
            assert!(!Path::new("/tmp/no-such-file").exists());
        } else {
            let (names, rows) = it.headers(&[]);
            assert_eq!(column(&names, &rows, "behind"), (12..312).collect::<Vec<_>>());
            assert_eq!(names.iter().any(|name| name == "number"), from == 0, "{names:?}");
        }
    }
}

#[test]
fn a_bad_description_is_refused_with_its_place_and_nothing_is_started() {
    let text = fs::read_to_string(root().join("instruments/counter.toml")).expect("it is in the catalogue");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let to = directory.path().to_str().expect("plain names");
    let path = directory.path().join("bad.toml");
    for (from, bad, parts) in [
        ("bytes = 8", "bytes = 12", &["bad.toml", "packets: number.at.bytes = 12: write 1 to 8"][..]),
        (
            "keep = \"all\"",
            "keep = \"some\"",
            &["bad.toml: TOML parse error at line 17", "`nothing`, `all`, `from`"],
        ),
        (
            "payload = ",
            "sizes = [1, 2]\npayload = ",
            &["bad.toml: TOML parse error at line 16", "`payload`", "`last`"],
        ),
    ] {
        fs::write(&path, text.replace(from, bad)).expect("space");
        let refused = run(&["record", path.to_str().expect("plain names"), "--to", to, "--name", "scan"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert_eq!(refused.stderr.matches("nilometer: ").count(), 1, "{}", refused.stderr);
        for part in parts {
            assert!(refused.stderr.contains(part), "`{part}` is missing in: {}", refused.stderr);
        }
        assert!(!directory.path().join("scan").exists(), "{bad}");
    }
}

/// The blocks of a page in this language, in their order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    blocks.map(|rest| rest.split("```").next().expect("a part of a text").to_owned()).collect()
}

/// The bytes of a packet of 1040 B whose first bytes stand in this line of a dump.
fn of_dump(line: &str) -> Vec<u8> {
    let digits: String = line.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    let mut packet: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    packet.resize(1040, 0);
    packet
}

#[test]
fn the_example_of_the_page_does_what_the_page_says() {
    let page = fs::read_to_string(root().join("docs/packets-of-my-experiment.md")).expect("it is there");
    let it = Described::of(&blocks(&page, "toml")[0]);
    let sent: Vec<_> = blocks(&page, "text")[0].lines().map(of_dump).collect();
    let running = it.record(&["--packets", "5"]);
    send(it.port, &sent);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "one is missing: {ended:?}");
    let to = it.path("run1.csv");
    let exported = it.about("export", &["--headers", "--to", to.to_str().expect("plain names")]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert!(exported.stdout.contains("headers     of 6 packets, 1 of which did not come\n"), "{exported:?}");
    assert_eq!(fs::read_to_string(to).expect("it was written"), blocks(&page, "csv")[0]);
    let bytes = it.exported();
    assert_eq!(bytes.len(), 6 * 1040);
    assert!(bytes[..3 * 1040] == sent[..3].concat() && bytes[4 * 1040..] == sent[3..].concat());
}

/// Has spead2 send to a port, or receive from it.
fn spead2(role: &str, port: u16, count: u64) -> Option<std::process::Command> {
    let script = root().join("tests/tests/recording/packets/spead.py");
    let mut command = python(&["spead2", "numpy"])?;
    command.arg(script).arg(role).arg(port.to_string()).arg(count.to_string());
    Some(command)
}

#[test]
fn heaps_that_spead2_sends_are_recorded_whole() {
    let it = Described::catalogued("meerkat-digitiser");
    let heaps = 500;
    let Some(mut sender) = spead2("send", it.port, heaps) else { return };
    let running = it.record(&["--packets", &heaps.to_string()]);
    let sent = sender.output().expect("it can be run");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (names, rows) = it.headers(&[]);
    assert_eq!(
        column(&names, &rows, "number"),
        (0..heaps).map(|heap| 1_000_003 + heap * 4096).collect::<Vec<_>>()
    );
    assert_eq!(column(&names, &rows, "digitiser_id"), vec![77; heaps as usize]);
    assert_eq!(column(&names, &rows, "digitiser_status"), (0..heaps).collect::<Vec<_>>());
    let bytes = it.exported();
    for (heap, frame) in (0..heaps).zip(bytes.chunks_exact(72 + 5120)) {
        let expected: Vec<u8> = (0..5120_u64).map(|at| (at * 7 + heap * 13) as u8).collect();
        assert!(frame[72..] == expected, "heap {heap}");
    }
    assert_eq!(bytes.len() as u64, heaps * (72 + 5120));
}

#[test]
fn heaps_of_many_packets_are_recorded_with_their_items() {
    let page = fs::read_to_string(root().join("docs/packets-of-my-experiment.md")).expect("it is there");
    let described = &blocks(&page, "text")[1];
    let it = Described::of(&format!(
        "name = \"heaps\"\ntitle = \"t\"\nsource = \"t\"\nshape = [20_032]\npixel = \"uint8\"\nframe_rate = \"100 Hz\"\n\
         [packets]\nport = 1\n[packets.format.numbered]\n{described}"
    ));
    let heaps = 40;
    let Some(mut sender) = spead2("send-large", it.port, heaps) else { return };
    let running = it.record(&["--packets", &(heaps * 14).to_string()]);
    let sent = sender.output().expect("it can be run");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let bytes = it.exported();
    let size = 13 * 1472 + 1456;
    assert_eq!(bytes.len() as u64, heaps * size);
    for (heap, frame) in (0..heaps).zip(bytes.chunks_exact(size as usize)) {
        let packets = frame.chunks(1472).enumerate();
        let samples =
            packets.flat_map(|(part, packet)| if part == 0 { &packet[72..] } else { &packet[40..] });
        let expected: Vec<u8> = (0..20_000_u64).map(|at| (at * 7 + heap * 13) as u8).collect();
        assert!(samples.copied().eq(expected), "heap {heap}");
    }
}

#[test]
fn spead2_receives_the_heaps_that_the_simulator_sends() {
    let it = Described::catalogued("meerkat-digitiser");
    let heaps = 400;
    let Some(mut receiver) = spead2("receive", it.port, heaps) else { return };
    receiver.stdout(std::process::Stdio::piped());
    let mut receiver = receiver.spawn().expect("it can be run");
    let mut said = std::io::BufReader::new(receiver.stdout.take().expect("it is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("it says when it is ready");
    assert_eq!(line, "ready\n");
    it.simulate(heaps, &[]);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("words and numbers");
    assert!(receiver.wait().expect("it ends").success());
    let expected: Vec<_> = (0..heaps).map(|heap| format!("{} {} 5120", heap + 1, heap * 4096)).collect();
    assert_eq!(rest.lines().collect::<Vec<_>>(), expected);
}
