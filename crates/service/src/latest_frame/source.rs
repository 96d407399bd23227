//! The latest frame of a recording in progress, as a picture. All functions here may wait for storage, and run on a
//! thread of their own.

use std::{path::PathBuf, sync::Arc};

use nilometer_model::{Instrument, Moment};
use nilometer_storage::Calendar;
use serde::Serialize;

use super::{
    last_frame::LastFrameReader,
    layout::PictureLayout,
    reduce::{ReducedPicture, reduce},
};
use crate::recording::prepare::PreparedRecording;

/// A recording from which pictures are made.
#[derive(Debug)]
pub(crate) struct PictureSource {
    name: String,
    directories: Vec<PathBuf>,
    layout: Result<PictureLayout, String>,
}

/// A frame as a picture, with the frame's number.
#[derive(Debug, Serialize)]
pub(crate) struct LatestFrame {
    recording: String,
    /// The frame's number in the recording, from 0.
    frame: u64,
    /// The time of the read.
    read_at: Moment,
    #[serde(flatten)]
    picture: ReducedPicture,
}

/// Reads the latest frame repeatedly.
#[derive(Debug)]
pub(super) struct PictureReader {
    source: Arc<PictureSource>,
    frames: LastFrameReader,
    /// The bytes of one frame.
    buffer: Vec<u8>,
}

impl PictureSource {
    pub(crate) fn of(prepared: &PreparedRecording) -> Self {
        let directories = prepared.targets.iter().map(|target| target.path().to_owned()).collect();
        PictureSource::new(&prepared.name, directories, &prepared.instrument)
    }

    /// A recording of this instrument in these directories, which hold nothing else.
    pub(crate) fn new(name: &str, directories: Vec<PathBuf>, instrument: &Instrument) -> Self {
        PictureSource { name: name.to_owned(), directories, layout: PictureLayout::of(instrument) }
    }

    /// The name of the recording.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directories of its lanes.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The reason why this recording has no pictures, or `None` if it has some.
    pub(super) fn refusal(&self) -> Option<&String> {
        self.layout.as_ref().err()
    }
}

impl LatestFrame {
    /// One byte a pixel, row by row; 255 is masked.
    pub(crate) fn codes(&self) -> &[u8] {
        &self.picture.codes
    }
}

impl PictureReader {
    pub(super) fn new(source: Arc<PictureSource>) -> Self {
        let frames = LastFrameReader::new(source.directories.clone());
        PictureReader { source, frames, buffer: Vec::new() }
    }

    /// The latest frame, or `None` if it is the one read last.
    pub(super) fn read(&mut self) -> Result<Option<LatestFrame>, String> {
        let layout = self.source.layout.clone()?;
        self.buffer.resize(layout.frame_size(), 0);
        let Some(frame) = self.frames.read_into(&mut self.buffer)? else { return Ok(None) };
        let picture = reduce(&self.buffer, &layout);
        let read_at = Moment(Calendar::now().time);
        Ok(Some(LatestFrame { recording: self.source.name.clone(), frame, read_at, picture }))
    }
}
