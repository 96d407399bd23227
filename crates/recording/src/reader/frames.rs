//! Frames of a recording, one after the other.

use std::io;

use super::{FrameLocation, Recording};
use crate::{
    journal::{Encoding, FrameExtent},
    recording_storage::StoredFile,
};

/// Bytes of an encoded frame per read.
const STEP: usize = 16 << 20;

/// Reads frames, and keeps the last file of each lane open.
#[derive(Debug)]
pub struct FrameReader<'a> {
    recording: &'a Recording,
    open: Vec<Option<(u64, Box<dyn StoredFile>)>>,
    bytes: Vec<u8>,
}

impl FrameReader<'_> {
    /// Returns the bytes of the frame at a location.
    pub fn at(&mut self, place: FrameLocation) -> io::Result<&[u8]> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let read = self.read_into(place, &mut bytes);
        self.bytes = bytes;
        Ok(&self.bytes[..read?])
    }

    /// Reads the frame at a location into `into` and returns the bytes read. If `into` is shorter than the
    /// frame, reads only that part.
    ///
    /// # Errors
    /// If the bytes can't be read or are not those of a frame.
    pub fn read_into(&mut self, place: FrameLocation, into: &mut [u8]) -> io::Result<usize> {
        let FrameExtent { offset, encoding, size, .. } = place.extent;
        let size = into.len().min(size as usize);
        let frame = &mut into[..size];
        let file = self.file_of(place)?;
        match encoding {
            Encoding::Raw => file.read_exact_at(frame, offset)?,
            _ => read_encoded(file, &place.extent, frame)?,
        }
        Ok(size)
    }

    /// Reads the stored bytes of the frame at a location, without decoding them, into the front of `into`.
    /// Returns their number.
    ///
    /// # Errors
    /// If `into` is too short, or the bytes can't be read.
    pub fn read_stored(&mut self, place: FrameLocation, into: &mut [u8]) -> io::Result<usize> {
        let FrameExtent { offset, length, .. } = place.extent;
        let length = length as usize;
        let too_long = || io::Error::new(io::ErrorKind::InvalidData, format!("it takes {length} B there"));
        let stored = into.get_mut(..length).ok_or_else(too_long)?;
        self.file_of(place)?.read_exact_at(stored, offset)?;
        Ok(length)
    }

    /// Returns the file at a location.
    fn file_of(&mut self, place: FrameLocation) -> io::Result<&dyn StoredFile> {
        let number = place.extent.file;
        let open = &mut self.open[place.lane];
        let file = match open.take().filter(|(other, _)| *other == number) {
            Some((_, file)) => file,
            None => self.recording.open_frames(place)?.file,
        };
        Ok(&*open.insert((number, file)).1)
    }

    /// Returns the bytes of a frame. `None` if the recording lacks it.
    pub fn get(&mut self, number: u64) -> io::Result<Option<&[u8]>> {
        match self.recording.index.frames.get(number) {
            Some(place) => self.at(place).map(Some),
            None => Ok(None),
        }
    }
}

impl Recording {
    /// Returns a reader of its frames.
    pub fn frames(&self) -> FrameReader<'_> {
        let open = self.stems.iter().map(|_| None).collect();
        FrameReader { recording: self, open, bytes: vec![0; self.head().frame_size as usize] }
    }
}

/// Decodes a frame from its extent in this file.
pub(crate) fn read_encoded(file: &dyn StoredFile, extent: &FrameExtent, frame: &mut [u8]) -> io::Result<()> {
    let length = extent.length as usize;
    let mut stored = Vec::new();
    // Allocate at most one step more than the file has bytes, even if the journal claims a greater length.
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
