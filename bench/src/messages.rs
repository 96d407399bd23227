//! Images of a detector over loopback, as the DECTRIS stream in version 2 has them, beside a bare loop that takes the same
//! messages by libzmq and looks into none.
//!
//! Both take them from the same sender, which is libzmq's, as fast as it sends. Ours decodes and checks every message, has its
//! pixels in a slot, and hands them on. Times are from the first message to the last.

use std::{
    fs,
    io::{BufRead, BufReader},
    ops::Range,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::Context;
use nilometer_codec::{ChunkCodec, Compression, ElementSize};
use nilometer_intake::{
    series::{FrameIntake, RefusedFrame, SeriesFrame, SeriesReceiver, SeriesUntil, SlotAnswer},
    transport::zeromq::{MessageLimits, PullSocket, ZmqEndpoint, ZmqMessage},
};
use nilometer_model::Nanos;
use nilometer_storage::{Arena, Buffer, Clock};
use nilometer_wire::{
    series::{ElementType, ImageTimes, Packing, SeriesName, SeriesStart},
    stream2::{self, ImageChannel, MessagePiece},
};
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::SEED,
    place,
};

/// An EIGER 4M, each image compressed to nearly one MiB.
const SHAPE: [u64; 2] = [2167, 2070];
const FRAME: usize = 1 << 20;
pub(crate) const IMAGES: u64 = 4000;
const SLOTS: usize = 16;

const BARE: &str = "bare loop of libzmq";
const OURS: &str = "nilometer";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let files = Files::make()?;
    let contest = Contest {
        title: format!("messages: {IMAGES} compressed images of 1 MiB over loopback, sent by libzmq"),
        quantity: Quantity::WallPerGib,
        phases: &["receive"],
        rounds: 11,
        contestants: vec![Contestant::new(BARE, || bare(&files)), Contestant::new(OURS, || ours(&files))],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.0 / 0.6) }],
    };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, Vec::new()))
}

/// What the sender sends, and the program.
pub(crate) struct Files {
    directory: TempDir,
    /// Offset of the number in the message of an image.
    offset: usize,
    /// Bytes of a compressed image.
    image: usize,
}

