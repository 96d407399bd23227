//! The transposition with AVX2: 32 elements at a time to rows, 256 at a time back. The scalar transposition
//! does the rest.
//!
//! Splitting separates the bytes of the elements into planes (byte 0 of 32 elements, byte 1, ...). One
//! instruction, which collects the highest bit of each byte, then reads a row's 32 bits. Joining builds each
//! plane from eight rows, then puts the bytes of the planes together again.

#![allow(unsafe_code)]
#![expect(clippy::many_single_char_names, reason = "registers are alike: a to h in order")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_permute2x128_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi8, _mm256_setr_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi64,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16,
    _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi16,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use crate::ElementSize;

/// Bytes of a register.
const WIDTH: usize = 32;

/// Proof that the processor has AVX2.
#[derive(Debug, Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// Queries the processor; the standard library caches the answer.
    pub(super) fn detect() -> Option<Self> {
        std::is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }

    /// Transposes elements to rows and returns the number of groups done.
    #[expect(clippy::unused_self, reason = "it proves that the processor has the instructions")]
    pub(super) fn split(self, elements: &[u8], size: ElementSize, rows: &mut [u8]) -> usize {
        // SAFETY: an `Avx2` exists only if the processor has the instructions.
        unsafe {
            match size {
                ElementSize::One => split::<1>(elements, rows),
                ElementSize::Two => split::<2>(elements, rows),
                ElementSize::Four => split::<4>(elements, rows),
                ElementSize::Eight => split::<8>(elements, rows),
            }
        }
    }

    /// Transposes rows to elements and returns the number of groups done. `planes` is as long as the rows and
    /// is overwritten.
    #[expect(clippy::unused_self, reason = "it proves that the processor has the instructions")]
    pub(super) fn join(
        self,
        rows: &[u8],
        size: ElementSize,
        elements: &mut [u8],
        planes: &mut [u8],
    ) -> usize {
        // SAFETY: an `Avx2` exists only if the processor has the instructions.
        unsafe {
            match size {
                ElementSize::One => join::<1>(rows, elements, planes),
                ElementSize::Two => join::<2>(rows, elements, planes),
                ElementSize::Four => join::<4>(rows, elements, planes),
                ElementSize::Eight => join::<8>(rows, elements, planes),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; WIDTH]) -> __m256i {
    // SAFETY: the array has the register's 32 bytes, and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; WIDTH], value: __m256i) {
    // SAFETY: the array has the register's 32 bytes, and the instruction takes any alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx2")]
fn split<const SIZE: usize>(elements: &[u8], rows: &mut [u8]) -> usize {
    let groups = elements.len() / (8 * SIZE);
    let (registers, _) = elements.as_chunks::<WIDTH>();
    let mut done = 0;
    for registers in registers.chunks_exact(SIZE) {
        let mut planes = [_mm256_setzero_si256(); 8];
        for (plane, register) in planes.iter_mut().zip(registers) {
            *plane = load(register);
        }
        take_apart::<SIZE>(&mut planes);
        for (plane, rows) in planes.iter().zip(rows.chunks_exact_mut(8 * groups)) {
            put_rows(*plane, groups, done, rows);
        }
        done += WIDTH / 8;
    }
    done
}

/// Stores the eight rows of a plane: bit 7 of all its bytes, then bit 6 moved up, and on to bit 0.
#[target_feature(enable = "avx2")]
fn put_rows(mut plane: __m256i, groups: usize, at: usize, rows: &mut [u8]) {
    for row in rows.chunks_exact_mut(groups).rev() {
        let bits = _mm256_movemask_epi8(plane).to_le_bytes();
        row[at..at + bits.len()].copy_from_slice(&bits);
        plane = _mm256_add_epi8(plane, plane);
    }
}

/// Separates registers of elements into planes of their bytes, in place. Only the first `SIZE` count.
#[target_feature(enable = "avx2")]
fn take_apart<const SIZE: usize>(v: &mut [__m256i; 8]) {
    match SIZE {
        2 => [v[0], v[1]] = halves_of_pairs([v[0], v[1]]),
        4 => [v[0], v[1], v[2], v[3]] = quarters([v[0], v[1], v[2], v[3]]),
        8 => {
            let [a, e] = halves_of_longs([v[0], v[1]]);
            let [b, f] = halves_of_longs([v[2], v[3]]);
            let [c, g] = halves_of_longs([v[4], v[5]]);
            let [d, h] = halves_of_longs([v[6], v[7]]);
            let [a, b, c, d] = quarters([a, b, c, d]);
            let [e, f, g, h] = quarters([e, f, g, h]);
            *v = [a, b, c, d, e, f, g, h];
        }
        _ => {}
    }
}

/// Separates 32 elements of 2 bytes: the low bytes, the high bytes.
#[target_feature(enable = "avx2")]
fn halves_of_pairs(v: [__m256i; 2]) -> [__m256i; 2] {
    let order = _mm256_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, //
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
    );
    let [a, b] = v.map(|v| _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(v, order)));
    lanes(a, b)
}

