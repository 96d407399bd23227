//! Bit transposition and LZ4: the chunks of HDF5 filter 32008, which are also the `bslz4` of the DECTRIS stream.
//!
//! A chunk is the number of uncompressed bytes (u64), the block size in bytes (u32), both big-endian, then for each block
//! its compressed size (u32, big-endian) and the LZ4 block of its transposed bits. The last block has what is left, a
//! multiple of 8 elements; fewer than 8 elements follow as they are. (`bshuf_h5filter.c` and `bitshuffle.c` of
//! github.com/kiyo-masui/bitshuffle.)

use lz4::block::{compress_bound, compress_to_buffer, decompress_to_buffer};

use crate::{CodecError, ElementSize, Method};

/// Bytes of a block unless a chunk says otherwise: `BSHUF_TARGET_BLOCK_SIZE_B` of the library.
pub const BLOCK: usize = 8192;
/// Bytes before the first block.
pub const HEADER: usize = 12;

/// Encodes and decodes chunks of elements of one size. Keeps its working memory from chunk to chunk.
pub struct Bitshuffle {
    element: ElementSize,
    method: Method,
    /// A block's rows of bits, the planes on the way back, and the LZ4 block.
    rows: Vec<u8>,
    planes: Vec<u8>,
    packed: Vec<u8>,
}

impl std::fmt::Debug for Bitshuffle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bitshuffle { element, method, .. } = self;
        f.debug_struct("Bitshuffle").field("element", element).field("method", method).finish_non_exhaustive()
    }
}

impl Bitshuffle {
    /// For elements of this size, by the fastest method this processor has.
    pub fn new(element: ElementSize) -> Self {
        Self::with_method(element, Method::best())
    }

    /// By a method of choice, to compare them.
    pub fn with_method(element: ElementSize, method: Method) -> Self {
        Bitshuffle {
            element,
            method,
            rows: vec![0; BLOCK],
            planes: Vec::new(),
            packed: vec![0; compress_bound(BLOCK).expect("far below LZ4's limit")],
        }
    }

    /// Appends the chunk of these elements. Fails only where `elements` end within one.
    pub fn encode(&mut self, elements: &[u8], chunk: &mut Vec<u8>) -> Result<(), CodecError> {
        let (blocks, left) = self.share_out(elements.len(), BLOCK)?;
        chunk.extend((elements.len() as u64).to_be_bytes());
        chunk.extend((BLOCK as u32).to_be_bytes());
        let blocks = elements[..blocks].chunks(BLOCK);
        let left = &elements[elements.len() - left..];
        for block in blocks {
            let rows = &mut self.rows[..block.len()];
            self.method.split(block, self.element, rows);
            let size = compress_to_buffer(rows, None, false, &mut self.packed)
                .expect("there is room for a block that does not compress");
            chunk.extend((size as u32).to_be_bytes());
            chunk.extend_from_slice(&self.packed[..size]);
        }
        chunk.extend_from_slice(left);
        Ok(())
    }

    /// Decodes a chunk into exactly the elements that it holds. After an error their content is not defined.
    pub fn decode(&mut self, chunk: &[u8], elements: &mut [u8]) -> Result<(), CodecError> {
        let (holds, block_size) = header(chunk)?;
        if holds != elements.len() as u64 {
            return Err(CodecError::Length { holds, wanted: elements.len() as u64 });
        }
        let element = self.element.bytes();
        if block_size == 0 || !(block_size as usize).is_multiple_of(8 * element) {
            return Err(CodecError::BlockSize { size: block_size, element });
        }
        let (blocks, left) = self.share_out(elements.len(), block_size as usize)?;
        let longest = blocks.min(block_size as usize);
        self.rows.resize(self.rows.len().max(longest), 0);
        self.planes.resize(self.planes.len().max(longest), 0);
        let (blocks, tail) = elements.split_at_mut(blocks);
        let mut at = HEADER;
        for (number, block) in blocks.chunks_mut(block_size as usize).enumerate() {
            let size = u32::from_be_bytes(array(chunk, at, "a block's size")?) as usize;
            let packed = slice(chunk, at + 4, size, "a block")?;
            self.unpack(packed, block).ok_or(CodecError::Block { block: number, at: at + 4 })?;
            at += 4 + size;
        }
        tail.copy_from_slice(slice(chunk, at, left, "the last elements")?);
        match chunk.len() - at - left {
            0 => Ok(()),
            bytes => Err(CodecError::Trailing { bytes }),
        }
    }

