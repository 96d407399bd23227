//! A telescope, its recorder, and whoever reads what was recorded.

use std::{
    fs::{self, File},
    io::Read,
    net::UdpSocket,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    thread,
    time::Duration,
};

use nilometer_intake::transport::{
    Flow, SendPace, Sender, SendingStation, StreamCourse,
    faults::Faults,
    udp::{Sending, UdpOutlet},
};
use nilometer_model::{Frequency, Instrument, Seed};
use nilometer_recording::instrument::Content;
use nilometer_storage::Clock;
use nilometer_tests::{Running, await_some, free_port, python, root, start};
use nilometer_wire::{Known, vdif::VdifHeader};
use tempfile::TempDir;

const SEED: Seed = Seed(5);
/// Long enough for everything on a slow machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
/// A VDIF frame with its header.
pub(crate) const FRAME: usize = 8032;
/// As many fill whole pages.
pub(crate) const FRAMES_OF_BLOCK: usize = 128;
/// The second since 2000 in which the first frame is due, as others say it.
const BEGINS: u64 = 800_000_000;
const BEGINS_SAID: &str = "2025-05-08T06:13:20.000000000";

/// A stream of single frames, and the directories that it is recorded in.
pub(crate) struct Lab {
    directory: TempDir,
    /// Frames of a second.
    pub(crate) rate: u64,
    pub(crate) to: Vec<PathBuf>,
    pub(crate) port: u16,
}

