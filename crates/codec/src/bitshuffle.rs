//! Transposed bits, compressed by LZ4 or Zstandard: the chunks of HDF5 filter 32008. With LZ4 they are
//! also the `bslz4` of the DECTRIS stream.
//!
//! The frame is that of [`frame`](crate::frame); each block is the compressed, transposed bits of its
//! elements. The last block has the remaining multiple of 8 elements; fewer than 8 elements follow unchanged.
//! (`bshuf_h5filter.c` and `bitshuffle.c` of github.com/kiyo-masui/bitshuffle.)

use crate::{
    CodecError, ElementSize, Method, ZstdLevel,
    block::{BlockCodec, ZstdContexts},
    frame::{Blocks, ChunkWriter, Header},
};

/// Bytes of a block for LZ4: `BSHUF_TARGET_BLOCK_SIZE_B` of the library.
pub(crate) const LZ4_BLOCK: usize = 8192;
/// Bytes of a block for Zstandard, whose frames have a larger header. Longer rows of bits compress better and
/// faster than those of the library's 8 KiB. Its readers take the block size from the chunk.
pub(crate) const ZSTD_BLOCK: usize = 4 * LZ4_BLOCK;

/// Encodes and decodes chunks of elements of one size.
pub(crate) struct Bitshuffle {
    element: ElementSize,
    method: Method,
    codec: BlockCodec,
    /// Bytes of an encoded block.
    block_size: usize,
    /// A block's rows of bits, and the planes for decoding.
    rows: Vec<u8>,
    planes: Vec<u8>,
}

impl Bitshuffle {
    /// Creates a codec with LZ4.
    pub(crate) fn lz4(element: ElementSize, method: Method) -> Self {
        Self::new(element, method, BlockCodec::Lz4, LZ4_BLOCK)
    }

    /// Creates a codec with Zstandard.
    pub(crate) fn zstd(element: ElementSize, method: Method, level: ZstdLevel) -> Self {
        Self::new(element, method, BlockCodec::Zstd(ZstdContexts::new(level)), ZSTD_BLOCK)
    }

    fn new(element: ElementSize, method: Method, codec: BlockCodec, block_size: usize) -> Self {
        Bitshuffle { element, method, codec, block_size, rows: vec![0; block_size], planes: Vec::new() }
    }

    /// Writes the chunk to the front of `into` and returns its size. The elements are whole.
    pub(crate) fn encode(&mut self, elements: &[u8], into: &mut [u8]) -> Result<usize, CodecError> {
        let header = Header { bytes: elements.len() as u64, block_size: self.block_size as u32 };
        let mut chunk = ChunkWriter::begin(into, header)?;
        let (blocks, left) = elements.split_at(elements.len() - self.left(elements.len()));
        for block in blocks.chunks(self.block_size) {
            let rows = &mut self.rows[..block.len()];
            self.method.split(block, self.element, rows);
            chunk.block(|room| self.codec.compress(rows, room))?;
        }
        chunk.put(left)?;
        Ok(chunk.end())
    }

    /// Decodes a chunk into exactly its elements, which are whole.
    pub(crate) fn decode(&mut self, chunk: &[u8], elements: &mut [u8]) -> Result<(), CodecError> {
        let Header { block_size: size, .. } = Header::of(chunk, elements.len())?;
        let block_size = size as usize;
        let element = self.element.bytes();
        if size == 0 || !block_size.is_multiple_of(8 * element) {
            return Err(CodecError::BlockSize { size, element });
        }
        let (in_blocks, left) = elements.split_at_mut(elements.len() - self.left(elements.len()));
        let longest = in_blocks.len().min(block_size);
        self.rows.resize(self.rows.len().max(longest), 0);
        self.planes.resize(self.planes.len().max(longest), 0);
        let mut blocks = Blocks::of(chunk);
        for block in in_blocks.chunks_mut(block_size) {
            blocks.next(|packed| self.unpack(packed, block))?;
        }
        left.copy_from_slice(blocks.take(left.len(), "the last elements")?);
        blocks.end()
    }

    /// Unpacks a block; `None` if it does not hold exactly the block's bytes.
    fn unpack(&mut self, packed: &[u8], block: &mut [u8]) -> Option<()> {
        let rows = &mut self.rows[..block.len()];
        let planes = &mut self.planes[..block.len()];
        self.codec.decompress(packed, rows)?;
        self.method.join(rows, self.element, block, planes);
        Some(())
    }

    /// Returns the number of bytes at the end of `length` that are in no block.
    fn left(&self, length: usize) -> usize {
        length % (8 * self.element.bytes())
    }
}
