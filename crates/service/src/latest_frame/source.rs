//! The latest frame of a recording in progress. It reads the recording's directories like any other reader, and
//! only acknowledged data. All functions here may wait for storage, and run on a thread of their own.

use std::{ops::Range, path::PathBuf, sync::Arc};

use nilometer_model::{Instrument, Moment};
use nilometer_recording::{
    reader::{Recording, Trust},
    view::{Extent, RecordingView},
};
use nilometer_storage::Calendar;
use serde::Serialize;

use super::{
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
    view: Option<RecordingView>,
    /// The bytes of one frame.
    buffer: Vec<u8>,
    shown: Option<u64>,
}

/// The number of blocks below the last visible one in which the reader looks for a frame.
const BACK: u64 = 64;
const NOTHING_YET: &str = "no frame is acknowledged yet";

impl PictureSource {
    pub(crate) fn of(prepared: &PreparedRecording) -> Self {
        let directories = prepared.targets.iter().map(|target| target.path().to_owned()).collect();
        PictureSource::new(&prepared.name, directories, &prepared.instrument)
    }

    /// A recording of this instrument in these directories, which hold nothing else.
    pub(super) fn new(name: &str, directories: Vec<PathBuf>, instrument: &Instrument) -> Self {
        PictureSource { name: name.to_owned(), directories, layout: PictureLayout::of(instrument) }
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
        PictureReader { source, view: None, buffer: Vec::new(), shown: None }
    }

    /// The latest frame, or `None` if it is the one read last.
    pub(super) fn read(&mut self) -> Result<Option<LatestFrame>, String> {
        let layout = self.source.layout.clone()?;
        let view = self.open()?;
        view.refresh();
        if view.frame_size() != layout.frame_size() as u64 {
            return Err(format!("its frames have {} B, and its shape has others", view.frame_size()));
        }
        let last = LastFrame::of(view).ok_or(NOTHING_YET)?;
        let frame = last.range.start / view.frame_size();
        if self.shown == Some(frame) {
            return Ok(None);
        }
        let picture = self.picture(&last, &layout)?;
        self.shown = Some(frame);
        let read_at = Moment(Calendar::now().time);
        Ok(Some(LatestFrame { recording: self.source.name.clone(), frame, read_at, picture }))
    }

    fn open(&mut self) -> Result<&RecordingView, String> {
        if self.view.is_none() {
            let opened = Recording::open(&self.source.directories, Trust::Acknowledged);
            // A recording has no journal before the first block is written.
            let recording = opened.map_err(|error| format!("{NOTHING_YET}: {error}"))?;
            self.view = Some(RecordingView::new(recording, Extent::Mark));
        }
        self.view.as_ref().ok_or_else(|| NOTHING_YET.into())
    }

    fn picture(&mut self, last: &LastFrame, layout: &PictureLayout) -> Result<ReducedPicture, String> {
        let view = self.view.as_ref().ok_or(NOTHING_YET)?;
        self.buffer.resize(layout.frame_size(), 0);
        let read = view.read_at(last.range.start, &mut self.buffer);
        if read < self.buffer.len() || view.is_overwritten(last.range.clone()) {
            return Err("it was overwritten while it was read".into());
        }
        if view.is_faulted(last.block) {
            return Err("it can't be read: the storage failed".into());
        }
        Ok(reduce(&self.buffer, layout))
    }
}

/// The last whole frame that a reader may see, as a range of bytes in the view, and its block.
#[derive(Debug, PartialEq, Eq)]
struct LastFrame {
    range: Range<u64>,
    block: u64,
}

impl LastFrame {
    /// Finds the last visible frame. The view hides blocks beyond the watermark, and the one below it may be
    /// missing. The search therefore goes a few blocks back.
    fn of(view: &RecordingView) -> Option<Self> {
        let shown = view.length();
        let size = view.frame_size();
        let block_size = size * view.frames_of_block().max(1);
        let from = (view.first_block() + shown / block_size).saturating_sub(BACK);
        let there: Vec<u64> =
            view.recording(|recording| recording.index.frames.numbers(from..u64::MAX).collect());
        there.into_iter().rev().find_map(|block| {
            let Range { start, end } = view.range_of(block);
            let frames = end.checked_sub(start)? / size;
            let begin = start + frames.checked_sub(1)? * size;
            (end <= shown).then_some(LastFrame { range: begin..begin + size, block })
        })
    }
}
