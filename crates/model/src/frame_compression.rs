//! How the recorder compresses frames before it writes them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::PluginFilter;

/// The compression of frames. The named filters are lossless, and readers of HDF5 find them in the package
/// `hdf5plugin`. Any other filter goes by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FrameCompression {
    /// Uncompressed.
    #[default]
    None,
    /// Bit transposition and LZ4: the format that photon-counting detectors send.
    Bslz4,
    /// Bit transposition and Zstandard: smaller, and slower.
    Bszstd,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
    /// A filter of a plug-in of HDF5.
    Filter(PluginFilter),
}

impl FrameCompression {
    /// All built-in ones, in the order of their numbers in journals.
    pub const ALL: [FrameCompression; 5] = [
        FrameCompression::None,
        FrameCompression::Bslz4,
        FrameCompression::Bszstd,
        FrameCompression::Lz4,
        FrameCompression::Zstd,
    ];

    /// Its word in instruments and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FrameCompression::None => "none",
            FrameCompression::Bslz4 => "bslz4",
            FrameCompression::Bszstd => "bszstd",
            FrameCompression::Lz4 => "lz4",
            FrameCompression::Zstd => "zstd",
            FrameCompression::Filter(filter) => filter.text(),
        }
    }

    /// True if it compresses samples of 12 bits, which the recorder unpacks for it. Plug-ins get frames as they are.
    pub const fn takes_packed_12(self) -> bool {
        !matches!(self, FrameCompression::None | FrameCompression::Filter(_))
    }
}

impl FromStr for FrameCompression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let built_in = Self::ALL.into_iter().find(|compression| compression.name() == text);
        if let Some(compression) = built_in {
            return Ok(compression);
        }
        if text.starts_with(PluginFilter::PREFIX) {
            return text.parse().map(FrameCompression::Filter);
        }
        let names = Self::ALL.map(|compression| format!("`{}`", compression.name())).join(", ");
        Err(format!(
            "no compression `{text}`: write one of {names}, or a plug-in of HDF5 by its number, `filter:32001,0,0,0,0,5`"
        ))
    }
}

impl TryFrom<String> for FrameCompression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FrameCompression> for String {
    fn from(compression: FrameCompression) -> Self {
        compression.name().into()
    }
}

impl fmt::Display for FrameCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own_which_is_read_back() {
        let filter = "filter:32001,0,0,0,0,5".parse().expect("a number and its values");
        for compression in FrameCompression::ALL.into_iter().chain([FrameCompression::Filter(filter)]) {
            let read: Result<FrameCompression, _> = serde_json::from_value(compression.name().into());
            assert_eq!(read.ok(), Some(compression));
        }
        let wrong = "gzip".parse::<FrameCompression>().expect_err("no word of any");
        assert!(wrong.contains("`none`, `bslz4`, `bszstd`, `lz4`, `zstd`, or a plug-in"), "{wrong}");
    }
}
