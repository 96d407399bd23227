//! The frame that the HDF5 filters 32004 and 32008 share: a header of 12 bytes, then blocks, each after its
//! compressed size.
//!
//! The header is the number of uncompressed bytes (u64) and the block size in bytes (u32). Compressed sizes
//! are u32; all are big-endian. (`H5Zlz4.c` of `github.com/HDFGroup/hdf5_plugins`; `bshuf_h5filter.c` of
//! github.com/kiyo-masui/bitshuffle.)

use crate::CodecError;

/// Bytes before the first block.
pub(crate) const HEADER: usize = 12;
/// Bytes before each block: its compressed size.
pub(crate) const BLOCK_HEADER: usize = 4;

/// The header of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    /// Uncompressed bytes of the whole chunk.
    pub(crate) bytes: u64,
    /// Uncompressed bytes of each block except the last.
    pub(crate) block_size: u32,
}

impl Header {
    /// Reads the header of a chunk that must hold `wanted` bytes.
    pub(crate) fn of(chunk: &[u8], wanted: usize) -> Result<Self, CodecError> {
        let header = Self::read(chunk)?;
        if header.bytes != wanted as u64 {
            return Err(CodecError::Length { holds: header.bytes, wanted: wanted as u64 });
        }
        Ok(header)
    }

    fn read(chunk: &[u8]) -> Result<Self, CodecError> {
        let mut blocks = Blocks { chunk, at: 0, number: 0 };
        let bytes = u64::from_be_bytes(blocks.array("the header")?);
        let block_size = u32::from_be_bytes(blocks.array("the header")?);
        Ok(Header { bytes, block_size })
    }
}

/// Returns the uncompressed bytes that a chunk of the filters 32004 and 32008 states. Verify the number
/// before you trust it.
pub fn uncompressed_bytes(chunk: &[u8]) -> Result<u64, CodecError> {
    Ok(Header::read(chunk)?.bytes)
}

/// A chunk that is being written into the caller's memory.
pub(crate) struct ChunkWriter<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl<'a> ChunkWriter<'a> {
    /// Begins a chunk with its header.
    pub(crate) fn begin(into: &'a mut [u8], header: Header) -> Result<Self, CodecError> {
        let mut writer = ChunkWriter { into, at: 0 };
        writer.put(&header.bytes.to_be_bytes())?;
        writer.put(&header.block_size.to_be_bytes())?;
        Ok(writer)
    }

    /// Writes bytes unchanged.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        let full = CodecError::Room { room: self.into.len() };
        let room = self.into.get_mut(self.at..).and_then(|room| room.get_mut(..bytes.len())).ok_or(full)?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// Writes a block after its compressed size. `compress` writes it into all remaining room and returns its
    /// length, or `None` if there is too little.
    pub(crate) fn block(
        &mut self,
        compress: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), CodecError> {
        let full = CodecError::Room { room: self.into.len() };
        let begins = self.at + BLOCK_HEADER;
        let size = self.into.get_mut(begins..).and_then(compress).ok_or(full)?;
        self.put(&(size as u32).to_be_bytes())?;
        self.at += size;
        Ok(())
    }

    /// Returns the bytes of the whole chunk.
    pub(crate) fn end(self) -> usize {
        self.at
    }
}

/// The blocks of a chunk, read in order.
pub(crate) struct Blocks<'a> {
    chunk: &'a [u8],
    at: usize,
    number: usize,
}

impl<'a> Blocks<'a> {
    /// Starts after the header.
    pub(crate) fn of(chunk: &'a [u8]) -> Self {
        Blocks { chunk, at: HEADER, number: 0 }
    }

    /// Reads the next block; `unpack` returns `None` if it is damaged.
    pub(crate) fn next(&mut self, unpack: impl FnOnce(&[u8]) -> Option<()>) -> Result<(), CodecError> {
        let size = u32::from_be_bytes(self.array("a block's size")?) as usize;
        let damaged = CodecError::Block { block: self.number, at: self.at };
        let packed = self.take(size, "a block")?;
        self.number += 1;
        unpack(packed).ok_or(damaged)
    }

    /// Reads `length` unchanged bytes.
    pub(crate) fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], CodecError> {
        let rest = self.chunk.get(self.at..).and_then(|rest| rest.get(..length));
        let bytes = rest.ok_or(CodecError::Short { at: self.chunk.len(), what })?;
        self.at += length;
        Ok(bytes)
    }

    /// Checks that nothing follows.
    pub(crate) fn end(self) -> Result<(), CodecError> {
        match self.chunk.len() - self.at {
            0 => Ok(()),
            bytes => Err(CodecError::Trailing { bytes }),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], CodecError> {
        Ok(self.take(N, what)?.try_into().expect("cut to this length"))
    }
}
