//! Frames over TCP against programs that no one here wrote: libzmq by pyzmq, cbor2, and HDF5 with its bitshuffle filter.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    ops::Range,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::AtomicBool,
};

use nilometer_codec::{ChunkCodec, Compression, ElementSize};
use nilometer_intake::{
    series::{FrameIntake, RefusedFrame, SeriesEnding, SeriesFrame, SeriesReceiver, SeriesUntil, SlotAnswer},
    transport::zeromq::{
        MessageLimits, MessageRoom, PullSocket, PushSocket, RoomAnswer, RoomRequest, ZmqEndpoint, ZmqMessage,
    },
};
use nilometer_model::{Nanos, Seed};
use nilometer_storage::{Arena, Buffer, Clock};
use nilometer_tests::{python, root};
use nilometer_wire::{
    series::{ElementType, ImageTimes, MetadataField, MetadataValue, Packing, SeriesName, SeriesStart},
    stream1, stream2,
    stream2::{ImageChannel, MessagePiece},
};

const IMAGES: u64 = 5;
const CHANNELS: u64 = 2;
const ROWS: u64 = 131;
const COLUMNS: u64 = 117;
const LOCAL: &str = "tcp://127.0.0.1:0";
const MODULES: [&str; 5] = ["zmq", "cbor2", "numpy", "h5py", "hdf5plugin"];
/// Looks of 50 ms until somebody is there.
const WAITS: u32 = 1200;

/// Pixels of a frame as a detector counts them: small numbers, and a few of any size.
fn pixels(element: ElementType, number: u64) -> Vec<u8> {
    let mut stream = Seed(number).stream();
    let pixel = |_| if stream.below(50) == 0 { stream.next() } else { stream.below(4) };
    let pixels = (0..ROWS * COLUMNS).map(pixel);
    pixels.flat_map(|pixel| pixel.to_le_bytes()[..element.bytes()].to_vec()).collect()
}

/// All frames as a file of NumPy, format version 1.0: an array of images, channels, rows and columns.
fn write_npy(path: &Path, element: ElementType) {
    let kind = if element.name().starts_with("float") {
        'f'
    } else {
        element.name().chars().next().expect("a name")
    };
    let head = format!(
        "{{'descr': '<{kind}{}', 'fortran_order': False, 'shape': ({IMAGES}, {CHANNELS}, {ROWS}, {COLUMNS})}}",
        element.bytes()
    );
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((head.len() as u16 + 1).to_le_bytes());
    file.extend(head.bytes().chain([b'\n']));
    (0..IMAGES * CHANNELS).for_each(|number| file.extend(pixels(element, number)));
    fs::write(path, file).expect("room");
}

/// Frames in memory.
#[derive(Debug)]
struct Frames {
    free: Vec<Buffer>,
    start: Option<SeriesStart>,
    came: BTreeMap<u64, SeriesFrame>,
}

impl Frames {
    fn new() -> Self {
        let free = Arena::shared_out(20, (ROWS * COLUMNS * 8) as usize + 1000).1;
        Frames { free, start: None, came: BTreeMap::new() }
    }
}

impl FrameIntake for Frames {
    fn slot(&mut self, _: Nanos, _: usize) -> SlotAnswer {
        self.free.pop().map_or(SlotAnswer::Wait, SlotAnswer::Free)
    }
    fn give_back(&mut self, slot: Buffer) {
        self.free.push(slot);
    }
    fn begin(&mut self, _: Nanos, start: &SeriesStart, _: &ZmqMessage) -> Result<(), String> {
        self.start = Some(start.clone());
        Ok(())
    }
    fn take(&mut self, _: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        self.came.insert(frame.number, frame);
        Ok(())
    }
    fn missing(&mut self, _: Nanos, frames: Range<u64>) {
        panic!("{frames:?} did not come");
    }
}

/// The example for users, sending this file; and where it waits for us, which it says.
fn sender(mut python: Command, endpoint: &str, file: &Path, compressed: bool) -> (Child, String) {
    let script = root().join("contrib/send_frames.py");
    python.arg(script).arg(endpoint).arg(file).args(["sample=lysozyme", "temperature=100 K"]);
    if compressed {
        python.env("BSLZ4", "1");
    }
    let mut sender = python.stdout(Stdio::piped()).spawn().expect("it can be run");
    let mut said = String::new();
    let out = sender.stdout.take().expect("it is piped");
    BufReader::new(out).read_line(&mut said).expect("it says where it is");
    (sender, said.trim().to_owned())
}

