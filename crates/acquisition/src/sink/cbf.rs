//! Frames as CBF files.

use nilometer_codec::byte_offset;
use nilometer_model::Picture;
use nilometer_recording::{cbf, journal::Encoding};
use nilometer_ring::{FrameEncoder, StoredAs};

/// Makes files from frames of one size.
#[derive(Debug)]
pub(super) struct CbfEncoder {
    /// The recording.
    name: String,
    picture: Picture,
}

impl CbfEncoder {
    pub(super) fn new(name: &str, picture: Picture) -> Self {
        CbfEncoder { name: name.into(), picture }
    }
}

impl FrameEncoder for CbfEncoder {
    fn length_max(&self) -> usize {
        cbf::size_max(self.picture.pixels() as u64) as usize
    }

    fn encode(&self, number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> StoredAs {
        scratch.clear();
        byte_offset::encode_bytes(&slot[..4 * self.picture.pixels()], scratch);
        // Pictures count from 1, like the names of files.
        let name = format!("{}_{:05}", self.name, number + 1);
        let mut rest = into;
        let room = rest.len();
        cbf::put(&name, &self.picture.of_number(number), scratch, &mut rest);
        StoredAs { encoding: Encoding::Cbf, length: (room - rest.len()) as u32 }
    }
}
