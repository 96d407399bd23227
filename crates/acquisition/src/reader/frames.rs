//! Frames of a recording, one after the other.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
};

use nilometer_model::Format;

use super::{Place, Recording};
use crate::cbf;

/// Keeps the file that was read last in each lane open.
#[derive(Debug)]
pub struct Frames<'a> {
    recording: &'a Recording,
    open: Vec<Option<(u64, File)>>,
    bytes: Vec<u8>,
}

impl Frames<'_> {
    /// The bytes of the frame in a place.
    pub fn at(&mut self, place: Place) -> io::Result<&[u8]> {
        if self.recording.index.heads[place.lane].format == Format::Cbf {
            read_cbf(&self.recording.open_frames(place)?.file, &mut self.bytes)?;
            return Ok(&self.bytes);
        }
        let open = &mut self.open[place.lane];
        if open.as_ref().is_none_or(|(file, _)| *file != place.file) {
            *open = Some((place.file, self.recording.open_frames(place)?.file));
        }
        let length = place.length.map_or(self.bytes.len(), |length| self.bytes.len().min(length as usize));
        if let Some((_, file)) = open {
            let stride = self.recording.index.heads[place.lane].stride;
            file.read_exact_at(&mut self.bytes[..length], place.position.saturating_mul(stride))?;
        }
        Ok(&self.bytes[..length])
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
    pub fn frames(&self) -> Frames<'_> {
        let open = self.stems.iter().map(|_| None).collect();
        Frames { recording: self, open, bytes: vec![0; self.head().frame_size as usize] }
    }
}

/// The bytes of the frame in a CBF file, which is larger than the frame by no more than compressed pixels can be.
pub(crate) fn read_cbf(file: &File, frame: &mut [u8]) -> io::Result<()> {
    let most = cbf::size_max(frame.len() as u64 / 4);
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {most} B")));
    }
    cbf::read_frame(&bytes, frame).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
