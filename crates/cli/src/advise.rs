//! `nilometer advise`: recommends choices to a site, from measurements on its own data.

mod chunking;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use nilometer_codec::{
    ElementSize,
    packed12::{numbers_bytes, pack_12, unpack_12},
};
use nilometer_hdf5_recording::settled_compression;
use nilometer_model::{
    ByteRate, Bytes, DataKind, FrameCompression, Instrument, Nanos, PixelType, PluginFilter, Seed,
};
use nilometer_recording::{
    chunk::{self, ChunkError},
    instrument::Content,
    journal::Encoding,
};
use nilometer_storage::{Clock, user_file};

use crate::{Blame, Outcome, tell};

/// Measure the costs and gains of compression and of chunk shapes
#[derive(Debug, Args)]
pub(crate) struct Advise {
    #[command(subcommand)]
    about: About,
}

#[derive(Debug, Subcommand)]
enum About {
    Compression(CompressionAdvice),
    Chunking(chunking::ChunkingAdvice),
}

/// Measure how small and how fast each compression makes an instrument's frames. The table also has the
/// number of processors that the instrument needs
#[derive(Debug, Args)]
struct CompressionAdvice {
    /// A name of the catalogue, or the path of a .toml file: the source of the frames' shape and rate
    instrument: String,
    /// Your own frames: CBF files, or files with the bytes of a frame each [default: the instrument's
    /// simulated ones]
    #[arg(value_name = "FRAMES")]
    frames: Vec<String>,
    /// Measure this HDF5 plug-in too, by its number. Repeat the option for more
    #[arg(long, value_name = "filter:NUMBER,VALUES")]
    filter: Vec<PluginFilter>,
    /// Measure each compression for at least this time
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    time: Nanos,
}

impl Advise {
    pub(crate) fn execute(&self) -> Outcome {
        match &self.about {
            About::Compression(advice) => advice.execute(),
            About::Chunking(advice) => advice.execute(),
        }
    }
}

/// The effect of one compression on the frames.
struct MeasuredCompression {
    compression: FrameCompression,
    smaller: f64,
    /// The rate of one processor, in bytes of frames.
    encode: ByteRate,
    decode: ByteRate,
}

impl CompressionAdvice {
    fn execute(&self) -> Outcome {
        let instrument = user_file::instrument(&self.instrument).input()?;
        let samples = CompressibleSamples::of(instrument.pixel).ok_or_else(|| {
            let name = instrument.pixel.name();
            anyhow!("{}: pixels of {name} are no whole bytes, as compressions take them", instrument.name)
        });
        let samples = samples.input()?;
        let filters = self.filters(&instrument).input()?;
        let frames = self.prepared(&instrument)?;
        let size = Bytes(frames[0].len() as u64);
        tell::result_line(format_args!(
            "{} frames of {}, {size} of {} each; one thread, {} for each compression",
            frames.len(),
            instrument.name,
            instrument.pixel.name(),
            self.time
        ));
        let rate = instrument.rate();
        let all: Vec<_> = FrameCompression::ALL.into_iter().chain(filters).collect();
        let width = all.iter().map(|compression| compression.name().len()).max().unwrap_or(0).max(8);
        tell::result_line(format_args!(
            "\n{:width$} {:>8} {:>13} {:>10} {:>13} {:>13}",
            "", "smaller", "a core", "cores", "read, a core", "written"
        ));
        for compression in all {
            match self.measure(compression, samples.settled(compression), &frames).run()? {
                Some(measured) => tell::result_line(line(&measured, rate, width)),
                None => tell::result_line(format_args!("{compression} makes such frames no smaller")),
            }
        }
        tell::result_line(format_args!(
            "\ncores: processor cores of this machine that {} needs at its {rate}, from the speed of one core alone",
            instrument.name
        ));
        Ok(())
    }

    /// The plug-in filters of the options, with their values for the instrument's frames.
    fn filters(&self, instrument: &Instrument) -> anyhow::Result<Vec<FrameCompression>> {
        let settled = self.filter.iter().map(|filter| {
            let compression = FrameCompression::Filter(*filter);
            settled_compression(compression, instrument.pixel, &instrument.shape).map_err(|why| anyhow!(why))
        });
        settled.collect()
    }

