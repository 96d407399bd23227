//! Sorts the bits of elements by their place: first bit 0 of all elements, then bit 1 of all, up to the last.
//! Counts of a few photons then leave most of the rows zero, and any compressor shrinks those.
//!
//! A block has a multiple of 8 elements. Row `r` of the result holds bit `r mod 8` of byte `r div 8` of all
//! elements, one bit per element, the least significant bit first. A group is 8 elements, a byte of each row.
//! This is `bshuf_trans_bit_elem` of the bitshuffle library (Masui et al., "A compression scheme for radio
//! data in high performance computing", 2015, section 4).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use crate::ElementSize;

/// The implementation of the transposition. All give the same bytes.
#[derive(Debug, Clone, Copy)]
pub enum Method {
    /// Eight bytes at a time, on any processor.
    Scalar,
    /// Thirty-two bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// Sixty-four bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl Method {
    /// Returns the fastest that this processor has.
    pub fn best() -> Self {
        Self::all().pop().expect("the scalar one is always there")
    }

    /// Returns all that this processor has, the fastest last.
    pub fn all() -> Vec<Self> {
        let mut methods = vec![Method::Scalar];
        #[cfg(target_arch = "x86_64")]
        methods.extend(avx2::Avx2::detect().map(Method::Avx2));
        #[cfg(target_arch = "x86_64")]
        methods.extend(avx512::Avx512::detect().map(Method::Avx512));
        methods
    }

    /// Transposes elements to rows of bits. Both slices are as long as the block, a multiple of 8 elements.
    pub fn split(self, elements: &[u8], size: ElementSize, rows: &mut [u8]) {
        check(elements, size, rows);
        if elements.is_empty() {
            return;
        }
        let done = match self {
            Method::Scalar => 0,
            #[cfg(target_arch = "x86_64")]
            Method::Avx2(avx2) => avx2.split(elements, size, rows),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512(avx512) => avx512.split(elements, size, rows),
        };
        scalar::split(elements, size, rows, done);
    }

    /// Transposes rows of bits to elements, undoing [`Method::split`]. `scratch` is as long as the block too.
    pub fn join(self, rows: &[u8], size: ElementSize, elements: &mut [u8], scratch: &mut [u8]) {
        check(rows, size, elements);
        if rows.is_empty() {
            return;
        }
        let done = match self {
            Method::Scalar => 0,
            #[cfg(target_arch = "x86_64")]
            Method::Avx2(avx2) => avx2.join(rows, size, elements, scratch),
            #[cfg(target_arch = "x86_64")]
            Method::Avx512(avx512) => avx512.join(rows, size, elements),
        };
        scalar::join(rows, size, elements, done);
    }
}

fn check(from: &[u8], size: ElementSize, to: &[u8]) {
    assert_eq!(from.len(), to.len(), "a block is as long before as after");
    assert_eq!(from.len() % (8 * size.bytes()), 0, "a block is a multiple of 8 elements");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, one bit at a time.
    fn defined(elements: &[u8], size: usize) -> Vec<u8> {
        let count = elements.len() / size;
        let mut rows = vec![0; elements.len()];
        for (element, bytes) in elements.chunks_exact(size).enumerate() {
            for row in 0..8 * size {
                let bit = bytes[row / 8] >> (row % 8) & 1;
                rows[row * (count / 8) + element / 8] |= bit << (element % 8);
            }
        }
        rows
    }

    #[test]
    fn every_method_is_tested_here() {
        let methods = Method::all();
        assert!(matches!(methods[0], Method::Scalar));
        #[cfg(target_arch = "x86_64")]
        {
            let there = |found: fn(&Method) -> bool| methods.iter().any(found);
            let avx512 =
                std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw");
            assert_eq!(
                there(|method| matches!(method, Method::Avx2(_))),
                std::is_x86_feature_detected!("avx2")
            );
            assert_eq!(there(|method| matches!(method, Method::Avx512(_))), avx512);
        }
    }

    #[test]
    fn nothing_and_the_shortest_blocks_come_back_too() {
        for (method, size) in Method::all().into_iter().flat_map(|m| ElementSize::ALL.map(|size| (m, size))) {
            for groups in [0, 1, 2, 7, 8, 9, 31, 32, 33] {
                let block: Vec<u8> =
                    (0..8 * groups * size.bytes()).map(|byte| (byte * 37 % 251) as u8).collect();
                let (mut rows, mut back) = (vec![1; block.len()], vec![1; block.len()]);
                method.split(&block, size, &mut rows);
                assert_eq!(rows, defined(&block, size.bytes()), "{method:?}, {groups} groups");
                method.join(&rows, size, &mut back, &mut vec![1; block.len()]);
                assert_eq!(back, block, "{method:?}, {groups} groups");
            }
        }
    }

    proptest! {
        #[test]
        fn every_method_does_what_is_defined_and_undoes_it(
            bytes in prop::collection::vec(any::<u8>(), 0..20_000),
            size in prop::sample::select(ElementSize::ALL.to_vec()),
        ) {
            let block = &bytes[..bytes.len() / (8 * size.bytes()) * 8 * size.bytes()];
            let expected = defined(block, size.bytes());
            for method in Method::all() {
                let (mut rows, mut back) = (vec![1; block.len()], vec![1; block.len()]);
                method.split(block, size, &mut rows);
                prop_assert_eq!(&rows, &expected, "{:?}", method);
                method.join(&rows, size, &mut back, &mut vec![1; block.len()]);
                prop_assert_eq!(&back[..], block, "{:?}", method);
            }
        }
    }
}
