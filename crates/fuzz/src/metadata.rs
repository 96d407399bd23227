//! HDF5 files whose metadata are almost right. Most changes hit a block of metadata. In most files the
//! checksums are then corrected: the library looks no further at a block with a wrong one.

/// Signatures of blocks of metadata (HDF5 File Format Specification, version 3.0).
const SIGNATURES: [&[u8]; 16] = [
    b"TREE", b"SNOD", b"HEAP", b"GCOL", b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF",
    b"FAHD", b"FADB", b"EAHD", b"EAIB", b"\x89HDF",
];
/// Blocks of a fixed length: the signature, and the position of the checksum.
const CHECKED: [(&[u8], usize); 5] =
    [(b"BTHD", 34), (b"FAHD", 24), (b"EAHD", 68), (b"FRHP", 142), (b"\x89HDF", SUPERBLOCK_CHECKED)];
/// Position of the checksum in a superblock of version 2 or 3.
const SUPERBLOCK_CHECKED: usize = 44;
/// Position of the version in a superblock, behind its signature.
const SUPERBLOCK_VERSION: usize = 8;
/// Distance behind a signature within which most changes fall.
const NEAR: u64 = 200;
/// Numbers that lengths, counts and addresses trip over.
const NUMBERS: [u64; 12] =
    [0, 1, 7, 8, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, (1 << 63) - 1, u64::MAX];

/// Random numbers that follow from a seed (SplitMix64).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

/// Changes some of a file's metadata. The seed determines the changes.
pub fn with_changed_metadata(file: &[u8], seed: u64) -> Vec<u8> {
    let mut numbers = SeededNumbers(seed);
    let mut changed = file.to_vec();
    let blocks = blocks_of(file);
    for _ in 0..=numbers.below(3) {
        change(&mut changed, &blocks, &mut numbers);
    }
    if numbers.below(10) < 8 {
        correct_checksums(&mut changed);
    }
    changed
}

/// The positions of all signatures.
fn blocks_of(file: &[u8]) -> Vec<usize> {
    let is_block = |at: &usize| SIGNATURES.iter().any(|signature| file[*at..].starts_with(signature));
    (0..file.len()).filter(is_block).collect()
}

/// Changes some bytes.
fn change(file: &mut Vec<u8>, blocks: &[usize], numbers: &mut SeededNumbers) {
    if file.is_empty() {
        return;
    }
    let is_near = !blocks.is_empty() && numbers.below(4) > 0;
    let at = if is_near {
        blocks[numbers.index(blocks.len())] + numbers.below(NEAR) as usize
    } else {
        numbers.index(file.len())
    };
    let at = at.min(file.len() - 1);
    match numbers.below(8) {
        0 => file[at] ^= 1 << numbers.below(8),
        1 => put(file, at, &numbers.next().to_le_bytes()),
        2 => put(file, at, &vec![[0, 0xff][numbers.index(2)]; 1 + numbers.index(64)]),
        3 => {
            let length = (1 + numbers.index(96)).min(file.len());
            let from = numbers.index(file.len() - length + 1);
            let piece = file[from..from + length].to_vec();
            put(file, at, &piece);
        }
        4 if numbers.below(4) == 0 => file.truncate(at.max(1)),
        _ => {
            let length = [1, 2, 4, 8][numbers.index(4)];
            let number = NUMBERS[numbers.index(NUMBERS.len())].to_le_bytes();
            put(file, at, &number[..length]);
        }
    }
}

/// Overwrites bytes, up to the end of the file.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    let room = bytes.len().min(file.len() - at);
    file[at..at + room].copy_from_slice(&bytes[..room]);
}

/// Corrects the checksums of all blocks with a known length.
fn correct_checksums(file: &mut [u8]) {
    for at in blocks_of(file) {
        let known = CHECKED.iter().find(|(signature, _)| file[at..].starts_with(signature));
        let length = match known {
            Some((_, SUPERBLOCK_CHECKED))
                if file.get(at + SUPERBLOCK_VERSION).is_none_or(|version| *version < 2) =>
            {
                None
            }
            Some((_, length)) => Some(*length),
            None => object_header_length(&file[at..]),
        };
        let Some(length) = length.filter(|length| at + length + 4 <= file.len()) else { continue };
        let checksum = lookup3(&file[at..at + length]);
        file[at + length..at + length + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Length of an object header of version 2, up to its checksum.
fn object_header_length(block: &[u8]) -> Option<usize> {
    let rest = block.strip_prefix(b"OHDR\x02")?;
    let flags = *rest.first()?;
    let times = if flags & 0x20 == 0 { 0 } else { 16 };
    let phases = if flags & 0x10 == 0 { 0 } else { 4 };
    let size_at = 6 + times + phases;
    let size_bytes = 1 << (flags & 3);
    let size = block.get(size_at..size_at + size_bytes)?;
    let size = size.iter().rev().fold(0_usize, |all, byte| all.wrapping_shl(8) | usize::from(*byte));
    (size_at + size_bytes).checked_add(size).filter(|length| *length < block.len())
}

/// The checksum of metadata: Bob Jenkins' lookup3, `hashlittle` with the initial value 0.
fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (piece, behind) = rest.split_at(12);
        add(&mut state, piece);
        mix(&mut state);
        rest = behind;
    }
    if rest.is_empty() {
        return state[2];
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

fn add(state: &mut [u32; 3], piece: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(piece.chunks_exact(4)) {
        let bytes = bytes.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        *word = word.wrapping_add(bytes);
    }
}

/// One step of lookup3: `x -= z; x ^= rot(z, k); z += y`.
fn mix(state: &mut [u32; 3]) {
    const STEPS: [(usize, usize, usize, u32); 6] =
        [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)];
    for (x, z, y, turns) in STEPS {
        state[x] = state[x].wrapping_sub(state[z]) ^ state[z].rotate_left(turns);
        state[z] = state[z].wrapping_add(state[y]);
    }
}

/// The end of lookup3: `x ^= y; x -= rot(y, k)`.
fn finish(state: &mut [u32; 3]) {
    const STEPS: [(usize, usize, u32); 7] =
        [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)];
    for (x, y, turns) in STEPS {
        state[x] = (state[x] ^ state[y]).wrapping_sub(state[y].rotate_left(turns));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The values published by the author of lookup3.
    #[test]
    fn the_checksum_is_that_of_lookup3() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn checksums_of_real_files_are_right_already_and_become_right_again() {
        let corpus = crate::corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/hdf5"));
        let mut corrected = 0;
        for file in &corpus {
            let mut again = file.clone();
            correct_checksums(&mut again);
            assert!(again == *file, "a checksum was right and is not any more");
            for at in blocks_of(file).into_iter().filter(|at| file[*at..].starts_with(b"OHDR\x02")) {
                let length = object_header_length(&file[at..]).expect("it is whole");
                again[at + length] ^= 1;
                corrected += 1;
            }
            correct_checksums(&mut again);
            assert!(again == *file, "a checksum was not made right");
        }
        assert!(corrected > 10, "{corrected} headers");
    }

    #[test]
    fn a_seed_gives_the_same_file_again_and_another_one_another() {
        let file: Vec<u8> = [b"OHDR\x02\x00\x10".to_vec(), vec![3; 300]].concat();
        let changed: Vec<_> = (0..200).map(|seed| with_changed_metadata(&file, seed)).collect();
        assert_eq!(changed[7], with_changed_metadata(&file, 7));
        assert!(changed.iter().filter(|changed| **changed != file).count() > 190);
        assert!(with_changed_metadata(&[], 1).is_empty());
    }
}
