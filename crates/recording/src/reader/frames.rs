//! Frames of a recording, one after the other.

use std::io;

use super::{FrameLocation, Recording};
use crate::{
    journal::{Encoding, FrameExtent},
    recording_storage::StoredFile,
};

/// Bytes of an encoded frame that are read at once.
const STEP: usize = 16 << 20;

/// Keeps the file that was read last in each lane open.
#[derive(Debug)]
pub struct FrameReader<'a> {
    recording: &'a Recording,
    open: Vec<Option<(u64, Box<dyn StoredFile>)>>,
    bytes: Vec<u8>,
}

impl FrameReader<'_> {
    /// The bytes of the frame in a place.
    pub fn at(&mut self, place: FrameLocation) -> io::Result<&[u8]> {
        let FrameExtent { file, offset, encoding, size, .. } = place.extent;
        let open = &mut self.open[place.lane];
        if open.as_ref().is_none_or(|(other, _)| *other != file) {
            *open = Some((file, self.recording.open_frames(place)?.file));
        }
        let size = self.bytes.len().min(size as usize);
        let frame = &mut self.bytes[..size];
        match (open, encoding) {
            (Some((_, file)), Encoding::Raw) => file.read_exact_at(frame, offset)?,
            (Some((_, file)), _) => read_encoded(&**file, &place.extent, frame)?,
            (None, _) => {}
        }
        Ok(&self.bytes[..size])
    }

    /// The bytes of a frame; none if it is not there.
    pub fn get(&mut self, number: u64) -> io::Result<Option<&[u8]>> {
        match self.recording.index.frames.get(number) {
            Some(place) => self.at(place).map(Some),
            None => Ok(None),
        }
    }
}

impl Recording {
    /// Reads frames one after the other.
    pub fn frames(&self) -> FrameReader<'_> {
        let open = self.stems.iter().map(|_| None).collect();
        FrameReader { recording: self, open, bytes: vec![0; self.head().frame_size as usize] }
    }
}

/// The bytes of a frame that is encoded, of an extent of this file.
pub(crate) fn read_encoded(file: &dyn StoredFile, extent: &FrameExtent, frame: &mut [u8]) -> io::Result<()> {
    let length = extent.length as usize;
    let mut stored = Vec::new();
    // No more memory than there are bytes, and a step, whatever the journal says.
    while stored.len() < length {
        let begin = stored.len();
        stored.resize(length.min(begin + STEP), 0);
        let read = file.read_at(&mut stored[begin..], extent.offset + begin as u64)?;
        stored.truncate(begin + read);
        if read == 0 {
            break;
        }
    }
    Ok(extent.encoding.decode(&stored, frame)?)
}
