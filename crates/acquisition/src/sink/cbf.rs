//! Frames as CBF files.

use nilometer_codec::byte_offset;

use super::FrameEncoder;
use nilometer_recording::{cbf, journal::Encoding};

/// Makes files from frames of one size.
#[derive(Debug)]
pub(super) struct CbfEncoder {
    /// The recording.
    name: String,
    /// Rows and columns.
    picture: [usize; 2],
}

impl CbfEncoder {
    pub(super) fn new(name: &str, picture: [usize; 2]) -> Self {
        CbfEncoder { name: name.into(), picture }
    }

    fn pixels(&self) -> usize {
        self.picture.iter().product()
    }
}

impl FrameEncoder for CbfEncoder {
    fn encoding(&self) -> Encoding {
        Encoding::Cbf
    }

    fn length_max(&self) -> usize {
        cbf::size_max(self.pixels() as u64) as usize
    }

    fn encode(&self, number: u64, slot: &[u8], scratch: &mut Vec<u8>, into: &mut [u8]) -> u32 {
        scratch.clear();
        byte_offset::encode_bytes(&slot[..4 * self.pixels()], scratch);
        let name = format!("{}_{number:05}", self.name);
        let mut rest = into;
        let room = rest.len();
        cbf::put(&name, self.picture, scratch, &mut rest);
        (room - rest.len()) as u32
    }
}