/// Receives a series of the example, whoever waits for whom, and compares it bit for bit.
fn receives(element: ElementType, compressed: bool, waits: bool) {
    let Some(python) = python(&MODULES) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("images.npy");
    write_npy(&file, element);
    let (socket, mut runs) = if waits {
        let endpoint = ZmqEndpoint::bind(LOCAL).expect("an address");
        let socket = PullSocket::open(&[endpoint], MessageLimits::default()).expect("a free port");
        let to = format!("tcp://{}", socket.addresses().expect("it is bound")[0]);
        (socket, sender(python, &to, &file, compressed).0)
    } else {
        let (runs, at) = sender(python, "tcp://127.0.0.1:*", &file, compressed);
        let endpoint = ZmqEndpoint::connect(&at).expect("it says where it is");
        (PullSocket::open(&[endpoint], MessageLimits::default()).expect("nothing to fail"), runs)
    };
    let mut frames = Frames::new();
    let mut receiver = SeriesReceiver::new(socket, SeriesUntil::default());
    let clock = Clock::start();
    let ending = receiver.run(clock, &AtomicBool::new(false), &mut frames);
    assert_eq!(ending.expect("the network is there"), SeriesEnding::Complete, "{:?}", receiver.tally());
    let start = frames.start.expect("it began");
    assert_eq!((start.images, &start.shape[..], start.element), (IMAGES, &[ROWS, COLUMNS][..], element));
    let text = |text: &str| MetadataValue::Text(text.to_owned());
    let told = vec![
        MetadataField::new("sample", text("lysozyme")),
        MetadataField::new("temperature", text("100 K")),
    ];
    assert_eq!(start.fields, [MetadataField::new("user_data", MetadataValue::Map(told))]);
    assert_eq!(frames.came.len() as u64, IMAGES * CHANNELS);
    for (number, frame) in frames.came {
        let raw = pixels(element, number);
        let bytes = &frame.data[..frame.length];
        if !compressed {
            assert!(frame.packing == Packing::Plain && bytes == raw, "frame {number} of {element:?}");
            continue;
        }
        assert_eq!(frame.packing, Packing::BitshuffleLz4 { element: element.bytes() as u8 });
        let mut back = vec![0; raw.len()];
        let size = ElementSize::of(element.bytes() as u64).expect("it is one");
        assert_eq!(
            ChunkCodec::new(Compression::BitshuffleLz4, size).decode(bytes, &mut back),
            Ok(()),
            "frame {number} of {element:?}"
        );
        assert!(back == raw, "frame {number} of {element:?}");
    }
    // The end message may still be with it.
    let mut over = None;
    while over.is_none() {
        receiver.turn(clock.now(), &mut Frames::new()).expect("the network is there");
        over = runs.try_wait().expect("it can be waited for");
    }
    assert!(over.is_some_and(|status| status.success()));
}

/// Nothing is long.
struct NoRoom;

impl MessageRoom for NoRoom {
    fn room(&mut self, _: RoomRequest<'_>) -> RoomAnswer {
        RoomAnswer::Along
    }
    fn give_back(&mut self, _: Buffer) {}
}

#[test]
fn arrays_of_numpy_arrive_bit_for_bit() {
    receives(ElementType::Uint8, false, false);
    receives(ElementType::Uint16, false, true);
    receives(ElementType::Int32, false, false);
    receives(ElementType::Float64, false, false);
}

#[test]
fn compressed_arrays_arrive_as_they_were_compressed() {
    receives(ElementType::Uint8, true, false);
    receives(ElementType::Uint16, true, true);
    receives(ElementType::Uint32, true, false);
}

/// libzmq gives a connection up that does not answer for so many milliseconds, and is silent for so many seconds: longer than that. On
/// a busy machine an answer may take longer than the first of these times.
const HEARTBEATS: [[&str; 2]; 3] = [["400", "1"], ["3000", "6"], ["10000", "20"]];

#[test]
fn heartbeats_of_libzmq_are_answered() {
    let mut ended = 0;
    for times in HEARTBEATS {
        let Some(given_up) = given_up(times) else { return };
        ended = given_up;
        if ended == 0 {
            break;
        }
    }
    assert_eq!(ended, 0, "it was given up, however long it waited for an answer");
}

/// How many connections libzmq gave up between two messages, with these times. None if it is not here.
fn given_up([timeout, pause]: [&str; 2]) -> Option<u64> {
    let mut python = python(&["zmq", "cbor2"])?;
    let socket = PullSocket::open(&[ZmqEndpoint::bind(LOCAL).expect("an address")], MessageLimits::default());
    let mut socket = socket.expect("a free port");
    let to = format!("tcp://{}", socket.addresses().expect("it is bound")[0]);
    let script = root().join("tests/tests/recording/detector_stream.py");
    let sender = python.arg(script).arg("heartbeat").arg(to).args(["20", timeout, pause]).spawn();
    let mut sender = sender.expect("it can be run");
    let clock = Clock::start();
    let mut came = Vec::new();
    while came.len() < 2 {
        let message = socket.receive(clock.now(), Nanos::from_millis(20), &mut NoRoom).expect("the network");
        came.extend(message.map(|message| message.parts()[0].bytes.to_vec()));
    }
    assert_eq!(came, [b"first".to_vec(), b"last".to_vec()]);
    assert!(sender.wait().expect("it ends").success());
    Some(socket.counted().ended)
}