    /// Nothing if LZ4 finds other than the block's bytes.
    fn unpack(&mut self, packed: &[u8], block: &mut [u8]) -> Option<()> {
        let rows = &mut self.rows[..block.len()];
        let planes = &mut self.planes[..block.len()];
        let length = i32::try_from(rows.len()).ok()?;
        if decompress_to_buffer(packed, Some(length), rows).ok()? != block.len() {
            return None;
        }
        self.method.join(rows, self.element, block, planes);
        Some(())
    }

    /// Of so many bytes: how many are in blocks, and how many follow as they are.
    fn share_out(&self, length: usize, block: usize) -> Result<(usize, usize), CodecError> {
        let element = self.element.bytes();
        if !length.is_multiple_of(element) {
            return Err(CodecError::Ragged { length, element });
        }
        debug_assert_eq!(block % (8 * element), 0, "checked, or a constant");
        let left = length % (8 * element);
        Ok((length - left, left))
    }

    /// How many times smaller these elements become; 1 for none.
    pub fn ratio(&mut self, elements: &[u8]) -> Result<f64, CodecError> {
        let mut chunk = Vec::with_capacity(elements.len() / 2);
        self.encode(elements, &mut chunk)?;
        Ok(if elements.is_empty() { 1.0 } else { elements.len() as f64 / chunk.len() as f64 })
    }
}

/// How many bytes a chunk says that it holds. The caller decides whether to believe it.
pub fn uncompressed_bytes(chunk: &[u8]) -> Result<u64, CodecError> {
    Ok(header(chunk)?.0)
}

fn header(chunk: &[u8]) -> Result<(u64, u32), CodecError> {
    let bytes = array(chunk, 0, "the header")?;
    let block = array(chunk, 8, "the header")?;
    Ok((u64::from_be_bytes(bytes), u32::from_be_bytes(block)))
}

fn array<const N: usize>(chunk: &[u8], at: usize, what: &'static str) -> Result<[u8; N], CodecError> {
    Ok(slice(chunk, at, N, what)?.try_into().expect("cut to this length"))
}

