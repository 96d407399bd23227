//! A recorder that is killed while it has data streams or viewers: every acknowledged block is there and is read.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Running, address, await_some, python, run, start, undamaged};
use rustix::process::Signal;

use crate::service::{instrument, sender::Sender};

const LIMIT: Duration = Duration::from_mins(2);
/// Packets of each stream, far more than any recorder here gets before it is killed.
const PACKETS: u64 = 1_000_000;

/// The blocks of a recording that its journals acknowledge.
fn acknowledged(directory: &Path) -> Vec<u64> {
    let recording = Recording::open(&[directory.to_owned()], Trust::Acknowledged);
    recording.map(|recording| recording.index.frames.numbers(0..u64::MAX).collect()).unwrap_or_default()
}

/// Sends from each of these in a thread of its own until `meanwhile` is over.
fn while_sent(senders: &[Sender], made: impl Fn(&Sender, u64) + Sync, meanwhile: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for sender in senders {
            let (made, is_over) = (&made, &is_over);
            scope.spawn(move || {
                for number in 0..PACKETS {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    made(sender, number);
                }
            });
        }
        meanwhile();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Kills it, and waits until the port is free: the process that records dies a moment after the one that was started.
fn kill(running: Running, port: u16) {
    running.signal(Signal::KILL);
    assert_eq!(running.end(LIMIT).code, None, "a signal ended it");
    await_some("the port", || UdpSocket::bind(("127.0.0.1", port)).ok());
}

/// Everything acknowledged before is still there, verified and readable. Returns the blocks.
fn assert_kept(directory: &Path, before: &[u64]) -> Vec<u64> {
    let after = acknowledged(directory);
    let gone: Vec<_> = before.iter().filter(|block| after.binary_search(block).is_err()).collect();
    assert!(!before.is_empty() && gone.is_empty(), "{gone:?} of {before:?} were acknowledged");
    let verified = run(&[Path::new("verify"), directory]);
    assert_eq!(verified.code, Some(1), "it did not end in order: {verified:?}");
    assert_eq!(undamaged(&verified), after.len() as u64, "{verified:?}");
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    let scanned = run(&[Path::new("scan"), directory]);
    assert!(scanned.stdout.contains("not ended"), "{scanned:?}");
    after
}

/// The bytes that `export` reads from a recording that did not end.
fn exported(directory: &Path, to: &Path) -> Vec<u8> {
    let ended = run(&[Path::new("export"), directory, Path::new("--to"), to]);
    assert!(to.is_file(), "{ended:?}");
    fs::read(to).expect("it is there")
}

#[test]
fn data_streams_of_a_recorder_that_is_killed_keep_all_that_was_acknowledged() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let below = home.path();
    let boards = [Sender::new(), Sender::new()];
    let raw = instrument(below, boards[0].port());
    let [first, second] = ["A", "B"].map(|label| below.join(format!("scan_ds{label}")));
    let [listen, beside] =
        [(0, "A"), (1, "B")].map(|(at, label)| format!("udp://127.0.0.1:{}={label}", boards[at].port()));
    let words = ["record", &raw, "--to", ".", "--name", "scan", "--listen", &listen, "--listen", &beside];
    let running = start(below, &[&words[..], &["--buffer", "64 MiB", "--reserve", "0 B"]].concat());
    await_some("two recorders", || (running.stderr().matches(": listening").count() == 2).then_some(()));
    let mut before = [Vec::new(), Vec::new()];
    let send = |sender: &Sender, number: u64| sender.send(number..number + 1);
    while_sent(&boards, send, || {
        before = await_some("acknowledged blocks of both", || {
            let blocks = [&first, &second].map(|path| acknowledged(path));
            blocks.iter().all(|blocks| blocks.len() >= 2).then_some(blocks)
        });
        kill(running, boards[0].port());
    });
    for (directory, before) in [&first, &second].into_iter().zip(&before) {
        let blocks = assert_kept(directory, before);
        let bytes = exported(directory, &below.join("copy"));
        fs::remove_file(below.join("copy")).expect("it is there");
        for (number, packet) in (0_u64..).zip(bytes.chunks_exact(1000)) {
            let filled = packet.iter().all(|byte| *byte == packet[0]) && number > 0;
            assert!(filled || packet == number.to_le_bytes().repeat(125), "packet {number} differs");
        }
        let right = bytes
            .chunks_exact(1000)
            .zip(0_u64..)
            .filter(|(packet, number)| packet[..8] == number.to_le_bytes());
        let block = bytes.len() / 1000 / (blocks.last().expect("a block") + 1) as usize;
        assert_eq!(right.count(), blocks.len() * block, "{directory:?}");
    }
}

