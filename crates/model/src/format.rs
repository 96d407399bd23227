//! The format that frames have on storage.

use serde::{Deserialize, Serialize};

/// The format of a frame on storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Its bytes, unchanged.
    #[default]
    Raw,
    /// One CBF file each, compressed by byte offset, as Pilatus detectors write them.
    Cbf,
    /// Chunks of a dataset in an HDF5 file with NeXus structure.
    Hdf5,
    /// VDIF frames, as they come from the network.
    #[serde(skip)]
    Vdif,
    /// Mark5B frames, as they come from the network.
    #[serde(skip)]
    Mark5b,
}

impl Format {
    /// The formats for an instrument's frames.
    pub const ALL: [Format; 3] = [Format::Raw, Format::Cbf, Format::Hdf5];
    /// [`Format::ALL`] and the formats that packets bring along, in the order of their numbers in journals.
    pub const STORED: [Format; 5] = [Format::Raw, Format::Cbf, Format::Vdif, Format::Mark5b, Format::Hdf5];

    /// Its number in journals.
    pub const fn number(self) -> u32 {
        match self {
            Format::Raw => 0,
            Format::Cbf => 1,
            Format::Vdif => 2,
            Format::Mark5b => 3,
            Format::Hdf5 => 4,
        }
    }

    /// The suffix of its files.
    pub const fn suffix(self) -> &'static str {
        match self {
            Format::Hdf5 => "h5",
            _ => self.name(),
        }
    }

    /// Its word in instruments and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::Cbf => "cbf",
            Format::Hdf5 => "hdf5",
            Format::Vdif => "vdif",
            Format::Mark5b => "m5b",
        }
    }
}