fn slice<'a>(chunk: &'a [u8], at: usize, length: usize, what: &'static str) -> Result<&'a [u8], CodecError> {
    let rest = chunk.get(at..).and_then(|rest| rest.get(..length));
    rest.ok_or(CodecError::Short { at: chunk.len(), what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(elements: &[u8], size: ElementSize, method: Method) -> Vec<u8> {
        let mut chunk = Vec::new();
        Bitshuffle::with_method(size, method).encode(elements, &mut chunk).expect("whole elements");
        chunk
    }

    /// Bytes as detectors have them: small, with a large one now and then.
    fn elements() -> impl Strategy<Value = (Vec<u8>, ElementSize)> {
        let byte = prop_oneof![20 => 0..4_u8, 1 => any::<u8>()];
        let bytes = prop_oneof![
            prop::collection::vec(byte, 0..40_000),
            prop::collection::vec(any::<u8>(), 0..40_000),
        ];
        (bytes, prop::sample::select(ElementSize::ALL.to_vec())).prop_map(|(mut bytes, size)| {
            bytes.truncate(bytes.len() / size.bytes() * size.bytes());
            (bytes, size)
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_by_every_method((bytes, size) in elements()) {
            let chunk = encoded(&bytes, size, Method::Scalar);
            for method in Method::all() {
                prop_assert_eq!(&encoded(&bytes, size, method), &chunk);
                let mut back = vec![9; bytes.len()];
                prop_assert_eq!(Bitshuffle::with_method(size, method).decode(&chunk, &mut back), Ok(()));
                prop_assert_eq!(&back, &bytes);
            }
            prop_assert_eq!(uncompressed_bytes(&chunk), Ok(bytes.len() as u64));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            chunk in prop::collection::vec(any::<u8>(), 0..400),
            length in 0..3000_usize,
            block in 0..300_u32,
            size in prop::sample::select(ElementSize::ALL.to_vec()),
        ) {
            let mut headed = [&(length as u64).to_be_bytes()[..], &(8 * block).to_be_bytes()].concat();
            headed.extend(&chunk);
            for bytes in [chunk, headed] {
                if Bitshuffle::new(size).decode(&bytes, &mut vec![0; length]).is_ok() {
                    prop_assert_eq!(uncompressed_bytes(&bytes), Ok(length as u64));
                }
            }
        }

        #[test]
        fn damage_is_never_a_panic(
            (bytes, size) in elements(),
            at in any::<prop::sample::Index>(),
            change in 1..=255_u8,
            keep in any::<prop::sample::Index>(),
        ) {
            let mut chunk = encoded(&bytes, size, Method::best());
            let mut back = vec![0; bytes.len()];
            let short = &chunk[..keep.index(chunk.len())];
            prop_assert!(Bitshuffle::new(size).decode(short, &mut back).is_err());
            let at = at.index(chunk.len());
            chunk[at] ^= change;
            let result = Bitshuffle::new(size).decode(&chunk, &mut back);
            prop_assert!(at >= 8 || result.is_err(), "another length is told");
        }
    }

    #[test]
    fn the_frame_of_a_chunk_is_as_the_filter_writes_it() {
        let elements: Vec<u8> = (0..4100_u32).flat_map(|value| (value % 3).to_le_bytes()).collect();
        let chunk = encoded(&elements, ElementSize::Four, Method::best());
        assert_eq!(chunk[..12], [0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0, 0x20, 0]);
        // Two full blocks of 2048 elements, none with what is left, four elements as they are.
        let first = u32::from_be_bytes(chunk[12..16].try_into().expect("four")) as usize;
        let second = u32::from_be_bytes(chunk[16 + first..20 + first].try_into().expect("four")) as usize;
        assert_eq!(chunk.len(), 20 + first + second + 16);
        assert_eq!(chunk[chunk.len() - 16..], elements[elements.len() - 16..]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let mut codec = Bitshuffle::new(ElementSize::Four);
        let elements = [7; 4096];
        let chunk = encoded(&elements, ElementSize::Four, Method::best());
        let mut decode = |chunk: &[u8], room: usize| {
            codec.decode(chunk, &mut vec![0; room]).expect_err("it is wrong").to_string()
        };
        assert_eq!(decode(&chunk, 4092), "holds 4096 B, not 4092");
        assert_eq!(decode(&chunk[..11], 4096), "ends at byte 11, within the header");
        assert_eq!(decode(&[&chunk[..], &[0]].concat(), 4096), "1 B follow its end");
        let mut odd = chunk.clone();
        odd[11] = 1;
        assert_eq!(decode(&odd, 4096), "has blocks of 8193 B: no multiple of 8 elements of 4 B");
        let mut damaged = chunk.clone();
        damaged[15] += 1;
        damaged.push(0);
        assert_eq!(decode(&damaged, 4096), "block 0 at byte 16 is damaged");
        let ragged = codec.encode(&elements[..4095], &mut Vec::new()).expect_err("it is ragged");
        assert_eq!(ragged.to_string(), "4095 B are no whole number of elements of 4 B");
    }
}