/// A viewer that prints a line for each frame.
const VIEWER: &str = "import sys, zmq\n\
                      viewer = zmq.Context().socket(zmq.SUB)\n\
                      viewer.connect(sys.argv[1])\n\
                      viewer.subscribe(b'')\n\
                      while True:\n    print(len(viewer.recv_multipart()[1]), flush=True)\n";

/// Frames of 20 x 25 pixels in two packets each, to this port.
fn camera(directory: &Path, port: u16) -> PathBuf {
    let path = directory.join("camera.toml");
    let text = format!(
        "name = \"camera\"\ntitle = \"t\"\nsource = \"t\"\nshape = [20, 25]\npixel = \"uint16\"\n\
         frame_rate = \"1 kHz\"\ndata = \"diffraction\"\n[packets]\nport = {port}\n[packets.format.described]\n\
         header = \"16 B\"\nframe = {{ offset = 0, bytes = 8 }}\npacket = {{ offset = 8, bytes = 4 }}\n\
         modules = 1\npackets = 2\npayload = \"500 B\"\n"
    );
    fs::write(&path, text).expect("space");
    path
}

/// The pixels of a packet, which follow from its frame.
fn pixels(frame: u64) -> Vec<u8> {
    u16::try_from(frame % 1000).expect("below 1000").to_le_bytes().repeat(250)
}

#[test]
fn a_recorder_that_is_killed_while_viewers_watch_keeps_all_that_was_acknowledged() {
    let Some(mut viewer) = python(&["zmq"]) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let (below, sender) = (home.path(), Sender::new());
    let camera = camera(below, sender.port());
    let camera = camera.to_str().expect("plain");
    let words = ["record", camera, "--to", ".", "--name", "scan", "--buffer", "64 MiB", "--reserve", "0 B"];
    let shown = ["--preview", "127.0.0.1:0", "--preview-rate", "50 Hz", "--format", "hdf5"];
    let mut running = start(below, &[&words[..], &shown].concat());
    running.await_said("recording scan");
    let at = address(&running, "preview");
    let viewer = viewer.args(["-c", VIEWER, &format!("tcp://{at}")]).stdout(Stdio::piped());
    let mut viewer = viewer.spawn().expect("it starts");
    let mut frames = BufReader::new(viewer.stdout.take().expect("piped")).lines();
    let directory = below.join("scan");
    let mut before = Vec::new();
    let port = sender.port();
    let send = |sender: &Sender, number: u64| {
        let frame = number / 2;
        let packet = u32::try_from(number % 2).expect("0 or 1");
        let header = [&frame.to_le_bytes()[..], &packet.to_le_bytes(), &[0; 4]].concat();
        sender.send_one(&[header, pixels(frame)].concat());
        thread::sleep(Duration::from_micros(100));
    };
    while_sent(&[sender], send, || {
        for _ in 0..2 {
            assert_eq!(frames.next().expect("a frame").expect("text"), "1000", "the bytes of a frame");
        }
        before = acknowledged(&directory);
        kill(running, port);
    });
    viewer.kill().expect("it runs");
    viewer.wait().expect("it is a child of ours");
    let after = assert_kept(&directory, &before);
    let repaired = run(&[Path::new("repair"), &directory]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert_eq!(acknowledged(&directory), after, "repair removes nothing");
    let bytes = exported(&directory, &below.join("copy"));
    let right = (0_u64..).zip(bytes.chunks_exact(1000));
    let right: Vec<_> = right.filter(|(frame, bytes)| bytes[..] == pixels(*frame).repeat(2)).collect();
    assert!(right.len() >= after.len(), "{} frames, {} blocks", right.len(), after.len());
}
