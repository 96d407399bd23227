//! Frames as CBF files, made on the lane's own thread before a write is issued: so the processor time that it takes is the
//! recorder's, and is counted as such.

use nilometer_codec::byte_offset;
use nilometer_storage::{Arena, Buffer};

use crate::cbf;

/// Files that are made or in flight at once: as many as the writes of a lane.
const FILES: usize = 4;

/// Makes files from frames of one size.
#[derive(Debug)]
pub(super) struct Packer {
    /// The recording.
    name: String,
    /// Rows and columns.
    picture: [usize; 2],
    packed: Vec<u8>,
    /// Free ones. Each has room for the longest file; what is not used of it is never touched.
    buffers: Vec<Buffer>,
}

impl Packer {
    pub(super) fn new(name: &str, picture: [usize; 2]) -> Self {
        let pixels = picture.iter().map(|&side| side as u64).product();
        let (_, buffers) = Arena::shared_out(FILES, cbf::size_max(pixels) as usize);
        Packer { name: name.into(), picture, packed: Vec::new(), buffers }
    }

    /// Whether another file can be made now.
    pub(super) fn has_room(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// The file of a frame, and its bytes. Only called when there is room.
    pub(super) fn pack(&mut self, number: u64, frame: &[u8]) -> (Buffer, u32) {
        self.packed.clear();
        byte_offset::encode_bytes(frame, &mut self.packed);
        let mut file = self.buffers.pop().expect("only called when there is room");
        let (name, mut rest) = (format!("{}_{number:05}", self.name), &mut file[..]);
        let room = rest.len();
        cbf::put(&name, self.picture, &self.packed, &mut rest);
        let length = room - rest.len();
        (file, length as u32)
    }

    /// A file is written, or will not be.
    pub(super) fn give_back(&mut self, file: Buffer) {
        self.buffers.push(file);
    }
}
