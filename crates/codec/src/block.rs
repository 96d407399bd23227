//! One block of bytes, compressed on its own by liblz4 or libzstd, directly into the caller's memory.

use lz4::block::{compress_to_buffer, decompress_to_buffer};
use zstd_safe::{CCtx, DCtx};

use crate::ZstdLevel;

/// The compressor of a block.
pub(crate) enum BlockCodec {
    Lz4,
    Zstd(ZstdContexts),
}

impl BlockCodec {
    /// Compresses `bytes` to the front of `into` and returns the size; `None` if there is too little room.
    /// `bytes` are at least one, at most 1 GiB.
    pub(crate) fn compress(&mut self, bytes: &[u8], into: &mut [u8]) -> Option<usize> {
        match self {
            BlockCodec::Lz4 => lz4_compress(bytes, into),
            BlockCodec::Zstd(contexts) => contexts.compress(bytes, into),
        }
    }

    /// Fills `bytes` from a block of exactly that length. After `None` their content is undefined.
    pub(crate) fn decompress(&mut self, packed: &[u8], bytes: &mut [u8]) -> Option<()> {
        match self {
            BlockCodec::Lz4 => lz4_decompress(packed, bytes),
            BlockCodec::Zstd(contexts) => contexts.decompress(packed, bytes),
        }
    }
}

/// Returns the most bytes of a block of this length if LZ4 can't compress it: `LZ4_COMPRESSBOUND` of `lz4.h`.
pub(crate) const fn lz4_bound(length: usize) -> usize {
    length + length / 255 + 16
}

/// Does the same as [`BlockCodec::compress`].
pub(crate) fn lz4_compress(bytes: &[u8], into: &mut [u8]) -> Option<usize> {
    // LZ4 counts in i32, so pass no more room than it can need.
    let room = into.len().min(lz4_bound(bytes.len()));
    compress_to_buffer(bytes, None, false, &mut into[..room]).ok()
}

/// Does the same as [`BlockCodec::decompress`].
pub(crate) fn lz4_decompress(packed: &[u8], bytes: &mut [u8]) -> Option<()> {
    let length = i32::try_from(bytes.len()).ok()?;
    i32::try_from(packed.len()).ok()?;
    let decompressed = decompress_to_buffer(packed, Some(length), bytes).ok()?;
    (decompressed == bytes.len()).then_some(())
}

/// The contexts of libzstd, kept from block to block to avoid allocating some hundred KiB each time. The
/// first block that needs one creates it.
pub(crate) struct ZstdContexts {
    level: ZstdLevel,
    compression: Option<CCtx<'static>>,
    decompression: Option<DCtx<'static>>,
}

impl ZstdContexts {
    pub(crate) fn new(level: ZstdLevel) -> Self {
        ZstdContexts { level, compression: None, decompression: None }
    }

    /// Does the same as [`BlockCodec::compress`], for any length. The frame states its uncompressed size.
    pub(crate) fn compress(&mut self, bytes: &[u8], into: &mut [u8]) -> Option<usize> {
        let context = self.compression.get_or_insert_with(CCtx::create);
        context.compress(into, bytes, self.level.get().into()).ok()
    }

    /// Does the same as [`BlockCodec::decompress`], for any length.
    pub(crate) fn decompress(&mut self, packed: &[u8], bytes: &mut [u8]) -> Option<()> {
        let context = self.decompression.get_or_insert_with(DCtx::create);
        let decompressed = context.decompress(bytes, packed).ok()?;
        (decompressed == bytes.len()).then_some(())
    }
}
