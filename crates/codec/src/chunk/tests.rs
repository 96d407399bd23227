//! Every compression for every element size: encoded data decode, and any bytes decode or are refused.

use proptest::prelude::*;

use super::*;
use crate::{ZstdLevel, bitshuffle::LZ4_BLOCK, uncompressed_bytes};

fn encoded(elements: &[u8], compression: Compression, size: ElementSize, method: Method) -> Vec<u8> {
    let mut chunk = vec![9; compression.most_bytes(elements.len())];
    let mut codec = ChunkCodec::with_method(compression, size, method);
    let length = codec.encode(elements, &mut chunk).expect("whole elements, and room for them");
    chunk.truncate(length);
    chunk
}

fn compression() -> impl Strategy<Value = Compression> {
    let compression = prop::sample::select(Compression::ALL.to_vec());
    (compression, 1..=9_u8).prop_map(|(compression, level)| {
        ZstdLevel::new(level).and_then(|level| compression.at_level(level)).unwrap_or(compression)
    })
}

fn size() -> impl Strategy<Value = ElementSize> {
    prop::sample::select(ElementSize::ALL.to_vec())
}

/// Bytes like a detector's, small with a large one now and then, or arbitrary. The lengths are none, one
/// element, odd counts, or several blocks of both lengths.
fn elements() -> impl Strategy<Value = (Vec<u8>, ElementSize)> {
    let byte = prop_oneof![20 => 0..4_u8, 1 => any::<u8>()];
    let length = prop_oneof![0..70_usize, 0..100_000_usize];
    let bytes = length.prop_flat_map(move |length| {
        prop_oneof![prop::collection::vec(byte.clone(), length), prop::collection::vec(any::<u8>(), length),]
    });
    (bytes, size()).prop_map(|(mut bytes, size)| {
        bytes.truncate(bytes.len() / size.bytes() * size.bytes());
        (bytes, size)
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_by_every_method((bytes, size) in elements(), compression in compression()) {
        let chunk = encoded(&bytes, compression, size, Method::Scalar);
        for method in Method::all() {
            prop_assert_eq!(&encoded(&bytes, compression, size, method), &chunk);
            let mut back = vec![9; bytes.len()];
            let mut codec = ChunkCodec::with_method(compression, size, method);
            for _ in 0..2 {
                prop_assert_eq!(codec.decode(&chunk, &mut back), Ok(()));
                prop_assert_eq!(&back, &bytes);
            }
        }
        if matches!(compression.filter(), Some(32004 | 32008)) {
            prop_assert_eq!(uncompressed_bytes(&chunk), Ok(bytes.len() as u64));
        }
    }

    #[test]
    fn what_has_no_room_is_refused(
        (bytes, size) in elements(),
        compression in compression(),
        keep in any::<prop::sample::Index>(),
    ) {
        let chunk = encoded(&bytes, compression, size, Method::best());
        let mut codec = ChunkCodec::new(compression, size);
        if !chunk.is_empty() {
            let room = keep.index(chunk.len());
            let refused = codec.encode(&bytes, &mut vec![0; room]);
            prop_assert_eq!(refused, Err(CodecError::Room { room }));
        }
        let mut into = vec![0; compression.most_bytes(bytes.len())];
        prop_assert_eq!(codec.encode(&bytes, &mut into), Ok(chunk.len()), "it works again");
        prop_assert_eq!(&into[..chunk.len()], &chunk[..]);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(
        chunk in prop::collection::vec(any::<u8>(), 0..400),
        length in 0..3000_usize,
        block in 0..300_u32,
        size in size(),
        compression in compression(),
    ) {
        let mut headed = [&(length as u64).to_be_bytes()[..], &(8 * block).to_be_bytes()].concat();
        headed.extend(&chunk);
        let mut magic = vec![0x28, 0xb5, 0x2f, 0xfd];
        magic.extend(&chunk);
        for bytes in [chunk, headed, magic] {
            let decoded = ChunkCodec::new(compression, size).decode(&bytes, &mut vec![0; length]);
            if decoded.is_ok() && matches!(compression.filter(), Some(32004 | 32008)) {
                prop_assert_eq!(uncompressed_bytes(&bytes), Ok(length as u64));
            }
        }
    }

    #[test]
    fn damage_is_never_a_panic(
        (bytes, size) in elements(),
        compression in compression(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
        keep in any::<prop::sample::Index>(),
    ) {
        let mut chunk = encoded(&bytes, compression, size, Method::best());
        prop_assume!(!chunk.is_empty());
        let mut back = vec![0; bytes.len()];
        let mut codec = ChunkCodec::new(compression, size);
        let short = &chunk[..keep.index(chunk.len())];
        prop_assert!(codec.decode(short, &mut back).is_err());
        let at = at.index(chunk.len());
        chunk[at] ^= change;
        let result = codec.decode(&chunk, &mut back);
        let told = matches!(compression.filter(), Some(32004 | 32008)) && at < 8;
        prop_assert!(!told || result.is_err(), "another length is told");
        chunk[at] ^= change;
        prop_assert_eq!(codec.decode(&chunk, &mut back), Ok(()), "it works again");
        prop_assert_eq!(back, bytes);
    }
}

#[test]
fn what_does_not_compress_stays_within_its_bound() {
    let mut random = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.to_le_bytes()[0]
    })
    .take(20 * LZ4_BLOCK + 8 * 3 + 4)
    .collect();
    for compression in Compression::ALL {
        let most = compression.most_bytes(noise.len());
        let chunk = encoded(&noise, compression, ElementSize::Four, Method::best());
        assert!(
            chunk.len() <= most && chunk.len() >= noise.len(),
            "{compression}: {} of {most}",
            chunk.len()
        );
        assert!(most <= noise.len() + noise.len() / 100 + 4096, "{compression}: {most} is far too much");
    }
}

#[test]
fn the_frame_of_a_chunk_is_as_the_filters_write_it() {
    let elements: Vec<u8> = (0..4100_u32).flat_map(|value| (value % 3).to_le_bytes()).collect();
    let chunk = encoded(&elements, Compression::BitshuffleLz4, ElementSize::Four, Method::best());
    assert_eq!(chunk[..12], [0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0, 0x20, 0]);
    // Two full blocks of 2048 elements, no partial block, four unchanged elements.
    let size = |at: usize| u32::from_be_bytes(chunk[at..at + 4].try_into().expect("four")) as usize;
    let first = size(12);
    let second = size(16 + first);
    assert_eq!(chunk.len(), 20 + first + second + 16);
    assert_eq!(chunk[chunk.len() - 16..], elements[elements.len() - 16..]);
    // Blocks of 32 KiB, the first of which holds everything; a frame of Zstandard begins with its magic
    // number.
    let chunk =
        encoded(&elements, Compression::BitshuffleZstd(ZstdLevel::USUAL), ElementSize::Four, Method::best());
    assert_eq!(chunk[..12], [0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0, 0x80, 0]);
    assert_eq!(chunk[16..20], [0x28, 0xb5, 0x2f, 0xfd]);
    // One block; data that do not shrink are stored unchanged.
    let chunk = encoded(&elements, Compression::Lz4, ElementSize::Four, Method::best());
    assert_eq!(chunk[..12], [0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0, 0x40, 0x10]);
    let chunk = encoded(&[1, 2, 3, 4], Compression::Lz4, ElementSize::Four, Method::best());
    assert_eq!(chunk, [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 1, 2, 3, 4]);
}

#[test]
fn what_is_wrong_is_told() {
    let mut codec = ChunkCodec::new(Compression::BitshuffleLz4, ElementSize::Four);
    let elements = [7; 4096];
    let chunk = encoded(&elements, codec.compression(), codec.element(), Method::best());
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
    assert_eq!(decode(&chunk, 4095), "4095 B are no whole number of elements of 4 B");
    let small = codec.encode(&elements, &mut [0; 20]).expect_err("there is no room");
    assert_eq!(small.to_string(), "does not fit into 20 B");
    let ragged = codec.encode(&elements[..4095], &mut [0; 5000]).expect_err("it is ragged");
    assert_eq!(ragged.to_string(), "4095 B are no whole number of elements of 4 B");
}

#[test]
fn what_is_wrong_with_chunks_of_other_filters_is_told() {
    let elements = [7; 4096];
    let wrong = |compression: Compression, change: fn(&mut Vec<u8>), room: usize| {
        let mut chunk = encoded(&elements, compression, ElementSize::Four, Method::best());
        change(&mut chunk);
        let decoded = ChunkCodec::new(compression, ElementSize::Four).decode(&chunk, &mut vec![0; room]);
        decoded.expect_err("it is wrong").to_string()
    };
    assert_eq!(wrong(Compression::None, |_| (), 4092), "holds 4096 B, not 4092");
    assert_eq!(wrong(Compression::Lz4, |chunk| chunk[8..12].fill(0), 4096), "has blocks of 0 B");
    assert_eq!(wrong(Compression::Lz4, |chunk| chunk[8] = 0x80, 4092), "holds 4096 B, not 4092");
    let zstd = Compression::Zstd(ZstdLevel::USUAL);
    assert_eq!(wrong(zstd, |_| (), 4092), "holds 4096 B, not 4092");
    assert_eq!(wrong(zstd, |chunk| chunk.push(0), 4096), "1 B follow its end");
    assert_eq!(wrong(zstd, |chunk| chunk[0] = 0, 4096), "is no frame of Zstandard, or a damaged one");
    assert_eq!(wrong(zstd, Vec::clear, 4096), "is no frame of Zstandard, or a damaged one");
}
