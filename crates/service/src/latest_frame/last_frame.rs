//! The bytes of the last frame of a recording in progress. The reader reads the recording's directories like any other
//! reader, and only acknowledged data. It may wait for storage.

use std::{ops::Range, path::PathBuf};

use nilometer_recording::{
    reader::{Recording, Trust},
    view::{Extent, RecordingView},
};

/// Reads the last frame repeatedly.
#[derive(Debug)]
pub(crate) struct LastFrameReader {
    directories: Vec<PathBuf>,
    view: Option<RecordingView>,
    shown: Option<u64>,
}

/// The number of blocks below the last visible one in which the reader looks for a frame.
const BACK: u64 = 64;
const NOTHING_YET: &str = "no frame is acknowledged yet";

impl LastFrameReader {
    /// A reader of the recording in these directories.
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        LastFrameReader { directories, view: None, shown: None }
    }

    /// Reads the last frame into a buffer of its size. Returns its number, or `None` if it is the frame read last.
    pub(crate) fn read_into(&mut self, buffer: &mut [u8]) -> Result<Option<u64>, String> {
        let shown = self.shown;
        let view = self.open()?;
        view.refresh();
        if view.frame_size() != buffer.len() as u64 {
            return Err(format!("its frames have {} B, and its shape has others", view.frame_size()));
        }
        let last = LastFrame::of(view).ok_or(NOTHING_YET)?;
        let frame = last.range.start / view.frame_size();
        if shown == Some(frame) {
            return Ok(None);
        }
        last.read(view, buffer)?;
        self.shown = Some(frame);
        Ok(Some(frame))
    }

    /// Returns true if the recording has ended, and the reader knows all its frames.
    pub(crate) fn is_over(&self) -> bool {
        self.view.as_ref().is_some_and(RecordingView::is_over)
    }

    /// Returns the bytes of memory for the positions of the recording's frames.
    pub(crate) fn index_memory(&self) -> u64 {
        let of = |view: &RecordingView| view.recording(|recording| recording.index.frames.memory());
        self.view.as_ref().map_or(0, of)
    }

    fn open(&mut self) -> Result<&RecordingView, String> {
        if self.view.is_none() {
            let opened = Recording::open(&self.directories, Trust::Acknowledged);
            // A recording has no journal before the first block is written.
            let recording = opened.map_err(|error| format!("{NOTHING_YET}: {error}"))?;
            self.view = Some(RecordingView::new(recording, Extent::Mark));
        }
        self.view.as_ref().ok_or_else(|| NOTHING_YET.into())
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

    fn read(&self, view: &RecordingView, buffer: &mut [u8]) -> Result<(), String> {
        let read = view.read_at(self.range.start, buffer);
        if read < buffer.len() || view.is_overwritten(self.range.clone()) {
            return Err("it was overwritten while it was read".into());
        }
        if view.is_faulted(self.block) {
            return Err("it can't be read: the storage failed".into());
        }
        Ok(())
    }
}
