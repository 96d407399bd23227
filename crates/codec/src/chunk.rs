//! Chunks of HDF5 datasets, by any of the compressions: elements to the bytes of a direct chunk write, and
//! back.

use std::fmt;

use crate::{
    CodecError, Compression, ElementSize, Method, bitshuffle::Bitshuffle, block::ZstdContexts, lz4_filter,
};

/// Encodes and decodes chunks of elements of one size with one compression. It keeps its working memory from
/// chunk to chunk; use one per thread.
pub struct ChunkCodec {
    compression: Compression,
    element: ElementSize,
    framing: Framing,
}

/// The format of a chunk.
enum Framing {
    /// The unchanged elements.
    Plain,
    /// The format of HDF5 filter 32004.
    Lz4,
    /// A Zstandard frame that states its size: HDF5 filter 32015.
    ///
    /// The plug-in is `H5Zzstd.c` of `github.com/HDFGroup/hdf5_plugins`.
    Zstd(ZstdContexts),
    /// The format of HDF5 filter 32008.
    Bitshuffle(Bitshuffle),
}

impl fmt::Debug for ChunkCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChunkCodec { compression, element, .. } = self;
        let mut written = f.debug_struct("ChunkCodec");
        written.field("compression", compression).field("element", element).finish_non_exhaustive()
    }
}

impl ChunkCodec {
    /// Creates a codec for elements of this size, with the fastest transposition that this processor has.
    pub fn new(compression: Compression, element: ElementSize) -> Self {
        Self::with_method(compression, element, Method::best())
    }

    /// Creates a codec with a given transposition, to compare them; compressions without one ignore it.
    pub fn with_method(compression: Compression, element: ElementSize, method: Method) -> Self {
        let framing = match compression {
            Compression::None => Framing::Plain,
            Compression::Lz4 => Framing::Lz4,
            Compression::Zstd(level) => Framing::Zstd(ZstdContexts::new(level)),
            Compression::BitshuffleLz4 => Framing::Bitshuffle(Bitshuffle::lz4(element, method)),
            Compression::BitshuffleZstd(level) => {
                Framing::Bitshuffle(Bitshuffle::zstd(element, method, level))
            }
        };
        ChunkCodec { compression, element, framing }
    }

    /// Returns its compression.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns its element size.
    pub fn element(&self) -> ElementSize {
        self.element
    }

    /// Writes the chunk of these elements to the front of `into` and returns its size.
    /// [`Compression::most_bytes`] are always enough room. It fails if there is too little, or if `elements`
    /// end within an element. The content of `into` is then undefined.
    pub fn encode(&mut self, elements: &[u8], into: &mut [u8]) -> Result<usize, CodecError> {
        self.check(elements)?;
        let room = into.len();
        match &mut self.framing {
            Framing::Plain => {
                let into = into.get_mut(..elements.len()).ok_or(CodecError::Room { room })?;
                into.copy_from_slice(elements);
                Ok(elements.len())
            }
            Framing::Lz4 => lz4_filter::encode(elements, into),
            Framing::Zstd(contexts) => contexts.compress(elements, into).ok_or(CodecError::Room { room }),
            Framing::Bitshuffle(bitshuffle) => bitshuffle.encode(elements, into),
        }
    }

    /// Decodes a chunk into exactly its elements. After an error their content is undefined.
    pub fn decode(&mut self, chunk: &[u8], elements: &mut [u8]) -> Result<(), CodecError> {
        self.check(elements)?;
        match &mut self.framing {
            Framing::Plain => {
                same_length(chunk.len() as u64, elements)?;
                elements.copy_from_slice(chunk);
                Ok(())
            }
            Framing::Lz4 => lz4_filter::decode(chunk, elements),
            Framing::Zstd(contexts) => decode_frame(contexts, chunk, elements),
            Framing::Bitshuffle(bitshuffle) => bitshuffle.decode(chunk, elements),
        }
    }

    fn check(&self, elements: &[u8]) -> Result<(), CodecError> {
        let element = self.element.bytes();
        if elements.len().is_multiple_of(element) {
            return Ok(());
        }
        Err(CodecError::Ragged { length: elements.len(), element })
    }
}

/// Decodes a frame of Zstandard. It need not state its size; stream writers omit it.
fn decode_frame(contexts: &mut ZstdContexts, frame: &[u8], elements: &mut [u8]) -> Result<(), CodecError> {
    let length = zstd_safe::find_frame_compressed_size(frame).map_err(|_| CodecError::Frame)?;
    if let Some(holds) = zstd_safe::get_frame_content_size(frame).map_err(|_| CodecError::Frame)? {
        same_length(holds, elements)?;
    }
    match frame.len() - length {
        0 => contexts.decompress(frame, elements).ok_or(CodecError::Frame),
        bytes => Err(CodecError::Trailing { bytes }),
    }
}

fn same_length(holds: u64, elements: &[u8]) -> Result<(), CodecError> {
    let wanted = elements.len() as u64;
    if holds == wanted { Ok(()) } else { Err(CodecError::Length { holds, wanted }) }
}

#[cfg(test)]
mod tests;
