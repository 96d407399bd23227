//! Frames of an EIGER 4M compressed and decompressed on one thread, beside the same filters as hdf5plugin has them, called
//! as HDF5 calls them; and the transposition of bits alone, by every method that the processor has.

mod peer;

use nilometer_codec::{ChunkCodec, Compression, ElementSize, Method, ZstdLevel};
use nilometer_model::{Data, DataKind, PixelType, Seed};
use nilometer_recording::instrument::Content;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};
use peer::{Peer, Plugin};

const SHAPE: [u64; 2] = [2167, 2070];
const FRAMES: usize = 8;
/// Bytes of a block whose bits are transposed, as the filter has it.
const BLOCK: usize = 8192;

const PEER: &str = "hdf5plugin";
const OURS: &str = "nilometer";

/// What is done to the frames.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Codec {
    /// Bits are transposed, and nothing is compressed.
    Bits,
    /// Bits are transposed, LZ4.
    BitshuffleLz4,
    /// Bits are transposed, Zstandard at its fastest level.
    BitshuffleZstd,
    /// LZ4.
    Lz4,
    /// Zstandard at its fastest level.
    Zstd,
}

impl Codec {
    fn compression(self) -> Option<Compression> {
        match self {
            Codec::Bits => None,
            Codec::BitshuffleLz4 => Some(Compression::BitshuffleLz4),
            Codec::BitshuffleZstd => Some(Compression::BitshuffleZstd(ZstdLevel::FASTEST)),
            Codec::Lz4 => Some(Compression::Lz4),
            Codec::Zstd => Some(Compression::Zstd(ZstdLevel::FASTEST)),
        }
    }

    fn plugin(self, element: ElementSize) -> Plugin {
        let name = match self {
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
            Codec::Bits | Codec::BitshuffleLz4 | Codec::BitshuffleZstd => "bshuf",
        };
        let bits = || vec![0, 4, element.bytes() as u32, 0, 0];
        Plugin { name, cd_values: self.compression().map_or_else(bits, |it| it.cd_values(element)) }
    }

    /// Wall time of the peer's that may be taken.
    fn bound(self) -> f64 {
        match self {
            Codec::Bits => 1.0,
            Codec::BitshuffleLz4 => 0.8,
            Codec::BitshuffleZstd => 0.7,
            Codec::Lz4 | Codec::Zstd => 1.1,
        }
    }

    /// The methods that make a difference, the fastest first.
    fn methods(self) -> Vec<Method> {
        match self {
            Codec::Lz4 | Codec::Zstd => vec![Method::best()],
            Codec::Bits | Codec::BitshuffleLz4 | Codec::BitshuffleZstd => {
                Method::all().into_iter().rev().collect()
            }
        }
    }
}

/// Encodes and decodes with each method, beside the filter.
pub(crate) fn run(codec: Codec, pixel: PixelType, stop: &Stop) -> anyhow::Result<Outcome> {
    let data = Data { distinct: Some(FRAMES as u64), ..DataKind::Diffraction.into() };
    let content = Content::prepare(&data, &SHAPE, pixel, Seed(1))?;
    let frames: Vec<Vec<u8>> = (0..FRAMES as u64).map(|number| frame(&content, number)).collect();
    let raw = FRAMES * content.frame_size();
    let amount = raw as f64 / f64::from(1 << 30);
    let element = ElementSize::of(pixel.bits() / 8).expect("whole bytes");
    let home = place::in_memory()?;
    let path = home.path().join("frames");
    std::fs::write(&path, frames.concat())?;
    let mut peer = Peer::start(&codec.plugin(element), &path, content.frame_size())?;
    let (_, theirs) = peer.turn(amount)?;
    let methods: Vec<Method> = codec.methods();
    let mut workers: Vec<Worker> =
        methods.iter().map(|method| Worker::new(codec, element, *method)).collect();
    let ours = workers[0].chunks(&frames)?;
    let named = |index: usize| if index == 0 { OURS } else { name(methods[index]) };
    let mut contestants = vec![Contestant::new(PEER, move || Ok(peer.turn(amount)?.0))];
    let frames = &frames;
    for (index, worker) in workers.iter_mut().enumerate() {
        contestants.push(Contestant::new(named(index), move || worker.turn(frames, amount)));
    }
    let ratio = |bytes: usize| raw as f64 / bytes as f64;
    let compared = Contest {
        title: format!(
            "codec: {codec:?} of {pixel:?} by {}, {:.1} times smaller (hdf5plugin {:.1})",
            name(methods[0]),
            ratio(ours),
            ratio(theirs)
        ),
        quantity: Quantity::WallPerGib,
        phases: &["encode", "decode"],
        rounds: 11,
        contestants,
        bounds: vec![Bound { subject: OURS, peer: PEER, limit: Limit::Times(codec.bound()) }],
    };
    compared.run(stop)
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Scalar => "scalar",
        #[cfg(target_arch = "x86_64")]
        Method::Avx2(_) => "AVX2",
        #[cfg(target_arch = "x86_64")]
        Method::Avx512(_) => "AVX-512",
    }
}

