//! The compressions of HDF5 datasets with frames: their words, the numbers of their filters, and their values
//! in a dataset's filter pipeline.

use std::{fmt, str::FromStr};

use crate::{
    ElementSize, ZstdLevel, bitshuffle,
    block::lz4_bound,
    frame::{BLOCK_HEADER, HEADER},
    lz4_filter,
};

/// The compression of a dataset's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4 of the unchanged elements.
    Lz4,
    /// Zstandard of the unchanged elements.
    Zstd(ZstdLevel),
    /// Bits transposed, then LZ4.
    BitshuffleLz4,
    /// Bits transposed, then Zstandard.
    BitshuffleZstd(ZstdLevel),
}

impl Compression {
    /// All compressions, those with a level at their usual one.
    pub const ALL: [Self; 5] = [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd(ZstdLevel::USUAL),
        Compression::BitshuffleLz4,
        Compression::BitshuffleZstd(ZstdLevel::USUAL),
    ];

    /// Returns its word, without the level.
    pub const fn word(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd(_) => "zstd",
            Compression::BitshuffleLz4 => "bslz4",
            Compression::BitshuffleZstd(_) => "bszstd",
        }
    }

    /// Returns the level; `None` if it has no levels.
    pub const fn level(self) -> Option<ZstdLevel> {
        match self {
            Compression::Zstd(level) | Compression::BitshuffleZstd(level) => Some(level),
            Compression::None | Compression::Lz4 | Compression::BitshuffleLz4 => None,
        }
    }

    /// Returns the same compression at another level; `None` if it has no levels.
    pub const fn at_level(self, level: ZstdLevel) -> Option<Self> {
        match self {
            Compression::Zstd(_) => Some(Compression::Zstd(level)),
            Compression::BitshuffleZstd(_) => Some(Compression::BitshuffleZstd(level)),
            Compression::None | Compression::Lz4 | Compression::BitshuffleLz4 => None,
        }
    }

    /// Returns the number of its HDF5 filter, as registered with The HDF Group; `None` if there is no filter.
    pub const fn filter(self) -> Option<u16> {
        match self {
            Compression::None => None,
            Compression::Lz4 => Some(32004),
            Compression::Zstd(_) => Some(32015),
            Compression::BitshuffleLz4 | Compression::BitshuffleZstd(_) => Some(32008),
        }
    }

    /// Returns the `cd_values` that a dataset's filter pipeline stores, as the plug-in's `set_local` leaves
    /// them. Readers take the element size and the compressor from them, and block sizes from the chunks.
    ///
    /// 32008 puts three values before the user's (block size, 0 for the usual; 2 for LZ4, 3 for Zstandard;
    /// level). They are the library's version, two numbers, and the element size (`bshuf_h5_set_local` of
    /// `bshuf_h5filter.c`). Version 0.4 is the first with Zstandard. 32004 (block size, 0 for the usual) and
    /// 32015 (level) have no `set_local`: `H5Zlz4.c`, `H5Zzstd.c`.
    pub fn cd_values(self, element: ElementSize) -> Vec<u32> {
        let element = element.bytes() as u32;
        match self {
            Compression::None => Vec::new(),
            Compression::Lz4 => vec![0],
            Compression::Zstd(level) => vec![level.get().into()],
            Compression::BitshuffleLz4 => vec![0, 4, element, 0, 2],
            Compression::BitshuffleZstd(level) => vec![0, 4, element, 0, 3, level.get().into()],
        }
    }

    /// Returns the most bytes of a chunk with `length` bytes of elements. No encoder needs more room.
    pub fn most_bytes(self, length: usize) -> usize {
        match self {
            Compression::None => length,
            Compression::Lz4 => HEADER + length + length.div_ceil(lz4_filter::BLOCK) * BLOCK_HEADER,
            Compression::Zstd(_) => zstd_safe::compress_bound(length),
            Compression::BitshuffleLz4 => blocks(length, bitshuffle::LZ4_BLOCK, lz4_bound),
            Compression::BitshuffleZstd(_) => {
                blocks(length, bitshuffle::ZSTD_BLOCK, zstd_safe::compress_bound)
            }
        }
    }
}

/// Returns the most bytes of a chunk in blocks of this size, each of which takes at most `bound`. The rest at
/// the end that is in no block is stored unchanged, which takes less than its bound.
fn blocks(length: usize, size: usize, bound: fn(usize) -> usize) -> usize {
    HEADER + length / size * (BLOCK_HEADER + bound(size)) + BLOCK_HEADER + bound(length % size)
}

/// Formats it like a user writes it: `bszstd:5`.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self.level() {
            Some(level) => write!(f, ":{}", level.get()),
            None => Ok(()),
        }
    }
}

/// Parses a word; those with levels may have one after a colon: `bslz4`, `zstd`, `bszstd:5`.
impl FromStr for Compression {
    type Err = UnknownCompression;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownCompression { text: text.to_owned() };
        let (word, level) = text.split_once(':').map_or((text, None), |(word, level)| (word, Some(level)));
        let compression = Self::ALL.into_iter().find(|known| known.word() == word).ok_or_else(unknown)?;
        let Some(level) = level else { return Ok(compression) };
        let level = level.parse().ok().and_then(ZstdLevel::new).ok_or_else(unknown)?;
        compression.at_level(level).ok_or_else(unknown)
    }
}

/// A word that is no compression, or a level that it does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no compression `{text}`: choose from bslz4, bszstd, lz4, zstd and none; bszstd and zstd may have a level from 1 to \
     22, such as bszstd:3"
)]
pub struct UnknownCompression {
    /// The text as given.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        let fast = ZstdLevel::FASTEST;
        for compression in Compression::ALL.into_iter().chain([Compression::Zstd(fast)]) {
            assert_eq!(compression.to_string().parse(), Ok(compression));
        }
        assert_eq!("bszstd".parse(), Ok(Compression::BitshuffleZstd(ZstdLevel::USUAL)));
        assert_eq!(Compression::BitshuffleZstd(ZstdLevel::HIGHEST).to_string(), "bszstd:22");
        for bad in
            ["", "gzip", "BSLZ4", "bslz4:1", "zstd:", "zstd:0", "zstd:23", "zstd:-1", "zstd:1:1", "none:3"]
        {
            let error = bad.parse::<Compression>().expect_err(bad).to_string();
            assert!(
                error.starts_with(&format!("no compression `{bad}`: choose from bslz4, bszstd,")),
                "{error}"
            );
        }
        let error = "gzip".parse::<Compression>().expect_err("HDF5 has it, this has not").to_string();
        assert!(Compression::ALL.iter().all(|known| error.contains(known.word())), "{error}");
    }

    #[test]
    fn pipelines_store_what_the_plug_ins_do() {
        let stored =
            |compression: Compression| (compression.filter(), compression.cd_values(ElementSize::Four));
        assert_eq!(
            Compression::ALL.map(stored),
            [
                (None, vec![]),
                (Some(32004), vec![0]),
                (Some(32015), vec![3]),
                (Some(32008), vec![0, 4, 4, 0, 2]),
                (Some(32008), vec![0, 4, 4, 0, 3, 3]),
            ]
        );
    }
}
