//! The transposition with AVX-512: 64 elements at a time, both ways. The scalar transposition does the rest.
//!
//! Splitting separates the bytes of 64 elements into planes (byte 0 of all, byte 1, ...). One instruction
//! collects the highest bit of each byte of a plane, which is a row's 64 bits. Joining goes the same way
//! back: a row's 64 bits choose the bytes of a plane to which the row's bit is added.
//!
//! Registers are four lanes of 16 bytes, and most instructions that move bytes stay within a lane. Elements
//! of four bytes, `e0` to `e63`, are separated like this:
//!
//! ```text
//! register 0            e0 ... e3 | e4 ... e7 | e8 ... e11 | e12 ... e15        16 elements, 4 a lane
//! shuffled in the lanes each lane: byte 0 of its four elements, then byte 1, 2, 3
//! permuted              byte 0 of e0 to e15 | byte 1 of e0 to e15 | byte 2 | byte 3
//! lanes of registers    plane 0: lane 0 of the registers 0, 1, 2, 3; plane 1: lane 1 of them; ...
//! ```
//!
//! Joining permutes the planes first. Unpacking within each lane then gives the right order once the lanes
//! are exchanged.

#![allow(unsafe_code)]
#![expect(clippy::many_single_char_names, reason = "registers are alike: a to h in order")]

use std::arch::x86_64::{
    __m512i, _mm_setr_epi8, _mm512_add_epi8, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_mask_add_epi8, _mm512_movepi8_mask, _mm512_permutexvar_epi16, _mm512_permutexvar_epi32,
    _mm512_permutexvar_epi64, _mm512_set_epi16, _mm512_set1_epi8, _mm512_setr_epi32, _mm512_setr_epi64,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_shuffle_i64x2, _mm512_storeu_si512,
    _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpackhi_epi32, _mm512_unpacklo_epi8,
    _mm512_unpacklo_epi16, _mm512_unpacklo_epi32,
};

use crate::ElementSize;

/// Bytes of a register.
const WIDTH: usize = 64;
/// Bytes of a row from 64 elements.
const BITS: usize = 8;

/// Proof that the processor has AVX-512F and AVX-512BW.
#[derive(Debug, Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// Queries the processor; the standard library caches the answer.
    pub(super) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw");
        there.then_some(Avx512(()))
    }

    /// Transposes elements to rows and returns the number of groups done.
    #[expect(clippy::unused_self, reason = "it proves that the processor has the instructions")]
    pub(super) fn split(self, elements: &[u8], size: ElementSize, rows: &mut [u8]) -> usize {
        // SAFETY: an `Avx512` exists only if the processor has the instructions.
        unsafe {
            match size {
                ElementSize::One => split::<1>(elements, rows),
                ElementSize::Two => split::<2>(elements, rows),
                ElementSize::Four => split::<4>(elements, rows),
                ElementSize::Eight => split::<8>(elements, rows),
            }
        }
    }

    /// Transposes rows to elements and returns the number of groups done.
    #[expect(clippy::unused_self, reason = "it proves that the processor has the instructions")]
    pub(super) fn join(self, rows: &[u8], size: ElementSize, elements: &mut [u8]) -> usize {
        // SAFETY: an `Avx512` exists only if the processor has the instructions.
        unsafe {
            match size {
                ElementSize::One => join::<1>(rows, elements),
                ElementSize::Two => join::<2>(rows, elements),
                ElementSize::Four => join::<4>(rows, elements),
                ElementSize::Eight => join::<8>(rows, elements),
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8; WIDTH]) -> __m512i {
    // SAFETY: the array has the register's 64 bytes, and the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn store(bytes: &mut [u8; WIDTH], value: __m512i) {
    // SAFETY: the array has the register's 64 bytes, and the instruction takes any alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn split<const SIZE: usize>(elements: &[u8], rows: &mut [u8]) -> usize {
    let groups = elements.len() / (8 * SIZE);
    let (registers, _) = elements.as_chunks::<WIDTH>();
    let (registers, _) = registers.as_chunks::<SIZE>();
    for (index, registers) in registers.iter().enumerate() {
        let mut planes = [_mm512_setzero_si512(); 8];
        for (plane, register) in planes.iter_mut().zip(registers) {
            *plane = load(register);
        }
        take_apart::<SIZE>(&mut planes);
        for (plane, rows) in planes.iter().zip(rows.chunks_exact_mut(8 * groups)) {
            put_rows(*plane, groups, BITS * index, rows);
        }
    }
    BITS * registers.len()
}

/// Stores the eight rows of a plane: bit 7 of all its bytes, then bit 6 moved up, and on to bit 0.
#[target_feature(enable = "avx512f,avx512bw")]
fn put_rows(mut plane: __m512i, groups: usize, at: usize, rows: &mut [u8]) {
    for row in rows.chunks_exact_mut(groups).rev() {
        row[at..at + BITS].copy_from_slice(&_mm512_movepi8_mask(plane).to_le_bytes());
        plane = _mm512_add_epi8(plane, plane);
    }
}

/// Separates registers of elements into planes of their bytes, in place. Only the first `SIZE` count.
#[target_feature(enable = "avx512f,avx512bw")]
fn take_apart<const SIZE: usize>(v: &mut [__m512i; 8]) {
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

/// Separates 64 elements of 2 bytes: the low bytes, the high bytes.
#[target_feature(enable = "avx512f,avx512bw")]
fn halves_of_pairs(v: [__m512i; 2]) -> [__m512i; 2] {
    let order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    let across = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    let [a, b] = v.map(|v| _mm512_permutexvar_epi64(across, _mm512_shuffle_epi8(v, order)));
    halves(a, b)
}

/// Separates 64 elements of 4 bytes: bytes 0, 1, 2, 3.
#[target_feature(enable = "avx512f,avx512bw")]
fn quarters(v: [__m512i; 4]) -> [__m512i; 4] {
    let order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    let across = every_fourth();
    exchange_lanes(v.map(|v| _mm512_permutexvar_epi32(across, _mm512_shuffle_epi8(v, order))))
}

/// Separates 16 elements of 8 bytes: the low four bytes of each, the high four.
#[target_feature(enable = "avx512f,avx512bw")]
fn halves_of_longs(v: [__m512i; 2]) -> [__m512i; 2] {
    let across = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    let [a, b] = v.map(|v| _mm512_permutexvar_epi32(across, v));
    halves(a, b)
}

/// The order that moves word `4 * place + lane` to word `4 * lane + place`.
#[target_feature(enable = "avx512f,avx512bw")]
fn every_fourth() -> __m512i {
    _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

/// Returns the low halves of both, and the high halves of both.
#[target_feature(enable = "avx512f,avx512bw")]
fn halves(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_shuffle_i64x2::<0b01_00_01_00>(a, b), _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b)]
}

/// Moves lane `i` of register `j` to lane `j` of register `i`.
#[target_feature(enable = "avx512f,avx512bw")]
fn exchange_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let [low, high] = halves(a, b);
    let [low_2, high_2] = halves(c, d);
    [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(low, low_2),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(low, low_2),
        _mm512_shuffle_i64x2::<0b10_00_10_00>(high, high_2),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(high, high_2),
    ]
}

