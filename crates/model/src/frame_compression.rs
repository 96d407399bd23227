//! How frames are compressed before they are written.

use serde::{Deserialize, Serialize};

use crate::PixelType;

/// A filter that readers of HDF5 find in the package `hdf5plugin`, or none. Without loss, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameCompression {
    /// As they are.
    #[default]
    None,
    /// Bit transposition and LZ4: what photon-counting detectors send.
    Bslz4,
    /// Bit transposition and Zstandard: smaller, and slower.
    Bszstd,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl FrameCompression {
    /// All, in the order of the numbers that journals have for them.
    pub const ALL: [FrameCompression; 5] = [
        FrameCompression::None,
        FrameCompression::Bslz4,
        FrameCompression::Bszstd,
        FrameCompression::Lz4,
        FrameCompression::Zstd,
    ];

    /// The word in instruments and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FrameCompression::None => "none",
            FrameCompression::Bslz4 => "bslz4",
            FrameCompression::Bszstd => "bszstd",
            FrameCompression::Lz4 => "lz4",
            FrameCompression::Zstd => "zstd",
        }
    }
}

impl PixelType {
    /// Bytes of a pixel, if it is whole bytes, as types of HDF5 are.
    pub const fn whole_bytes(self) -> Option<u64> {
        match self.bits() {
            bits @ (8 | 16 | 32 | 64) => Some(bits / 8),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own_which_is_read_back() {
        for (number, compression) in FrameCompression::ALL.into_iter().enumerate() {
            assert_eq!(compression as usize, number, "journals have this number for it");
            let read: Result<FrameCompression, _> = serde_json::from_value(compression.name().into());
            assert_eq!(read.ok(), Some(compression));
        }
    }
}
