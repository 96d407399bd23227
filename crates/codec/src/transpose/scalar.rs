//! The transposition on any processor: a group of 8 elements at a time, byte by byte.

use crate::ElementSize;

/// Transposes elements to rows, from group `first` on.
pub(super) fn split(elements: &[u8], size: ElementSize, rows: &mut [u8], first: usize) {
    match size {
        ElementSize::One => split_sized::<1>(elements, rows, first),
        ElementSize::Two => split_sized::<2>(elements, rows, first),
        ElementSize::Four => split_sized::<4>(elements, rows, first),
        ElementSize::Eight => split_sized::<8>(elements, rows, first),
    }
}

/// Transposes rows to elements, from group `first` on.
pub(super) fn join(rows: &[u8], size: ElementSize, elements: &mut [u8], first: usize) {
    match size {
        ElementSize::One => join_sized::<1>(rows, elements, first),
        ElementSize::Two => join_sized::<2>(rows, elements, first),
        ElementSize::Four => join_sized::<4>(rows, elements, first),
        ElementSize::Eight => join_sized::<8>(rows, elements, first),
    }
}

fn split_sized<const SIZE: usize>(elements: &[u8], rows: &mut [u8], first: usize) {
    let groups = elements.len() / (8 * SIZE);
    let (elements, _) = elements.as_chunks::<SIZE>();
    let (elements, _) = elements.as_chunks::<8>();
    for (group, eight) in elements.iter().enumerate().skip(first) {
        for byte in 0..SIZE {
            let bits = transpose(u64::from_le_bytes(eight.map(|element| element[byte])));
            for (bit, value) in bits.to_le_bytes().into_iter().enumerate() {
                rows[(8 * byte + bit) * groups + group] = value;
            }
        }
    }
}

fn join_sized<const SIZE: usize>(rows: &[u8], elements: &mut [u8], first: usize) {
    let groups = rows.len() / (8 * SIZE);
    let (elements, _) = elements.as_chunks_mut::<SIZE>();
    let (elements, _) = elements.as_chunks_mut::<8>();
    for (group, eight) in elements.iter_mut().enumerate().skip(first) {
        for byte in 0..SIZE {
            let bits: [u8; 8] = std::array::from_fn(|bit| rows[(8 * byte + bit) * groups + group]);
            let values = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            for (element, value) in eight.iter_mut().zip(values) {
                element[byte] = value;
            }
        }
    }
}

/// Turns bit `c` of byte `r` into bit `r` of byte `c`: it exchanges squares of 1, 2 and 4 bits in turn
/// (Warren, "Hacker's Delight", section 7-3).
fn transpose(bits: u64) -> u64 {
    let swap = |bits: u64, distance: u32, mask: u64| {
        let differ = (bits ^ (bits >> distance)) & mask;
        bits ^ differ ^ (differ << distance)
    };
    let bits = swap(bits, 7, 0x00aa_00aa_00aa_00aa);
    let bits = swap(bits, 14, 0x0000_cccc_0000_cccc);
    swap(bits, 28, 0x0000_0000_f0f0_f0f0)
}