fn frame(content: &Content, number: u64) -> Vec<u8> {
    let mut frame = vec![0; content.frame_size()];
    content.prepare_slot(&mut frame);
    content.fill(number, &mut frame);
    frame
}

/// One that encodes and decodes frames in memory of its own, which is there from the first turn on.
struct Worker {
    element: ElementSize,
    method: Method,
    /// None where bits are only transposed.
    codec: Option<ChunkCodec>,
    chunk: Vec<u8>,
    chunks: Vec<Vec<u8>>,
    decoded: Vec<u8>,
    scratch: Vec<u8>,
}

impl Worker {
    fn new(codec: Codec, element: ElementSize, method: Method) -> Self {
        Worker {
            element,
            method,
            codec: codec.compression().map(|it| ChunkCodec::with_method(it, element, method)),
            chunk: Vec::new(),
            chunks: Vec::new(),
            decoded: Vec::new(),
            scratch: vec![0; BLOCK],
        }
    }

    /// Bytes of the chunks of all frames, which are kept to be decoded, and hold what was encoded.
    fn chunks(&mut self, frames: &[Vec<u8>]) -> anyhow::Result<usize> {
        let most =
            self.codec.as_ref().map_or(frames[0].len(), |it| it.compression().most_bytes(frames[0].len()));
        self.chunk = vec![0; most];
        self.decoded = vec![0; frames[0].len()];
        self.chunks.clear();
        for frame in frames {
            let length = self.encode(frame)?;
            self.chunks.push(self.chunk[..length].to_vec());
            self.decode(self.chunks.len() - 1)?;
            anyhow::ensure!(self.decoded == *frame, "another frame came back");
        }
        Ok(self.chunks.iter().map(Vec::len).sum())
    }

    fn turn(&mut self, frames: &[Vec<u8>], amount: f64) -> anyhow::Result<Vec<Cost>> {
        if self.chunks.is_empty() {
            self.chunks(frames)?;
        }
        let encoding = measure::thread(amount, || {
            for frame in frames {
                self.encode(frame)?;
            }
            Ok(())
        })?;
        let decoding = measure::thread(amount, || {
            for index in 0..frames.len() {
                self.decode(index)?;
            }
            Ok(())
        })?;
        Ok(vec![encoding, decoding])
    }

    fn encode(&mut self, frame: &[u8]) -> anyhow::Result<usize> {
        if let Some(codec) = &mut self.codec {
            return Ok(codec.encode(frame, &mut self.chunk)?);
        }
        for (block, rows) in in_blocks(frame, self.element).zip(self.chunk.chunks_mut(BLOCK)) {
            self.method.split(block, self.element, &mut rows[..block.len()]);
        }
        let left = frame.len() % (8 * self.element.bytes());
        let tail = frame.len() - left;
        self.chunk[tail..].copy_from_slice(&frame[tail..]);
        Ok(frame.len())
    }

    fn decode(&mut self, index: usize) -> anyhow::Result<()> {
        let chunk = &self.chunks[index];
        if let Some(codec) = &mut self.codec {
            return Ok(codec.decode(chunk, &mut self.decoded)?);
        }
        for (rows, block) in in_blocks(chunk, self.element).zip(self.decoded.chunks_mut(BLOCK)) {
            let length = rows.len();
            self.method.join(rows, self.element, &mut block[..length], &mut self.scratch[..length]);
        }
        let left = chunk.len() % (8 * self.element.bytes());
        let tail = chunk.len() - left;
        self.decoded[tail..].copy_from_slice(&chunk[tail..]);
        Ok(())
    }
}

/// The blocks whose bits are transposed: multiples of 8 elements.
fn in_blocks(bytes: &[u8], element: ElementSize) -> impl Iterator<Item = &[u8]> {
    bytes[..bytes.len() - bytes.len() % (8 * element.bytes())].chunks(BLOCK)
}
