//! Frames of the preview: read from the storage, with a header that describes them.

use std::{path::PathBuf, sync::Arc};

use nilometer_intake::transport::zeromq::SharedBytes;
use nilometer_model::{Bytes, Instrument};
use nilometer_ring::{HeldMemory, MemoryAccount, MemoryPart};
use serde_json::json;

use crate::{
    latest_frame::{LastFrameReader, check_frames},
    recording::{memory::PREVIEW_INDEX, prepare::PreparedRecording},
};

/// A recording whose frames viewers see.
#[derive(Debug)]
pub(crate) struct PreviewSource {
    name: String,
    directories: Vec<PathBuf>,
    shape: Vec<u64>,
    /// The type of a pixel in the notation of NumPy.
    dtype: &'static str,
    frame_size: u64,
    /// The reason why nobody can show its frames.
    refusal: Option<String>,
    account: MemoryAccount,
}

/// A frame on its way to viewers.
#[derive(Debug)]
pub(super) struct PreviewFrame {
    /// One line of JSON.
    pub(super) head: Vec<u8>,
    pub(super) body: PixelBytes,
}

/// The pixels of a frame, which count in the account of memory until the last viewer has them.
#[derive(Debug)]
pub(super) struct PixelBytes {
    bytes: Vec<u8>,
    _held: HeldMemory,
}

/// Reads frames of one recording.
#[derive(Debug)]
pub(super) struct PreviewReader {
    source: Arc<PreviewSource>,
    frames: LastFrameReader,
    index: HeldMemory,
    /// True if the positions of the frames took more memory than they may. The reader has forgotten them.
    is_too_long: bool,
}

impl PreviewSource {
    pub(crate) fn of(prepared: &PreparedRecording) -> Self {
        let directories = prepared.targets.iter().map(|target| target.path().to_owned()).collect();
        let account = prepared.recorder.memory().clone();
        PreviewSource::new(&prepared.name, directories, &prepared.instrument, account)
    }

    fn new(name: &str, directories: Vec<PathBuf>, instrument: &Instrument, account: MemoryAccount) -> Self {
        PreviewSource {
            name: name.to_owned(),
            directories,
            shape: instrument.shape.clone(),
            dtype: instrument.pixel.name(),
            frame_size: instrument.frame_size().0,
            refusal: check_frames(instrument).err(),
            account,
        }
    }

    /// The reason why viewers see nothing of this recording, or `None` if they see its frames.
    pub(super) fn refusal(&self) -> Option<&String> {
        self.refusal.as_ref()
    }
}

impl PreviewFrame {
    /// The pixels, for all viewers.
    pub(super) fn shared(self) -> (Vec<u8>, SharedBytes) {
        (self.head, Arc::new(self.body))
    }
}

impl AsRef<[u8]> for PixelBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PreviewReader {
    pub(super) fn new(source: Arc<PreviewSource>) -> Self {
        let frames = LastFrameReader::new(source.directories.clone());
        let index = HeldMemory::new(source.account.clone(), MemoryPart::Preview);
        PreviewReader { source, frames, index, is_too_long: false }
    }

    /// Returns true if no frame will follow the last one.
    pub(super) fn is_over(&self) -> bool {
        self.frames.is_over()
    }

    /// The latest frame, or `None` if it is the one read last.
    pub(super) fn read(&mut self) -> Result<Option<PreviewFrame>, String> {
        if self.is_too_long {
            let most = Bytes(PREVIEW_INDEX);
            return Err(format!("the positions of its frames take more than {most} of memory"));
        }
        let mut held = HeldMemory::new(self.source.account.clone(), MemoryPart::Preview);
        held.set(self.source.frame_size);
        let mut bytes = vec![0; self.source.frame_size as usize];
        let read = self.frames.read_into(&mut bytes);
        self.index.set(self.frames.index_memory());
        if self.index.bytes() > PREVIEW_INDEX {
            self.is_too_long = true;
            self.frames = LastFrameReader::new(Vec::new());
            self.index.set(0);
        }
        let Some(frame) = read? else { return Ok(None) };
        let PreviewSource { name, shape, dtype, .. } = &*self.source;
        let header = json!({
            "htype": "array-1.0",
            "type": dtype,
            "shape": shape,
            "frame": frame,
            "recording": name,
        });
        let body = PixelBytes { bytes, _held: held };
        Ok(Some(PreviewFrame { head: header.to_string().into_bytes(), body }))
    }
}