    /// The frames to compress.
    fn prepared(&self, instrument: &Instrument) -> Result<Vec<Vec<u8>>, crate::Failure> {
        let mut frames = Vec::new();
        let own = self.frames.iter().map(|pattern| DataKind::Files(glob_of(pattern)).into());
        let mut sources: Vec<nilometer_model::Data> = own.collect();
        if sources.is_empty() {
            sources.push(instrument.data.clone());
        }
        for data in sources {
            let content = Content::prepare(&data, &instrument.shape, instrument.pixel, Seed(1)).input()?;
            for number in 0..content.distinct().min(DISTINCT) {
                let mut frame = vec![0; content.frame_size()];
                content.prepare_slot(&mut frame);
                content.fill(number, &mut frame);
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    fn measure(
        &self,
        compression: FrameCompression,
        samples: CompressibleSamples,
        frames: &[Vec<u8>],
    ) -> Result<Option<MeasuredCompression>, ChunkError> {
        let room = samples.encoding(compression).length_max(frames[0].len() as u64) as usize;
        let mut chunks: Vec<Vec<u8>> = frames.iter().map(|_| vec![0; room]).collect();
        let mut packed = 0;
        for (frame, chunk) in frames.iter().zip(&mut chunks) {
            let Some(length) = samples.encode(compression, frame, chunk)? else { return Ok(None) };
            chunk.truncate(length);
            packed += length;
        }
        let all: usize = frames.iter().map(Vec::len).sum();
        let mut into = vec![0; room];
        let encode = self.rate(frames, |frame| samples.encode(compression, frame, &mut into).map(drop))?;
        let mut back = vec![0; frames[0].len()];
        let decode = self.rate(&chunks, |chunk| samples.decode(compression, chunk, &mut back))?;
        let decode = ByteRate(decode.0 * all as f64 / packed.max(1) as f64);
        let smaller = all as f64 / packed.max(1) as f64;
        Ok(Some(MeasuredCompression { compression, smaller, encode, decode }))
    }

    /// The rate of an operation on these inputs, one after the other, for the time of a measurement and at
    /// least once.
    fn rate(
        &self,
        pieces: &[Vec<u8>],
        mut work: impl FnMut(&[u8]) -> Result<(), ChunkError>,
    ) -> Result<ByteRate, ChunkError> {
        let clock = Clock::start();
        let begun = clock.now();
        let mut bytes = 0;
        loop {
            for piece in pieces {
                work(piece)?;
                bytes += piece.len() as u64;
            }
            let took = clock.now().since(begun);
            if took >= self.time {
                return Ok(ByteRate::of(bytes, took));
            }
        }
    }
}

/// The samples of a frame, as the recorder compresses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompressibleSamples {
    Whole(ElementSize),
    /// Packed samples of 12 bits, which are compressed as numbers of 16.
    Packed12,
}

impl CompressibleSamples {
    /// `None` if the samples are compressed in no way.
    fn of(pixel: PixelType) -> Option<Self> {
        if pixel == PixelType::Uint12 {
            return Some(CompressibleSamples::Packed12);
        }
        pixel.whole_bytes().and_then(ElementSize::of).map(CompressibleSamples::Whole)
    }

    /// The samples for a compression: without one, packed samples stay packed.
    fn settled(self, compression: FrameCompression) -> Self {
        if compression == FrameCompression::None {
            CompressibleSamples::Whole(ElementSize::One)
        } else {
            self
        }
    }

    fn encoding(self, compression: FrameCompression) -> Encoding {
        match self {
            CompressibleSamples::Whole(element) => Encoding::of_chunk(compression, element),
            CompressibleSamples::Packed12 => Encoding::Packed12(compression),
        }
    }

    /// Compresses a frame. Returns the length of the chunk; `None` if it becomes no smaller.
    fn encode(
        self,
        compression: FrameCompression,
        frame: &[u8],
        chunk: &mut [u8],
    ) -> Result<Option<usize>, ChunkError> {
        match self {
            CompressibleSamples::Whole(element) => chunk::encode(compression, element, frame, chunk),
            CompressibleSamples::Packed12 => {
                let mut numbers = vec![0; numbers_bytes(frame.len() as u64) as usize];
                unpack_12(frame, &mut numbers);
                chunk::encode(compression, ElementSize::Two, &numbers, chunk)
            }
        }
    }

    fn decode(self, compression: FrameCompression, chunk: &[u8], frame: &mut [u8]) -> Result<(), ChunkError> {
        match self {
            CompressibleSamples::Whole(element) => chunk::decode(compression, element, chunk, frame),
            CompressibleSamples::Packed12 => {
                let mut numbers = vec![0; numbers_bytes(frame.len() as u64) as usize];
                chunk::decode(compression, ElementSize::Two, chunk, &mut numbers)?;
                let has_samples = pack_12(&numbers, frame);
                debug_assert!(has_samples, "the numbers were samples of 12 bits");
                Ok(())
            }
        }
    }
}

/// The most distinct frames: more would teach nothing new.
const DISTINCT: u64 = 8;

/// A pattern for this path. Only a path with `*` is a pattern already.
fn glob_of(path: &str) -> String {
    if path.contains('*') { path.to_owned() } else { glob_escaped(path) }
}

/// Escapes `?` and `[`: a shell has already expanded patterns, and these belong to names.
fn glob_escaped(path: &str) -> String {
    path.chars()
        .flat_map(|letter| match letter {
            '?' | '[' | ']' => vec!['[', letter, ']'],
            letter => vec![letter],
        })
        .collect()
}

/// A line of the table; names take `width` letters.
fn line(measured: &MeasuredCompression, rate: ByteRate, width: usize) -> String {
    let MeasuredCompression { compression, smaller, encode, decode } = measured;
    let written = ByteRate(rate.0 / smaller);
    if *compression == FrameCompression::None {
        return format!(
            "{:width$} {:>8} {:>13} {:>10} {:>13} {:>13}",
            compression.name(),
            "1.00",
            "",
            "",
            "",
            written.to_string()
        );
    }
    let cores = rate.0 / encode.0;
    format!(
        "{:width$} {smaller:>8.2} {:>13} {cores:>10.1} {:>13} {:>13}",
        compression.name(),
        encode.to_string(),
        decode.to_string(),
        written.to_string()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_the_cores_that_the_rate_needs() {
        let measured = MeasuredCompression {
            compression: FrameCompression::Bslz4,
            smaller: 10.0,
            encode: ByteRate(2e9),
            decode: ByteRate(4e9),
        };
        let words = line(&measured, ByteRate(5e9), 8);
        let words: Vec<_> = words.split_whitespace().collect();
        assert_eq!(words, ["bslz4", "10.00", "2", "GB/s", "2.5", "4", "GB/s", "500", "MB/s"]);
    }

    #[test]
    fn packed_samples_of_12_bits_are_compressed_and_come_back() {
        let samples = CompressibleSamples::of(PixelType::Uint12).expect("they can be compressed");
        assert_eq!(CompressibleSamples::of(PixelType::Uint2), None);
        let frame: Vec<u8> = (0..3000_u16).flat_map(|number| [number as u8, 0x10, 0]).collect();
        for compression in FrameCompression::ALL {
            let samples = samples.settled(compression);
            let mut chunk = vec![0; samples.encoding(compression).length_max(frame.len() as u64) as usize];
            let length = samples.encode(compression, &frame, &mut chunk).expect("no plug-in");
            let length = length.expect("it becomes smaller");
            assert!(length <= frame.len(), "{compression}");
            let mut back = vec![7; frame.len()];
            samples.decode(compression, &chunk[..length], &mut back).expect("it is whole");
            assert!(back == frame, "{compression}");
        }
    }

    #[test]
    fn names_of_files_stand_for_themselves() {
        assert_eq!(glob_of("/a/b[1].cbf"), "/a/b[[]1[]].cbf");
        assert_eq!(glob_of("/a/*.cbf"), "/a/*.cbf");
    }
}