/// Separates 32 elements of 4 bytes: bytes 0, 1, 2, 3.
#[target_feature(enable = "avx2")]
fn quarters(v: [__m256i; 4]) -> [__m256i; 4] {
    let order = _mm256_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, //
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
    );
    let across = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let [a, b, c, d] = v.map(|v| _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, order), across));
    let [even, odd] = [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
    let [even_2, odd_2] = [_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)];
    let [zero, two] = lanes(even, even_2);
    let [one, three] = lanes(odd, odd_2);
    [zero, one, two, three]
}

/// Separates 8 elements of 8 bytes: the low four bytes of each, the high four.
#[target_feature(enable = "avx2")]
fn halves_of_longs(v: [__m256i; 2]) -> [__m256i; 2] {
    let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    let [a, b] = v.map(|v| _mm256_permutevar8x32_epi32(v, order));
    lanes(a, b)
}

/// Returns the low 16 bytes of both, and the high 16 bytes of both.
#[target_feature(enable = "avx2")]
fn lanes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

#[target_feature(enable = "avx2")]
fn join<const SIZE: usize>(rows: &[u8], elements: &mut [u8], planes: &mut [u8]) -> usize {
    let count = rows.len() / SIZE;
    let groups = count / 8;
    let done = groups / WIDTH * WIDTH;
    for (plane, rows) in planes.chunks_exact_mut(count).zip(rows.chunks_exact(count)) {
        for at in (0..done).step_by(WIDTH) {
            let eight: [__m256i; 8] =
                std::array::from_fn(|row| load(part(&rows[row * groups + at..][..WIDTH])));
            put_plane(eight, &mut plane[8 * at..8 * (at + WIDTH)]);
        }
    }
    let (registers, _) = elements.as_chunks_mut::<WIDTH>();
    for (index, registers) in registers.chunks_exact_mut(SIZE).take(done * 8 / WIDTH).enumerate() {
        let mut bytes = [_mm256_setzero_si256(); 8];
        for (byte, plane) in bytes.iter_mut().zip(planes.chunks_exact(count)) {
            *byte = load(part(&plane[index * WIDTH..][..WIDTH]));
        }
        put_together::<SIZE>(&mut bytes);
        for (register, value) in registers.iter_mut().zip(bytes) {
            store(register, value);
        }
    }
    done
}

fn part(bytes: &[u8]) -> &[u8; WIDTH] {
    bytes.try_into().expect("it was cut to a register's bytes")
}

