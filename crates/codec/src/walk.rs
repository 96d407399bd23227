//! Checks a chunk without unpacking it: block by block, and in each block LZ4 sequence by sequence.
//!
//! A sequence is a token, literals and a match. The token and the bytes after it give the number of literals
//! and the length of the match; two more bytes give the distance back to its beginning. A walk therefore
//! reads a few bytes of each sequence and skips the literals.
//!
//! It finds a block that ends early, holds too much or too little, or refers to bytes before its beginning.
//! It does not find changed literals: only a checksum does. (`doc/lz4_Block_format.md` of
//! github.com/lz4/lz4.)

use crate::{
    CodecError, Compression, ElementSize,
    frame::{Blocks, Header},
};

/// Bytes of the shortest match.
const MATCH: usize = 4;
/// The number of literals that must end a block.
const LITERALS_AT_END: usize = 5;
/// The number of bytes at the end of a block in which no match may begin.
const NO_MATCH_BEFORE_END: usize = 12;

/// Checks by its structure that a chunk can be unpacked to `length` bytes of elements. It does not inspect
/// compressions without LZ4.
///
/// # Errors
/// If [`ChunkCodec::decode`](crate::ChunkCodec::decode) would fail for the structure of the chunk.
pub fn check_structure(
    compression: Compression,
    element: ElementSize,
    chunk: &[u8],
    length: usize,
) -> Result<(), CodecError> {
    match compression {
        Compression::BitshuffleLz4 => check_bitshuffle(element, chunk, length),
        Compression::Lz4 => check_lz4(chunk, length),
        Compression::None | Compression::Zstd(_) | Compression::BitshuffleZstd(_) => Ok(()),
    }
}

fn check_bitshuffle(element: ElementSize, chunk: &[u8], length: usize) -> Result<(), CodecError> {
    let Header { block_size: size, .. } = Header::of(chunk, length)?;
    let group = 8 * element.bytes();
    if size == 0 || !(size as usize).is_multiple_of(group) {
        return Err(CodecError::BlockSize { size, element: element.bytes() });
    }
    let left = length % group;
    let mut blocks = Blocks::of(chunk);
    for holds in sizes(length - left, size as usize) {
        blocks.next(|packed| walk(packed, holds))?;
    }
    blocks.take(left, "the last elements")?;
    blocks.end()
}

fn check_lz4(chunk: &[u8], length: usize) -> Result<(), CodecError> {
    let Header { block_size, .. } = Header::of(chunk, length)?;
    if block_size == 0 && length > 0 {
        return Err(CodecError::EmptyBlocks);
    }
    let mut blocks = Blocks::of(chunk);
    for holds in sizes(length, (block_size as usize).max(1)) {
        // A block whose packed length equals its size is not compressed.
        blocks.next(|packed| if packed.len() == holds { Some(()) } else { walk(packed, holds) })?;
    }
    blocks.end()
}

/// Returns the number of bytes in each block of a chunk.
fn sizes(length: usize, block_size: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(block_size).map(move |begin| block_size.min(length - begin))
}

/// Walks a block; `None` if it does not hold exactly `size` bytes.
fn walk(packed: &[u8], size: usize) -> Option<()> {
    let mut at = 0;
    let mut held = 0;
    loop {
        let token = *packed.get(at)?;
        at += 1;
        let literals = extended(token >> 4, packed, &mut at)?;
        at += literals;
        held += literals;
        if at == packed.len() {
            return (held == size).then_some(());
        }
        let has_room = at + LITERALS_AT_END < packed.len() && held + NO_MATCH_BEFORE_END <= size;
        if !has_room {
            return None;
        }
        let offset = usize::from(u16::from_le_bytes([packed[at], packed[at + 1]]));
        at += 2;
        if offset > held {
            return None;
        }
        held += MATCH + extended(token & 15, packed, &mut at)?;
        if held + LITERALS_AT_END > size {
            return None;
        }
    }
}

/// Returns a length of four bits, extended by the bytes that follow if all four are set.
fn extended(bits: u8, packed: &[u8], at: &mut usize) -> Option<usize> {
    let mut length = usize::from(bits);
    if bits < 15 {
        return Some(length);
    }
    loop {
        let more = *packed.get(*at)?;
        *at += 1;
        length += usize::from(more);
        if more < u8::MAX {
            return Some(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ChunkCodec;

    const CODECS: [Compression; 2] = [Compression::BitshuffleLz4, Compression::Lz4];

    /// Pixels of a detector: most of them small, some runs, some noise.
    fn pixels(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..length).map(|at| if at / 700 % 3 == 0 { next() } else { next() & 1 }).collect()
    }

    fn packed(compression: Compression, element: ElementSize, bytes: &[u8]) -> Vec<u8> {
        let mut into = vec![0; compression.most_bytes(bytes.len())];
        let mut codec = ChunkCodec::new(compression, element);
        let length = codec.encode(bytes, &mut into).expect("there is room");
        into.truncate(length);
        into
    }

    /// Returns true if the chunk can be unpacked.
    fn unpacks(compression: Compression, element: ElementSize, chunk: &[u8], length: usize) -> bool {
        ChunkCodec::new(compression, element).decode(chunk, &mut vec![0; length]).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_walk_says_what_unpacking_says(
            seed: u64, elements in 1..9000_usize, codec in 0..2_usize, wide: bool,
            change in prop::option::of((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..24))),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let element = if wide { ElementSize::Four } else { ElementSize::Two };
            let length = elements * element.bytes();
            let mut chunk = packed(CODECS[codec], element, &pixels(seed, length));
            prop_assert_eq!(check_structure(CODECS[codec], element, &chunk, length), Ok(()));
            if let Some((at, bytes)) = change {
                let at = at.index(chunk.len());
                let end = (at + bytes.len()).min(chunk.len());
                chunk[at..end].copy_from_slice(&bytes[..end - at]);
            }
            if let Some(cut) = cut {
                chunk.truncate(cut.index(chunk.len() + 1));
            }
            let walked = check_structure(CODECS[codec], element, &chunk, length);
            prop_assert_eq!(walked.is_ok(), unpacks(CODECS[codec], element, &chunk, length), "{:?}", walked);
        }
    }

    #[test]
    fn a_run_of_set_bits_within_a_block_is_damage() {
        let bytes: Vec<u8> = (0..5120_u16).flat_map(|at| (at % 977).to_le_bytes()).collect();
        let mut chunk = packed(Compression::BitshuffleLz4, ElementSize::Two, &bytes);
        chunk[40..60].fill(255);
        let checked = check_structure(Compression::BitshuffleLz4, ElementSize::Two, &chunk, bytes.len());
        assert_eq!(checked, Err(CodecError::Block { block: 0, at: 16 }));
    }

    #[test]
    fn what_has_no_lz4_in_it_is_not_looked_at() {
        assert_eq!(check_structure(Compression::None, ElementSize::One, &[1, 2], 3), Ok(()));
    }
}