impl Files {
    pub(crate) fn make() -> anyhow::Result<Self> {
        let directory = place::in_memory()?;
        let source = directory.path().join("libzmq.c");
        fs::write(&source, include_str!("libzmq.c"))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).arg(directory.path().join("libzmq")).arg(&source).arg("-lzmq");
        measure::child(1.0, &mut compiler).context("it takes libzmq3-dev of Debian")?;
        fs::write(directory.path().join("start"), stream2::encode_start(&start())?)?;
        let pixels = compressed()?;
        let (image, offset) = message(&pixels)?;
        fs::write(directory.path().join("image"), image)?;
        fs::write(directory.path().join("end"), stream2::encode_end(&start().series))?;
        Ok(Files { directory, offset, image: pixels.len() })
    }

    /// All images as they are sent, in GiB.
    pub(crate) fn gib(&self) -> f64 {
        IMAGES as f64 * self.image as f64 / f64::from(1 << 30)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A sender that waits for one receiver.
    pub(crate) fn sender(&self) -> anyhow::Result<LibzmqSender> {
        let mut command = Command::new(self.path("libzmq"));
        command.arg("push").arg(self.path("start")).arg(self.path("image")).arg(self.path("end"));
        command.args([self.offset.to_string(), IMAGES.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("it is piped")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(LibzmqSender { child, said, endpoint: line.trim_matches(['\0', '\n']).to_owned() })
    }
}

/// A process that sends a series by libzmq.
#[derive(Debug)]
pub(crate) struct LibzmqSender {
    child: Child,
    said: BufReader<ChildStdout>,
    /// Where it is.
    pub(crate) endpoint: String,
}

impl LibzmqSender {
    /// Waits until it has a receiver, and sends.
    pub(crate) fn await_begin(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        anyhow::ensure!(line.trim() == "begun", "the sender ended early");
        Ok(())
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "the sender failed: {status}");
        Ok(())
    }
}

impl Drop for LibzmqSender {
    /// One that nobody waited for, since its receiver failed, would wait for ever.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn start() -> SeriesStart {
    SeriesStart {
        series: SeriesName { number: 1, unique: "bench".to_owned() },
        images: IMAGES,
        shape: SHAPE.to_vec(),
        element: ElementType::Uint32,
        channels: vec!["threshold_1".to_owned()],
        fields: Vec::new(),
    }
}

/// An image with so many photons that it is just below [`FRAME`] when it is compressed with bitshuffle and LZ4. A recorder
/// walks its blocks, and refuses noise.
fn compressed() -> anyhow::Result<Vec<u8>> {
    let pixels = (SHAPE[0] * SHAPE[1]) as usize;
    let mut codec = ChunkCodec::new(Compression::BitshuffleLz4, ElementSize::of(4).context("four bytes")?);
    let mut packed = vec![0; Compression::BitshuffleLz4.most_bytes(4 * pixels)];
    let mut best = Vec::new();
    let mut photons = 0;
    // From large steps to small ones.
    for step in (0..pixels.ilog2()).rev() {
        let image = with_photons(pixels, photons + (1 << step));
        let length = codec.encode(&image, &mut packed)?;
        if length <= FRAME {
            photons += 1 << step;
            best = packed[..length].to_vec();
        }
    }
    anyhow::ensure!(best.len() > FRAME * 99 / 100, "the image has {} of {FRAME} B", best.len());
    Ok(best)
}

/// Pixels of four bytes, all 0 but those that random photons hit.
fn with_photons(pixels: usize, photons: usize) -> Vec<u8> {
    let mut image = vec![0; 4 * pixels];
    let mut random = SEED.stream();
    for _ in 0..photons {
        image[4 * random.below(pixels as u64) as usize] += 1;
    }
    image
}

/// The message of an image, whose number takes eight bytes, and their offset.
fn message(pixels: &[u8]) -> anyhow::Result<(Vec<u8>, usize)> {
    let channel = ImageChannel {
        name: "threshold_1",
        shape: &SHAPE,
        element: ElementType::Uint32,
        packing: Packing::BitshuffleLz4 { element: 4 },
        bytes: pixels,
    };
    let pieces = stream2::encode_image(&start().series, u64::MAX, &ImageTimes::default(), &[channel])?;
    let message: Vec<u8> = pieces.iter().flat_map(MessagePiece::bytes).copied().collect();
    let at = message.windows(8).position(|bytes| bytes == [0xff; 8]).context("the number is there")?;
    Ok((message, at))
}

fn bare(files: &Files) -> anyhow::Result<Vec<Cost>> {
    let sender = files.sender()?;
    let mut command = Command::new(files.path("libzmq"));
    let (_, output) = measure::child(1.0, command.args(["pull", &sender.endpoint, &IMAGES.to_string()]))?;
    sender.end()?;
    let said = String::from_utf8(output.stdout)?;
    let figures: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [wall, cpu, _] = figures[..] else { anyhow::bail!("three figures, not {said}") };
    Ok(vec![Cost { amount: files.gib(), cpu, wall }])
}

fn ours(files: &Files) -> anyhow::Result<Vec<Cost>> {
    let sender = files.sender()?;
    let socket = PullSocket::open(&[ZmqEndpoint::connect(&sender.endpoint)?], MessageLimits::default())?;
    let mut receiver = SeriesReceiver::new(socket, SeriesUntil::default());
    let mut slots = Slots(Arena::shared_out(SLOTS, FRAME).1);
    let clock = Clock::start();
    while receiver.series().is_none() {
        receiver.turn(clock.now(), &mut slots)?;
    }
    let cost = measure::thread(files.gib(), || {
        while !receiver.series().is_some_and(|series| series.is_complete() && series.has_ended()) {
            receiver.turn(clock.now(), &mut slots)?;
        }
        Ok(())
    })?;
    sender.end()?;
    Ok(vec![cost])
}

/// Slots that are free again at once.
#[derive(Debug)]
struct Slots(Vec<Buffer>);

impl FrameIntake for Slots {
    fn slot(&mut self, _: Nanos, _: usize) -> SlotAnswer {
        self.0.pop().map_or(SlotAnswer::Wait, SlotAnswer::Free)
    }

    fn give_back(&mut self, slot: Buffer) {
        self.0.push(slot);
    }

    fn begin(&mut self, _: Nanos, _: &SeriesStart, _: &ZmqMessage) -> Result<(), String> {
        Ok(())
    }

    fn take(&mut self, _: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        self.0.push(frame.data);
        Ok(())
    }

    fn missing(&mut self, _: Nanos, _: Range<u64>) {}
}