impl Lab {
    /// Recorded into so many directories beside each other.
    pub(crate) fn new(rate: u64, lanes: usize) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let to: Vec<_> = (0..lanes).map(|lane| directory.path().join(format!("disk{lane}"))).collect();
        for path in &to {
            fs::create_dir(path).expect("space");
        }
        Lab::in_directory(directory, rate, to)
    }

    /// Recorded elsewhere.
    pub(crate) fn onto(rate: u64, to: Vec<PathBuf>) -> Self {
        Lab::in_directory(tempfile::tempdir().expect("a temporary directory"), rate, to)
    }

    fn in_directory(directory: TempDir, rate: u64, to: Vec<PathBuf>) -> Self {
        let lab = Lab { directory, rate, to, port: free_port() };
        fs::write(lab.path().join("telescope.toml"), lab.telescope()).expect("space");
        lab
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// 8000 B of samples behind a VDIF header.
    fn telescope(&self) -> String {
        let Lab { rate, port, .. } = self;
        format!(
            "name = \"telescope\"\ntitle = \"for tests\"\nsource = \"none\"\nshape = [32000]\npixel = \"uint2\"\n\
             frame_rate = \"{rate} Hz\"\ndata = \"vlbi\"\n[packets]\nport = {port}\n[packets.format.vdif]\n\
             payload = \"8000 B\"\nthreads = [0]\nstations = [\"Ef\"]\n"
        )
    }

    /// Starts to record `scan`; returns when packets may come. One directory gets a file, several get chunks of 4 MB.
    pub(crate) fn record(&self, more: &[&str]) -> Running {
        let mut arguments = vec!["record", "telescope.toml", "--name", "scan", "--reserve", "0 B"];
        for to in &self.to {
            arguments.extend(["--to", to.to_str().expect("plain names")]);
        }
        if self.to.len() > 1 && !more.contains(&"--keep") {
            arguments.extend(["--chunk-size", "4 MB"]);
        }
        arguments.extend(if more.contains(&"--buffer") { &[][..] } else { &["--buffer", "64 MiB"] });
        arguments.extend(more);
        let mut running = start(self.path(), &arguments);
        running.await_said("recording scan");
        running
    }

    /// The directories of the recording.
    pub(crate) fn lanes(&self) -> Vec<PathBuf> {
        self.to.iter().map(|to| to.join("scan")).collect()
    }

    fn flow(&self, window: u64) -> Flow {
        let instrument = Instrument::parse(&self.telescope(), "telescope.toml").expect("valid");
        let known = Known { begins: BEGINS, ..Known::of(&instrument) };
        let packets = instrument.packets.as_ref().expect("it has packets");
        let content = Content::prepare(&instrument.data, &instrument.shape, instrument.pixel, SEED);
        let format = nilometer_wire::of(packets, &known).expect("it is a format");
        Flow::new(format, content.expect("it can be made"), StreamCourse::default(), window)
    }

    /// Sends the first so many packets, at so many times the rate of the telescope.
    pub(crate) fn send(&self, packets: u64, hurry: f64) {
        self.send_with(packets, hurry, Faults::default());
    }

    pub(crate) fn send_with(&self, packets: u64, hurry: f64, faults: Faults) {
        let address = ([127, 0, 0, 1], self.port).into();
        let outlet = UdpOutlet::connect(address, &Sending::default()).expect("loopback is there");
        let station = SendingStation::new(self.flow(128), faults, SEED, vec![Box::new(outlet)], None);
        let pace = SendPace::new(Frequency(self.rate as f64 * hurry));
        let left = Sender::new(vec![station], pace, packets).run(Clock::start(), &AtomicBool::new(false));
        assert!(!left.expect("it leaves").stopped);
    }

    /// Sends the stream in parts.
    pub(crate) fn in_parts(&self) -> Parts {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.connect(("127.0.0.1", self.port)).expect("loopback is there");
        Parts { flow: self.flow(1), socket, sent: 0 }
    }

    /// Records so many frames, as fast as is comfortable.
    pub(crate) fn recorded(&self, frames: u64) {
        let running = self.record(&["--packets", &frames.to_string()]);
        self.send(frames, 20_000.0 / self.rate as f64);
        let ended = running.end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    /// The frames as they were sent.
    pub(crate) fn sent(&self, frames: u64) -> Vec<u8> {
        let mut flow = self.flow(1);
        let mut all = Vec::with_capacity(frames as usize * FRAME);
        for number in 0..frames {
            let made = flow.make(number);
            all.extend_from_slice(flow.packet(made).body);
        }
        all
    }

    /// Which frames of a file stand for missing ones; all others must be as they were sent, and every one in its place.
    pub(crate) fn invalid(&self, mut file: impl Read, frames: u64) -> Vec<u64> {
        let (mut flow, mut invalid, mut frame) = (self.flow(1), Vec::new(), vec![0; FRAME]);
        for number in 0..frames {
            file.read_exact(&mut frame).unwrap_or_else(|error| panic!("frame {number}: {error}"));
            let header = VdifHeader::parse(&frame).expect("a VDIF header");
            let time = (header.since_2000(), u64::from(header.frame), header.station);
            assert_eq!(
                time,
                (BEGINS + number / self.rate, number % self.rate, u16::from_be_bytes(*b"Ef")),
                "{number}"
            );
            if header.invalid {
                invalid.push(number);
            } else {
                let made = flow.make(number);
                assert!(flow.packet(made).body == frame, "frame {number} differs");
            }
        }
        assert_eq!(file.read(&mut frame).expect("its end"), 0, "nothing follows");
        invalid
    }

    /// All frames of a file are as they were sent.
    pub(crate) fn assert_sent(&self, file: impl Read, frames: u64) {
        let invalid = self.invalid(file, frames);
        assert!(invalid.is_empty(), "{} frames are marked as invalid: {invalid:?}", invalid.len());
    }

    /// The packets that do not leave as they should, with these faults.
    pub(crate) fn not_sent(packets: u64, faults: Faults) -> Vec<u64> {
        nilometer_tests::not_sent(packets, faults, FRAME + 8, SEED).into_iter().collect()
    }

    /// The package baseband finds so many frames, as many of them invalid, and no gap. Skipped where it is not here.
    pub(crate) fn assert_baseband_finds(&self, file: &Path, frames: u64, invalid: u64) {
        let Some(mut python) = python(&["baseband"]) else { return };
        let script = root().join("tests/tests/recording/packets/frames.py");
        let output = python.arg(script).arg(file).arg(self.rate.to_string()).output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = format!("{BEGINS_SAID} frames {frames} invalid {invalid} gaps 0\n");
        assert_eq!(said, expected);
    }
}

/// Sends a stream in parts, whenever somebody has done what he does with the one before; always from the same address.
pub(crate) struct Parts {
    flow: Flow,
    socket: UdpSocket,
    sent: u64,
}

impl Parts {
    /// The number of packets sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends all packets up to this one, slowly enough for any recorder.
    pub(crate) fn send_up_to(&mut self, end: u64) {
        for number in self.sent..end {
            let made = self.flow.make(number);
            let packet = self.flow.packet(made);
            self.socket.send(&[packet.prefix, packet.body].concat()).expect("loopback takes it");
            thread::sleep(Duration::from_micros(20));
        }
        self.sent = end;
    }
}

/// Waits until a file has so many bytes.
pub(crate) fn await_length(path: &Path, bytes: u64) {
    await_some("a file that grows", || {
        fs::metadata(path).is_ok_and(|file| file.len() >= bytes).then_some(())
    });
}

/// Opens a file.
pub(crate) fn open(path: &Path) -> File {
    File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