/// Hands a message to whoever is connected.
fn send(push: &mut PushSocket, parts: &[Vec<u8>]) {
    let pieces: Vec<[&[u8]; 1]> = parts.iter().map(|part| [part.as_slice()]).collect();
    let parts: Vec<&[&[u8]]> = pieces.iter().map(|part| &part[..]).collect();
    assert!(push.send(&parts, WAITS).expect("the network is there"), "nobody takes it");
}

/// A series from our end to libzmq's; what that prints. Nothing if it is not here.
fn sends(messages: &[Vec<Vec<u8>>], into: &Path) -> Option<String> {
    let mut python = python(&MODULES)?;
    let endpoint = ZmqEndpoint::bind(LOCAL).expect("an address");
    let mut push = PushSocket::open(endpoint).expect("a free port");
    let at = format!("tcp://{}", push.address().expect("it is bound"));
    let script = root().join("tests/tests/recording/detector_stream.py");
    let taker =
        python.arg(script).arg("receive").arg(at).arg(into).stdout(Stdio::piped()).stderr(Stdio::piped());
    let taker = taker.spawn().expect("it can be run");
    for parts in messages {
        send(&mut push, parts);
    }
    let output = taker.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("JSON"))
}

fn start(channels: &[&str]) -> SeriesStart {
    SeriesStart {
        series: SeriesName { number: 12, unique: "a series".to_owned() },
        images: IMAGES,
        shape: vec![ROWS, COLUMNS],
        element: ElementType::Uint16,
        channels: channels.iter().map(|name| (*name).to_owned()).collect(),
        fields: vec![MetadataField::new("count_time", MetadataValue::Float(0.5))],
    }
}

fn channel<'a>(name: &'a str, packing: Packing, bytes: &'a [u8]) -> ImageChannel<'a> {
    ImageChannel { name, shape: &[ROWS, COLUMNS], element: ElementType::Uint16, packing, bytes }
}

#[test]
fn what_we_send_libzmq_and_cbor2_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = start(&["low", "high"]);
    let mut messages = vec![vec![stream2::encode_start(&start).expect("it can be said")]];
    for image in 0..IMAGES {
        let [low, high] = [0, 1].map(|number| pixels(ElementType::Uint16, CHANNELS * image + number));
        let mut packed = vec![0; Compression::BitshuffleLz4.most_bytes(high.len())];
        let mut codec = ChunkCodec::new(Compression::BitshuffleLz4, ElementSize::Two);
        let length = codec.encode(&high, &mut packed).expect("whole elements");
        packed.truncate(length);
        let bslz4 = Packing::BitshuffleLz4 { element: 2 };
        let channels = [channel("low", Packing::Plain, &low), channel("high", bslz4, &packed)];
        let pieces = stream2::encode_image(&start.series, image, &ImageTimes::default(), &channels);
        messages.push(vec![
            pieces.expect("it can be said").iter().flat_map(MessagePiece::bytes).copied().collect(),
        ]);
    }
    messages.push(vec![stream2::encode_end(&start.series)]);
    let Some(said) = sends(&messages, directory.path()) else { return };
    let expected = "{\"channels\": [\"low\", \"high\"], \"count_time\": 0.5, \"image_dtype\": \"uint16\", \
                    \"image_size_x\": 117, \"image_size_y\": 131, \"number_of_images\": 5, \"series_id\": 12, \
                    \"series_unique_id\": \"a series\"}\n";
    assert_eq!(said, expected);
    for number in 0..IMAGES * CHANNELS {
        let name = ["low", "high"][(number % CHANNELS) as usize];
        let file = directory.path().join(format!("{}.{name}", number / CHANNELS));
        assert!(fs::read(file).expect("it came") == pixels(ElementType::Uint16, number), "frame {number}");
    }
}

#[test]
fn version_1_is_several_parts_for_libzmq() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = start(&[stream1::CHANNEL]);
    let mut messages = vec![stream1::encode_header(&start).expect("it can be said")];
    for image in 0..IMAGES {
        let bytes = pixels(ElementType::Uint16, image);
        let channel = channel(stream1::CHANNEL, Packing::Plain, &bytes);
        let hash = stream1::hash_of(&bytes);
        let parts = stream1::encode_image(&start.series, image, &ImageTimes::default(), &channel, &hash);
        messages.push(parts.expect("it can be said").iter().map(|part| part.bytes().to_vec()).collect());
    }
    messages.push(vec![stream1::encode_end(&start.series)]);
    let Some(said) = sends(&messages, directory.path()) else { return };
    let expected = "{\"bit_depth_image\": 16, \"count_time\": 0.5, \"nimages\": 5, \"ntrigger\": 1, \"x_pixels_in_detector\": 117, \
                    \"y_pixels_in_detector\": 131}\n";
    assert_eq!(said, expected);
    for image in 0..IMAGES {
        let file = directory.path().join(format!("{image}.image"));
        assert!(fs::read(file).expect("it came") == pixels(ElementType::Uint16, image), "image {image}");
    }
}