#[target_feature(enable = "avx512f,avx512bw")]
fn join<const SIZE: usize>(rows: &[u8], elements: &mut [u8]) -> usize {
    let groups = rows.len() / (8 * SIZE);
    let (registers, _) = elements.as_chunks_mut::<WIDTH>();
    let (registers, _) = registers.as_chunks_mut::<SIZE>();
    for (index, registers) in registers.iter_mut().enumerate() {
        let mut planes = [_mm512_setzero_si512(); 8];
        for (plane, rows) in planes.iter_mut().zip(rows.chunks_exact(8 * groups)) {
            *plane = take_rows(rows, groups, BITS * index);
        }
        put_together::<SIZE>(&mut planes);
        for (register, value) in registers.iter_mut().zip(planes) {
            store(register, value);
        }
    }
    BITS * registers.len()
}

/// Builds the plane of eight rows: each byte is the sum of its bits in the rows.
#[target_feature(enable = "avx512f,avx512bw")]
fn take_rows(rows: &[u8], groups: usize, at: usize) -> __m512i {
    let mut plane = _mm512_setzero_si512();
    for (bit, row) in rows.chunks_exact(groups).enumerate() {
        let bits = row[at..at + BITS].try_into().expect("it was cut to a mask's bytes");
        let value = _mm512_set1_epi8((1_u8 << bit).cast_signed());
        plane = _mm512_mask_add_epi8(plane, u64::from_le_bytes(bits), plane, value);
    }
    plane
}

/// Puts planes of bytes together to registers of elements, in place, undoing [`take_apart`].
#[target_feature(enable = "avx512f,avx512bw")]
fn put_together<const SIZE: usize>(v: &mut [__m512i; 8]) {
    match SIZE {
        2 => {
            let across = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
            let [low, high] = [v[0], v[1]].map(|plane| _mm512_permutexvar_epi64(across, plane));
            [v[0], v[1]] = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
        }
        4 => {
            let across = every_fourth();
            let planes = [v[0], v[1], v[2], v[3]].map(|plane| _mm512_permutexvar_epi32(across, plane));
            [v[0], v[1], v[2], v[3]] = words(planes);
        }
        8 => {
            let across = every_eighth();
            let [a, b, c, d, e, f, g, h] = v.map(|plane| _mm512_permutexvar_epi16(across, plane));
            let low = words([a, b, c, d]);
            let high = words([e, f, g, h]);
            for (pair, (low, high)) in v.as_chunks_mut::<2>().0.iter_mut().zip(low.into_iter().zip(high)) {
                *pair = [_mm512_unpacklo_epi32(low, high), _mm512_unpackhi_epi32(low, high)];
            }
        }
        _ => {}
    }
}

/// The order that moves pair `4 * place + lane` of bytes to pair `8 * lane + place`.
#[target_feature(enable = "avx512f,avx512bw")]
fn every_eighth() -> __m512i {
    _mm512_set_epi16(
        31, 27, 23, 19, 15, 11, 7, 3, 30, 26, 22, 18, 14, 10, 6, 2, //
        29, 25, 21, 17, 13, 9, 5, 1, 28, 24, 20, 16, 12, 8, 4, 0,
    )
}

/// Joins bytes 0, 1, 2, 3 to words, within the lanes.
#[target_feature(enable = "avx512f,avx512bw")]
fn words([zero, one, two, three]: [__m512i; 4]) -> [__m512i; 4] {
    let low = _mm512_unpacklo_epi8(zero, one);
    let low_2 = _mm512_unpackhi_epi8(zero, one);
    let high = _mm512_unpacklo_epi8(two, three);
    let high_2 = _mm512_unpackhi_epi8(two, three);
    [
        _mm512_unpacklo_epi16(low, high),
        _mm512_unpackhi_epi16(low, high),
        _mm512_unpacklo_epi16(low_2, high_2),
        _mm512_unpackhi_epi16(low_2, high_2),
    ]
}
