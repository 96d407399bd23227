//! LZ4 of unchanged bytes: the chunks of HDF5 filter 32004.
//!
//! The frame is that of [`frame`](crate::frame). A block that does not become smaller is stored unchanged;
//! its compressed size then equals its size. (`H5Zlz4.c` of `github.com/HDFGroup/hdf5_plugins`.)

use crate::{
    CodecError,
    block::{lz4_compress, lz4_decompress},
    frame::{Blocks, ChunkWriter, Header},
};

/// Bytes of a block, or of the chunk if it is smaller: the filter's `DEFAULT_BLOCK_SIZE`.
pub(crate) const BLOCK: usize = 1 << 30;

/// Writes the chunk to the front of `into` and returns its size.
pub(crate) fn encode(bytes: &[u8], into: &mut [u8]) -> Result<usize, CodecError> {
    let block_size = BLOCK.min(bytes.len()) as u32;
    let mut chunk = ChunkWriter::begin(into, Header { bytes: bytes.len() as u64, block_size })?;
    for block in bytes.chunks(BLOCK) {
        chunk.block(|room| compress(block, room))?;
    }
    Ok(chunk.end())
}

fn compress(block: &[u8], into: &mut [u8]) -> Option<usize> {
    match lz4_compress(block, into) {
        Some(size) if size < block.len() => Some(size),
        _ => {
            into.get_mut(..block.len())?.copy_from_slice(block);
            Some(block.len())
        }
    }
}

/// Decodes a chunk into exactly its bytes.
pub(crate) fn decode(chunk: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let Header { block_size, .. } = Header::of(chunk, bytes.len())?;
    let mut blocks = Blocks::of(chunk);
    if block_size == 0 && !bytes.is_empty() {
        return Err(CodecError::EmptyBlocks);
    }
    for block in bytes.chunks_mut((block_size as usize).max(1)) {
        blocks.next(|packed| {
            if packed.len() == block.len() {
                block.copy_from_slice(packed);
                return Some(());
            }
            lz4_decompress(packed, block)
        })?;
    }
    blocks.end()
}