/// Builds a plane's 256 bytes from 32 bytes of each of its eight rows.
#[target_feature(enable = "avx2")]
fn put_plane(rows: [__m256i; 8], plane: &mut [u8]) {
    let [a, b, c, d, e, f, g, h] = rows;
    let pairs = [(a, b), (c, d), (e, f), (g, h)]
        .map(|(a, b)| [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]);
    let fours = |half: usize, pair: usize| {
        let a = pairs[pair][half];
        let b = pairs[pair + 1][half];
        [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
    };
    let low = [fours(0, 0), fours(0, 2)];
    let high = [fours(1, 0), fours(1, 2)];
    let eights = |[first, last]: [[__m256i; 2]; 2], half: usize| {
        let a = first[half];
        let b = last[half];
        [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)].map(|bits| turn(bits))
    };
    let quads = [eights(low, 0), eights(low, 1), eights(high, 0), eights(high, 1)];
    // Groups 0 to 15 are in the low halves of the registers, 16 to 31 in the high ones.
    let (registers, _) = plane.as_chunks_mut::<WIDTH>();
    for (index, [a, b]) in quads.into_iter().enumerate() {
        let [near, far] = lanes(a, b);
        store(&mut registers[index], near);
        store(&mut registers[index + 4], far);
    }
}

/// Turns bit `c` of byte `r` into bit `r` of byte `c` in each 8 bytes, as in the scalar transposition.
#[target_feature(enable = "avx2")]
fn turn(bits: __m256i) -> __m256i {
    let bits = swap::<7>(bits, 0x00aa_00aa_00aa_00aa);
    let bits = swap::<14>(bits, 0x0000_cccc_0000_cccc);
    swap::<28>(bits, 0x0000_0000_f0f0_f0f0)
}

#[target_feature(enable = "avx2")]
fn swap<const DISTANCE: i32>(bits: __m256i, mask: i64) -> __m256i {
    let differ = _mm256_xor_si256(bits, _mm256_srli_epi64::<DISTANCE>(bits));
    let differ = _mm256_and_si256(differ, _mm256_set1_epi64x(mask));
    _mm256_xor_si256(_mm256_xor_si256(bits, differ), _mm256_slli_epi64::<DISTANCE>(differ))
}

/// Puts planes of bytes together to registers of elements, in place, undoing [`take_apart`].
#[target_feature(enable = "avx2")]
fn put_together<const SIZE: usize>(v: &mut [__m256i; 8]) {
    match SIZE {
        2 => [v[0], v[1]] = pairs(v[0], v[1]),
        4 => [v[0], v[1], v[2], v[3]] = words([v[0], v[1], v[2], v[3]]),
        8 => {
            let [a, b, c, d] = words([v[0], v[1], v[2], v[3]]);
            let [e, f, g, h] = words([v[4], v[5], v[6], v[7]]);
            let [[a, b], [c, d], [e, f], [g, h]] = [longs(a, e), longs(b, f), longs(c, g), longs(d, h)];
            *v = [a, b, c, d, e, f, g, h];
        }
        _ => {}
    }
}

#[target_feature(enable = "avx2")]
fn pairs(low: __m256i, high: __m256i) -> [__m256i; 2] {
    lanes(_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high))
}

#[target_feature(enable = "avx2")]
fn words([zero, one, two, three]: [__m256i; 4]) -> [__m256i; 4] {
    let low = _mm256_unpacklo_epi8(zero, one);
    let low_2 = _mm256_unpackhi_epi8(zero, one);
    let high = _mm256_unpacklo_epi8(two, three);
    let high_2 = _mm256_unpackhi_epi8(two, three);
    let [a, c] = lanes(_mm256_unpacklo_epi16(low, high), _mm256_unpackhi_epi16(low, high));
    let [b, d] = lanes(_mm256_unpacklo_epi16(low_2, high_2), _mm256_unpackhi_epi16(low_2, high_2));
    [a, b, c, d]
}

#[target_feature(enable = "avx2")]
fn longs(low: __m256i, high: __m256i) -> [__m256i; 2] {
    lanes(_mm256_unpacklo_epi32(low, high), _mm256_unpackhi_epi32(low, high))
}
