//! The frames that a recording stores, as far as its layout depends on them.

use nilometer_model::{FileNames, Format, Instrument, Picture, Storing, packets::frames_of_block};
use nilometer_storage::buffer::ALIGNMENT;

/// The units of storage: an instrument's frames, or blocks of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFrames {
    /// Bytes of each frame.
    pub size: u64,
    /// Format of each frame.
    pub format: Format,
    /// Kind of files. For packets the plan chooses it: see [`RecordingPlan::of`].
    pub storing: Storing,
    /// Frames per file, if requested.
    pub per_file: Option<u64>,
    /// Number of consecutive frames that one file must hold: the channels of an image, or a line of a scan.
    pub together: u64,
    /// Pattern of the names of files.
    pub names: FileNames,
    /// Content of a file's header, for pictures.
    pub picture: Option<Picture>,
    /// True if the frames come as packets, so that the plan chooses how to store them.
    pub packets: bool,
    /// True if frames may be padded to pages of a file. False for blocks of packets, which form one stream.
    pub padded: bool,
    /// Least bytes of a ring slot, because a frame may be longer on arrival than when stored.
    pub slot_min: u64,
}

impl StoredFrames {
    /// Describes the frames of an instrument, with its storage settings.
    pub fn of(instrument: &Instrument) -> Self {
        StoredFrames {
            size: instrument.frame_size().0,
            format: instrument.recording.format,
            storing: instrument.recording.storing,
            per_file: instrument.recording.frames_per_file,
            together: instrument.recording.scan.map_or(1, |scan| scan.line()),
            names: instrument.recording.names(),
            picture: instrument.picture(),
            packets: instrument.packets.is_some(),
            padded: true,
            slot_min: 0,
        }
    }

    /// Describes blocks of packets with frames of this size, stored in order and without gaps as one stream.
    pub fn blocks(frame_size: usize, format: Format) -> Self {
        let frames = frames_of_block(frame_size, ALIGNMENT).or_else(|| frames_of_block(frame_size, 1));
        StoredFrames {
            size: frames.unwrap_or(1) * frame_size as u64,
            format,
            storing: Storing::Shared,
            per_file: None,
            together: 1,
            names: FileNames::Recorder,
            picture: None,
            packets: true,
            padded: false,
            slot_min: 0,
        }
    }

    /// Describes blocks of this size.
    pub fn blocks_of(size: u64, format: Format) -> Self {
        StoredFrames { size, ..StoredFrames::blocks(1, format) }
    }
}
