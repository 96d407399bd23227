//! A detector that sends what a test wants, in the order that it wants.

use nilometer_codec::{ChunkCodec, Compression, ElementSize};
use nilometer_intake::transport::zeromq::{PushSocket, ZmqEndpoint};
use nilometer_model::Seed;
use nilometer_wire::{
    series::{ElementType, ImageTimes, MetadataField, Packing, SeriesName, SeriesStart},
    stream2::{self, ImageChannel, MessagePiece},
};

use crate::series::lab::{SeriesLab, write_npy};

pub(crate) const IMAGES: u64 = 64;
const ROWS: u64 = 100;
const COLUMNS: u64 = 120;
/// Looks of 50 ms until somebody is there who takes it.
const WAITS: u32 = 1200;

/// Sends bslz4, by version 2.
pub(crate) struct Detector {
    push: PushSocket,
    pub(crate) at: String,
}

impl Detector {
    /// It waits for whoever connects. What all detectors of a lab send is in its file.
    pub(crate) fn new(lab: &SeriesLab) -> Self {
        let endpoint = ZmqEndpoint::bind("tcp://127.0.0.1:0").expect("an address");
        let push = PushSocket::open(endpoint).expect("a free port");
        let at = format!("tcp://{}", push.address().expect("it is bound"));
        let images: Vec<u8> = (0..IMAGES).flat_map(pixels).collect();
        write_npy(&lab.arrays(), [IMAGES, ROWS, COLUMNS], &images);
        Detector { push, at }
    }

    /// The start of the series, with these fields.
    pub(crate) fn begin(&mut self, fields: Vec<MetadataField>) {
        self.begin_series(&name(), IMAGES, fields);
    }

    /// The start of any series, which announces so many images.
    pub(crate) fn begin_series(&mut self, series: &SeriesName, images: u64, fields: Vec<MetadataField>) {
        self.send_raw(&start_of(series, images, fields));
    }

    /// An image of any series: its pixels follow from its number.
    pub(crate) fn send_of(&mut self, series: &SeriesName, image: u64) {
        self.send_raw(&image_of(series, image, |_| {}));
    }

    /// The end of any series.
    pub(crate) fn end_of(&mut self, series: &SeriesName) {
        self.send_raw(&stream2::encode_end(series));
    }

    /// An image of it.
    pub(crate) fn send(&mut self, image: u64) {
        self.send_changed(image, |_| {});
    }

    /// An image of it whose compressed bytes are changed on the way.
    pub(crate) fn send_changed(&mut self, image: u64, change: impl FnOnce(&mut [u8])) {
        self.send_raw(&image_of(&name(), image, change));
    }

    /// The end of the series. A recorder that has all of it may be gone.
    pub(crate) fn end(&mut self) {
        self.push.send(&[&[&stream2::encode_end(&name())]], 0).expect("the network is there");
    }

    /// Any message.
    pub(crate) fn send_raw(&mut self, message: &[u8]) {
        assert!(self.push.send(&[&[message]], WAITS).expect("the network is there"), "nobody takes it");
    }
}

/// The series that a detector sends if nothing else is said.
pub(crate) fn name() -> SeriesName {
    SeriesName { number: 7, unique: "a series".to_owned() }
}

/// A start message.
pub(crate) fn start_of(series: &SeriesName, images: u64, fields: Vec<MetadataField>) -> Vec<u8> {
    let start = SeriesStart {
        series: series.clone(),
        images,
        shape: vec![ROWS, COLUMNS],
        element: ElementType::Uint16,
        channels: vec!["threshold_1".to_owned()],
        fields,
    };
    stream2::encode_start(&start).expect("it can be said")
}

/// An image message whose compressed bytes are changed on the way.
pub(crate) fn image_of(series: &SeriesName, image: u64, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let plain = pixels(image);
    let mut packed = vec![0; Compression::BitshuffleLz4.most_bytes(plain.len())];
    let mut codec = ChunkCodec::new(Compression::BitshuffleLz4, ElementSize::Two);
    let length = codec.encode(&plain, &mut packed).expect("whole elements");
    change(&mut packed[..length]);
    let channel = ImageChannel {
        name: "threshold_1",
        shape: &[ROWS, COLUMNS],
        element: ElementType::Uint16,
        packing: Packing::BitshuffleLz4 { element: 2 },
        bytes: &packed[..length],
    };
    let channels = [channel];
    let pieces = stream2::encode_image(series, image, &ImageTimes::default(), &channels);
    pieces.expect("it can be said").iter().flat_map(MessagePiece::bytes).copied().collect()
}

/// Small counts, none of which is 0 at once.
fn pixels(image: u64) -> Vec<u8> {
    let mut stream = Seed(image).stream();
    (0..ROWS * COLUMNS).flat_map(|_| (1 + stream.below(5) as u16).to_le_bytes()).collect()
}
